//! Participants under forged discovery: datagrams of strangers, of a known
//! participant's name, and of nobody in particular.

use pteros_rtps::id::EntityId;

use crate::domain::{address, prefix};
use crate::packet::Packet;
use crate::steps::Steps;
use crate::town::{ATTACKER, MULE, Town, VICTIM};

const STEPS_MAX: usize = 48;

/// Bytes that do not name the two who talk: without security nothing tells a
/// message that does from theirs.
fn honest(bytes: &[u8]) -> &[u8] {
    let theirs = |window: &[u8]| window[0] < 2 && window[1..] == [0, 7, 7, 7];
    let named = bytes.windows(5).any(theirs);
    if named { &[] } else { bytes }
}

pub fn participant(data: &[u8]) {
    let mut steps = Steps::new(data);
    let mut town = Town::open();
    town.memory_bytes_max = usize::MAX;
    for _ in 0..STEPS_MAX {
        let Some(kind) = steps.byte() else { break };
        let from = match kind >> 6 {
            0 => ATTACKER,
            1 => VICTIM,
            _ => address(MULE),
        };
        let size = usize::from(steps.u16() % 1_024);
        match kind % 8 {
            // Whole datagrams, as captured ones are.
            0 => {
                let packet = Packet(honest(steps.bytes(size)).to_vec());
                town.hit(from, &packet);
            }
            1 => {
                let packet = Town::announce(Town::newcomer(steps.u32()), steps.bytes(size));
                town.hit(from, &packet);
            }
            2 => {
                let who = Town::newcomer(steps.u32());
                let mut payload = Town::announcement(who, from).unended();
                payload.extend_from_slice(steps.bytes(size));
                town.hit(from, &Town::announce(who, &payload));
            }
            3 => town.mule_tells(kind & 0x20 == 0, steps.bytes(size)),
            4 => {
                let kind = if kind & 0x20 == 0 { 3 } else { 4 };
                let mut payload = Town::endpoint(steps.u32(), kind).unended();
                payload.extend_from_slice(steps.bytes(size));
                town.mule_tells(kind == 3, &payload);
            }
            5 => {
                let packet = Packet::from(prefix(MULE, 0)).to(prefix(0, 0)).data(
                    EntityId::WLP_WRITER,
                    steps.i64(),
                    steps.bytes(size),
                );
                town.hit(from, &packet);
            }
            6 => {
                let speaker = Packet::from(prefix(MULE, 0)).to(prefix(0, 0));
                town.hit(from, &speaker.raw(honest(steps.bytes(size))));
            }
            _ => town.run_ms(i64::from(kind)),
        }
    }
    town.close();
}

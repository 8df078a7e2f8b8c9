//! Participants under forged discovery: datagrams of unknown senders, in the name
//! of a discovered participant, and without a valid sender.

use pteros_rtps::id::EntityId;

use super::steps::Steps;
use crate::rtps::discovery_harness::{
    ATTACKER, DiscoveryHarness, IMPERSONATED, VICTIM, announce, announcement, endpoint,
    new_participant,
};
use crate::rtps::domain::{address, prefix};
use crate::rtps::packet::Packet;

const STEPS_MAX: usize = 48;

/// Bytes without the GUID prefixes of the two participants: without security a
/// message with them is indistinguishable from theirs.
fn honest(bytes: &[u8]) -> &[u8] {
    let theirs = |window: &[u8]| window[0] < 2 && window[1..] == [0, 7, 7, 7];
    let named = bytes.windows(5).any(theirs);
    if named { &[] } else { bytes }
}

pub fn participant(data: &[u8]) {
    let mut steps = Steps::new(data);
    let mut harness = DiscoveryHarness::new();
    harness.memory_bytes_max = usize::MAX;
    for _ in 0..STEPS_MAX {
        let Some(kind) = steps.byte() else { break };
        let from = match kind >> 6 {
            0 => ATTACKER,
            1 => VICTIM,
            _ => address(IMPERSONATED),
        };
        let size = usize::from(steps.u16() % 1_024);
        match kind % 8 {
            // Whole datagrams, as captured ones are.
            0 => {
                let packet = Packet(honest(steps.bytes(size)).to_vec());
                harness.attack(from, &packet);
            }
            1 => {
                let packet = announce(new_participant(steps.u32()), steps.bytes(size));
                harness.attack(from, &packet);
            }
            2 => {
                let who = new_participant(steps.u32());
                let mut payload = announcement(who, from).unended();
                payload.extend_from_slice(steps.bytes(size));
                harness.attack(from, &announce(who, &payload));
            }
            3 => harness.announce_as_impersonated(kind & 0x20 == 0, steps.bytes(size)),
            4 => {
                let kind = if kind & 0x20 == 0 { 3 } else { 4 };
                let mut payload = endpoint(steps.u32(), kind).unended();
                payload.extend_from_slice(steps.bytes(size));
                harness.announce_as_impersonated(kind == 3, &payload);
            }
            5 => {
                let packet = Packet::from(prefix(IMPERSONATED, 0)).to(prefix(0, 0)).data(
                    EntityId::WLP_WRITER,
                    steps.i64(),
                    steps.bytes(size),
                );
                harness.attack(from, &packet);
            }
            6 => {
                let attacker = Packet::from(prefix(IMPERSONATED, 0)).to(prefix(0, 0));
                harness.attack(from, &attacker.raw(honest(steps.bytes(size))));
            }
            _ => harness.run_ms(i64::from(kind)),
        }
    }
}

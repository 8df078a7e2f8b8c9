//! A matched pair under the submessages of an intruder, an unmatched sender and
//! (where security would be needed to tell) forgers.

use pteros_rtps::id::EntityId;
use pteros_rtps::qos::Reliability;

use super::steps::Steps;
use crate::rtps::endpoint_harness::{
    EndpointHarness, INTRUDER_READER, INTRUDER_WRITER, intruder, unmatched_sender,
};
use crate::rtps::packet::{Frag, Packet};

/// The longest script: the checks at its end cost more than a step.
const STEPS_MAX: usize = 64;

fn endpoint_harness(steps: &mut Steps<'_>) -> (EndpointHarness, Packet) {
    let flags = steps.byte().unwrap_or(0);
    let mut harness = EndpointHarness::with_intruder(if flags & 1 == 0 {
        Reliability::Reliable
    } else {
        Reliability::BestEffort
    });
    harness.memory_bytes_max = usize::MAX;
    let attacker = if flags & 2 == 0 {
        intruder()
    } else {
        unmatched_sender()
    };
    (harness, attacker)
}

pub fn matched_reader(data: &[u8]) {
    let mut steps = Steps::new(data);
    let (mut harness, attacker) = endpoint_harness(&mut steps);
    for _ in 0..STEPS_MAX {
        let Some(kind) = steps.byte() else { break };
        let packet = attacker.clone();
        let packet = match kind % 8 {
            0 => {
                let (sequence, size) = (steps.i64(), steps.u16() % 512);
                packet.data(INTRUDER_WRITER, sequence, steps.bytes(size.into()))
            }
            1 => {
                let (first, last, count) = (steps.i64(), steps.i64(), steps.u32());
                packet.heartbeat(INTRUDER_WRITER, first, last, count)
            }
            2 => {
                let (start, base) = (steps.i64(), steps.i64());
                let (bits, words) = steps.set();
                packet.gap(INTRUDER_WRITER, start, base, bits, &words)
            }
            3 => {
                let (sequence, last, count) = (steps.i64(), steps.u32(), steps.u32());
                packet.heartbeat_frag(INTRUDER_WRITER, sequence, last, count)
            }
            4 => fragment(&mut steps, packet),
            5 => {
                let (sequence, qos, size) = (steps.i64(), steps.u16() % 128, steps.u16() % 64);
                let qos = steps.bytes(qos.into());
                packet.data_with_qos(INTRUDER_WRITER, sequence, qos, steps.bytes(size.into()))
            }
            6 => packet.raw(honest(steps.bytes(usize::from(kind) + 8))),
            _ => {
                harness.pair.run_ms(i64::from(kind));
                continue;
            }
        };
        harness.send_to_reader(&packet);
    }
}

/// Bytes without the GUID prefixes of the pair: without security a message with
/// them (INFO_SRC) is indistinguishable from theirs.
fn honest(bytes: &[u8]) -> &[u8] {
    let named = bytes.windows(6).any(|window| window == [7; 6]);
    if named { &[] } else { bytes }
}

fn fragment(steps: &mut Steps<'_>, packet: Packet) -> Packet {
    let sequence = steps.i64();
    let (first, count) = (steps.u32(), steps.u16());
    let (size, sample) = (steps.u16(), steps.u32());
    let bytes = usize::from(steps.u16() % 512);
    packet.frag(Frag {
        writer: INTRUDER_WRITER,
        sequence,
        first,
        count,
        size,
        sample,
        payload: steps.bytes(bytes),
    })
}

pub fn matched_writer(data: &[u8]) {
    let mut steps = Steps::new(data);
    let (mut harness, attacker) = endpoint_harness(&mut steps);
    let (_, writer) = harness.request();
    for _ in 0..STEPS_MAX {
        let Some(kind) = steps.byte() else { break };
        let pair = match kind & 0x80 {
            0 => (INTRUDER_READER, writer),
            _ => (EntityId::UNKNOWN, writer),
        };
        let packet = attacker.clone();
        let packet = match kind % 5 {
            0 => {
                let base = steps.i64();
                let (bits, words) = steps.set();
                packet.acknack(pair, base, bits, &words, steps.u32())
            }
            1 => {
                let (sequence, base) = (steps.i64(), steps.u32());
                let (bits, words) = steps.set();
                packet.nack_frag(pair, sequence, (base, bits, &words), steps.u32())
            }
            2 => packet.raw(honest(steps.bytes(usize::from(kind) + 8))),
            3 => {
                // Sometimes large enough for fragments.
                let size = usize::from(steps.u16()) % 4_000;
                harness.pair.write(harness.w, &vec![kind; size]);
                harness.pair.run_ms(1);
                continue;
            }
            _ => {
                harness.pair.run_ms(i64::from(kind));
                continue;
            }
        };
        harness.send_to_writer(&packet);
    }
}

/// The byte of every sample at this offset.
fn content(sequence: i64, at: usize) -> u8 {
    (sequence as u8) ^ (at as u8) ^ ((at >> 8) as u8)
}

/// Fragments of samples whose content follows from number and offset. Whatever
/// their order, size or overlap, a delivered sample has that content.
pub fn fragments(data: &[u8]) {
    let mut steps = Steps::new(data);
    let (mut harness, _) = endpoint_harness(&mut steps);
    for _ in 0..STEPS_MAX * 4 {
        let Some(kind) = steps.byte() else { break };
        if kind % 16 == 15 {
            harness.pair.run_ms(i64::from(kind));
            continue;
        }
        let sequence = 1 + i64::from(kind % 16);
        let (first, count) = (steps.u32(), steps.u16() % 8);
        let (size, sample) = (1 + steps.u16() % 600, steps.u32());
        let from = (first.saturating_sub(1) as usize).saturating_mul(size.into());
        let length = usize::from(count) * usize::from(size);
        let to = from.saturating_add(length).min(sample as usize);
        let payload: Vec<u8> = (from..to).map(|at| content(sequence, at)).collect();
        let packet = intruder().frag(Frag {
            writer: INTRUDER_WRITER,
            sequence,
            first,
            count,
            size,
            sample,
            payload: &payload,
        });
        harness.send_to_reader(&packet);
    }
    for (sequence, payload) in harness.samples_of_intruder() {
        let right = payload.iter().enumerate();
        for (at, byte) in right {
            assert_eq!(*byte, content(sequence, at), "sample {sequence} at {at}");
        }
    }
}

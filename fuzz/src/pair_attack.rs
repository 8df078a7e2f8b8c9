//! A matched pair under the submessages of an intruder, a stranger and (for
//! what cannot be told apart without security) forgers.

use pteros_rtps::id::EntityId;
use pteros_rtps::qos::Reliability;

use crate::hall::{Hall, ITS_READER, ITS_WRITER};
use crate::packet::{Frag, Packet};
use crate::steps::Steps;

/// No script is longer: the end of each costs more than a step.
const STEPS_MAX: usize = 64;

fn hall(steps: &mut Steps<'_>) -> (Hall, Packet) {
    let flags = steps.byte().unwrap_or(0);
    let mut hall = Hall::open_as(if flags & 1 == 0 {
        Reliability::Reliable
    } else {
        Reliability::BestEffort
    });
    hall.memory_bytes_max = usize::MAX;
    let speaker = if flags & 2 == 0 {
        Hall::intruder()
    } else {
        Hall::stranger()
    };
    (hall, speaker)
}

pub fn matched_reader(data: &[u8]) {
    let mut steps = Steps::new(data);
    let (mut hall, speaker) = hall(&mut steps);
    for _ in 0..STEPS_MAX {
        let Some(kind) = steps.byte() else { break };
        let packet = speaker.clone();
        let packet = match kind % 8 {
            0 => {
                let (sequence, size) = (steps.i64(), steps.u16() % 512);
                packet.data(ITS_WRITER, sequence, steps.bytes(size.into()))
            }
            1 => {
                let (first, last, count) = (steps.i64(), steps.i64(), steps.u32());
                packet.heartbeat(ITS_WRITER, first, last, count)
            }
            2 => {
                let (start, base) = (steps.i64(), steps.i64());
                let (bits, words) = steps.set();
                packet.gap(ITS_WRITER, start, base, bits, &words)
            }
            3 => {
                let (sequence, last, count) = (steps.i64(), steps.u32(), steps.u32());
                packet.heartbeat_frag(ITS_WRITER, sequence, last, count)
            }
            4 => fragment(&mut steps, packet),
            5 => {
                let (sequence, qos, size) = (steps.i64(), steps.u16() % 128, steps.u16() % 64);
                let qos = steps.bytes(qos.into());
                packet.data_with_qos(ITS_WRITER, sequence, qos, steps.bytes(size.into()))
            }
            6 => packet.raw(honest(steps.bytes(usize::from(kind) + 8))),
            _ => {
                hall.pair.run_ms(i64::from(kind));
                continue;
            }
        };
        hall.hit_reader(&packet);
    }
    hall.close();
}

/// Bytes that do not name the pair's own participants: without security nothing
/// tells a message that does (INFO_SRC) from theirs.
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
        writer: ITS_WRITER,
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
    let (mut hall, speaker) = hall(&mut steps);
    let (_, writer) = hall.request();
    for _ in 0..STEPS_MAX {
        let Some(kind) = steps.byte() else { break };
        let pair = match kind & 0x80 {
            0 => (ITS_READER, writer),
            _ => (EntityId::UNKNOWN, writer),
        };
        let packet = speaker.clone();
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
                // Large enough for fragments, now and then.
                let size = usize::from(steps.u16()) % 4_000;
                hall.pair.write(hall.w, &vec![kind; size]);
                hall.pair.run_ms(1);
                continue;
            }
            _ => {
                hall.pair.run_ms(i64::from(kind));
                continue;
            }
        };
        hall.hit_writer(&packet);
    }
    hall.close();
}

/// The byte that stands in every sample at this place.
fn content(sequence: i64, at: usize) -> u8 {
    (sequence as u8) ^ (at as u8) ^ ((at >> 8) as u8)
}

/// Fragments of samples whose content follows from number and place: whatever
/// order, size or overlap they come in, what is delivered is that content.
pub fn fragments(data: &[u8]) {
    let mut steps = Steps::new(data);
    let (mut hall, _) = hall(&mut steps);
    for _ in 0..STEPS_MAX * 4 {
        let Some(kind) = steps.byte() else { break };
        if kind % 16 == 15 {
            hall.pair.run_ms(i64::from(kind));
            continue;
        }
        let sequence = 1 + i64::from(kind % 16);
        let (first, count) = (steps.u32(), steps.u16() % 8);
        let (size, sample) = (1 + steps.u16() % 600, steps.u32());
        let from = (first.saturating_sub(1) as usize).saturating_mul(size.into());
        let length = usize::from(count) * usize::from(size);
        let to = from.saturating_add(length).min(sample as usize);
        let payload: Vec<u8> = (from..to).map(|at| content(sequence, at)).collect();
        let packet = Hall::intruder().frag(Frag {
            writer: ITS_WRITER,
            sequence,
            first,
            count,
            size,
            sample,
            payload: &payload,
        });
        hall.hit_reader(&packet);
    }
    for (sequence, payload) in hall.intruders_samples() {
        let right = payload.iter().enumerate();
        for (at, byte) in right {
            assert_eq!(*byte, content(sequence, at), "sample {sequence} at {at}");
        }
    }
    hall.close();
}

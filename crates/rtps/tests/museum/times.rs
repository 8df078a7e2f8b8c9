//! Times and durations that no clock shows.

use pteros_rtps::wire::pid;

use crate::domain::{address, prefix};
use crate::hall::{Hall, ITS_WRITER};
use crate::packet::id;
use crate::town::{ATTACKER, MULE, Town};

/// Seconds and fractions at their extremes.
const EXTREMES: [(u32, u32); 9] = [
    (0, 0),
    (0, 1),
    (0, u32::MAX),
    (1, u32::MAX),
    (0x7fff_ffff, u32::MAX),
    (0x7fff_ffff, 0x7fff_ffff),
    (0x8000_0000, 0),
    (u32::MAX, u32::MAX),
    (u32::MAX, 0),
];

fn bytes(time: (u32, u32)) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&time.0.to_le_bytes());
    bytes[4..].copy_from_slice(&time.1.to_le_bytes());
    bytes
}

/// CVE-2025-63829 (Fast DDS): a source time whose fraction could not be
/// normalised kept a loop running for ever.
#[test]
fn any_source_time_is_taken_at_once() {
    let mut hall = Hall::open();
    for (number, time) in (1..).zip(EXTREMES) {
        let packet = Hall::intruder().said(id::INFO_TS, 0, &bytes(time)).data(
            ITS_WRITER,
            number,
            b"\0\x01\0\0",
        );
        hall.hit_both(&packet);
    }
    for length in 0..8 {
        hall.hit_both(&Hall::intruder().said(id::INFO_TS, 0, &[0xff; 8][..length]));
    }
    hall.hit_reader(&Hall::intruder().heartbeat(ITS_WRITER, 1, 9, 1));
    assert_eq!(hall.intruders_samples().len(), EXTREMES.len());
    hall.close();
}

/// Leases of no time, of negative time and of all time (Fast DDS #155 and
/// #3088: unequal leases and moved clocks lost participants). Zero is not a
/// reason to flap, for ever not a reason to keep for ever.
#[test]
fn any_lease_is_bounded() {
    let mut town = Town::open();
    for (number, lease) in (0..).zip(EXTREMES) {
        let who = Town::newcomer(number);
        let list =
            Town::announcement(who, ATTACKER).with(pid::PARTICIPANT_LEASE_DURATION, &bytes(lease));
        town.hit(ATTACKER, &Town::announce(who, &list.end()));
    }
    let mule = prefix(MULE, 0);
    for lease in EXTREMES {
        let list = Town::announcement(mule, address(MULE))
            .with(pid::PARTICIPANT_LEASE_DURATION, &bytes(lease));
        town.hit(address(MULE), &Town::announce(mule, &list.end()));
        town.run_ms(100);
    }
    town.run_ms(10_000);
    town.close();
}

/// The same in the policies of endpoints: deadlines, lifespans and leases that
/// are due always (Fast DDS #5815: a timer that spins).
#[test]
fn policies_with_any_duration_spin_nothing() {
    let mut town = Town::open();
    let mut number = 0;
    for id in [
        pid::DEADLINE,
        pid::LIFESPAN,
        pid::LATENCY_BUDGET,
        pid::TIME_BASED_FILTER,
    ] {
        for time in EXTREMES {
            number += 1;
            let list = |kind| {
                Town::endpoint(number, kind)
                    .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
                    .string(pid::TYPE_NAME, 2, b"T\0")
                    .with(id, &bytes(time))
            };
            town.mule_tells(true, &list(3).end());
        }
    }
    for time in EXTREMES {
        for kind in 0..4_u32 {
            number += 1;
            let value = [&kind.to_le_bytes()[..], &bytes(time)].concat();
            let list = Town::endpoint(number, 3)
                .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
                .string(pid::TYPE_NAME, 2, b"T\0")
                .with(pid::LIVELINESS, &value);
            town.mule_tells(true, &list.end());
        }
    }
    town.run_ms(2_000);
    town.close();
}

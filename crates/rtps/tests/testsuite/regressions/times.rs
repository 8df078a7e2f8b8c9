//! Extreme timestamps and durations.

use pteros_rtps::wire::pid;

use pteros_test_support::rtps::discovery_harness::{
    ATTACKER, DiscoveryHarness, IMPERSONATED, announce, announcement, endpoint, new_participant,
};
use pteros_test_support::rtps::domain::{address, prefix};
use pteros_test_support::rtps::endpoint_harness::{EndpointHarness, INTRUDER_WRITER, intruder};
use pteros_test_support::rtps::packet::id;

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
fn any_source_timestamp_is_delivered_at_once() {
    let mut harness = EndpointHarness::new();
    for (number, time) in (1..).zip(EXTREMES) {
        let packet = intruder().submessage(id::INFO_TS, 0, &bytes(time)).data(
            INTRUDER_WRITER,
            number,
            b"\0\x01\0\0",
        );
        harness.send_to_both(&packet);
    }
    for length in 0..8 {
        harness.send_to_both(&intruder().submessage(id::INFO_TS, 0, &[0xff; 8][..length]));
    }
    harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, 1, 9, 1));
    assert_eq!(harness.samples_of_intruder().len(), EXTREMES.len());
}

/// Leases of no time, of negative time and of all time (Fast DDS #155 and
/// #3088: unequal leases and moved clocks lost participants). Zero is not a
/// reason to flap, for ever not a reason to keep for ever.
#[test]
fn any_lease_is_bounded() {
    let mut harness = DiscoveryHarness::new();
    for (number, lease) in (0..).zip(EXTREMES) {
        let who = new_participant(number);
        let list = announcement(who, ATTACKER).with(pid::PARTICIPANT_LEASE_DURATION, &bytes(lease));
        harness.attack(ATTACKER, &announce(who, &list.end()));
    }
    let impersonated = prefix(IMPERSONATED, 0);
    for lease in EXTREMES {
        let list = announcement(impersonated, address(IMPERSONATED))
            .with(pid::PARTICIPANT_LEASE_DURATION, &bytes(lease));
        harness.attack(address(IMPERSONATED), &announce(impersonated, &list.end()));
        harness.run_ms(100);
    }
    harness.run_ms(10_000);
}

/// The same in the policies of endpoints: deadlines, lifespans and leases that
/// are due always (Fast DDS #5815: a timer that spins).
#[test]
fn policies_with_any_duration_cause_no_busy_loop() {
    let mut harness = DiscoveryHarness::new();
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
                endpoint(number, kind)
                    .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
                    .string(pid::TYPE_NAME, 2, b"T\0")
                    .with(id, &bytes(time))
            };
            harness.announce_as_impersonated(true, &list(3).end());
        }
    }
    for time in EXTREMES {
        for kind in 0..4_u32 {
            number += 1;
            let value = [&kind.to_le_bytes()[..], &bytes(time)].concat();
            let list = endpoint(number, 3)
                .string(pid::TOPIC_NAME, 11, b"rt/chatter\0")
                .string(pid::TYPE_NAME, 2, b"T\0")
                .with(pid::LIVELINESS, &value);
            harness.announce_as_impersonated(true, &list.end());
        }
    }
    harness.run_ms(2_000);
}

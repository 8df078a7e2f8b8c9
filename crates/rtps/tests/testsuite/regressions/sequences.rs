//! Sequence numbers of a writer: GAPs and HEARTBEATs over ranges too large for any
//! memory, and invalid sets.

use pteros_rtps::qos::Reliability;

use pteros_test_support::rtps::endpoint_harness::{
    EndpointHarness, INTRUDER, INTRUDER_WRITER, intruder,
};
use pteros_test_support::rtps::pair::net::SubmessageSummary;

/// CVE-2025-64438 (Fast DDS): each number of a GAP's range was put into a set,
/// 64 GB of nodes for one packet. Ours is one interval.
#[test]
fn a_gap_over_all_numbers_costs_one_run() {
    let mut harness = EndpointHarness::new();
    harness.send_to_reader(&intruder().gap(INTRUDER_WRITER, 1, i64::MAX - 300, 0, &[]));
    harness.send_to_reader(&intruder().gap(
        INTRUDER_WRITER,
        1,
        i64::MAX - 300,
        256,
        &[u32::MAX; 8],
    ));
    harness.memory_bytes_max = 64 << 10;
}

/// The same with holes: every second number of ever new ranges. At most 256
/// intervals are remembered, the rest is counted and may come again.
#[test]
fn gaps_with_holes_cost_at_most_256_runs() {
    let mut harness = EndpointHarness::new();
    for round in 0..2_000 {
        let base = 10 + round * 512;
        harness.send_to_reader(&intruder().gap(
            INTRUDER_WRITER,
            base,
            base,
            256,
            &[0x5555_5555; 8],
        ));
    }
    assert!(harness.reader_stats().buffer_full > 0);
    harness.memory_bytes_max = 64 << 10;
}

/// CVE-2023-39534 (Fast DDS): a GAP whose list begins before its start tripped
/// an assertion.
#[test]
fn a_gap_that_ends_before_it_starts_is_empty() {
    let mut harness = EndpointHarness::new();
    for (start, base) in [
        (100, 50),
        (i64::MAX, 1),
        (2, 1),
        (5, 0),
        (5, -5),
        (0, 5),
        (-3, 5),
    ] {
        for bits in [0, 1, 32, 256] {
            harness.send_to_reader(&intruder().gap(INTRUDER_WRITER, start, base, bits, &[0; 8]));
        }
    }
    harness.send_to_reader(&intruder().data(INTRUDER_WRITER, 1, b"\0\x01\0\0 first"));
    harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, 1, 1, 1));
}

/// Fast DDS #1338: the bitmap of a GAP was copied into eight words on the
/// stack, however many words it named.
#[test]
fn a_gap_of_more_than_256_bits_is_refused() {
    let mut harness = EndpointHarness::new();
    for bits in [257, 1_000, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        harness.send_to_reader(&intruder().gap(INTRUDER_WRITER, 1, 10, bits, &[u32::MAX; 64]));
    }
    // Words that are announced and missing.
    harness.send_to_reader(&intruder().gap(INTRUDER_WRITER, 1, 10, 256, &[u32::MAX; 3]));
    harness.send_to_reader(&intruder().data(INTRUDER_WRITER, 10, b"\0\x01\0\0"));
}

/// CVE-2025-65016 (Fast DDS): a HEARTBEAT whose first number is huge. All
/// before it is lost, in one step, and what comes later is delivered.
#[test]
fn a_heartbeat_that_begins_at_the_largest_number_costs_nothing() {
    let mut harness = EndpointHarness::new();
    let far = i64::MAX - 10;
    harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, far, far + 5, 1));
    harness.send_to_reader(&intruder().data(INTRUDER_WRITER, far, b"\0\x01\0\0 far"));
    assert!(harness.samples_of_intruder().len() <= 1);
    harness.memory_bytes_max = 64 << 10;
}

/// A HEARTBEAT that names more samples than there can be (the malformed ranges
/// reported against Fast DDS and Cyclone DDS): one request names 256 numbers at
/// most, and repeats are spaced.
#[test]
fn samples_that_do_not_exist_are_requested_at_a_limited_rate() {
    let mut harness = EndpointHarness::new();
    harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, 1, i64::MAX - 1, 1));
    harness.pair.run_ms(10_000);
    let requests = harness
        .pair
        .net
        .count(|submessage| matches!(submessage, SubmessageSummary::AckNack(..)));
    assert!(requests <= 60, "{requests} requests in 10 s");
    assert!(harness.sent_to(INTRUDER) <= 60 * 128);
    harness.memory_bytes_max = 64 << 10;
}

/// CVE-2023-39949 and Fast DDS #3236: sequence numbers that no writer may use
/// reached an assertion.
#[test]
fn invalid_sequence_numbers_are_refused() {
    let mut harness = EndpointHarness::new();
    for number in [0, -1, i64::MIN, -(1 << 32)] {
        harness.send_to_both(&intruder().data(INTRUDER_WRITER, number, b"\0\x01\0\0"));
        harness.send_to_both(&intruder().heartbeat(INTRUDER_WRITER, number, number, 1));
        harness.send_to_both(&intruder().heartbeat(INTRUDER_WRITER, 5, number, 2));
        harness.send_to_both(&intruder().heartbeat_frag(INTRUDER_WRITER, number, 1, 1));
    }
    assert_eq!(harness.samples_of_intruder(), []);
}

/// The end of numbers: a sample numbered 2^63-1 leaves no next one.
/// (CVE-2023-39949's other end.)
#[test]
fn no_number_follows_the_largest_one() {
    for claimed in [Reliability::Reliable, Reliability::BestEffort] {
        let mut harness = EndpointHarness::with_intruder(claimed);
        for number in [i64::MAX - 1, i64::MAX] {
            harness.send_to_reader(&intruder().data(INTRUDER_WRITER, number, b"\0\x01\0\0 last"));
            harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, number, number, 1));
            harness.send_to_reader(&intruder().gap(INTRUDER_WRITER, number, number, 0, &[]));
        }
    }
}

/// cyclonedds #2306 (a process of 45 GB): samples far ahead of a missing one
/// wait for it. Here their count and bytes have limits, and no other writer's
/// samples wait.
#[test]
fn samples_ahead_of_a_missing_one_are_kept_within_limits() {
    let mut harness = EndpointHarness::new();
    let payload = [0; 1_000];
    for number in 2..5_000 {
        harness.send_to_reader(&intruder().data(INTRUDER_WRITER, number, &payload));
        harness.send_to_reader(&intruder().data(INTRUDER_WRITER, number * 1_000, &payload));
    }
    assert!(harness.reader_stats().buffer_full > 0);
    // 4 096 samples with their records.
    harness.memory_bytes_max = 6 << 20;
}

/// Cyclone DDS 9e5cace: preemptive ACKNACKs to a writer that never sends a
/// heartbeat kept its timer queue spinning. Here a dozen of them are sent at most.
#[test]
fn a_writer_without_heartbeats_does_not_get_requests_for_ever() {
    let mut harness = EndpointHarness::new();
    harness.send_to_reader(&intruder().data(INTRUDER_WRITER, 7, b"\0\x01\0\0"));
    harness.pair.run_ms(120_000);
    harness.pair.net.log.clear();
    harness.pair.net.bytes_to.clear();
    harness.pair.run_ms(60_000);
    let sent = harness.sent_to(INTRUDER);
    assert!(sent <= 60 * 5 * 100, "{sent} bytes in a minute");
}

/// Thousands of heartbeats that request an answer: the answer is one small datagram
/// each at most. (The reply storms of Fast DDS #3163 and #5519, seen from one
/// reader.)
#[test]
fn a_heartbeat_flood_is_answered_at_a_limited_rate() {
    let mut harness = EndpointHarness::new();
    for count in 1..5_000 {
        harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, 1, 100, count));
    }
    let sent = harness.sent_to(INTRUDER);
    assert!(
        sent <= 2 * harness.received,
        "{sent} for {}",
        harness.received
    );
    harness.memory_bytes_max = 4 << 20;
}

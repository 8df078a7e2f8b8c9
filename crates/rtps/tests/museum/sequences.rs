//! Sequence numbers told by a writer: GAPs and HEARTBEATs over ranges that no
//! memory could list, and sets that are none.

use pteros_rtps::qos::Reliability;

use crate::hall::{Hall, INTRUDER, ITS_WRITER};
use crate::pair::net::Said;

/// CVE-2025-64438 (Fast DDS): each number of a GAP's range was put into a set,
/// 64 GB of nodes for one packet. Ours is one interval.
#[test]
fn a_gap_over_all_numbers_costs_one_interval() {
    let mut hall = Hall::open();
    hall.hit_reader(&Hall::intruder().gap(ITS_WRITER, 1, i64::MAX - 300, 0, &[]));
    hall.hit_reader(&Hall::intruder().gap(ITS_WRITER, 1, i64::MAX - 300, 256, &[u32::MAX; 8]));
    hall.memory_bytes_max = 64 << 10;
    hall.close();
}

/// The same with holes: every second number of ever new ranges. At most 256
/// intervals are remembered, the rest is counted and may come again.
#[test]
fn gaps_with_holes_cost_at_most_256_intervals() {
    let mut hall = Hall::open();
    for round in 0..2_000 {
        let base = 10 + round * 512;
        hall.hit_reader(&Hall::intruder().gap(ITS_WRITER, base, base, 256, &[0x5555_5555; 8]));
    }
    assert!(hall.pair.readers[hall.r.0].machine.stats().no_room > 0);
    hall.memory_bytes_max = 64 << 10;
    hall.close();
}

/// CVE-2023-39534 (Fast DDS): a GAP whose list begins before its start tripped
/// an assertion.
#[test]
fn a_gap_that_ends_before_it_starts_is_empty() {
    let mut hall = Hall::open();
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
            hall.hit_reader(&Hall::intruder().gap(ITS_WRITER, start, base, bits, &[0; 8]));
        }
    }
    hall.hit_reader(&Hall::intruder().data(ITS_WRITER, 1, b"\0\x01\0\0 first"));
    hall.hit_reader(&Hall::intruder().heartbeat(ITS_WRITER, 1, 1, 1));
    hall.close();
}

/// Fast DDS #1338: the bitmap of a GAP was copied into eight words on the
/// stack, however many words it named.
#[test]
fn a_gap_of_more_than_256_bits_is_refused() {
    let mut hall = Hall::open();
    for bits in [257, 1_000, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        hall.hit_reader(&Hall::intruder().gap(ITS_WRITER, 1, 10, bits, &[u32::MAX; 64]));
    }
    // Words that are announced and missing.
    hall.hit_reader(&Hall::intruder().gap(ITS_WRITER, 1, 10, 256, &[u32::MAX; 3]));
    hall.hit_reader(&Hall::intruder().data(ITS_WRITER, 10, b"\0\x01\0\0"));
    hall.close();
}

/// CVE-2025-65016 (Fast DDS): a HEARTBEAT whose first number is huge. All
/// before it is lost, in one step, and what comes later is delivered.
#[test]
fn a_heartbeat_that_begins_at_the_end_of_numbers_costs_nothing() {
    let mut hall = Hall::open();
    let far = i64::MAX - 10;
    hall.hit_reader(&Hall::intruder().heartbeat(ITS_WRITER, far, far + 5, 1));
    hall.hit_reader(&Hall::intruder().data(ITS_WRITER, far, b"\0\x01\0\0 far"));
    assert!(hall.intruders_samples().len() <= 1);
    hall.memory_bytes_max = 64 << 10;
    hall.close();
}

/// A HEARTBEAT that names more samples than there can be (the malformed ranges
/// reported against Fast DDS and Cyclone DDS): one request names 256 numbers at
/// most, and repeats are spaced.
#[test]
fn samples_that_do_not_exist_are_asked_for_politely() {
    let mut hall = Hall::open();
    hall.hit_reader(&Hall::intruder().heartbeat(ITS_WRITER, 1, i64::MAX - 1, 1));
    hall.pair.run_ms(10_000);
    let requests = hall
        .pair
        .net
        .count(|said| matches!(said, Said::AckNack(..)));
    assert!(requests <= 60, "{requests} requests in 10 s");
    assert!(hall.sent_to(INTRUDER) <= 60 * 128);
    hall.memory_bytes_max = 64 << 10;
    hall.close();
}

/// CVE-2023-39949 and Fast DDS #3236: sequence numbers that no writer may use
/// reached an assertion.
#[test]
fn numbers_that_no_writer_may_use_are_refused() {
    let mut hall = Hall::open();
    for number in [0, -1, i64::MIN, -(1 << 32)] {
        hall.hit_both(&Hall::intruder().data(ITS_WRITER, number, b"\0\x01\0\0"));
        hall.hit_both(&Hall::intruder().heartbeat(ITS_WRITER, number, number, 1));
        hall.hit_both(&Hall::intruder().heartbeat(ITS_WRITER, 5, number, 2));
        hall.hit_both(&Hall::intruder().heartbeat_frag(ITS_WRITER, number, 1, 1));
    }
    assert_eq!(hall.intruders_samples(), []);
    hall.close();
}

/// The end of numbers: a sample numbered 2^63-1 leaves no next one.
/// (CVE-2023-39949's other end.)
#[test]
fn after_the_last_number_there_is_none() {
    for intruder in [Reliability::Reliable, Reliability::BestEffort] {
        let mut hall = Hall::open_as(intruder);
        for number in [i64::MAX - 1, i64::MAX] {
            hall.hit_reader(&Hall::intruder().data(ITS_WRITER, number, b"\0\x01\0\0 last"));
            hall.hit_reader(&Hall::intruder().heartbeat(ITS_WRITER, number, number, 1));
            hall.hit_reader(&Hall::intruder().gap(ITS_WRITER, number, number, 0, &[]));
        }
        hall.close();
    }
}

/// cyclonedds #2306 (a process of 45 GB): samples far ahead of a missing one
/// wait for it. Here their count and bytes have limits, and no other writer's
/// samples wait.
#[test]
fn samples_ahead_of_a_missing_one_are_kept_within_limits() {
    let mut hall = Hall::open();
    let payload = [0; 1_000];
    for number in 2..5_000 {
        hall.hit_reader(&Hall::intruder().data(ITS_WRITER, number, &payload));
        hall.hit_reader(&Hall::intruder().data(ITS_WRITER, number * 1_000, &payload));
    }
    assert!(hall.pair.readers[hall.r.0].machine.stats().no_room > 0);
    hall.memory_bytes_max = 2 << 20;
    hall.close();
}

/// Cyclone DDS 9e5cace: pre-emptive requests to a writer that never says a
/// heartbeat kept its timer queue spinning. Ours introduce themselves a dozen
/// times and then wait.
#[test]
fn a_writer_without_heartbeats_is_not_asked_for_ever() {
    let mut hall = Hall::open();
    hall.hit_reader(&Hall::intruder().data(ITS_WRITER, 7, b"\0\x01\0\0"));
    hall.pair.run_ms(120_000);
    hall.pair.net.log.clear();
    hall.pair.net.bytes_to.clear();
    hall.pair.run_ms(60_000);
    let sent = hall.sent_to(INTRUDER);
    assert!(sent <= 60 * 5 * 100, "{sent} bytes in a minute");
    hall.close();
}

/// Heartbeats by the thousand, each of which asks for an answer: it gets one,
/// and no more than one small datagram. (The reply storms of Fast DDS #3163 and
/// #5519, seen from one reader.)
#[test]
fn a_storm_of_heartbeats_is_answered_with_restraint() {
    let mut hall = Hall::open();
    for count in 1..5_000 {
        hall.hit_reader(&Hall::intruder().heartbeat(ITS_WRITER, 1, 100, count));
    }
    let sent = hall.sent_to(INTRUDER);
    assert!(sent <= 2 * hall.received, "{sent} for {}", hall.received);
    hall.memory_bytes_max = 4 << 20;
    hall.close();
}

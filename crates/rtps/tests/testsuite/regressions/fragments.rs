//! DATA_FRAG with contradictory sizes and numbers, and partial samples that never
//! complete.

use pteros_rtps::qos::Reliability;

use pteros_test_support::rtps::endpoint_harness::{EndpointHarness, INTRUDER_WRITER, intruder};
use pteros_test_support::rtps::packet::Frag;
use pteros_test_support::rtps::pair::net::SubmessageSummary;

const PIECE: [u8; 100] = [7; 100];

/// One fragment of 100 bytes of a sample of 1000.
fn frag() -> Frag<'static> {
    Frag {
        writer: INTRUDER_WRITER,
        sequence: 1,
        first: 1,
        count: 1,
        size: 100,
        sample: 1_000,
        payload: &PIECE,
    }
}

/// The class of CVE-2025-62799 (Fast DDS, 9.8: sizes in DATA_FRAG): a later
/// fragment names a larger sample than the buffer was made for.
#[test]
fn the_first_fragment_fixes_the_size_of_the_sample() {
    let mut harness = EndpointHarness::new();
    harness.send_to_reader(&intruder().frag(frag()));
    for sample in [1_001, 2_000, 100_000, u32::MAX, 999, 500] {
        for first in [2, 5, 10] {
            let lie = Frag {
                sample,
                first,
                ..frag()
            };
            harness.send_to_reader(&intruder().frag(lie));
        }
    }
    for first in 2..=10 {
        let honest = Frag { first, ..frag() };
        harness.send_to_reader(&intruder().frag(honest));
    }
    harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, 1, 1, 1));
    assert_eq!(harness.samples_of_intruder(), [(1, vec![7; 1_000])]);
}

/// The class of CVE-2026-22590 (Fast DDS: sizes in DATA_FRAG): the size of
/// fragments changes on the way, and with it where each belongs.
#[test]
fn the_first_fragment_fixes_the_size_of_fragments() {
    let mut harness = EndpointHarness::new();
    harness.send_to_reader(&intruder().frag(frag()));
    for size in [1, 50, 99, 101, 500, 1_000, u16::MAX] {
        let payload = vec![9; usize::from(size).min(1_000)];
        let lie = Frag {
            size,
            first: 2,
            payload: &payload,
            ..frag()
        };
        harness.send_to_reader(&intruder().frag(lie));
    }
    for first in 2..=10 {
        harness.send_to_reader(&intruder().frag(Frag { first, ..frag() }));
    }
    harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, 1, 1, 1));
    assert_eq!(harness.samples_of_intruder(), [(1, vec![7; 1_000])]);
}

/// CVE-2025-65865 (Fast DDS): fragments count from one; the number zero went
/// through a subtraction that wrapped round.
#[test]
fn fragment_zero_and_fragments_behind_the_last_are_refused() {
    let mut harness = EndpointHarness::new();
    for (first, count) in [
        (0, 1),
        (0, 0),
        (1, 0),
        (11, 1),
        (10, 2),
        (u32::MAX, 1),
        (u32::MAX, u16::MAX),
    ] {
        harness.send_to_reader(&intruder().frag(Frag {
            first,
            count,
            ..frag()
        }));
    }
    for (size, sample) in [(0, 0), (0, 1_000), (100, 0), (1_001, 1_000), (u16::MAX, 1)] {
        harness.send_to_reader(&intruder().frag(Frag {
            size,
            sample,
            ..frag()
        }));
    }
    assert_eq!(harness.reader_stats().fragments, 0);
}

/// A sample of 4 GiB announced by a hundred bytes: its memory was reserved at
/// the first fragment elsewhere (the class of CVE-2024-30259, a heap
/// overflow in Fast DDS by a malformed packet).
#[test]
fn a_sample_of_four_gigabytes_reserves_no_memory() {
    let mut harness = EndpointHarness::new();
    for (sequence, sample) in (1..).zip([u32::MAX, 1 << 31, 65 << 20, 64 << 20]) {
        let size = u16::MAX;
        let payload = vec![0; usize::from(size)];
        let large = Frag {
            sequence,
            size,
            sample,
            payload: &payload,
            ..frag()
        };
        harness.send_to_reader(&intruder().frag(large));
    }
    assert!(harness.reader_stats().too_large >= 3);
    // Two fit, and each was given the first megabytes.
    harness.memory_bytes_max = 5 << 20;
}

/// The last fragment first: memory up to it would be the size of the sample,
/// for one small packet (the same family).
#[test]
fn the_last_fragment_of_a_large_sample_reserves_no_memory() {
    let mut harness = EndpointHarness::new();
    for sequence in 1..100 {
        let sample = 60 << 20;
        let last = Frag {
            sequence,
            sample,
            first: sample / 100,
            ..frag()
        };
        harness.send_to_reader(&intruder().frag(last));
    }
    harness.memory_bytes_max = 1 << 20;
}

/// Ever new samples of which one fragment comes (cyclonedds bounds them at 16,
/// Fast DDS did not): eight are held per writer.
#[test]
fn partial_samples_that_never_complete_are_bounded() {
    for claimed in [Reliability::Reliable, Reliability::BestEffort] {
        let mut harness = EndpointHarness::with_intruder(claimed);
        let payload = vec![0; 60_000];
        for sequence in 1..2_000 {
            let begun = Frag {
                sequence,
                size: 60_000,
                sample: 600_000,
                payload: &payload,
                ..frag()
            };
            harness.send_to_reader(&intruder().frag(begun));
        }
        harness.memory_bytes_max = 20 << 20;
    }
}

/// Fragments of one byte each, every second one: the list of what is missing
/// is longer than the sample. It ends at 256 runs.
#[test]
fn tiny_fragments_are_bounded() {
    let mut harness = EndpointHarness::new();
    for first in (1..20_000).step_by(2) {
        let confetti = Frag {
            first,
            size: 1,
            sample: 60_000,
            payload: &[7],
            ..frag()
        };
        harness.send_to_reader(&intruder().frag(confetti));
    }
    harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, 1, 1, 1));
}

/// A payload longer or shorter than its fragments (CVE-2020-18735, Cyclone DDS:
/// what lies behind the announced size was read and written).
#[test]
fn fragments_must_have_their_declared_length() {
    let mut harness = EndpointHarness::new();
    let long = [9; 400];
    for length in [0, 1, 99, 104, 200, 400] {
        harness.send_to_reader(&intruder().frag(Frag {
            payload: &long[..length],
            ..frag()
        }));
    }
    for count in [2, 5, 10, 11] {
        harness.send_to_reader(&intruder().frag(Frag { count, ..frag() }));
    }
    assert_eq!(harness.reader_stats().fragments, 0);
}

/// HEARTBEAT_FRAG that names fragments of samples nobody began, and numbers
/// beyond any sample: requests stay few and small (the reply side of
/// CVE-2025-62799).
#[test]
fn heartbeats_of_fragments_that_do_not_exist_cost_little() {
    let mut harness = EndpointHarness::new();
    for count in 1..1_000 {
        let sequence = i64::from(count) * 3;
        harness.send_to_reader(&intruder().heartbeat_frag(
            INTRUDER_WRITER,
            sequence,
            u32::MAX,
            count,
        ));
    }
    harness.pair.run_ms(5_000);
    let is_request = |submessage: &SubmessageSummary| {
        matches!(
            submessage,
            SubmessageSummary::AckNack(..) | SubmessageSummary::NackFrag(..)
        )
    };
    assert!(harness.pair.net.count(is_request) < 200);
}

/// Two forms of one number, in fragments and whole, were two owners of one
/// change in the family of CVE-2023-42459 (bad frees in Fast DDS). It is
/// delivered once, as one of them.
#[test]
fn a_sample_both_whole_and_in_fragments_is_delivered_once() {
    let mut harness = EndpointHarness::new();
    harness.send_to_reader(&intruder().frag(frag()));
    harness.send_to_reader(&intruder().data(INTRUDER_WRITER, 1, b"\0\x01\0\0 whole"));
    harness.send_to_reader(&intruder().heartbeat(INTRUDER_WRITER, 1, 1, 1));
    for first in 1..=10 {
        harness.send_to_reader(&intruder().frag(Frag { first, ..frag() }));
    }
    assert_eq!(
        harness.samples_of_intruder(),
        [(1, b"\0\x01\0\0 whole".to_vec())]
    );
}

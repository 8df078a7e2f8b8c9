//! Intra-process cost: for any QoS and size, a message allocates only itself, and
//! the callback gets the publisher's own value.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;

use crate::message_cost::system_calls::SystemCalls;
use crate::message_cost::{CountingProcess, ROUNDS, TIMEOUT, sum, unused_domain};
use pteros_test_support::allocations::snapshot;

const HOUR: Duration = Duration::from_secs(3600);

fn message(bytes: usize) -> UInt8MultiArray {
    UInt8MultiArray {
        data: vec![7; bytes],
        ..Default::default()
    }
}

/// The permitted clock reads of a message: wall clock and monotonic clock.
fn clock_reads(wall: u64, monotonic: u64) -> SystemCalls {
    SystemCalls {
        wall_reads: wall * ROUNDS,
        monotonic_reads: monotonic * ROUNDS,
        ..SystemCalls::default()
    }
}

#[test]
fn only_time_based_policies_read_the_clock_for_any_qos_and_size() {
    let plain = QosProfile::default();
    let profiles = [
        // The source timestamp.
        ("plain", plain.clone(), clock_reads(1, 0)),
        (
            "best effort",
            plain.clone().best_effort(),
            clock_reads(1, 0),
        ),
        ("keep all", plain.clone().keep_all(), clock_reads(1, 0)),
        // The time it was kept for late joiners.
        (
            "transient local",
            plain.clone().transient_local(),
            clock_reads(1, 1),
        ),
        ("deadline", plain.clone().deadline(HOUR), clock_reads(1, 1)),
        // When it was published, and whether it has expired.
        ("lifespan", plain.clone().lifespan(HOUR), clock_reads(1, 2)),
    ];
    for (name, qos, expected) in profiles {
        for bytes in [64, 4 << 20] {
            assert_only_clock_reads(&format!("{name}, {bytes} B"), &qos, bytes, expected);
        }
    }
}

fn assert_only_clock_reads(what: &str, qos: &QosProfile, bytes: usize, expected: SystemCalls) {
    let party = CountingProcess::new(unused_domain());
    let (seen, sink) = subscribers();
    let _subscription = party
        .node
        .create_subscription::<UInt8MultiArray>("t".qos(qos), move |sample| {
            sink.store(sample.data.as_ptr() as usize, Ordering::Relaxed);
        })
        .unwrap();
    let publisher = party
        .node
        .create_publisher::<UInt8MultiArray>("t".qos(qos))
        .unwrap();

    let shared = Arc::new(message(bytes));
    let round = || {
        publisher.publish_arc(shared.clone()).unwrap();
        assert!(party.executor.spin_once(TIMEOUT));
    };
    (0..20).for_each(|_| round());
    let (calls, (allocated, _)) = (party.system_calls(), snapshot());
    (0..ROUNDS).for_each(|_| round());
    assert_eq!(snapshot().0 - allocated, 0, "{what}: allocations");
    let asked = sum(SystemCalls::default(), calls, party.system_calls());
    assert_eq!(asked, expected, "{what}: what the system is asked");

    // An owned value: its Arc, and nothing else.
    let own = message(bytes);
    let at = own.data.as_ptr() as usize;
    let (count, size) = snapshot();
    publisher.publish_owned(own).unwrap();
    assert!(party.executor.spin_once(TIMEOUT));
    let (count_after, size_after) = snapshot();
    assert_eq!(count_after - count, 1, "{what}: allocations, owned");
    assert!(size_after - size < 256, "{what}: bytes, owned");
    assert_eq!(seen.load(Ordering::Relaxed), at, "{what}: another value");
    assert_eq!(publisher.counts().serialized, 0, "{what}");
}

fn subscribers() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    (seen.clone(), seen)
}

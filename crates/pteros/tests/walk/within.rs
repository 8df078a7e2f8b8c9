//! Within a process: whatever the QoS and the size, a message costs nothing but
//! itself, and the callback gets the publisher's own value.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;

use crate::allocations::so_far;
use crate::calls::Calls;
use crate::{PATIENCE, Party, ROUNDS, sum};

const HOUR: Duration = Duration::from_secs(3600);

fn message(bytes: usize) -> UInt8MultiArray {
    UInt8MultiArray {
        data: vec![7; bytes],
        ..Default::default()
    }
}

/// What a message may ask of the machine: looks at the wall and the monotonic
/// clock.
fn clocks(wall: u64, monotonic: u64) -> Calls {
    Calls {
        walls: wall * ROUNDS,
        nows: monotonic * ROUNDS,
        ..Calls::default()
    }
}

#[test]
fn whatever_the_qos_and_the_size_only_policies_of_time_look_at_the_clock() {
    let plain = QosProfile::default();
    let profiles = [
        // The source stamp.
        ("plain", plain.clone(), clocks(1, 0)),
        ("best effort", plain.clone().best_effort(), clocks(1, 0)),
        ("keep all", plain.clone().keep_all(), clocks(1, 0)),
        // When it was kept for late joiners.
        (
            "transient local",
            plain.clone().transient_local(),
            clocks(1, 1),
        ),
        ("deadline", plain.clone().deadline(HOUR), clocks(1, 1)),
        // When it begins, and whether it is over.
        ("lifespan", plain.clone().lifespan(HOUR), clocks(1, 2)),
    ];
    for (domain, (name, qos, expected)) in (210..).zip(profiles) {
        for bytes in [64, 4 << 20] {
            costs_nothing_but_itself(domain, &format!("{name}, {bytes} B"), &qos, bytes, expected);
        }
    }
}

fn costs_nothing_but_itself(
    domain: u32,
    what: &str,
    qos: &QosProfile,
    bytes: usize,
    expected: Calls,
) {
    let party = Party::new(domain);
    let (seen, sink) = within_reach();
    let _subscription = party
        .node
        .create_subscription::<UInt8MultiArray>("t", qos, move |sample| {
            sink.store(sample.data.as_ptr() as usize, Ordering::Relaxed);
        })
        .unwrap();
    let publisher = party
        .node
        .create_publisher::<UInt8MultiArray>("t", qos)
        .unwrap();

    let shared = Arc::new(message(bytes));
    let round = || {
        publisher.publish_arc(shared.clone()).unwrap();
        assert!(party.executor.spin_once(PATIENCE));
    };
    (0..20).for_each(|_| round());
    let (calls, (allocated, _)) = (party.calls(), so_far());
    (0..ROUNDS).for_each(|_| round());
    assert_eq!(so_far().0 - allocated, 0, "{what}: allocations");
    let asked = sum(Calls::default(), calls, party.calls());
    assert_eq!(asked, expected, "{what}: what the system is asked");

    // An owned value: its Arc, and nothing else.
    let own = message(bytes);
    let at = own.data.as_ptr() as usize;
    let (count, size) = so_far();
    publisher.publish_owned(own).unwrap();
    assert!(party.executor.spin_once(PATIENCE));
    let (count_after, size_after) = so_far();
    assert_eq!(count_after - count, 1, "{what}: allocations, owned");
    assert!(size_after - size < 256, "{what}: bytes, owned");
    assert_eq!(seen.load(Ordering::Relaxed), at, "{what}: another value");
    assert_eq!(publisher.counts().serialized, 0, "{what}");
}

fn within_reach() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    (seen.clone(), seen)
}

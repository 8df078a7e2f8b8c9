//! History: what late joiners get, and that a fast writer loses nothing.

use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::prelude::*;

use crate::interop::harness::*;
use pteros_test_support::peer::value;

const WRITTEN: usize = 10;
const DEPTH: usize = 3;
const MANY: usize = 3_000;

pub fn their_late_joiner_gets_the_depth_in_order(harness: &Harness) {
    let node = harness.node();
    let latched = QosProfile::default().keep_last(DEPTH).transient_local();
    let publisher = node
        .create_publisher::<Text>("chatter".qos(&latched))
        .unwrap();
    for n in 1..=WRITTEN {
        publisher.publish(&hello(n)).unwrap();
    }
    let mut peer = harness.peer("sub --durability transient_local");
    for n in WRITTEN - DEPTH + 1..=WRITTEN {
        peer_expects_hello(&mut peer, n);
    }
    // The next sample shows that nothing arrived in between.
    publisher.publish(&hello(WRITTEN + 1)).unwrap();
    peer_expects_hello(&mut peer, WRITTEN + 1);
    let volatile = harness.peer("sub");
    let mut volatile = volatile;
    wait_until_peer_matched(&publisher, &mut volatile);
    assert!(publisher.wait_for_matched(2, TIMEOUT));
    publisher.publish(&hello(WRITTEN + 2)).unwrap();
    peer_expects_hello(&mut volatile, WRITTEN + 2);
}

pub fn our_late_joiner_gets_the_depth_in_order(harness: &Harness) {
    let mut peer = harness.peer(&format!(
        "pub --durability transient_local --history keep_last:{DEPTH} --count {WRITTEN} --rate 0 \
         --linger 60"
    ));
    peer.expect(&format!("sent seq={WRITTEN} "), TIMEOUT);
    let node = harness.node();
    let latched = QosProfile::default().transient_local();
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(&latched))
        .unwrap();
    for n in WRITTEN - DEPTH + 1..=WRITTEN {
        expect_hello(&subscription, n);
    }
    let volatile = node
        .create_polled_subscription::<Text>("chatter".keep_last(10))
        .unwrap();
    assert!(volatile.wait_for_matched(1, TIMEOUT));
    signal(&peer, "INT");
    time_until(&node, TIMEOUT, || subscription.matched_count() == 0);
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().lost, 0);
    assert!(volatile.take().is_none());
}

pub fn their_reader_gets_every_sample_of_our_fast_writer(harness: &Harness) {
    let node = harness.node();
    let all = QosProfile {
        max_blocking_time: Some(TIMEOUT),
        ..QosProfile::default().keep_all()
    };
    let publisher = node.create_publisher::<Text>("chatter".qos(&all)).unwrap();
    let mut peer = harness.peer(&format!("sub --history keep_all --count {MANY}"));
    wait_until_peer_matched(&publisher, &mut peer);
    for n in 1..=MANY {
        publisher.publish(&hello(n)).unwrap();
    }
    assert!(publisher.wait_for_all_acked(TIMEOUT));
    for n in 1..=MANY {
        peer_expects_hello(&mut peer, n);
    }
}

pub fn our_reader_gets_every_sample_of_their_fast_writer(harness: &Harness) {
    let node = harness.node();
    let all = QosProfile::default().keep_all();
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(&all))
        .unwrap();
    let mut peer =
        harness.waiting_publisher(&format!("--history keep_all --count {MANY} --rate 0"));
    wait_until_matched_and_start(&subscription, &mut peer);
    // A slow reader at first: it takes nothing until many samples wait.
    let many_wait = || subscription.counts().received >= MANY as u64 / 2;
    assert!(node.context().graph().wait_until(TIMEOUT, many_wait));
    for n in 1..=MANY {
        expect_hello(&subscription, n);
    }
    assert!(peer.finish(TIMEOUT).unwrap().success());
    assert_eq!(subscription.counts().lost, 0);
}

/// More than any socket buffer holds: what overflows is retransmitted.
const LARGE_BYTES: usize = 1_000_000;
const LARGE_MANY: usize = 60;

pub fn their_reader_gets_every_large_sample_of_ours(harness: &Harness) {
    let node = harness.node();
    let all = QosProfile {
        max_blocking_time: Some(TIMEOUT),
        ..QosProfile::default().keep_all()
    };
    let publisher = node
        .create_publisher::<UInt8MultiArray>("chatter".qos(&all))
        .unwrap();
    let mut peer = harness.peer(&format!(
        "sub --type bytes --history keep_all --count {LARGE_MANY}"
    ));
    wait_until_peer_matched(&publisher, &mut peer);
    let mut expected = Vec::new();
    for n in 1..=LARGE_MANY {
        let data = pattern(LARGE_BYTES, n);
        expected.push(crc(&data));
        publisher.publish_owned(array(data)).unwrap();
    }
    for crc in &expected {
        let line = peer.expect("received ", TIMEOUT);
        assert_eq!(value(&line, "crc"), Some(&**crc), "{line}");
    }
}

pub fn our_reader_gets_every_large_sample_of_theirs(harness: &Harness) {
    let node = harness.node();
    let all = QosProfile::default().keep_all();
    let subscription = node
        .create_polled_subscription::<UInt8MultiArray>("chatter".qos(&all))
        .unwrap();
    let mut peer = harness.waiting_publisher(&format!(
        "--type bytes --history keep_all --size {LARGE_BYTES} --count {LARGE_MANY} --rate 0"
    ));
    wait_until_matched_and_start(&subscription, &mut peer);
    for n in 1..=LARGE_MANY {
        let sample = subscription
            .take_timeout(TIMEOUT)
            .unwrap_or_else(|| panic!("sample {n}: {:?}", subscription.counts()));
        let line = peer.expect("sent ", TIMEOUT);
        assert_eq!(value(&line, "crc"), Some(&*crc(&sample.data)), "{line}");
    }
    assert!(peer.finish(TIMEOUT).unwrap().success());
    assert_eq!(subscription.counts().lost, 0);
}

//! Exclusive ownership across implementations: the strongest of several writers is
//! the owner, for their readers and ours.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::Ownership;

use crate::interop::harness::*;
use pteros_test_support::peer::value;

fn exclusive(strength: i32) -> QosProfile {
    QosProfile::default()
        .exclusive()
        .ownership_strength(strength)
}

pub fn our_reader_follows_their_stronger_writer(harness: &Harness) {
    let node = harness.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(exclusive(0)))
        .unwrap();
    let weak = node
        .create_publisher::<Text>("chatter".qos(exclusive(3)))
        .unwrap();
    let is_heard = |n: usize| {
        weak.publish(&hello(n)).unwrap();
        subscription
            .take()
            .is_some_and(|sample| *sample == hello(n))
    };
    let mut strong = harness.waiting_publisher("--exclusive 8 --rate 0 --count 2 --linger 60");
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    strong.expect("matched 1", TIMEOUT);
    let theirs = node.context().graph().publishers("/chatter");
    let theirs = theirs.iter().find(|e| !e.local).unwrap();
    assert_eq!(theirs.qos.ownership, Ownership::Exclusive);
    assert_eq!(theirs.qos.ownership_strength, 8);
    assert!(is_heard(10));
    strong.release();
    expect_hello(&subscription, 1);
    expect_hello(&subscription, 2);
    assert!(!is_heard(11));
    assert_eq!(subscription.counts().not_owner, 1);
    signal(&strong, "INT");
    time_until(&node, TIMEOUT, || subscription.matched_count() == 1);
    assert!(is_heard(12));
}

pub fn their_reader_follows_our_stronger_writer(harness: &Harness) {
    let node = harness.node();
    let publisher = |strength| {
        node.create_publisher::<Text>("chatter".qos(exclusive(strength)))
            .unwrap()
    };
    let (weak, strong) = (publisher(3), publisher(8));
    let mut peer = harness.peer("sub --exclusive 0");
    peer.expect("matched 2", TIMEOUT);
    assert!(weak.wait_for_matched(1, TIMEOUT) && strong.wait_for_matched(1, TIMEOUT));
    weak.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    strong.publish(&hello(2)).unwrap();
    peer_expects_hello(&mut peer, 2);
    weak.publish(&hello(3)).unwrap();
    assert!(weak.wait_for_all_acked(TIMEOUT));
    strong.publish(&hello(4)).unwrap();
    peer_expects_hello(&mut peer, 4);
    drop(strong);
    peer.expect("matched 1", TIMEOUT);
    drive_for(&node, Duration::from_millis(50));
    weak.publish(&hello(5)).unwrap();
    let line = peer.expect("received ", TIMEOUT);
    assert_eq!(value(&line, "text"), Some(&*hello(5).data), "{line}");
}

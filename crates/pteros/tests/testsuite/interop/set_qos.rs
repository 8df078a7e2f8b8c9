//! Changeable QoS across implementations, in both directions. Cyclone DDS 0.10 lets
//! ownership strength and user data change, but no policy that affects matching,
//! and does not follow a peer that changes one; Fast DDS does both.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::interop::harness::*;

fn exclusive(strength: i32) -> QosProfile {
    QosProfile::default()
        .exclusive()
        .ownership_strength(strength)
}

/// Waits until their publisher is announced as `fits` requires.
fn wait_until_peer_publisher(node: &Node, mut fits: impl FnMut(&QosProfile) -> bool) {
    let graph = node.context().graph();
    time_until(node, TIMEOUT, || {
        let publishers = graph.publishers("/chatter");
        publishers.iter().any(|e| !e.local && fits(&e.qos))
    });
}

pub fn we_follow_their_strength_and_user_data(harness: &Harness) {
    let node = harness.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(exclusive(0)))
        .unwrap();
    let ours = node
        .create_publisher::<Text>("chatter".qos(exclusive(5)))
        .unwrap();
    let mut theirs = harness.peer("pub --wait-matched 1 --start lines --exclusive 3");
    assert!(subscription.wait_for_matched(2, TIMEOUT));
    theirs.expect("matched 1", TIMEOUT);
    let is_heard = |publish: &mut dyn FnMut(), n: usize| {
        let before = subscription.counts();
        publish();
        time_until(&node, TIMEOUT, || {
            let now = subscription.counts();
            now.received + now.not_owner > before.received + before.not_owner
        });
        let taken = subscription.take();
        assert!(taken.as_ref().is_none_or(|sample| **sample == hello(n)));
        taken.is_some()
    };
    assert!(is_heard(&mut || ours.publish(&hello(10)).unwrap(), 10));
    assert!(!is_heard(&mut || theirs.send_line("write"), 1));
    theirs.send_line("strength 8");
    theirs.expect("did strength 8", TIMEOUT);
    wait_until_peer_publisher(&node, |qos| qos.ownership_strength == 8);
    drive_for(&node, Duration::from_millis(20));
    assert!(is_heard(&mut || theirs.send_line("write"), 2));
    assert!(!is_heard(&mut || ours.publish(&hello(11)).unwrap(), 11));
    // And ours above theirs.
    ours.set_qos(&exclusive(9)).unwrap();
    assert!(is_heard(&mut || ours.publish(&hello(12)).unwrap(), 12));
    assert!(!is_heard(&mut || theirs.send_line("write"), 3));
    theirs.send_line("user_data of-the-arm");
    theirs.expect("did user_data", TIMEOUT);
    wait_until_peer_publisher(&node, |qos| qos.user_data == b"of-the-arm");
    assert_eq!(subscription.matched_count(), 2);
    assert_eq!(subscription.counts().lost, 0);
}

pub fn we_follow_them_to_another_partition(harness: &Harness) {
    let node = harness.node();
    let subscription = node.create_polled_subscription::<Text>("chatter").unwrap();
    let mut theirs = harness.peer("pub --wait-matched 1 --start lines");
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    theirs.expect("matched 1", TIMEOUT);
    drive_for(&node, Duration::from_millis(300));
    theirs.send_line("write");
    expect_hello(&subscription, 1);
    theirs.send_line("partition elsewhere");
    time_until(&node, TIMEOUT, || subscription.matched_count() == 0);
    // It announces the change first and checks its readers afterwards. Had we
    // followed before that, it would have no change of a match to report.
    theirs.expect("matched 0", TIMEOUT);
    let moved = QosProfile::default().partition(["elsewhere"]);
    subscription.set_qos(&moved).unwrap();
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    theirs.expect("matched 1", TIMEOUT);
    drive_for(&node, Duration::from_millis(300));
    theirs.send_line("write");
    expect_hello(&subscription, 2);
    assert_eq!(subscription.counts().lost, 0);
}

pub fn they_follow_our_partition_and_strength(harness: &Harness) {
    let node = harness.node();
    let publisher = |strength| {
        node.create_publisher::<Text>("chatter".qos(exclusive(strength)))
            .unwrap()
    };
    let (a, b) = (publisher(5), publisher(3));
    let mut peer = harness.peer("sub --exclusive 0");
    peer.expect("matched 2", TIMEOUT);
    assert!(a.wait_for_matched(1, TIMEOUT) && b.wait_for_matched(1, TIMEOUT));
    drive_for(&node, Duration::from_millis(300));
    a.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    // The owner leaves the partition; the other one's samples are delivered then.
    a.set_qos(&exclusive(5).partition(["elsewhere"])).unwrap();
    peer.expect("matched 1", TIMEOUT);
    time_until(&node, TIMEOUT, || a.matched_count() == 0);
    a.publish(&hello(2)).unwrap();
    drive_for(&node, Duration::from_millis(50));
    b.publish(&hello(3)).unwrap();
    peer_expects_hello(&mut peer, 3);
    a.set_qos(&exclusive(5)).unwrap();
    peer.expect("matched 2", TIMEOUT);
    assert!(a.wait_for_matched(1, TIMEOUT));
    drive_for(&node, Duration::from_millis(300));
    a.publish(&hello(4)).unwrap();
    peer_expects_hello(&mut peer, 4);
    b.set_qos(&exclusive(8)).unwrap();
    drive_for(&node, Duration::from_millis(300));
    b.publish(&hello(5)).unwrap();
    peer_expects_hello(&mut peer, 5);
    a.publish(&hello(6)).unwrap();
    assert!(a.wait_for_all_acked(TIMEOUT));
    b.publish(&hello(7)).unwrap();
    peer_expects_hello(&mut peer, 7);
}

//! Policies that change while endpoints live: theirs are followed, ours are
//! heard. Cyclone DDS 0.10 lets strength and free data change, but nothing that
//! bears on matches, nor does it follow a peer that changes such a policy; Fast
//! DDS does both.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::stage::*;

fn exclusive(strength: i32) -> QosProfile {
    QosProfile::default()
        .exclusive()
        .ownership_strength(strength)
}

/// Waits until their publisher is announced as `fits` says.
fn wait_until_theirs(node: &Node, mut fits: impl FnMut(&QosProfile) -> bool) {
    let graph = node.context().graph();
    time_until(node, PATIENCE, || {
        let publishers = graph.publishers("/chatter");
        publishers.iter().any(|e| !e.local && fits(&e.qos))
    });
}

pub fn we_follow_their_strength_and_user_data(stage: &Stage) {
    let node = stage.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter", exclusive(0))
        .unwrap();
    let ours = node
        .create_publisher::<Text>("chatter", exclusive(5))
        .unwrap();
    let mut theirs = stage.peer("pub --wait-matched 1 --start lines --exclusive 3");
    assert!(subscription.wait_for_matched(2, PATIENCE));
    theirs.expect("matched 1", PATIENCE);
    let is_heard = |publish: &mut dyn FnMut(), n: usize| {
        let before = subscription.counts();
        publish();
        time_until(&node, PATIENCE, || {
            let now = subscription.counts();
            now.received + now.outranked > before.received + before.outranked
        });
        let taken = subscription.take();
        assert!(taken.as_ref().is_none_or(|sample| **sample == hello(n)));
        taken.is_some()
    };
    assert!(is_heard(&mut || ours.publish(&hello(10)).unwrap(), 10));
    assert!(!is_heard(&mut || theirs.tell("write"), 1));
    theirs.tell("strength 8");
    theirs.expect("did strength 8", PATIENCE);
    wait_until_theirs(&node, |qos| qos.ownership_strength == 8);
    live_for(&node, Duration::from_millis(20));
    assert!(is_heard(&mut || theirs.tell("write"), 2));
    assert!(!is_heard(&mut || ours.publish(&hello(11)).unwrap(), 11));
    // And ours above theirs.
    ours.set_qos(&exclusive(9)).unwrap();
    assert!(is_heard(&mut || ours.publish(&hello(12)).unwrap(), 12));
    assert!(!is_heard(&mut || theirs.tell("write"), 3));
    theirs.tell("user_data of-the-arm");
    theirs.expect("did user_data", PATIENCE);
    wait_until_theirs(&node, |qos| qos.user_data == b"of-the-arm");
    assert_eq!(subscription.matched_count(), 2);
    assert_eq!(subscription.counts().lost, 0);
}

pub fn we_follow_them_to_another_partition(stage: &Stage) {
    let node = stage.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter", QosProfile::default())
        .unwrap();
    let mut theirs = stage.peer("pub --wait-matched 1 --start lines");
    assert!(subscription.wait_for_matched(1, PATIENCE));
    theirs.expect("matched 1", PATIENCE);
    live_for(&node, Duration::from_millis(300));
    theirs.tell("write");
    expect_hello(&subscription, 1);
    theirs.tell("partition elsewhere");
    time_until(&node, PATIENCE, || subscription.matched_count() == 0);
    // It tells us first and looks at its readers then: had we followed by that
    // time, it would have nothing to say of a match.
    theirs.expect("matched 0", PATIENCE);
    let moved = QosProfile::default().partition(["elsewhere"]);
    subscription.set_qos(&moved).unwrap();
    assert!(subscription.wait_for_matched(1, PATIENCE));
    theirs.expect("matched 1", PATIENCE);
    live_for(&node, Duration::from_millis(300));
    theirs.tell("write");
    expect_hello(&subscription, 2);
    assert_eq!(subscription.counts().lost, 0);
}

pub fn they_follow_our_partition_and_strength(stage: &Stage) {
    let node = stage.node();
    let publisher = |strength| {
        node.create_publisher::<Text>("chatter", exclusive(strength))
            .unwrap()
    };
    let (a, b) = (publisher(5), publisher(3));
    let mut peer = stage.peer("sub --exclusive 0");
    peer.expect("matched 2", PATIENCE);
    assert!(a.wait_for_matched(1, PATIENCE) && b.wait_for_matched(1, PATIENCE));
    live_for(&node, Duration::from_millis(300));
    a.publish(&hello(1)).unwrap();
    peer_expects_hello(&mut peer, 1);
    // The owner moves away; what the other writes is heard then.
    a.set_qos(&exclusive(5).partition(["elsewhere"])).unwrap();
    peer.expect("matched 1", PATIENCE);
    time_until(&node, PATIENCE, || a.matched_count() == 0);
    a.publish(&hello(2)).unwrap();
    live_for(&node, Duration::from_millis(50));
    b.publish(&hello(3)).unwrap();
    peer_expects_hello(&mut peer, 3);
    a.set_qos(&exclusive(5)).unwrap();
    peer.expect("matched 2", PATIENCE);
    assert!(a.wait_for_matched(1, PATIENCE));
    live_for(&node, Duration::from_millis(300));
    a.publish(&hello(4)).unwrap();
    peer_expects_hello(&mut peer, 4);
    b.set_qos(&exclusive(8)).unwrap();
    live_for(&node, Duration::from_millis(300));
    b.publish(&hello(5)).unwrap();
    peer_expects_hello(&mut peer, 5);
    a.publish(&hello(6)).unwrap();
    assert!(a.wait_for_all_acked(PATIENCE));
    b.publish(&hello(7)).unwrap();
    peer_expects_hello(&mut peer, 7);
}

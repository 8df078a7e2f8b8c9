//! Publish and subscribe on `rt/chatter`, as in ROS 2's first tutorial.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::interop::harness::*;
use pteros_test_support::peer::{Peer, value};

const COUNT: usize = 10;

fn we_talk(harness: &Harness, ours: QosProfile, mut peer: Peer) {
    let node = harness.node();
    let publisher = node.create_publisher::<Text>("chatter".qos(ours)).unwrap();
    wait_until_peer_matched(&publisher, &mut peer);
    for n in 1..=COUNT {
        publisher.publish(&hello(n)).unwrap();
    }
    for n in 1..=COUNT {
        peer_expects_hello(&mut peer, n);
    }
    assert!(peer.finish(TIMEOUT).unwrap().success());
}

fn they_talk(harness: &Harness, ours: QosProfile, options: &str) {
    let node = harness.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter".qos(ours))
        .unwrap();
    let mut peer = harness.waiting_publisher(&format!("--count {COUNT} --rate 100 {options}"));
    wait_until_matched_and_start(&subscription, &mut peer);
    for n in 1..=COUNT {
        expect_hello(&subscription, n);
    }
    assert!(peer.finish(TIMEOUT).unwrap().success());
    assert!(!peer.seen().iter().any(|line| line == "unacknowledged"));
    assert_eq!(subscription.counts().lost, 0);
}

pub fn their_subscription_gets_our_messages(harness: &Harness) {
    let peer = harness.peer(&format!("sub --count {COUNT}"));
    we_talk(harness, QosProfile::default(), peer);
}

pub fn our_subscription_gets_their_messages(harness: &Harness) {
    they_talk(harness, QosProfile::default(), "");
}

pub fn their_best_effort_subscription_gets_our_messages(harness: &Harness) {
    publish_until_received(harness, QosProfile::default().best_effort());
}

/// Cyclone DDS reports a match slightly before it takes samples, and a best-effort
/// reader requests no retransmission.
fn publish_until_received(harness: &Harness, ours: QosProfile) {
    let node = harness.node();
    let publisher = node.create_publisher::<Text>("chatter".qos(ours)).unwrap();
    let mut peer = harness.peer(&format!("sub --count {COUNT} --reliability best_effort"));
    wait_until_peer_matched(&publisher, &mut peer);
    let mut sent = 0;
    let mut heard = Vec::new();
    while heard.len() < COUNT && sent < 1_000 {
        sent += 1;
        publisher.publish(&hello(sent)).unwrap();
        drive_for(&node, Duration::from_millis(10));
        while let Ok(line) = peer.wait_for("received ", Duration::ZERO) {
            heard.push(value(&line, "text").unwrap_or_default().to_owned());
        }
    }
    let first = (1..=sent).find(|n| hello(*n).data == heard[0]).unwrap();
    let expected: Vec<_> = (first..first + COUNT).map(|n| hello(n).data).collect();
    assert_eq!(heard[..COUNT], expected);
}

pub fn our_best_effort_subscription_gets_their_messages(harness: &Harness) {
    let ours = QosProfile::default().best_effort();
    they_talk(harness, ours, "--reliability best_effort");
}

pub fn a_best_effort_reader_gets_messages_of_a_reliable_writer(harness: &Harness) {
    publish_until_received(harness, QosProfile::default());
    they_talk(harness, QosProfile::default().best_effort(), "");
}

pub fn a_restarted_peer_is_matched_again(harness: &Harness) {
    let node = harness.node();
    let publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    let mut dead = 0;
    for end in ["INT", "KILL", "INT"] {
        let mut peer = harness.peer("sub");
        assert!(publisher.wait_for_matched(dead + 1, TIMEOUT));
        peer.expect("matched 1", TIMEOUT);
        publisher.publish(&hello(1)).unwrap();
        peer_expects_hello(&mut peer, 1);
        signal(&peer, end);
        let _ = peer.finish(TIMEOUT);
        // A killed participant stays matched until its lease ends.
        dead += usize::from(end == "KILL");
        time_until(&node, GOODBYE_TIMEOUT, || publisher.matched_count() <= dead);
    }
}

pub fn our_restart_is_matched_at_once(harness: &Harness) {
    let mut peer = harness.peer("sub");
    for _ in 0..3 {
        let node = harness.node();
        let publisher = node
            .create_publisher::<Text>("chatter".keep_last(10))
            .unwrap();
        wait_until_peer_matched(&publisher, &mut peer);
        publisher.publish(&hello(1)).unwrap();
        peer_expects_hello(&mut peer, 1);
        drop((node, publisher));
        peer.expect("matched 0", GOODBYE_TIMEOUT);
    }
}

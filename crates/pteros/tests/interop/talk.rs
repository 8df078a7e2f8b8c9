//! `rt/chatter`, as ROS 2's first tutorial has it.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::peer::{Peer, value};
use crate::stage::*;

const COUNT: usize = 10;

fn we_talk(stage: &Stage, ours: QosProfile, mut peer: Peer) {
    let node = stage.node();
    let publisher = node.create_publisher::<Text>("chatter", ours).unwrap();
    wait_until_they_hear(&publisher, &mut peer);
    for n in 1..=COUNT {
        publisher.publish(&hello(n)).unwrap();
    }
    for n in 1..=COUNT {
        peer_expects_hello(&mut peer, n);
    }
    assert!(peer.finish(PATIENCE).unwrap().success());
}

fn they_talk(stage: &Stage, ours: QosProfile, options: &str) {
    let node = stage.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter", ours)
        .unwrap();
    let mut peer = stage.waiting_publisher(&format!("--count {COUNT} --rate 100 {options}"));
    wait_until_we_hear(&subscription, &mut peer);
    for n in 1..=COUNT {
        expect_hello(&subscription, n);
    }
    assert!(peer.finish(PATIENCE).unwrap().success());
    assert!(!peer.seen().iter().any(|line| line == "unacknowledged"));
    assert_eq!(subscription.counts().lost, 0);
}

pub fn they_hear_us(stage: &Stage) {
    let peer = stage.peer(&format!("sub --count {COUNT}"));
    we_talk(stage, QosProfile::default(), peer);
}

pub fn we_hear_them(stage: &Stage) {
    they_talk(stage, QosProfile::default(), "");
}

pub fn best_effort_they_hear_us(stage: &Stage) {
    we_talk_until_heard(stage, QosProfile::default().best_effort());
}

/// Cyclone DDS says that it has matched a little before it takes samples, and a
/// best-effort reader does not ask again.
fn we_talk_until_heard(stage: &Stage, ours: QosProfile) {
    let node = stage.node();
    let publisher = node.create_publisher::<Text>("chatter", ours).unwrap();
    let mut peer = stage.peer(&format!("sub --count {COUNT} --reliability best_effort"));
    wait_until_they_hear(&publisher, &mut peer);
    let mut sent = 0;
    let mut heard = Vec::new();
    while heard.len() < COUNT && sent < 1_000 {
        sent += 1;
        publisher.publish(&hello(sent)).unwrap();
        live_for(&node, Duration::from_millis(10));
        while let Ok(line) = peer.wait_for("received ", Duration::ZERO) {
            heard.push(value(&line, "text").unwrap_or_default().to_owned());
        }
    }
    let first = (1..=sent).find(|n| hello(*n).data == heard[0]).unwrap();
    let expected: Vec<_> = (first..first + COUNT).map(|n| hello(n).data).collect();
    assert_eq!(heard[..COUNT], expected);
}

pub fn best_effort_we_hear_them(stage: &Stage) {
    let ours = QosProfile::default().best_effort();
    they_talk(stage, ours, "--reliability best_effort");
}

pub fn a_best_effort_reader_hears_a_reliable_writer(stage: &Stage) {
    we_talk_until_heard(stage, QosProfile::default());
    they_talk(stage, QosProfile::default().best_effort(), "");
}

pub fn a_peer_that_comes_again_is_met_again(stage: &Stage) {
    let node = stage.node();
    let publisher = node.create_publisher::<Text>("chatter", 10).unwrap();
    let mut dead = 0;
    for end in ["INT", "KILL", "INT"] {
        let mut peer = stage.peer("sub");
        assert!(publisher.wait_for_matched(dead + 1, PATIENCE));
        peer.expect("matched 1", PATIENCE);
        publisher.publish(&hello(1)).unwrap();
        peer_expects_hello(&mut peer, 1);
        signal(&peer, end);
        let _ = peer.finish(PATIENCE);
        // Who was killed stays matched until its lease ends.
        dead += usize::from(end == "KILL");
        time_until(&node, AT_ONCE, || publisher.matched_count() <= dead);
    }
}

pub fn we_restart_at_once(stage: &Stage) {
    let mut peer = stage.peer("sub");
    for _ in 0..3 {
        let node = stage.node();
        let publisher = node.create_publisher::<Text>("chatter", 10).unwrap();
        wait_until_they_hear(&publisher, &mut peer);
        publisher.publish(&hello(1)).unwrap();
        peer_expects_hello(&mut peer, 1);
        drop((node, publisher));
        peer.expect("matched 0", AT_ONCE);
    }
}

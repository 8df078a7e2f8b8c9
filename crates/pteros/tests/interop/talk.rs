//! `rt/chatter`, as ROS 2's first tutorial has it.

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::peer::Peer;
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
    let peer = stage.peer(&format!("sub --count {COUNT} --reliability best_effort"));
    we_talk(stage, QosProfile::default().best_effort(), peer);
}

pub fn best_effort_we_hear_them(stage: &Stage) {
    let ours = QosProfile::default().best_effort();
    they_talk(stage, ours, "--reliability best_effort");
}

pub fn a_best_effort_reader_hears_a_reliable_writer(stage: &Stage) {
    let peer = stage.peer(&format!("sub --count {COUNT} --reliability best_effort"));
    we_talk(stage, QosProfile::default(), peer);
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

//! Who leaves with a goodbye is gone at once, who dies is gone with its lease.

#![allow(
    clippy::disallowed_methods,
    reason = "a process that is started learns its part from its environment"
)]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;

use crate::stage::*;

/// Tells a copy of this program which domain to talk in.
const PART: &str = "PTEROS_INTEROP_PART_DOMAIN";

/// Longer than the peers' leases, which are 10 s (Cyclone) and 20 s (Fast DDS).
const LEASE_PATIENCE: Duration = Duration::from_secs(40);

pub fn a_killed_peer_is_noticed_by_its_lease(stage: &Stage) {
    let node = stage.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter", 10)
        .unwrap();
    let mut peer = stage.peer("pub");
    assert!(subscription.wait_for_matched(1, PATIENCE));
    peer.kill();
    let took = time_until(&node, LEASE_PATIENCE, || subscription.matched_count() == 0);
    assert!(took > AT_ONCE, "gone after {took:?}, before its lease");
    assert!(node.context().graph().publishers("/chatter").is_empty());
}

pub fn a_peer_that_ends_is_noticed_at_once(stage: &Stage) {
    let node = stage.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter", 10)
        .unwrap();
    let peer = stage.peer("pub");
    assert!(subscription.wait_for_matched(1, PATIENCE));
    signal(&peer, "INT");
    time_until(&node, AT_ONCE, || subscription.matched_count() == 0);
    assert!(node.context().graph().publishers("/chatter").is_empty());
}

pub fn they_notice_our_killed_process_by_its_lease(stage: &Stage) {
    let mut ours = start_part(stage.domain);
    let mut peer = stage.peer("sub");
    peer.expect("received ", PATIENCE);
    ours.kill().expect("it still runs");
    let _ = ours.wait();
    peer.expect("matched 0", LEASE_PATIENCE);
}

pub fn they_notice_our_end_at_once(stage: &Stage) {
    let node = stage.node();
    let publisher = node.create_publisher::<Text>("chatter", 10).unwrap();
    let mut peer = stage.peer("sub");
    wait_until_they_hear(&publisher, &mut peer);
    drop((node, publisher));
    peer.expect("matched 0", AT_ONCE);
}

/// A process of ours that talks until it is killed: this program again, with
/// one test to run.
fn start_part(domain: u32) -> Child {
    Command::new(std::env::current_exe().expect("this program's path"))
        .args(["--exact", "departure::a_part_that_others_start"])
        .env(PART, domain.to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("start this program again")
}

#[test]
fn a_part_that_others_start() {
    let Some(domain) = std::env::var(PART).ok().and_then(|text| text.parse().ok()) else {
        return;
    };
    let node = Stage::of_domain(domain).node();
    let publisher = node.create_publisher::<Text>("chatter", 10).unwrap();
    let _timer = node
        .create_timer(Duration::from_millis(100), move || {
            let _ = publisher.publish(&hello(1));
        })
        .unwrap();
    node.spin();
}

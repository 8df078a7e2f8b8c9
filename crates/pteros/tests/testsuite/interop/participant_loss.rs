//! Participant loss: a participant that leaves is removed at once, one that dies
//! when its lease ends.

#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use std::process::{Child, Stdio};
use std::time::Duration;

use pteros::NamedQosExt;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros_test_support::own_process;

use crate::interop::harness::*;

/// The domain of a child process of this program.
const PART: &str = "PTEROS_INTEROP_PART_DOMAIN";

/// Longer than the peers' leases, which are 10 s (Cyclone), 20 s (Fast DDS) and 50 s
/// (RustDDS).
const LEASE_TIMEOUT: Duration = Duration::from_secs(70);

pub fn a_killed_peer_is_removed_when_its_lease_ends(harness: &Harness) {
    let node = harness.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter".keep_last(10))
        .unwrap();
    let mut peer = harness.peer("pub");
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    peer.kill();
    let took = time_until(&node, LEASE_TIMEOUT, || subscription.matched_count() == 0);
    assert!(
        took > GOODBYE_TIMEOUT,
        "gone after {took:?}, before its lease"
    );
    assert!(node.context().graph().publishers("/chatter").is_empty());
}

pub fn a_peer_that_exits_is_removed_at_once(harness: &Harness) {
    let node = harness.node();
    let subscription = node
        .create_polled_subscription::<Text>("chatter".keep_last(10))
        .unwrap();
    let peer = harness.peer("pub");
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    signal(&peer, "INT");
    time_until(&node, GOODBYE_TIMEOUT, || subscription.matched_count() == 0);
    assert!(node.context().graph().publishers("/chatter").is_empty());
}

pub fn our_killed_process_is_removed_when_its_lease_ends(harness: &Harness) {
    let mut ours = start_publishing_child(harness.domain);
    let mut peer = harness.peer("sub");
    peer.expect("received ", TIMEOUT);
    ours.kill().expect("it still runs");
    let _ = ours.wait();
    peer.expect("matched 0", LEASE_TIMEOUT);
}

pub fn our_exit_is_noticed_by_the_peer_at_once(harness: &Harness) {
    let node = harness.node();
    let publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    let mut peer = harness.peer("sub");
    wait_until_peer_matched(&publisher, &mut peer);
    drop((node, publisher));
    peer.expect("matched 0", GOODBYE_TIMEOUT);
}

/// Starts a process of ours that publishes until it is killed: this program again,
/// with one test to run.
fn start_publishing_child(domain: u32) -> Child {
    own_process::command("interop::participant_loss::a_child_process_publishes_until_killed")
        .env(PART, domain.to_string())
        .stdout(Stdio::null())
        .spawn()
        .expect("start this program again")
}

#[test]
fn a_child_process_publishes_until_killed() {
    let Some(domain) = std::env::var(PART).ok().and_then(|text| text.parse().ok()) else {
        return;
    };
    let node = Harness::of_domain(domain).node();
    let publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    let _timer = node
        .create_timer(Duration::from_millis(100), move || {
            let _ = publisher.publish(&hello(1));
        })
        .unwrap();
    node.spin();
}

//! Reports of the command on a network on Zenoh: `doctor`, `topic why`.

use std::time::Instant;

use crate::namespaces::{Lab, Program};
use crate::zenoh_networks::host::{Host, SOON};

/// Runs a verb until its output has a text.
#[track_caller]
fn wait_for_text(host: &Host, words: &str, wanted: &str) -> String {
    let end = Instant::now() + SOON;
    loop {
        let (_, out, log) = host.run_to_end(host.pteros(words));
        if out.contains(wanted) {
            return out;
        }
        assert!(Instant::now() < end, "no {wanted:?} in: {out}{log}");
    }
}

#[test]
fn doctor_says_which_router_is_connected_and_nothing_of_rtps() {
    let Some(lab) = Lab::new() else { return };
    let host = Host::on_zenoh(&lab, "");
    let alone = wait_for_text(&host, "doctor", "no Zenoh router is connected");
    assert!(alone.contains("start one by: pteros router"), "{alone}");
    for of_rtps in ["multicast", "ROS_STATIC_PEERS", "UDP ports"] {
        assert!(!alone.contains(of_rtps), "{alone}");
    }
    let _router = host.router("");
    wait_for_text(&host, "doctor", "connected to the Zenoh router ");
    let rtps = Host::on_rtps(&lab);
    let of_rtps = wait_for_text(&rtps, "doctor", "UDP ports");
    assert!(!of_rtps.contains("Zenoh router"), "{of_rtps}");
}

#[test]
fn topic_why_names_what_zenoh_does_not_carry() {
    let Some(lab) = Lab::new() else { return };
    let host = Host::on_zenoh(&lab, "");
    let qos = "--qos-liveliness manual_by_topic --qos-liveliness-lease-duration-seconds 1";
    let words = format!("topic echo {qos} /lines std_msgs/msg/Int64");
    let _echo = Program::start(host.pteros(&words));
    let why = wait_for_text(&host, "topic why /lines", "1 subscription");
    let reason = ": zenoh does not carry its subscription: nothing on it asserts manual liveliness";
    assert!(why.contains(reason), "{why}");
}

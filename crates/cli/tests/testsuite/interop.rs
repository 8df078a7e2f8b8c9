//! `pteros param` and `pteros action` with nodes of Cyclone DDS and Fast DDS.
//!
//! `cargo xtask test` builds the peers (verify/interop/README.md) and runs this in a
//! private network. Without either, a case is skipped and prints a line that xtask
//! counts.
#![allow(clippy::disallowed_methods, reason = "reads where the peers are")]

use std::io::Write as _;
use std::time::Duration;

use crate::peer::{Peer, program};
use crate::support::{Answer, Domain, finish};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a case with each peer program of that kind.
fn for_each_peer(kind: &str, options: &str, story: impl Fn(&Domain, &mut Peer)) {
    for stack in ["cyclone", "fastdds"] {
        let name = format!("{stack}-{kind}");
        let ready = match std::env::var_os("PTEROS_PRIVATE_NETWORK") {
            Some(_) => program(&name),
            None => Err("not in a private network; run cargo xtask test".into()),
        };
        match ready {
            Ok(program) => {
                let domain = Domain::new();
                let line = format!("serve --domain {} --timeout 120 {options}", domain.id());
                let mut peer = Peer::start(&program, &line);
                peer.expect("ready", TIMEOUT);
                story(&domain, &mut peer);
            }
            Err(why) => {
                let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
            }
        }
    }
}

fn run(domain: &Domain, words: &[&str]) -> Answer {
    let mut command = domain.command(words);
    command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET");
    finish(command)
}

/// The output of the command once discovery is complete. How long that takes
/// depends on the peer and the machine.
#[track_caller]
fn assert_output(domain: &Domain, words: &[&str], expected: &str) -> String {
    let mut answer = run(domain, words);
    for _ in 0..10 {
        if answer.out.contains(expected) || answer.err.contains(expected) {
            break;
        }
        answer = run(domain, words);
    }
    let all = format!("{}{}", answer.out, answer.err);
    assert!(
        all.contains(expected),
        "{words:?}: no {expected:?} in:\n{all}"
    );
    all
}

#[test]
fn doctor_lists_other_implementations_and_their_announced_versions() {
    for_each_peer("parameters", "", |domain, _| {
        let words = ["doctor", "--json"];
        let output = assert_output(domain, &words, "other participants: 1 of ");
        // Fast DDS announces its version since 3.0.
        let versions = ["1 of Cyclone DDS 0.", "1 of Cyclone DDS 1", "1 of Fast DDS"];
        assert!(versions.iter().any(|one| output.contains(one)), "{output}");
    });
}

#[test]
fn parameters_of_other_implementations_are_listed_read_and_set() {
    for_each_peer("parameters", "", |domain, peer| {
        let listed = assert_output(domain, &["param", "list", "/theirs"], "arm.left.doubles");
        assert_eq!(listed.lines().count(), 9, "{listed}");
        let get = |name: &str, expected: &str| {
            assert_output(domain, &["param", "get", "/theirs", name], expected)
        };
        get("title", "String value is: r2");
        get("arm.flags", "Boolean values are: [True, False]");
        get(
            "arm.left.integers",
            "[-9223372036854775808, 9223372036854775807]",
        );
        let described = assert_output(
            domain,
            &["param", "describe", "/theirs", "count"],
            "how many",
        );
        assert!(described.contains("Max value: 100"), "{described}");
        let set = |name: &str, value: &str, expected: &str| {
            assert_output(domain, &["param", "set", "/theirs", name, value], expected)
        };
        set("count", "8", "Set parameter successful");
        peer.expect("asked count integer 8", TIMEOUT);
        get("count", "Integer value is: 8");
        set("count", "102", "out of range");
        set("title", "r3", "read only");
        set("texts", "[d, ef]", "Set parameter successful");
        peer.expect("asked texts string_array d ef", TIMEOUT);
        let dumped = assert_output(domain, &["param", "dump", "/theirs"], "ros__parameters");
        assert!(dumped.contains("count: 8"), "{dumped}");
    });
}

#[test]
fn goals_are_sent_to_other_implementations() {
    for_each_peer("action", "", |domain, peer| {
        let kind = "example_interfaces/action/Fibonacci";
        let send = [
            "action",
            "send_goal",
            "/fibonacci",
            kind,
            "{order: 5}",
            "--feedback",
        ];
        let output = assert_output(domain, &send, "Feedback");
        assert!(output.contains("SUCCEEDED"), "{output}");
        let result = output.split("Result").last().unwrap();
        assert!(result.contains("- 5"), "{output}");
        peer.expect("asked", TIMEOUT);
        assert_output(
            domain,
            &["action", "send_goal", "/fibonacci", kind, "{order: 46}"],
            "rejected",
        );
    });
}

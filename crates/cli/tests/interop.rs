//! `pteros param` and `pteros action` at nodes of Cyclone DDS and Fast DDS.
//!
//! `cargo xtask test` builds the peers (interop/README.md) and runs this in a
//! private network; without either a story is skipped, and says so in a line
//! that xtask counts.
#![allow(
    clippy::disallowed_methods,
    reason = "the environment says where other people's programs are"
)]

#[path = "../../../interop/peer.rs"]
mod peer;
mod support;

use std::io::Write as _;
use std::time::Duration;

use peer::{Peer, program};
use support::{Answer, Domain, finish};

const PATIENCE: Duration = Duration::from_secs(20);

/// With each stack's program of that kind, serving.
fn with_each(kind: &str, options: &str, story: impl Fn(&Domain, &mut Peer)) {
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
                peer.expect("ready", PATIENCE);
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

/// What the command says once it has found the other side: how long that takes
/// is up to the stack and the machine.
#[track_caller]
fn says(domain: &Domain, words: &[&str], told: &str) -> String {
    let mut answer = run(domain, words);
    for _ in 0..10 {
        if answer.out.contains(told) || answer.err.contains(told) {
            break;
        }
        answer = run(domain, words);
    }
    let all = format!("{}{}", answer.out, answer.err);
    assert!(all.contains(told), "{words:?}: no {told:?} in:\n{all}");
    all
}

#[test]
fn doctor_names_other_stacks_and_the_versions_that_they_tell() {
    with_each("parameters", "", |domain, _| {
        let words = ["doctor", "--json"];
        let said = says(domain, &words, "other processes: 1 of ");
        // Fast DDS tells its own since 3.0.
        let told = ["1 of Cyclone DDS 0.", "1 of Cyclone DDS 1", "1 of Fast DDS"];
        assert!(told.iter().any(|one| said.contains(one)), "{said}");
    });
}

#[test]
fn parameters_of_other_stacks_are_listed_read_and_set() {
    with_each("parameters", "", |domain, peer| {
        let listed = says(domain, &["param", "list", "/theirs"], "arm.left.doubles");
        assert_eq!(listed.lines().count(), 9, "{listed}");
        let get = |name: &str, told: &str| says(domain, &["param", "get", "/theirs", name], told);
        get("title", "String value is: r2");
        get("arm.flags", "Boolean values are: [True, False]");
        get(
            "arm.left.integers",
            "[-9223372036854775808, 9223372036854775807]",
        );
        let described = says(
            domain,
            &["param", "describe", "/theirs", "count"],
            "how many",
        );
        assert!(described.contains("Max value: 100"), "{described}");
        let set = |name: &str, value: &str, told: &str| {
            says(domain, &["param", "set", "/theirs", name, value], told)
        };
        set("count", "8", "Set parameter successful");
        peer.expect("asked count integer 8", PATIENCE);
        get("count", "Integer value is: 8");
        set("count", "102", "out of range");
        set("title", "r3", "read only");
        set("texts", "[d, ef]", "Set parameter successful");
        peer.expect("asked texts string_array d ef", PATIENCE);
        let dumped = says(domain, &["param", "dump", "/theirs"], "ros__parameters");
        assert!(dumped.contains("count: 8"), "{dumped}");
    });
}

#[test]
fn goals_are_sent_to_other_stacks() {
    with_each("action", "", |domain, peer| {
        let kind = "example_interfaces/action/Fibonacci";
        let send = [
            "action",
            "send_goal",
            "/fibonacci",
            kind,
            "{order: 5}",
            "--feedback",
        ];
        let said = says(domain, &send, "Feedback");
        assert!(said.contains("SUCCEEDED"), "{said}");
        let result = said.split("Result").last().unwrap();
        assert!(result.contains("- 5"), "{said}");
        peer.expect("asked", PATIENCE);
        says(
            domain,
            &["action", "send_goal", "/fibonacci", kind, "{order: 46}"],
            "rejected",
        );
    });
}

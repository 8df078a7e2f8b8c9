//! The example as a user runs it: two processes on this host, and the line that
//! `cargo xtask flood` parses.
#![allow(clippy::disallowed_methods, reason = "starts programs")]

use std::process::{Command, Stdio};

use pteros_test_support::program::Program;

/// Different from the domains of other tests.
const DOMAIN: &str = "219";

fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ping-pong"));
    command
        .args(words)
        .env("ROS_DOMAIN_ID", DOMAIN)
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env_remove("ROS_STATIC_PEERS");
    command
}

#[test]
fn every_ping_gets_a_pong_and_is_timed() {
    let _pong = Program::spawn(program(&["pong"]).stdout(Stdio::null()));
    let words = ["ping", "--count", "20", "--warmup", "5", "--timeout", "30"];
    let output = program(&words).output().expect("ping runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("rtt size=64 count=20 min="), "{said}");
}

#[test]
fn without_a_verb_the_usage_is_shown() {
    let output = program(&[]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("usage: "),
        "{said}"
    );
}

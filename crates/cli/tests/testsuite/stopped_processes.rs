//! Processes on several hosts that are stopped or killed for longer than their lease:
//! hosts in suspend, and dead readers of a publisher that keeps all.
//!
//! The command has the default lease, so each test takes half a minute. Where namespaces
//! do not work, each test is skipped with a sentence.

#![allow(clippy::disallowed_methods, reason = "other processes take real time")]

use crate::namespaces::{FLOW, Flows, Lab, Program, publisher, subscriber};
use std::process::Command;
use std::time::{Duration, Instant};

/// The participant lease of the command (`ContextOptions::participant_lease`).
const LEASE: Duration = Duration::from_secs(20);
/// Time for what happens when a lease ends.
const REACTION: Duration = Duration::from_secs(1);

/// Both hosts sleep for longer than the lease, and their network changes meanwhile.
#[test]
fn a_flow_goes_on_when_suspended_hosts_resume() {
    let Some(lab) = Lab::new() else { return };
    let mut flows = Flows::start(&lab, &[1, 2], "reliable", &[]);
    let all = |flows: &Flows, signal: &str| {
        let programs = flows.publishers.iter().chain(&flows.echoes);
        programs.for_each(|program| program.signal(signal));
    };
    all(&flows, "STOP");
    lab.switch.ip("link set sa1 down");
    lab.switch.ip("link set sb2 down");
    let begin = Instant::now();
    let silence = flows.gaps_since(begin, begin + LEASE + Duration::from_secs(3));
    assert!(silence.flows[0] > LEASE, "nothing runs: {silence:?}");
    // One network is back. The other one loses its carrier at the other host.
    lab.switch.ip("link set sa1 up");
    let gaps = flows.gaps_after(Duration::from_secs(4), |flows| all(flows, "CONT"));
    println!("after the resumption: {gaps:?}");
    assert!(gaps.longest() < Duration::from_secs(2), "{gaps:?}");
    flows.go_on();
}

/// A command with KEEP_ALL and without space for more than 20 samples.
fn keep_all(mut command: Command) -> Program {
    command.args(["--qos-history", "keep_all", "--qos-max-samples", "20"]);
    Program::start(command)
}

/// A publisher, and readers on two other hosts, of which the first one gets a signal.
fn check_dead_reader(signal: &str) {
    let Some(lab) = Lab::new() else { return };
    let hosts = [lab.host(), lab.host(), lab.host()];
    for (host, (name, last)) in hosts.iter().zip([('a', 1), ('b', 2), ('c', 3)]) {
        lab.attach(host, name, 1, last);
    }
    let mut publisher = keep_all(publisher(&hosts[0], "/drive", "reliable"));
    let mut readers = [1, 2].map(|host| keep_all(subscriber(&hosts[host], "/drive", "reliable")));
    readers.iter_mut().for_each(|reader| reader.hears(FLOW));
    let begin = Instant::now();
    readers[0].signal(signal);
    let gap = readers[1].longest_gap(begin, begin + LEASE + 3 * REACTION);
    let warnings = publisher
        .log()
        .matches("no space for another sample")
        .count();
    println!("{signal}: {gap:?} without a message, {warnings} warnings");
    assert!(publisher.is_running(), "{}", publisher.log());
    assert!(gap < LEASE + REACTION, "{gap:?} without a message");
    assert_eq!(warnings, 1, "once in a lease: {}", publisher.log());
    readers[1].hears(FLOW);
    if signal == "STOP" {
        readers[0].signal("CONT");
        readers[0].hears(FLOW);
        readers[1].hears(FLOW);
    }
    assert!(publisher.is_running(), "{}", publisher.log());
}

#[test]
fn a_killed_reader_of_a_keep_all_publisher_costs_its_lease() {
    check_dead_reader("KILL");
}

#[test]
fn a_stopped_reader_of_a_keep_all_publisher_costs_its_lease_and_returns() {
    check_dead_reader("STOP");
}

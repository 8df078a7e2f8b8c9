//! Processes that are refused a connection, with the reason: of another user, in
//! another network namespace. Where the system does not allow such a process, the
//! test is skipped.

use std::os::unix::process::CommandExt;
use std::process::Command;

use pteros_shm::{DisconnectReason, SharedMemoryTransport, SharedMemoryTransportOptions, ShmError};

use crate::crash::process::{self, Child, from_text, name, to_text};
use crate::crash::talker::Talker;

/// The user whom every Linux has and nobody is.
const NOBODY: u32 = 65534;

/// A child that connects and prints the outcome.
pub fn run(words: &[&str]) {
    let [own, peer] = words[..] else {
        panic!("{words:?}");
    };
    let transport =
        SharedMemoryTransport::open(from_text(own), SharedMemoryTransportOptions::default())
            .expect("a transport");
    println!("> uid {}", rustix::process::geteuid().as_raw());
    match transport.connect(from_text(peer), 0) {
        Ok(()) => println!("> connected"),
        Err(ShmError::Refused { reason, .. }) => println!("> {reason}"),
        Err(other) => println!("> {other}"),
    }
}

#[test]
fn another_user_is_refused_on_both_sides_by_number() {
    let _alone = process::alone();
    let mut transport = Talker::new(name());
    let own = name();
    let line = format!("unrelated {} {}", to_text(&own), to_text(&transport.name()));
    let mut command = Command::new(process::own_path());
    command.uid(NOBODY);
    if !rustix::process::geteuid().is_root() || command.arg("--list").output().is_err() {
        eprintln!("skipped: this user may not start a process of another one");
        return;
    }
    let mut command = Command::new(process::own_path());
    command.uid(NOBODY);
    let mut child = Child::start(own, &line, command);
    assert_eq!(child.says(), format!("uid {NOBODY}"));
    // It sees whose the listener is before it says a word.
    let reason = DisconnectReason::OtherUser { uid: 0 };
    assert_eq!(child.says(), reason.to_string());
    transport.step();
    let counts = transport.transport.counts();
    assert_eq!((counts.connections, counts.handshakes_failed), (0, 1));
}

#[test]
fn another_network_namespace_is_unreachable_with_a_reason() {
    let _alone = process::alone();
    let transport = Talker::new(name());
    let made = Command::new("unshare").args(["-n", "true"]).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may not make a network namespace");
        return;
    }
    let own = name();
    let line = format!("unrelated {} {}", to_text(&own), to_text(&transport.name()));
    let mut command = Command::new("unshare");
    command.arg("-n").arg(process::own_path());
    let mut child = Child::start(own, &line, command);
    assert!(child.says().starts_with("uid"));
    assert_eq!(child.says(), DisconnectReason::Unreachable.to_string());
}

//! Processes that get no link, and learn why: of another user, in another
//! network namespace. Where the system does not let us make such a process,
//! the test says so and is skipped.

use std::os::unix::process::CommandExt;
use std::process::Command;

use pteros_shm::{Hub, HubOptions, Reason, ShmError};

use crate::process::{self, Child, from_text, name, to_text};
use crate::talker::Talker;

/// The user whom every Linux has and nobody is.
const NOBODY: u32 = 65534;

/// A child that asks for a link and says how that went.
pub fn be(words: &[&str]) {
    let [own, peer] = words[..] else {
        panic!("{words:?}");
    };
    let hub = Hub::open(from_text(own), HubOptions::default()).expect("a hub");
    println!("> uid {}", rustix::process::geteuid().as_raw());
    match hub.connect(from_text(peer), 0) {
        Ok(()) => println!("> connected"),
        Err(ShmError::Refused { reason, .. }) => println!("> {reason}"),
        Err(other) => println!("> {other}"),
    }
}

#[test]
fn another_user_is_refused_on_both_sides_by_number() {
    let _alone = process::alone();
    let mut hub = Talker::new(name());
    let own = name();
    let line = format!("stranger {} {}", to_text(&own), to_text(&hub.name()));
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
    let reason = Reason::OtherUser { uid: 0 };
    assert_eq!(child.says(), reason.to_string());
    hub.step();
    let counts = hub.hub.counts();
    assert_eq!((counts.links, counts.handshakes_failed), (0, 1));
}

#[test]
fn another_network_namespace_cannot_be_reached_and_that_is_said() {
    let _alone = process::alone();
    let hub = Talker::new(name());
    let made = Command::new("unshare").args(["-n", "true"]).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may not make a network namespace");
        return;
    }
    let own = name();
    let line = format!("stranger {} {}", to_text(&own), to_text(&hub.name()));
    let mut command = Command::new("unshare");
    command.arg("-n").arg(process::own_path());
    let mut child = Child::start(own, &line, command);
    assert!(child.says().starts_with("uid"));
    assert_eq!(child.says(), Reason::Unreachable.to_string());
}

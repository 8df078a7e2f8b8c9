//! Secured nodes and secured peers (DDS Security 1.1): pairs match as the
//! governance demands, for every governance and whichever side begins the
//! handshake.
//!
//! Security is configured per process, so our side is this program again, with its
//! role in the environment. It prints lines as the peers do.

#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;

use crate::interop::harness::*;
use crate::interop::revalidation;
use pteros_test_support::keystore::{Keys, Protections};
use pteros_test_support::peer::{Peer, value};

/// The role of our process, `pub` or `sub`, and its domain.
const PART: &str = "PTEROS_INTEROP_SECURED";
const COUNT: usize = 3;
const SIZE: usize = 3_000;
/// Long enough for a handshake and a match, were there any.
const NO_MATCH_SPAN: Duration = Duration::from_secs(4);

/// Which enclave we have: the participant with the smaller GUID prefix begins the
/// handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandshakeInitiator {
    We,
    They,
}

/// The governances of SROS 2 and of ours, and others that together have each kind
/// of each protection.
const SELECTED_GOVERNANCES: [Protections; 5] = [
    Protections::SROS_2,
    Protections::of("ENCRYPT", "ENCRYPT", "ENCRYPT"),
    Protections::of("NONE", "NONE", "ENCRYPT"),
    Protections::of("SIGN", "SIGN", "NONE"),
    Protections::of("ENCRYPT", "NONE", "SIGN"),
];

pub fn their_subscription_gets_our_messages_with_every_protection_kind(harness: &Harness) {
    for (n, protections) in SELECTED_GOVERNANCES.into_iter().enumerate() {
        they_hear(harness, protections, initiator(n));
    }
}

pub fn our_subscription_gets_their_messages_with_every_protection_kind(harness: &Harness) {
    for (n, protections) in SELECTED_GOVERNANCES.into_iter().enumerate() {
        we_hear(harness, protections, initiator(n + 1));
    }
}

/// All governances, in both directions, with either side beginning the handshake.
pub fn all_that_can_be_protected(harness: &Harness) {
    for protections in Protections::all() {
        for initiator in [HandshakeInitiator::We, HandshakeInitiator::They] {
            they_hear(harness, protections, initiator);
            we_hear(harness, protections, initiator);
        }
    }
}

/// Both in turn.
fn initiator(n: usize) -> HandshakeInitiator {
    match n % 2 {
        0 => HandshakeInitiator::We,
        _ => HandshakeInitiator::They,
    }
}

fn they_hear(harness: &Harness, protections: Protections, initiator: HandshakeInitiator) {
    let case = format!(
        "{:?} hears us, {protections:?}, {initiator:?} begin",
        harness.stack
    );
    let keys = Keys::new(protections);
    let [ours, theirs] = folders(&keys, initiator);
    let mut peer = harness.peer(&format!(
        "sub {} --security {}",
        options(),
        theirs.display()
    ));
    let mut us = part(harness, "pub", &keys, &ours);
    compare(&case, &mut us, &mut peer);
}

fn we_hear(harness: &Harness, protections: Protections, initiator: HandshakeInitiator) {
    let case = format!(
        "we hear {:?}, {protections:?}, {initiator:?} begin",
        harness.stack
    );
    let keys = Keys::new(protections);
    let [ours, theirs] = folders(&keys, initiator);
    let mut us = part(harness, "sub", &keys, &ours);
    let mut peer = harness.peer(&format!(
        "pub {} --wait-matched 1 --linger 20 --security {}",
        options(),
        theirs.display()
    ));
    compare(&case, &mut peer, &mut us);
}

/// A participant without security, or with a keystore of its own, neither sends to
/// us nor receives from us.
pub fn unauthenticated_participants_neither_send_nor_receive(harness: &Harness) {
    let keys = Keys::new(Protections::SROS_2);
    let foreign = Keys::new(Protections::SROS_2);
    let folder = foreign.enclave("/two");
    let foreign = format!("--security {}", folder.display());
    for security in ["", &foreign] {
        let mut us = part(harness, "sub", &keys, &keys.enclave("/one"));
        let mut peer = harness.peer(&format!("pub {} --rate 10 {security}", options()));
        assert!(
            us.wait_for("matched 1", NO_MATCH_SPAN).is_err(),
            "{security}"
        );
        assert!(!peer.has("matched 1"), "{security}");
        us.kill();
        let mut us = part(harness, "pub", &keys, &keys.enclave("/one"));
        let mut peer = harness.peer(&format!("sub {} {security}", options()));
        assert!(
            peer.wait_for("matched 1", NO_MATCH_SPAN).is_err(),
            "{security}"
        );
        assert!(!us.has("matched 1"), "{security}");
    }
}

/// Everything sent was received.
fn compare(case: &str, writer: &mut Peer, reader: &mut Peer) {
    for n in 0..COUNT {
        let line = |peer: &mut Peer, word: &str| {
            let said = peer.wait_for(word, TIMEOUT);
            said.unwrap_or_else(|why| panic!("{case}: {word}{n}: {why}; {:?}", peer.seen()))
        };
        let received = line(reader, "received ");
        let sent = line(writer, "sent ");
        assert_eq!(value(&received, "crc"), value(&sent, "crc"), "{case}");
        assert_eq!(value(&received, "size"), Some(&*SIZE.to_string()), "{case}");
    }
}

fn options() -> String {
    format!("--type bytes --size {SIZE} --durability transient_local --count {COUNT}")
}

/// Our enclave and theirs.
fn folders(keys: &Keys, initiator: HandshakeInitiator) -> [std::path::PathBuf; 2] {
    let [first, second] = keys.initiator_first();
    match initiator {
        HandshakeInitiator::We => [first, second],
        HandshakeInitiator::They => [second, first],
    }
}

/// Our process.
pub fn part(harness: &Harness, verb: &str, keys: &Keys, enclave: &Path) -> Peer {
    let name = enclave.file_name().expect("a name").to_string_lossy();
    let variables = [
        (PART, format!("{verb} {}", harness.domain)),
        ("ROS_SECURITY_ENABLE", "true".into()),
        ("ROS_SECURITY_STRATEGY", "Enforce".into()),
        ("ROS_SECURITY_KEYSTORE", keys.root().display().to_string()),
        ("ROS_SECURITY_ENCLAVE_OVERRIDE", format!("/{name}")),
    ];
    let program = std::env::current_exe().expect("this program's path");
    let options = "--exact interop::secured::a_child_process_talks_until_killed --nocapture";
    Peer::start_with(&program, options, &variables)
}

pub fn say(line: &str) {
    // On a line of its own: the test runner has begun one.
    let _ = writeln!(std::io::stdout(), "\n{line}");
}

#[test]
fn a_child_process_talks_until_killed() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let (verb, domain) = part.split_once(' ').expect("a verb and a domain");
    let options = ContextOptions {
        domain_id: Some(domain.parse().expect("a number")),
        discovery_range: Some(DiscoveryRange::Subnet),
        use_environment: true,
        ..ContextOptions::default()
    };
    let context = Context::with_options(options).expect("a secured context");
    let node = context.create_node("ours").expect("a node");
    if verb == "count" {
        return revalidation::count_on_two_topics(&node);
    }
    let qos = QosProfile::default().transient_local();
    let line = |word: &str, data: &[u8]| {
        say(&format!("{word} size={} crc={}", data.len(), crc(data)));
    };
    if verb == "pub" {
        let publisher = node
            .create_publisher::<UInt8MultiArray>("chatter".qos(qos))
            .expect("a publisher");
        say("ready");
        assert!(publisher.wait_for_matched(1, TIMEOUT), "nobody hears us");
        say("matched 1");
        for n in 0..COUNT {
            let data = pattern(SIZE, n);
            line("sent", &data);
            publisher.publish_owned(array(data)).expect("sent");
        }
        drive_for(&node, 2 * TIMEOUT);
        return;
    }
    let subscription = node
        .create_polled_subscription::<UInt8MultiArray>("chatter".qos(qos))
        .expect("a subscription");
    say("ready");
    if subscription.wait_for_matched(1, TIMEOUT) {
        say("matched 1");
    }
    for _ in 0..COUNT {
        match subscription.take_timeout(TIMEOUT) {
            Some(sample) => line("received", &sample.data),
            None => panic!("nothing came: {:?}", subscription.counts()),
        }
    }
}

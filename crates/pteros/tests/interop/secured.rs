//! Secured nodes and secured peers (DDS Security 1.1): what must connect does,
//! whatever the governance protects and whoever begins; what must not does not.
//!
//! Security is of a process, so our side is this program again, with its part
//! in the environment; it prints lines as the peers do.

#![allow(
    clippy::disallowed_methods,
    reason = "a process that is started learns its part from its environment"
)]

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;

use crate::changed_files;
use crate::keystore::{Keys, Protections};
use crate::peer::{Peer, value};
use crate::stage::*;

/// What our process does: `pub` or `sub`, and in which domain.
const PART: &str = "PTEROS_INTEROP_SECURED";
const COUNT: usize = 3;
const SIZE: usize = 3_000;
/// Long enough for a handshake and a match, were there any.
const IN_VAIN: Duration = Duration::from_secs(4);

/// Which enclave we have: that of the smaller prefix begins the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beginner {
    We,
    They,
}

/// What the governances of SROS 2 and of ours ask for, and others in which each
/// kind of each protection is there once.
const SOME: [Protections; 5] = [
    Protections::SROS_2,
    Protections::of("ENCRYPT", "ENCRYPT", "ENCRYPT"),
    Protections::of("NONE", "NONE", "ENCRYPT"),
    Protections::of("SIGN", "SIGN", "NONE"),
    Protections::of("ENCRYPT", "NONE", "SIGN"),
];

pub fn they_hear_us_by_every_kind_of_protection(stage: &Stage) {
    for (n, protections) in SOME.into_iter().enumerate() {
        they_hear(stage, protections, beginner(n));
    }
}

pub fn we_hear_them_by_every_kind_of_protection(stage: &Stage) {
    for (n, protections) in SOME.into_iter().enumerate() {
        we_hear(stage, protections, beginner(n + 1));
    }
}

/// All governances, both ways, whoever begins.
pub fn all_that_can_be_protected(stage: &Stage) {
    for protections in Protections::all() {
        for beginner in [Beginner::We, Beginner::They] {
            they_hear(stage, protections, beginner);
            we_hear(stage, protections, beginner);
        }
    }
}

/// Both in turn.
fn beginner(n: usize) -> Beginner {
    match n % 2 {
        0 => Beginner::We,
        _ => Beginner::They,
    }
}

fn they_hear(stage: &Stage, protections: Protections, beginner: Beginner) {
    let case = format!(
        "{:?} hears us, {protections:?}, {beginner:?} begin",
        stage.stack
    );
    let keys = Keys::new(protections);
    let [ours, theirs] = folders(&keys, beginner);
    let mut peer = stage.peer(&format!(
        "sub {} --security {}",
        options(),
        theirs.display()
    ));
    let mut us = part(stage, "pub", &keys, &ours);
    compare(&case, &mut us, &mut peer);
}

fn we_hear(stage: &Stage, protections: Protections, beginner: Beginner) {
    let case = format!(
        "we hear {:?}, {protections:?}, {beginner:?} begin",
        stage.stack
    );
    let keys = Keys::new(protections);
    let [ours, theirs] = folders(&keys, beginner);
    let mut us = part(stage, "sub", &keys, &ours);
    let mut peer = stage.peer(&format!(
        "pub {} --wait-matched 1 --linger 20 --security {}",
        options(),
        theirs.display()
    ));
    compare(&case, &mut peer, &mut us);
}

/// Whoever comes without security, or with a keystore of its own, is not heard,
/// and does not hear us.
pub fn strangers_are_not_heard_and_hear_nothing(stage: &Stage) {
    let keys = Keys::new(Protections::SROS_2);
    let foreign = Keys::new(Protections::SROS_2);
    let folder = foreign.enclave("/two");
    let foreign = format!("--security {}", folder.display());
    for security in ["", &foreign] {
        let mut us = part(stage, "sub", &keys, &keys.enclave("/one"));
        let mut peer = stage.peer(&format!("pub {} --rate 10 {security}", options()));
        assert!(us.wait_for("matched 1", IN_VAIN).is_err(), "{security}");
        assert!(!peer.has("matched 1"), "{security}");
        us.kill();
        let mut us = part(stage, "pub", &keys, &keys.enclave("/one"));
        let mut peer = stage.peer(&format!("sub {} {security}", options()));
        assert!(peer.wait_for("matched 1", IN_VAIN).is_err(), "{security}");
        assert!(!us.has("matched 1"), "{security}");
    }
}

/// All that was sent was received.
fn compare(case: &str, writer: &mut Peer, reader: &mut Peer) {
    for n in 0..COUNT {
        let line = |peer: &mut Peer, word: &str| {
            let said = peer.wait_for(word, PATIENCE);
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
fn folders(keys: &Keys, beginner: Beginner) -> [std::path::PathBuf; 2] {
    let [first, second] = keys.initiator_first();
    match beginner {
        Beginner::We => [first, second],
        Beginner::They => [second, first],
    }
}

/// Our process.
pub fn part(stage: &Stage, verb: &str, keys: &Keys, enclave: &Path) -> Peer {
    let name = enclave.file_name().expect("a name").to_string_lossy();
    let variables = [
        (PART, format!("{verb} {}", stage.domain)),
        ("ROS_SECURITY_ENABLE", "true".into()),
        ("ROS_SECURITY_STRATEGY", "Enforce".into()),
        ("ROS_SECURITY_KEYSTORE", keys.root().display().to_string()),
        ("ROS_SECURITY_ENCLAVE_OVERRIDE", format!("/{name}")),
    ];
    let program = std::env::current_exe().expect("this program's path");
    let options = "--exact secured::a_part_that_others_start --nocapture";
    Peer::start_with(&program, options, &variables)
}

pub fn say(line: &str) {
    // A line of its own: the harness has begun one.
    let _ = writeln!(std::io::stdout(), "\n{line}");
}

#[test]
fn a_part_that_others_start() {
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
    let node = context.node("ours").expect("a node");
    if verb == "count" {
        return changed_files::count_on_two_topics(&node);
    }
    let qos = QosProfile::default().transient_local();
    let line = |word: &str, data: &[u8]| {
        say(&format!("{word} size={} crc={}", data.len(), crc(data)));
    };
    if verb == "pub" {
        let publisher = node
            .create_publisher::<UInt8MultiArray>("chatter", qos)
            .expect("a publisher");
        say("ready");
        assert!(publisher.wait_for_matched(1, PATIENCE), "nobody hears us");
        say("matched 1");
        for n in 0..COUNT {
            let data = pattern(SIZE, n);
            line("sent", &data);
            publisher.publish_owned(array(data)).expect("sent");
        }
        live_for(&node, 2 * PATIENCE);
        return;
    }
    let subscription = node
        .create_polled_subscription::<UInt8MultiArray>("chatter", qos)
        .expect("a subscription");
    say("ready");
    if subscription.wait_for_matched(1, PATIENCE) {
        say("matched 1");
    }
    for _ in 0..COUNT {
        match subscription.take_timeout(PATIENCE) {
            Some(sample) => line("received", &sample.data),
            None => panic!("nothing came: {:?}", subscription.counts()),
        }
    }
}

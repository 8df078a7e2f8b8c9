//! Interoperability harness: a DDS implementation, a domain of its own, our node
//! and the peer process.

#![allow(clippy::disallowed_methods, reason = "other vendors' programs")]

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::prelude::*;
use pteros::{Publisher, Subscription, event_handler::EndpointEvent};

use pteros_test_support::peer::{Peer, program, value};

/// For anything that should happen soon on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// After a dispose announcement no lease is waited for; the shortest lease here is
/// 10 s.
pub const GOODBYE_TIMEOUT: Duration = Duration::from_secs(4);

/// A DDS implementation of another vendor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    /// Debian's libddsc.
    Cyclone,
    /// Debian's libfastrtps.
    FastDds,
    /// PyPI's cyclonedds.
    Python,
    /// The crate rustdds.
    RustDds,
    /// The crate dust_dds.
    DustDds,
}

/// The environment of a test case.
pub struct Harness {
    pub stack: Stack,
    pub domain: u32,
    program: PathBuf,
}

/// Cases that a stack does not pass, with the reason. They are skipped.
const SKIPPED: [(Stack, &str, &str); 3] = [
    (
        Stack::RustDds,
        "our_late_joiner_gets_the_depth_in_order",
        "RustDDS 0.15 trims a writer's history every 6 s, and a late joiner gets all of it before",
    ),
    (
        Stack::DustDds,
        "a_killed_peer_is_removed_when_its_lease_ends",
        "the lease of Dust DDS 0.16 is 100 s, and cannot be set",
    ),
    (
        Stack::DustDds,
        "our_restart_is_matched_at_once",
        "Dust DDS 0.16 keeps the endpoints of a participant whose end it reads before theirs, and matches them again",
    ),
];

/// Runs the test case, or prints why it is skipped.
pub fn run(stack: Stack, name: &str, test_case: fn(&Harness)) {
    let file = match stack {
        Stack::Cyclone => "cyclone-peer",
        Stack::FastDds => "fastdds-peer",
        Stack::Python => "python-peer",
        Stack::RustDds => "rustdds-peer",
        Stack::DustDds => "dust_dds-peer",
    };
    let mut skipped = SKIPPED.iter();
    let reason = skipped.find(|(whose, case, _)| *whose == stack && *case == name);
    let network = std::env::var_os("PTEROS_PRIVATE_NETWORK");
    let has_multicast = network.as_ref().is_some_and(|kind| kind == "multicast");
    let ready = match (network, reason) {
        (Some(_), Some((.., reason))) => Err((*reason).into()),
        (Some(_), None) if stack == Stack::DustDds && !has_multicast => {
            Err("Dust DDS 0.16 matches nothing without multicast".into())
        }
        (Some(_), None) => program(file),
        (None, _) => Err("not in a private network; run cargo xtask test".into()),
    };
    match ready {
        Ok(program) => test_case(&Harness {
            stack,
            domain: next_domain(),
            program,
        }),
        Err(why) => skip(&format!("{stack:?} {name}: {why}")),
    }
}

/// Not `println!`, whose output is captured when a test passes. xtask counts these
/// lines.
fn skip(why: &str) {
    let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
}

/// Each test case has its domain. The ports stay below the ephemeral ones, which
/// begin at 32768 (domain 101).
fn next_domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1 + NEXT.fetch_add(1, Ordering::Relaxed) % 100
}

impl Harness {
    /// Starts a peer in the test's domain; it exits by itself after its time limit.
    pub fn peer(&self, options: &str) -> Peer {
        let domain = self.domain;
        Peer::start(
            &self.program,
            &format!("{options} --domain {domain} --timeout 120"),
        )
    }

    /// Starts a peer that serves or calls a service.
    pub fn service_peer(&self, options: &str) -> Peer {
        self.node_peer("service", options)
    }

    /// Starts a program of the implementation that serves or calls: `service`,
    /// `action`.
    pub fn node_peer(&self, kind: &str, options: &str) -> Peer {
        let stack = match self.stack {
            Stack::FastDds => "fastdds",
            _ => "cyclone",
        };
        let domain = self.domain;
        Peer::start(
            &self.program.with_file_name(format!("{stack}-{kind}")),
            &format!("{options} --domain {domain} --timeout 120"),
        )
    }

    /// As [`Harness::peer`]: a publisher that waits for a match and for
    /// [`Peer::go`].
    pub fn waiting_publisher(&self, options: &str) -> Peer {
        self.peer(&format!("pub --wait-matched 1 --start stdin {options}"))
    }

    /// A harness without a peer, for a process that is part of a test.
    pub fn of_domain(domain: u32) -> Harness {
        Harness {
            stack: Stack::Cyclone,
            domain,
            program: PathBuf::new(),
        }
    }

    /// A context with default options.
    pub fn context(&self) -> Context {
        let options = ContextOptions {
            domain_id: Some(self.domain),
            discovery_range: Some(DiscoveryRange::Subnet),
            ..ContextOptions::default()
        };
        Context::with_options(options).expect("a context")
    }

    pub fn node(&self) -> Node {
        self.context().create_node("ours").expect("a node")
    }
}

/// Waits until both sides are matched: what is published now must arrive.
pub fn wait_until_peer_matched<T: Message>(publisher: &Publisher<T>, peer: &mut Peer) {
    assert!(
        publisher.wait_for_matched(1, TIMEOUT),
        "we never matched the peer; it said {:?}",
        peer.seen()
    );
    peer.expect("matched 1", TIMEOUT);
}

/// As [`wait_until_peer_matched`], and starts the peer's publisher.
pub fn wait_until_matched_and_start<T: 'static>(subscription: &Subscription<T>, peer: &mut Peer) {
    assert!(
        subscription.wait_for_matched(1, TIMEOUT),
        "we never matched the peer; it said {:?}",
        peer.seen()
    );
    peer.expect("matched 1", TIMEOUT);
    peer.release();
}

/// Waits for an event that fits and returns it; earlier events are dropped.
pub fn wait_for_event(
    node: &Node,
    mut take: impl FnMut() -> Option<EndpointEvent>,
    mut fits: impl FnMut(&EndpointEvent) -> bool,
) -> EndpointEvent {
    let mut seen = Vec::new();
    let mut found = None;
    node.context().graph().wait_until(TIMEOUT, || {
        while let Some(event) = take() {
            if fits(&event) {
                found = Some(event);
                return true;
            }
            seen.push(event);
        }
        false
    });
    found.unwrap_or_else(|| panic!("the event never came; others: {seen:?}"))
}

/// Drives our side for that span, as a spinning program does.
pub fn drive_for(node: &Node, span: Duration) {
    node.context().graph().wait_until(span, || false);
}

/// Drives our side until `done`; returns how long that took.
pub fn time_until(node: &Node, timeout: Duration, done: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    let held = node.context().graph().wait_until(timeout, done);
    assert!(held, "it did not happen within {timeout:?}");
    began.elapsed()
}

pub fn hello(n: usize) -> Text {
    Text {
        data: format!("Hello World: {n}"),
    }
}

/// The next sample is `Hello World: n`.
pub fn expect_hello(subscription: &Subscription<Text>, n: usize) {
    let sample = subscription
        .take_timeout(TIMEOUT)
        .unwrap_or_else(|| panic!("sample {n} never came; {:?}", subscription.counts()));
    assert_eq!(*sample, hello(n));
}

/// The peer's next sample is `Hello World: n`.
pub fn peer_expects_hello(peer: &mut Peer, n: usize) {
    let line = peer.expect("received ", TIMEOUT);
    assert_eq!(value(&line, "text"), Some(&*hello(n).data), "{line}");
}

pub fn array(data: Vec<u8>) -> UInt8MultiArray {
    UInt8MultiArray {
        data,
        ..UInt8MultiArray::default()
    }
}

/// Bytes that reveal every shift, gap and swapped fragment.
pub fn pattern(size: usize, seed: usize) -> Vec<u8> {
    (0..size)
        .map(|i| (i * 31 + i / 256 + seed * 7) as u8)
        .collect()
}

/// CRC-32 as in zlib and as printed by the peers.
pub fn crc(bytes: &[u8]) -> String {
    const TABLE: [u32; 256] = crc_table();
    let next = |crc: u32, byte: &u8| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    format!("{:08x}", !bytes.iter().fold(u32::MAX, next))
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
}

/// Sends a signal to a peer; `INT` is a clean exit.
pub fn signal(peer: &Peer, name: &str) {
    let status = std::process::Command::new("kill")
        .args([&format!("-{name}"), &peer.id().to_string()])
        .status()
        .expect("kill");
    assert!(status.success());
}

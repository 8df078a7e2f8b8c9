//! Where a story is played: a stack, a domain of its own, our node and theirs.

#![allow(
    clippy::disallowed_methods,
    reason = "other people's programs run in real time"
)]

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::prelude::*;
use pteros::{EndpointEvent, Publisher, Subscription};

use crate::peer::{Peer, program, value};

/// For whatever should happen soon on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// After a goodbye nobody waits for a lease, and the shortest here is 10 s.
pub const AT_ONCE: Duration = Duration::from_secs(4);

/// A stack that others wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    /// Debian's libddsc.
    Cyclone,
    /// Debian's libfastrtps.
    FastDds,
    /// PyPI's cyclonedds.
    Python,
}

/// What a story works with.
pub struct Stage {
    pub stack: Stack,
    pub domain: u32,
    program: PathBuf,
}

/// Runs the story, or says why it cannot be played here.
pub fn play(stack: Stack, name: &str, story: fn(&Stage)) {
    let file = match stack {
        Stack::Cyclone => "cyclone-peer",
        Stack::FastDds => "fastdds-peer",
        Stack::Python => "python-peer",
    };
    let ready = match std::env::var_os("PTEROS_PRIVATE_NETWORK") {
        Some(_) => program(file),
        None => Err("not in a private network; run cargo xtask test".into()),
    };
    match ready {
        Ok(program) => story(&Stage {
            stack,
            domain: next_domain(),
            program,
        }),
        Err(why) => skip(&format!("{stack:?} {name}: {why}")),
    }
}

/// Not `println!`, which is swallowed when a test passes. xtask counts these.
fn skip(why: &str) {
    let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
}

/// Each story has its domain. Their ports stay below the ephemeral ones, which
/// begin at 32768 (domain 101).
fn next_domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1 + NEXT.fetch_add(1, Ordering::Relaxed) % 100
}

impl Stage {
    /// Starts a peer in the story's domain; it gives up by itself in the end.
    pub fn peer(&self, options: &str) -> Peer {
        let domain = self.domain;
        Peer::start(
            &self.program,
            &format!("{options} --domain {domain} --timeout 120"),
        )
    }

    /// Starts a peer that serves or calls.
    pub fn service_peer(&self, options: &str) -> Peer {
        self.node_peer("service", options)
    }

    /// Starts a program of the stack that serves or calls: `service`, `action`.
    pub fn node_peer(&self, kind: &str, options: &str) -> Peer {
        let stack = match self.stack {
            Stack::FastDds => "fastdds",
            Stack::Cyclone | Stack::Python => "cyclone",
        };
        let domain = self.domain;
        Peer::start(
            &self.program.with_file_name(format!("{stack}-{kind}")),
            &format!("{options} --domain {domain} --timeout 120"),
        )
    }

    /// As [`Stage::peer`], a publisher that waits for us and for [`Peer::go`].
    pub fn waiting_publisher(&self, options: &str) -> Peer {
        self.peer(&format!("pub --wait-matched 1 --start stdin {options}"))
    }

    /// A stage without a peer, for a process that is a part of a story.
    pub fn of_domain(domain: u32) -> Stage {
        Stage {
            stack: Stack::Cyclone,
            domain,
            program: PathBuf::new(),
        }
    }

    /// A context as a program gets it that says nothing.
    pub fn context(&self) -> Context {
        let options = ContextOptions {
            domain_id: Some(self.domain),
            discovery_range: Some(DiscoveryRange::Subnet),
            ..ContextOptions::default()
        };
        Context::with_options(options).expect("a context")
    }

    pub fn node(&self) -> Node {
        self.context().node("ours").expect("a node")
    }
}

/// Both sides say that they are matched: what is written now must arrive.
pub fn wait_until_they_hear<T: Message>(publisher: &Publisher<T>, peer: &mut Peer) {
    assert!(
        publisher.wait_for_matched(1, PATIENCE),
        "we never matched the peer; it said {:?}",
        peer.seen()
    );
    peer.expect("matched 1", PATIENCE);
}

/// As [`wait_until_they_hear`], and lets the peer's publisher begin.
pub fn wait_until_we_hear<T: 'static>(subscription: &Subscription<T>, peer: &mut Peer) {
    assert!(
        subscription.wait_for_matched(1, PATIENCE),
        "we never matched the peer; it said {:?}",
        peer.seen()
    );
    peer.expect("matched 1", PATIENCE);
    peer.go();
}

/// Waits for an event that fits and returns it; the ones before it are lost.
pub fn wait_for_event(
    node: &Node,
    mut take: impl FnMut() -> Option<EndpointEvent>,
    mut fits: impl FnMut(&EndpointEvent) -> bool,
) -> EndpointEvent {
    let mut seen = Vec::new();
    let mut found = None;
    node.context().graph().wait_until(PATIENCE, || {
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

/// Lets `span` pass while our side works as in a program that spins.
pub fn live_for(node: &Node, span: Duration) {
    node.context().graph().wait_until(span, || false);
}

/// Waits until `done`, driven as in a program that spins, and returns how long
/// that took.
pub fn time_until(node: &Node, patience: Duration, done: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    let held = node.context().graph().wait_until(patience, done);
    assert!(held, "it did not happen within {patience:?}");
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
        .take_timeout(PATIENCE)
        .unwrap_or_else(|| panic!("sample {n} never came; {:?}", subscription.counts()));
    assert_eq!(*sample, hello(n));
}

/// The peer's next sample is `Hello World: n`.
pub fn peer_expects_hello(peer: &mut Peer, n: usize) {
    let line = peer.expect("received ", PATIENCE);
    assert_eq!(value(&line, "text"), Some(&*hello(n).data), "{line}");
}

pub fn array(data: Vec<u8>) -> UInt8MultiArray {
    UInt8MultiArray {
        data,
        ..UInt8MultiArray::default()
    }
}

/// Bytes in which every shift, hole and swapped fragment shows.
pub fn pattern(size: usize, seed: usize) -> Vec<u8> {
    (0..size)
        .map(|i| (i * 31 + i / 256 + seed * 7) as u8)
        .collect()
}

/// CRC-32 as zlib has it and the peers print it.
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

/// Sends a signal to a peer; `INT` is a clean end.
pub fn signal(peer: &Peer, name: &str) {
    let status = std::process::Command::new("kill")
        .args([&format!("-{name}"), &peer.id().to_string()])
        .status()
        .expect("kill");
    assert!(status.success());
}

//! Memory that peers make a process keep, as the kernel counts it: the peak of its resident
//! memory grows by no more than the documented limits. `rtps/tests/testsuite/receive_memory.rs`
//! checks the accounts on fake time.
//!
//! The process is this test binary again, with its role in an environment variable.
//! The test attacks it over UDP.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use std::io::{BufRead, BufReader, Read as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use pteros::interfaces::rcl_interfaces::srv::{DescribeParameters, DescribeParametersRequest};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::QosProfile;
use pteros_test_support::own_process;

const CHILD_DOMAIN: &str = "PTEROS_TEST_MEMORY_DOMAIN";
const TIMEOUT: Duration = Duration::from_secs(40);
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Topics of the attacked process, each with one subscription that takes nothing.
const TOPICS: usize = 20;
/// The memory that one participant may fill, and all of them, by default.
const PARTICIPANT_BYTES: usize = 64 * MIB;
const CONTEXT_BYTES: usize = 256 * MIB;
/// An account may exceed its limit by a quarter (docs/internals/memory_and_limits.md).
const fn with_a_quarter(bytes: usize) -> usize {
    bytes / 4 * 5
}

fn context(domain: u32) -> Context {
    let mut options = ContextOptions::local(domain);
    options.shared_memory.enabled = false;
    Context::with_options(options).unwrap()
}

fn qos(depth: usize) -> QosProfile {
    QosProfile::default().keep_last(depth)
}

/// The attacked process.
#[test]
fn child() {
    let Ok(domain) = std::env::var(CHILD_DOMAIN) else {
        return;
    };
    let context = context(domain.parse().unwrap());
    let node = context.create_node("victim").unwrap();
    let subscribe = |topic: usize| {
        let name = format!("topic{topic}");
        node.create_polled_subscription::<Text>(name.qos(qos(1_000)))
            .unwrap()
    };
    let _subscriptions: Vec<_> = (0..TOPICS).map(subscribe).collect();
    println!("ready");
    node.spin_until(|| false, TIMEOUT * 3);
}

/// The attacked process, killed at the end.
struct Victim {
    child: Child,
    /// Open, so that the child may write.
    _out: BufReader<ChildStdout>,
    begin_bytes: usize,
}

impl Victim {
    fn start(domain: u32) -> Self {
        let mut child = own_process::command("process_memory::child")
            .env(CHILD_DOMAIN, domain.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        // The test runner's own output may precede it.
        let mut lines = out.by_ref().lines().map_while(Result::ok);
        assert!(lines.any(|line| line.ends_with("ready")));
        let mut victim = Self {
            child,
            _out: out,
            begin_bytes: 0,
        };
        victim.begin_bytes = victim.status_bytes("VmRSS:");
        victim
    }

    /// How much the peak of its resident memory has grown.
    fn growth(&self) -> usize {
        self.status_bytes("VmHWM:") - self.begin_bytes
    }

    fn status_bytes(&self, field: &str) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.trim().split(' ').next());
        number.unwrap().parse::<usize>().unwrap() * KIB
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A participant with a publisher for every topic of the victim.
struct Attacker {
    publishers: Vec<Publisher<Text>>,
    _context: Context,
}

impl Attacker {
    fn join(domain: u32) -> Self {
        let context = context(domain);
        let node = context.create_node("attacker").unwrap();
        let publish = |topic: usize| {
            let name = format!("topic{topic}");
            node.create_publisher::<Text>(name.qos(qos(2))).unwrap()
        };
        let publishers: Vec<_> = (0..TOPICS).map(publish).collect();
        for publisher in &publishers {
            assert!(publisher.wait_for_matched(1, TIMEOUT));
        }
        Self {
            publishers,
            _context: context,
        }
    }

    /// Publishes on every topic. All is received, and nothing taken.
    fn publish(&self, bytes: usize) {
        self.publish_all(bytes);
        for publisher in &self.publishers {
            let topic = publisher.topic();
            assert!(publisher.wait_for_all_acked(TIMEOUT), "{topic} {bytes}");
        }
    }

    /// As [`Self::publish`], but some may not be received.
    fn try_publish(&self, bytes: usize) {
        self.publish_all(bytes);
        let last = self.publishers.last();
        last.map(|last| last.wait_for_all_acked(Duration::from_millis(20)));
    }

    fn publish_all(&self, bytes: usize) {
        let text = Text {
            data: "x".repeat(bytes),
        };
        for publisher in &self.publishers {
            publisher.publish(&text).unwrap();
        }
    }

    /// DATA_FRAGs of eight samples of every publisher, of which all but the last
    /// fragment are sent.
    fn forge_fragments(&self, socket: &UdpSocket, port: u16, after: u32) {
        const FRAGMENT_BYTES: u16 = 32 << 10;
        const FRAGMENTS: u32 = 64;
        for publisher in &self.publishers {
            let gid = publisher.gid().to_bytes();
            for number in after + 1..=after + 8 {
                for fragment in 1..FRAGMENTS {
                    let length = 32 + FRAGMENT_BYTES;
                    let size = FRAGMENTS * u32::from(FRAGMENT_BYTES);
                    let packet = [
                        b"RTPS\x02\x04\x01\x50",
                        &gid[..12],
                        &[0x16, 1],
                        &length.to_le_bytes(),
                        &[0, 0, 28, 0, 0, 0, 0, 0],
                        &gid[12..],
                        &[0; 4],
                        &number.to_le_bytes(),
                        &fragment.to_le_bytes(),
                        &1_u16.to_le_bytes(),
                        &FRAGMENT_BYTES.to_le_bytes(),
                        &size.to_le_bytes(),
                        &vec![0xab; usize::from(FRAGMENT_BYTES)],
                    ]
                    .concat();
                    socket
                        .send_to(&packet, (Ipv4Addr::LOCALHOST, port))
                        .unwrap();
                }
            }
        }
    }
}

/// The unicast port of the victim, the first participant of its domain on this host.
fn victim_port(domain: u32) -> u16 {
    u16::try_from(7_410 + 250 * domain).unwrap()
}

#[test]
fn what_remote_participants_fill_stays_within_the_documented_memory() {
    const DOMAIN: u32 = 85;
    let victim = Victim::start(DOMAIN);
    let first = Attacker::join(DOMAIN);
    first.publish(2 * KIB);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let end = Instant::now() + TIMEOUT;
    while victim.growth() < PARTICIPANT_BYTES / 2 && Instant::now() < end {
        first.forge_fragments(&socket, victim_port(DOMAIN), 1);
    }
    first.forge_fragments(&socket, victim_port(DOMAIN), 1);
    let by_fragments = victim.growth();
    println!("fragments of one participant: {} KiB", by_fragments / KIB);
    assert!(by_fragments >= PARTICIPANT_BYTES / 2, "{by_fragments}");
    assert!(
        by_fragments <= with_a_quarter(PARTICIPANT_BYTES),
        "{by_fragments}"
    );

    // Nothing that was forged is final.
    let begin = Instant::now();
    first.publish(128 * KIB);
    println!("whole again after {:?}", begin.elapsed());

    let second = Attacker::join(DOMAIN);
    (0..12).for_each(|_| second.publish(512 * KIB));
    let by_samples = victim.growth();
    println!("samples of another one as well: {} KiB", by_samples / KIB);
    assert!(
        by_samples <= 2 * with_a_quarter(PARTICIPANT_BYTES),
        "{by_samples}"
    );

    let others: Vec<_> = (0..4).map(|_| Attacker::join(DOMAIN)).collect();
    // Where all that is free is taken, a publisher is held back.
    let end = Instant::now() + TIMEOUT;
    while victim.growth() < 2 * PARTICIPANT_BYTES && Instant::now() < end {
        others.iter().for_each(|other| other.try_publish(128 * KIB));
    }
    (0..10).for_each(|_| others.iter().for_each(|other| other.try_publish(128 * KIB)));
    let by_all = victim.growth();
    println!("six participants: {} KiB", by_all / KIB);
    assert!(by_all >= 2 * PARTICIPANT_BYTES, "{by_all}");
    assert!(by_all <= with_a_quarter(CONTEXT_BYTES), "{by_all}");
}

/// A client asked for a million names at once, and the node took 70 MB for the answer.
#[test]
fn a_refused_request_for_a_million_parameters_costs_twice_its_bytes() {
    const DOMAIN: u32 = 86;
    const NAMES: usize = 1_000_000;
    /// A length and "speed" with its zero byte, aligned.
    const NAME_BYTES: usize = 12;
    let victim = Victim::start(DOMAIN);
    let context = context(DOMAIN);
    let node = context.create_node("asking").unwrap();
    let client = node
        .create_client::<DescribeParameters>("/victim/describe_parameters")
        .unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let request = DescribeParametersRequest {
        names: vec!["speed".into(); NAMES],
    };
    let mut call = client.call_async(&request).unwrap();
    let mut descriptors = None;
    node.spin_until(
        || {
            let answer = call.take();
            descriptors = answer.map(|answer| answer.unwrap().descriptors.len());
            descriptors.is_some()
        },
        TIMEOUT,
    );
    assert_eq!(descriptors, Some(0), "refused");
    let growth = victim.growth();
    println!("{} KiB", growth / KIB);
    assert!(growth >= NAMES * NAME_BYTES, "it was received: {growth}");
    assert!(growth <= 2 * NAMES * NAME_BYTES + 4 * MIB, "{growth}");
}

//! Durable restart: transient and persistent publishers in processes that are
//! killed and restarted. The publishing process is this test binary, configured by
//! environment variables.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use pteros_test_support::folder::Folder;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::Int64;
use pteros::prelude::*;
use pteros::qos::HistoryPolicy;
use pteros_test_support::own_process;

const CHILD_DURABILITY: &str = "PTEROS_TEST_DURABILITY";
const FOLDER: &str = "PTEROS_TEST_STORE";
const DOMAIN: &str = "PTEROS_TEST_DOMAIN";
/// If set, it only sends what is stored.
const CHILD_IDLE: &str = "PTEROS_TEST_STILL";
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many samples the store keeps.
const DEPTH: usize = 40;

fn options(domain: u32) -> ContextOptions {
    ContextOptions {
        participant_lease: Some(Duration::from_secs(2)),
        ..ContextOptions::local(domain)
    }
}

fn profile(durability: &str) -> QosProfile {
    let qos = QosProfile::default().keep_last(DEPTH);
    match durability {
        "persistent" => qos.persistent(),
        _ => qos.transient(),
    }
}

/// The process that is killed: continues counting after the last stored number.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn publishing_process() {
    let durability = std::env::var(CHILD_DURABILITY).unwrap();
    let options = ContextOptions {
        store_folder: Some(std::env::var_os(FOLDER).unwrap().into()),
        ..options(std::env::var(DOMAIN).unwrap().parse().unwrap())
    };
    let node = Context::with_options(options)
        .unwrap()
        .create_node("counter")
        .unwrap();
    let publisher = node
        .create_publisher::<Int64>("count".qos(profile(&durability)))
        .unwrap();
    let late = node
        .create_polled_subscription::<Int64>("count".qos(profile(&durability)))
        .unwrap();
    let mut next = 1;
    while let Some(sample) = late.take() {
        next = sample.data + 1;
    }
    drop(late);
    println!("\nready");
    if std::env::var_os(CHILD_IDLE).is_some() {
        node.spin();
    }
    for n in next.. {
        publisher.publish(&Int64 { data: n }).unwrap();
        if n % 5 == 0 {
            assert!(publisher.wait_until_stored(TIMEOUT));
            println!("stored {n}");
        }
        // At a limited rate, so that subscriptions are not overrun.
        node.spin_until(|| false, Duration::from_millis(1));
    }
}

struct Counter {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Counter {
    fn start(durability: &str, folder: &Path, domain: u32, still: bool) -> Self {
        let mut command = own_process::command("durable_restart::publishing_process");
        command
            .env(CHILD_DURABILITY, durability)
            .env(FOLDER, folder)
            .env(DOMAIN, domain.to_string())
            .stdout(Stdio::piped());
        if still {
            command.env(CHILD_IDLE, "");
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut counter = Self { child, lines };
        assert!(counter.lines.any(|line| line.unwrap() == "ready"));
        counter
    }

    /// Reads that many stored numbers from its output; returns the last.
    fn read_acknowledged(&mut self, count: usize) -> i64 {
        let numbers = self.lines.by_ref().filter_map(|line| {
            let line = line.unwrap();
            line.strip_prefix("stored ").map(|n| n.parse().unwrap())
        });
        numbers.take(count).last().unwrap()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Takes samples until `last` or more has arrived.
fn take_up_to(node: &Node, subscription: &Subscription<Int64>, received: &mut Vec<i64>, last: i64) {
    let there = node.spin_until(
        || {
            received.extend(std::iter::from_fn(|| subscription.take()).map(|s| s.data));
            received.last().is_some_and(|n| *n >= last)
        },
        TIMEOUT,
    );
    assert!(
        there,
        "{last} was promised, {:?} came last",
        received.last()
    );
}

fn killed_and_started_again(durability: &str, domain: u32) {
    let folder = Folder::absent(&format!("restart-{durability}"));
    let context = Context::with_options(options(domain)).unwrap();
    let node = context.create_node("listener").unwrap();
    let all = QosProfile {
        history: HistoryPolicy::KeepAll,
        ..profile(durability)
    };
    let subscribe = || {
        let subscription = node.create_polled_subscription::<Int64>("count".qos(&all));
        subscription.unwrap()
    };
    let living = subscribe();
    let mut received = Vec::new();
    for read_acknowledged in [3, 12, 7] {
        let mut counter = Counter::start(durability, &folder, domain, false);
        assert!(living.wait_for_matched(1, TIMEOUT));
        let promised = counter.read_acknowledged(read_acknowledged);
        counter.kill();
        // Numbers reported as stored are sent by the next incarnation at the
        // latest.
        let still = Counter::start(durability, &folder, domain, true);
        take_up_to(&node, &living, &mut received, promised);
        let late = subscribe();
        let mut served = Vec::new();
        take_up_to(&node, &late, &mut served, promised);
        // More may be stored than was reported.
        let is_all = |served: &[i64]| served.len() >= DEPTH.min(served[served.len() - 1] as usize);
        node.spin_until(
            || {
                served.extend(std::iter::from_fn(|| late.take()).map(|s| s.data));
                is_all(&served)
            },
            TIMEOUT,
        );
        let first = served[0];
        let in_a_row: Vec<i64> = (first..first + served.len() as i64).collect();
        assert_eq!(served, in_a_row, "once and in order");
        let expected = DEPTH.min(*served.last().unwrap() as usize);
        assert_eq!(served.len(), expected, "{served:?}");
        still.kill();
    }
    // Each number arrives at most once and in order, though every incarnation sends
    // what was stored before it. A number that was not stored when its process died
    // is used again.
    assert!(living.counts().duplicates > 0);
    let back = received
        .windows(2)
        .filter(|pair| pair[1] <= pair[0])
        .count();
    assert!(back <= 2, "{back} steps back in {received:?}");
}

#[test]
fn a_killed_transient_publisher_sends_its_store_after_restart() {
    killed_and_started_again("transient", 187);
}

#[test]
fn a_killed_persistent_publisher_sends_its_store_after_restart() {
    killed_and_started_again("persistent", 188);
}

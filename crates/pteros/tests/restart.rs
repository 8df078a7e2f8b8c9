//! Publishers whose samples outlive them, as processes that are killed and
//! started again. The publishing process is this test binary, told by
//! environment variables what to do.
#![allow(
    clippy::disallowed_methods,
    reason = "the test runs itself again and says so in variables"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::Int64;
use pteros::prelude::*;
use pteros::qos::HistoryPolicy;

const PART: &str = "PTEROS_TEST_DURABILITY";
const FOLDER: &str = "PTEROS_TEST_STORE";
const DOMAIN: &str = "PTEROS_TEST_DOMAIN";
/// Set: it only serves what is stored.
const STILL: &str = "PTEROS_TEST_STILL";
const PATIENCE: Duration = Duration::from_secs(30);
/// How many samples the store keeps.
const DEPTH: usize = 40;

fn options(domain: u32) -> ContextOptions {
    ContextOptions {
        lease: Some(Duration::from_secs(2)),
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

/// The process that is killed: goes on counting where its store ends.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn publishing_process() {
    let durability = std::env::var(PART).unwrap();
    let options = ContextOptions {
        store_folder: Some(std::env::var_os(FOLDER).unwrap().into()),
        ..options(std::env::var(DOMAIN).unwrap().parse().unwrap())
    };
    let node = Context::with_options(options)
        .unwrap()
        .node("counter")
        .unwrap();
    let publisher = node
        .create_publisher::<Int64>("count", profile(&durability))
        .unwrap();
    let late = node
        .create_polled_subscription::<Int64>("count", profile(&durability))
        .unwrap();
    let mut next = 1;
    while let Some(sample) = late.take() {
        next = sample.data + 1;
    }
    drop(late);
    println!("\nready");
    if std::env::var_os(STILL).is_some() {
        node.spin();
    }
    for n in next.. {
        publisher.publish(&Int64 { data: n }).unwrap();
        if n % 5 == 0 {
            assert!(publisher.wait_until_stored(PATIENCE));
            println!("stored {n}");
        }
        // At some pace, so that subscriptions are not overrun.
        node.spin_until(|| false, Duration::from_millis(1));
    }
}

struct Counter {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Counter {
    fn start(durability: &str, folder: &Path, domain: u32, still: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["publishing_process", "--exact", "--ignored", "--nocapture"])
            .env(PART, durability)
            .env(FOLDER, folder)
            .env(DOMAIN, domain.to_string())
            .stdout(Stdio::piped());
        if still {
            command.env(STILL, "");
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut counter = Self { child, lines };
        assert!(counter.lines.any(|line| line.unwrap() == "ready"));
        counter
    }

    /// The last of so many numbers that it says are stored.
    fn promises(&mut self, count: usize) -> i64 {
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

/// Takes until `last` or more has come.
fn take_up_to(node: &Node, subscription: &Subscription<Int64>, heard: &mut Vec<i64>, last: i64) {
    let there = node.spin_until(
        || {
            heard.extend(std::iter::from_fn(|| subscription.take()).map(|s| s.data));
            heard.last().is_some_and(|n| *n >= last)
        },
        PATIENCE,
    );
    assert!(there, "{last} was promised, {:?} came last", heard.last());
}

fn killed_and_started_again(durability: &str, domain: u32) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("restart-{durability}"));
    let _ = std::fs::remove_dir_all(&folder);
    let context = Context::with_options(options(domain)).unwrap();
    let node = context.node("listener").unwrap();
    let all = QosProfile {
        history: HistoryPolicy::KeepAll,
        ..profile(durability)
    };
    let subscribe = || {
        let subscription = node.create_polled_subscription::<Int64>("count", &all);
        subscription.unwrap()
    };
    let living = subscribe();
    let mut heard = Vec::new();
    for promises in [3, 12, 7] {
        let mut counter = Counter::start(durability, &folder, domain, false);
        assert!(living.wait_for_matched(1, PATIENCE));
        let promised = counter.promises(promises);
        counter.kill();
        // What was promised is served by the next life at the latest.
        let still = Counter::start(durability, &folder, domain, true);
        take_up_to(&node, &living, &mut heard, promised);
        let late = subscribe();
        let mut served = Vec::new();
        take_up_to(&node, &late, &mut served, promised);
        // More may be stored than was promised.
        let is_all = |served: &[i64]| served.len() >= DEPTH.min(served[served.len() - 1] as usize);
        node.spin_until(
            || {
                served.extend(std::iter::from_fn(|| late.take()).map(|s| s.data));
                is_all(&served)
            },
            PATIENCE,
        );
        let first = served[0];
        let in_a_row: Vec<i64> = (first..first + served.len() as i64).collect();
        assert_eq!(served, in_a_row, "once and in order");
        let expected = DEPTH.min(*served.last().unwrap() as usize);
        assert_eq!(served.len(), expected, "{served:?}");
        still.kill();
    }
    // Each number at most once and in order, though every life brought what was
    // stored before it; a number that the end of its process kept from the
    // store is given again.
    assert!(living.counts().repeated > 0);
    let back = heard.windows(2).filter(|pair| pair[1] <= pair[0]).count();
    assert!(back <= 2, "{back} steps back in {heard:?}");
}

#[test]
fn a_transient_publisher_that_is_killed_serves_what_it_stored_when_it_is_back() {
    killed_and_started_again("transient", 195);
}

#[test]
fn a_persistent_publisher_that_is_killed_serves_what_it_stored_when_it_is_back() {
    killed_and_started_again("persistent", 196);
}

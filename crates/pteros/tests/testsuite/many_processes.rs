//! Many processes on one host, without configuration: all discover each other, each
//! receives from the next one, they idle, and killed ones leave nothing behind.
//!
//! The other processes are this test binary again, with their role in environment
//! variables.
#![allow(clippy::disallowed_methods, reason = "watches real processes")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros_test_support::own_process;

const CHILD_INDEX: &str = "PTEROS_TEST_CROWD_PLACE";
const DOMAIN: &str = "PTEROS_TEST_CROWD_DOMAIN";
/// A loaded machine runs two hundred unoptimized processes slowly.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Descriptors of a process besides one socket per peer, and a process watch for
/// some.
const BASE_DESCRIPTORS: usize = 40;
const PROCESS_WATCHES_MAX: usize = 128;

/// Set by `cargo xtask namespace`: loopback has multicast, and the network is
/// private.
fn has_multicast() -> bool {
    std::env::var("PTEROS_PRIVATE_NETWORK").is_ok_and(|kind| kind == "multicast")
}

fn open(domain: u32) -> Context {
    let local = ContextOptions::local(domain);
    let options = if has_multicast() {
        ContextOptions {
            domain_id: Some(domain),
            ..ContextOptions::default()
        }
    } else {
        local
    };
    Context::with_options(options).unwrap()
}

/// A child process: publishes to the next in the ring and receives from the
/// previous one.
#[test]
fn child() {
    let Ok(place) = std::env::var(CHILD_INDEX) else {
        return;
    };
    let (place, of) = place.split_once('/').unwrap();
    let (place, of): (usize, usize) = (place.parse().unwrap(), of.parse().unwrap());
    let context = open(std::env::var(DOMAIN).unwrap().parse().unwrap());
    let node = context.create_node(format!("node{place}")).unwrap();
    let topic = |place: usize| format!("to{}", place % of);
    let publisher = node
        .create_publisher::<Text>(topic(place + 1).keep_last(10))
        .unwrap();
    let subscription = node
        .create_polled_subscription::<Text>(topic(place).keep_last(10))
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    let data = format!("from {place}");
    publisher.publish(&Text { data }).unwrap();
    let sample = subscription.take_timeout(TIMEOUT).expect("a message");
    assert_eq!(sample.data, format!("from {}", (place + of - 1) % of));
    let everybody = || context.graph().nodes().len() == of;
    let start = Instant::now();
    while !everybody() {
        let known = context.graph().nodes().len();
        let (patient, number) = (start.elapsed() < TIMEOUT, std::process::id());
        assert!(patient, "process {number} knows {known} of {of} nodes");
        // Polling at every change would cost more than all else.
        context
            .graph()
            .wait_until(Duration::from_millis(200), || false);
    }
    println!("knows everybody");
    node.spin();
}

struct Processes(Vec<Child>);

impl Processes {
    fn start(domain: u32, count: usize) -> Self {
        let start = |place| {
            own_process::command("many_processes::child")
                .env(CHILD_INDEX, format!("{place}/{count}"))
                .env(DOMAIN, domain.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        Self((0..count).map(start).collect())
    }

    /// Waits until each has reported that it discovered all others.
    fn wait_for_all(&mut self) {
        for (place, child) in self.0.iter_mut().enumerate() {
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut lines = lines.map_while(Result::ok);
            let said = lines.find(|line| line.contains("knows everybody"));
            assert!(said.is_some(), "node {place} of the crowd failed");
        }
    }

    /// How often all their threads have been woken so far.
    fn wakes(&self) -> u64 {
        let of = |child: &Child| -> u64 {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
            let status = |task: std::io::Result<std::fs::DirEntry>| {
                std::fs::read_to_string(task.unwrap().path().join("status")).unwrap()
            };
            tasks
                .map(|task| field(&status(task), "voluntary_ctxt_switches:"))
                .sum()
        };
        self.0.iter().map(of).sum()
    }

    fn kill(&mut self) {
        self.0.iter_mut().for_each(|child| child.kill().unwrap());
        for child in &mut self.0 {
            child.wait().unwrap();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

/// Names of Pteros in the kernel's list of Unix sockets.
fn sockets() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/net/unix").unwrap();
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7));
    let ours = names.filter(|name| name.starts_with("@pteros-"));
    ours.map(str::to_owned).collect()
}

/// The suffix of all names of a participant of this domain.
fn participants(domain: u32) -> std::collections::BTreeSet<String> {
    let board = format!("@pteros-board-{domain}-");
    let all = sockets().into_iter();
    all.filter_map(|name| name.strip_prefix(&board).map(str::to_owned))
        .collect()
}

#[test]
fn a_hundred_processes_match_communicate_idle_and_leave_nothing_when_killed() {
    run_test_case(198, 100);
}

/// `cargo test -p pteros --test testsuite many_processes:: -- --ignored`
#[test]
#[ignore = "half a minute; a hundred are in the test command"]
fn two_hundred_processes_match_communicate_idle_and_leave_nothing_when_killed() {
    run_test_case(199, 200);
}

fn run_test_case(domain: u32, count: usize) {
    let files = || std::fs::read_dir("/dev/shm").map_or(0, Iterator::count);
    let files_before = files();
    let context = open(domain);
    let begin = Instant::now();
    let mut processes = Processes::start(domain, count);
    processes.wait_for_all();
    println!(
        "{count} processes know each other after {:?}",
        begin.elapsed()
    );
    let graph = context.graph();
    assert!(graph.wait_until(TIMEOUT, || graph.nodes().len() == count));
    let descriptors = |id| std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
    let most = processes
        .0
        .iter()
        .map(|child| descriptors(child.id()))
        .max();
    assert!(
        most.unwrap() <= count + count.min(PROCESS_WATCHES_MAX) + BASE_DESCRIPTORS,
        "{most:?} descriptors"
    );

    let participants = participants(domain);
    assert_eq!(participants.len(), count + 1);

    // The last announcements and acknowledgements.
    let pass = |seconds| {
        context
            .graph()
            .wait_until(Duration::from_secs(seconds), || false)
    };
    pass(3);
    let before = processes.wakes();
    pass(5);
    let wakes = (processes.wakes() - before) as f64 / 5.0 / count as f64;
    println!("{wakes:.2} wakes a second in each");
    assert!(wakes <= 1.0, "{wakes} wakes a second in each");

    let begin = Instant::now();
    processes.kill();
    assert!(graph.wait_until(TIMEOUT, || graph.nodes().is_empty()));
    println!(
        "all are missed {:?} after the first was killed",
        begin.elapsed()
    );
    drop((graph, context));
    // The background I/O thread may hold the context's sockets a moment longer.
    let end = Instant::now() + TIMEOUT;
    loop {
        let mut left = sockets();
        left.retain(|name| participants.iter().any(|of| name.ends_with(of)));
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "{left:?}");
        std::thread::yield_now();
    }
    assert_eq!(files(), files_before);
}

//! A crowd of processes on one host, with no configuration: everybody knows
//! everybody, each hears the next, they rest, and whoever is killed leaves
//! nothing. The others are this test binary again, told by environment variables
//! which part to play.
#![allow(
    clippy::disallowed_methods,
    reason = "real processes are watched for real seconds"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

const PLACE: &str = "PTEROS_TEST_CROWD_PLACE";
const DOMAIN: &str = "PTEROS_TEST_CROWD_DOMAIN";
/// A loaded machine runs two hundred unoptimized processes slowly.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a process holds beside one socket for each neighbour, and for some its
/// process.
const OWN_DESCRIPTORS: usize = 40;
const LIVES_MAX: usize = 128;

/// Set by `cargo xtask namespace`: loopback has multicast, nobody else hears us.
fn has_multicast() -> bool {
    std::env::var("PTEROS_PRIVATE_NETWORK").is_ok_and(|kind| kind == "multicast")
}

fn open(domain: u32) -> Context {
    let local = ContextOptions::local(domain);
    let options = match has_multicast() {
        true => ContextOptions {
            domain_id: Some(domain),
            ..ContextOptions::default()
        },
        false => local,
    };
    Context::with_options(options).unwrap()
}

/// One of the crowd: publishes to the next in the ring and hears the one before.
#[test]
fn child() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let (place, of) = place.split_once('/').unwrap();
    let (place, of): (usize, usize) = (place.parse().unwrap(), of.parse().unwrap());
    let context = open(std::env::var(DOMAIN).unwrap().parse().unwrap());
    let node = context.node(&format!("node{place}")).unwrap();
    let topic = |place: usize| format!("to{}", place % of);
    let publisher = node
        .create_publisher::<Text>(&topic(place + 1), 10)
        .unwrap();
    let subscription = node
        .create_polled_subscription::<Text>(&topic(place), 10)
        .unwrap();
    assert!(publisher.wait_for_matched(1, PATIENCE));
    let data = format!("from {place}");
    publisher.publish(&Text { data }).unwrap();
    let sample = subscription.take_timeout(PATIENCE).expect("a message");
    assert_eq!(sample.data, format!("from {}", (place + of - 1) % of));
    let everybody = || context.graph().nodes().len() == of;
    let start = Instant::now();
    while !everybody() {
        let known = context.graph().nodes().len();
        let (patient, number) = (start.elapsed() < PATIENCE, std::process::id());
        assert!(patient, "process {number} knows {known} of {of} nodes");
        // A look at every change would cost more than all else.
        context
            .graph()
            .wait_until(Duration::from_millis(200), || false);
    }
    println!("knows everybody");
    node.spin();
}

struct Crowd(Vec<Child>);

impl Crowd {
    fn start(domain: u32, count: usize) -> Self {
        let start = |place| {
            Command::new(std::env::current_exe().unwrap())
                .args(["child", "--exact", "--nocapture"])
                .env(PLACE, format!("{place}/{count}"))
                .env(DOMAIN, domain.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        Self((0..count).map(start).collect())
    }

    /// Waits until each has said that it knows everybody.
    fn await_all(&mut self) {
        for (place, child) in self.0.iter_mut().enumerate() {
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut lines = lines.map_while(Result::ok);
            let said = lines.find(|line| line.contains("knows everybody"));
            assert!(said.is_some(), "node {place} of the crowd failed");
        }
    }

    /// How often all their threads have slept and been woken so far.
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

impl Drop for Crowd {
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

/// Names of this stack in the kernel's list of Unix sockets.
fn sockets() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/net/unix").unwrap();
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7));
    let ours = names.filter(|name| name.starts_with("@pteros-"));
    ours.map(str::to_owned).collect()
}

/// What ends all names of a participant of this domain.
fn participants(domain: u32) -> std::collections::BTreeSet<String> {
    let board = format!("@pteros-board-{domain}-");
    let all = sockets().into_iter();
    all.filter_map(|name| name.strip_prefix(&board).map(str::to_owned))
        .collect()
}

#[test]
fn a_hundred_processes_meet_talk_rest_and_leave_nothing_when_killed() {
    story(198, 100);
}

/// `cargo test -p pteros --test crowd -- --ignored`
#[test]
#[ignore = "half a minute; a hundred are in the test command"]
fn two_hundred_processes_meet_talk_rest_and_leave_nothing_when_killed() {
    story(199, 200);
}

fn story(domain: u32, count: usize) {
    let files = || std::fs::read_dir("/dev/shm").map_or(0, Iterator::count);
    let files_before = files();
    let context = open(domain);
    let begin = Instant::now();
    let mut crowd = Crowd::start(domain, count);
    crowd.await_all();
    println!(
        "{count} processes know each other after {:?}",
        begin.elapsed()
    );
    let graph = context.graph();
    assert!(graph.wait_until(PATIENCE, || graph.nodes().len() == count));
    let descriptors = |id| std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
    let most = crowd.0.iter().map(|child| descriptors(child.id())).max();
    assert!(
        most.unwrap() <= count + count.min(LIVES_MAX) + OWN_DESCRIPTORS,
        "{most:?} descriptors"
    );

    let participants = participants(domain);
    assert_eq!(participants.len(), count + 1);

    // The last announcements, acknowledgements and news.
    let pass = |seconds| {
        context
            .graph()
            .wait_until(Duration::from_secs(seconds), || false)
    };
    pass(3);
    let before = crowd.wakes();
    pass(5);
    let wakes = (crowd.wakes() - before) as f64 / 5.0 / count as f64;
    println!("{wakes:.2} wakes a second in each");
    assert!(wakes <= 1.0, "{wakes} wakes a second in each");

    let begin = Instant::now();
    crowd.kill();
    assert!(graph.wait_until(PATIENCE, || graph.nodes().is_empty()));
    println!(
        "all are missed {:?} after the first was killed",
        begin.elapsed()
    );
    drop((graph, context));
    // The helper thread may hold the context's sockets a moment longer.
    let end = Instant::now() + PATIENCE;
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

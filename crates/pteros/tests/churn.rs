//! Twenty nodes in five participants come, talk through shared memory and go
//! while messages are on their way, again and again: descriptors, threads and
//! memory are what they were. A test binary of its own: it counts what the whole
//! process holds.

use std::time::Duration;

use pteros::Path;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray as Bytes;
use pteros::prelude::*;

const CONTEXTS: usize = 5;
const NODES_EACH: usize = 4;
const NODES: usize = CONTEXTS * NODES_EACH;
/// Large enough to lie in a chunk of its sender's pool.
const SIZE: usize = 4_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Resident memory in KiB.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// Shared memory of this stack that is mapped here.
fn mapped() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("pteros")).count()
}

/// Every node publishes to one of the next participant. Topics are of this cycle:
/// somebody of the last one may still say goodbye.
fn cycle(domain: u32, number: usize) {
    let topic = |node: usize| format!("cycle{number}/to{}", node % NODES);
    let context = |_| Context::with_options(ContextOptions::local(domain)).unwrap();
    let contexts: Vec<Context> = (0..CONTEXTS).map(context).collect();
    let mut ends = Vec::new();
    for number in 0..NODES {
        let node = contexts[number / NODES_EACH].node(&format!("node{number}"));
        let node = node.unwrap();
        let to = topic(number + NODES_EACH);
        let publisher = node.create_publisher::<Bytes>(&to, 10).unwrap();
        let subscription = node.create_polled_subscription::<Bytes>(&topic(number), 10);
        ends.push((node, publisher, subscription.unwrap()));
    }
    let message = Bytes {
        data: vec![7; SIZE],
        ..Bytes::default()
    };
    for (_, publisher, _) in &ends {
        assert!(publisher.wait_for_matched(1, PATIENCE));
        publisher.publish(&message).unwrap();
    }
    for (number, (_, _, subscription)) in ends.iter().enumerate() {
        let sample = subscription.take_timeout(PATIENCE).expect("a message");
        assert_eq!(sample.data.len(), SIZE);
        let context = &contexts[number / NODES_EACH];
        let from = sample.info().publisher;
        let linked = || context.path_to(from).path == Path::SharedMemory;
        let is_linked = context.graph().wait_until(PATIENCE, linked);
        assert!(is_linked, "{:?}", context.path_to(from));
    }
    // These are on their way when everything goes, and some samples outlive it.
    for (_, publisher, _) in &ends {
        publisher.publish(&message).unwrap();
    }
    let kept: Vec<_> = ends.iter().filter_map(|(.., s)| s.take()).collect();
    drop((ends, contexts));
    assert!(kept.iter().all(|sample| sample.data[SIZE - 1] == 7));
}

fn story(domain: u32, warm_up: usize, cycles: usize) {
    (0..warm_up).for_each(|number| cycle(domain, number));
    let before = resident();
    (0..cycles).for_each(|number| cycle(domain, warm_up + number));
    let grown = resident().saturating_sub(before);
    println!("{cycles} cycles: {grown} KiB more than {before}");
    assert!(grown < 4096, "{grown} KiB more than {before}");
    // The helper lets go of the last ones within its round.
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let (fds, threads) = (|| entries("/proc/self/fd"), || entries("/proc/self/task"));
    // Of this one context: its board, context page, and no link.
    let few = || fds() < 25 && threads() <= 3 && mapped() <= 2;
    let settled = context.graph().wait_until(PATIENCE, few);
    let held = (fds(), threads(), mapped());
    assert!(settled, "descriptors, threads, mappings: {held:?}");
}

#[test]
fn twenty_nodes_come_and_go_fifty_times_and_leave_nothing_behind() {
    story(201, 15, 50);
}

/// `cargo test -p pteros --test churn -- --ignored`
#[test]
#[ignore = "a minute; fifty cycles are in the test command"]
fn twenty_nodes_come_and_go_a_thousand_times_and_leave_nothing_behind() {
    story(202, 50, 1000);
}

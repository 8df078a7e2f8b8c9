//! Churn: twenty nodes in five participants start, communicate through shared
//! memory and leave while messages are in transmission, again and again.
//!
//! Descriptors, threads and memory must not grow. Each test has its own process, since
//! it counts the resources of the whole process.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::UInt8MultiArray as Bytes;
use pteros::prelude::*;
use pteros::subscription::DeliveryPath;
use pteros_test_support::own_process;

const CONTEXTS: usize = 5;
const NODES_EACH: usize = 4;
const NODES: usize = CONTEXTS * NODES_EACH;
/// Large enough for a chunk of its sender's pool.
const SIZE: usize = 4_000;
const TIMEOUT: Duration = Duration::from_secs(60);

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

/// Shared memory of Pteros that is mapped here. The path of this program may contain
/// `pteros`, too.
fn mapped() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ours = maps.lines().filter(|line| line.contains("memfd:pteros"));
    ours.count()
}

/// Every node publishes to one of the next participant. Topics belong to this
/// cycle: participants of the last one may still be leaving.
fn cycle(domain: u32, number: usize) {
    let topic = |node: usize| format!("cycle{number}/to{}", node % NODES);
    let context = |_| Context::with_options(ContextOptions::local(domain)).unwrap();
    let contexts: Vec<Context> = (0..CONTEXTS).map(context).collect();
    let mut ends = Vec::new();
    for number in 0..NODES {
        let node = contexts[number / NODES_EACH].create_node(format!("node{number}"));
        let node = node.unwrap();
        let to = topic(number + NODES_EACH);
        let publisher = node
            .create_publisher::<Bytes>(to.as_str().keep_last(10))
            .unwrap();
        let subscription = node.create_polled_subscription::<Bytes>(topic(number).keep_last(10));
        ends.push((node, publisher, subscription.unwrap()));
    }
    let message = Bytes {
        data: vec![7; SIZE],
        ..Bytes::default()
    };
    for (_, publisher, _) in &ends {
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        publisher.publish(&message).unwrap();
    }
    for (number, (_, _, subscription)) in ends.iter().enumerate() {
        let sample = subscription.take_timeout(TIMEOUT).expect("a message");
        assert_eq!(sample.data.len(), SIZE);
        let context = &contexts[number / NODES_EACH];
        let from = sample.info().publisher_gid;
        let linked = || context.delivery_path_to(from).path == DeliveryPath::SharedMemory;
        let is_linked = context.graph().wait_until(TIMEOUT, linked);
        assert!(is_linked, "{:?}", context.delivery_path_to(from));
    }
    // These are in transmission when everything is dropped, and some samples
    // outlive it.
    for (_, publisher, _) in &ends {
        publisher.publish(&message).unwrap();
    }
    let kept: Vec<_> = ends.iter().filter_map(|(.., s)| s.take()).collect();
    drop((ends, contexts));
    assert!(kept.iter().all(|sample| sample.data[SIZE - 1] == 7));
}

fn run_test_case(domain: u32, warm_up: usize, cycles: usize) {
    (0..warm_up).for_each(|number| cycle(domain, number));
    let before = resident();
    (0..cycles).for_each(|number| cycle(domain, warm_up + number));
    let grown = resident().saturating_sub(before);
    println!("{cycles} cycles: {grown} KiB more than {before}");
    assert!(grown < 4096, "{grown} KiB more than {before}");
    // The background I/O thread releases the last ones within its next cycle.
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let (fds, threads) = (|| entries("/proc/self/fd"), || entries("/proc/self/task"));
    // Of this one context: its discovery log, its context page, and no connection.
    let few = || fds() < 25 && threads() <= 3 && mapped() <= 2;
    let settled = context.graph().wait_until(TIMEOUT, few);
    let held = (fds(), threads(), mapped());
    assert!(settled, "descriptors, threads, mappings: {held:?}");
}

#[test]
fn twenty_nodes_come_and_go_fifty_times_and_leave_nothing_behind() {
    if !own_process!() {
        return;
    }
    run_test_case(203, 15, 50);
}

/// `cargo test -p pteros --test testsuite churn:: -- --ignored`
#[test]
#[ignore = "a minute; fifty cycles are in the test command"]
fn twenty_nodes_come_and_go_a_thousand_times_and_leave_nothing_behind() {
    if !own_process!() {
        return;
    }
    run_test_case(204, 50, 1000);
}

//! Leak test: a thousand contexts, one after the other.
//!
//! It has its own process, because it counts the resources of the whole process.

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros_test_support::own_process;

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Resident memory in KiB.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

fn create_and_drop_context() {
    let context = Context::with_options(ContextOptions::local(195)).unwrap();
    let node = context.create_node("short").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(1)).unwrap();
    let subscription = node
        .create_polled_subscription::<Text>("t".keep_last(1))
        .unwrap();
    publisher.publish(&Text::default()).unwrap();
    assert!(subscription.take().is_some());
}

#[test]
fn a_thousand_contexts_leak_nothing() {
    if !own_process!() {
        return;
    }
    for _ in 0..50 {
        create_and_drop_context();
    }
    let before = resident();
    for _ in 0..1000 {
        create_and_drop_context();
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 2048, "{grown} KiB more");
    // The background I/O thread drops the last one within its period.
    let context = Context::with_options(ContextOptions::local(195)).unwrap();
    let (fds, threads) = (|| entries("/proc/self/fd"), || entries("/proc/self/task"));
    let few = || fds() < 25 && threads() <= 3;
    let settled = context
        .graph()
        .wait_until(std::time::Duration::from_secs(20), few);
    assert!(settled, "{} descriptors, {} threads", fds(), threads());
}

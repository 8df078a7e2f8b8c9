//! A thousand contexts, one after the other, leave nothing behind. A test
//! binary of its own: it counts what the whole process holds.

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

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

fn cycle() {
    let context = Context::with_options(ContextOptions::local(195)).unwrap();
    let node = context.node("short").unwrap();
    let publisher = node.create_publisher::<Text>("t", 1).unwrap();
    let subscription = node.create_polled_subscription::<Text>("t", 1).unwrap();
    publisher.publish(&Text::default()).unwrap();
    assert!(subscription.take().is_some());
}

#[test]
fn a_thousand_contexts_leave_nothing_behind() {
    for _ in 0..50 {
        cycle();
    }
    let before = resident();
    for _ in 0..1000 {
        cycle();
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 2048, "{grown} KiB more");
    // The helper lets go of the last one within its round.
    let context = Context::with_options(ContextOptions::local(195)).unwrap();
    let (fds, threads) = (|| entries("/proc/self/fd"), || entries("/proc/self/task"));
    let few = || fds() < 25 && threads() <= 3;
    let settled = context
        .graph()
        .wait_until(std::time::Duration::from_secs(20), few);
    assert!(settled, "{} descriptors, {} threads", fds(), threads());
}

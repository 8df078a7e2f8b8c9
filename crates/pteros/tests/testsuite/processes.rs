//! Processes that start, exit and are killed. The other process of each test is
//! this test binary again, with its role in environment variables.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{
    event_handler::EndpointEvent as Event,
    instance::{InstanceState, ReceivedChange},
    subscription::DeliveryPath,
};

const CHILD_ROLE: &str = "PTEROS_TEST_PART";
const DOMAIN: &str = "PTEROS_TEST_DOMAIN";
/// An environment variable that a child reads, besides its role.
const FRAGMENT_BYTES: &str = "PTEROS_LOCAL_FRAGMENT_BYTES";
const TIMEOUT: Duration = Duration::from_secs(20);

/// Short, so that a crash is noticed within the test's time-out.
const LEASE: Duration = Duration::from_secs(2);

/// With peers reached by UDP: only the lease reports their death.
fn context(domain: u32, lease: Duration) -> Context {
    open(domain, lease, false)
}

fn open(domain: u32, lease: Duration, linked: bool) -> Context {
    let mut options = ContextOptions::local(domain);
    options.participant_lease = Some(lease);
    options.shared_memory.enabled = linked;
    options.use_environment = std::env::var_os(FRAGMENT_BYTES).is_some();
    Context::with_options(options).unwrap()
}

/// The other process.
#[test]
fn child() {
    let Ok(part) = std::env::var(CHILD_ROLE) else {
        return;
    };
    let domain = std::env::var(DOMAIN).unwrap().parse().unwrap();
    let context = open(domain, LEASE, part.starts_with("linked"));
    let node = context.create_node("child").unwrap();
    let latched = QosProfile::default().transient_local();
    let publisher = node.create_publisher::<Text>("word".qos(&latched)).unwrap();
    let word = match part.as_str() {
        "speaks at length" => long_text(),
        _ => Text { data: part.clone() },
    };
    publisher.publish(&word).unwrap();
    let shapes = node
        .create_publisher::<Shape>("shape".qos(&latched))
        .unwrap();
    let shape = Shape {
        color: part.clone(),
        ..Shape::default()
    };
    shapes.publish(&shape).unwrap();
    println!("ready");
    node.spin_until(|| false, TIMEOUT * 3);
    println!("shut down: {}", context.is_shut_down());
    if part == "lingers" {
        // Everything is still open: does a thread spin busily?
        let before = processor_time();
        let (_hold, never) = std::sync::mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(500));
        println!("spent {}", (processor_time() - before).as_millis());
    }
}

/// Some hundred fragments, each with different letters.
fn long_text() -> Text {
    let words = (0..40_000).map(|number| format!("{number:x} "));
    Text {
        data: words.collect(),
    }
}

/// CPU time of this process, all threads together.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = text.rsplit(')').next().unwrap();
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || fields.next().unwrap().parse::<u64>().unwrap();
    Duration::from_millis((ticks() + ticks()) * 10)
}

fn start(part: &str, domain: u32) -> Child {
    start_by(Command::new(std::env::current_exe().unwrap()), part, domain)
}

fn start_by(mut command: Command, part: &str, domain: u32) -> Child {
    let mut child = command
        .args(["processes::child", "--exact", "--nocapture"])
        .env(CHILD_ROLE, part)
        .env(DOMAIN, domain.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(wait_for_line(&mut child, "ready").is_some());
    child
}

/// Reads the child's lines up to one with that prefix; returns its rest.
fn wait_for_line(child: &mut Child, wanted: &str) -> Option<String> {
    let out = child.stdout.as_mut().unwrap();
    let mut reader = BufReader::with_capacity(1, out);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        // The test runner's own output may precede it.
        if let Some((_, rest)) = line.split_once(wanted) {
            return Some(rest.trim().into());
        }
    }
}

fn interrupt(child: &Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Waits until the graph has that many nodes, including ours.
#[track_caller]
fn wait_for_nodes(context: &Context, count: usize) {
    let graph = context.graph();
    let there = graph.wait_until(TIMEOUT, || graph.nodes().len() == count);
    assert!(there, "{count}: {:?}", graph.nodes());
}

#[test]
fn a_killed_process_is_removed_by_its_lease_and_may_restart_at_once() {
    let context = context(190, TIMEOUT);
    let node = context.create_node("parent").unwrap();
    let qos = QosProfile::default().transient_local();
    let subscription = node
        .create_polled_subscription::<Text>("word".qos(&qos))
        .unwrap();
    for round in 1..=2 {
        let word = format!("round {round}");
        let mut child = start(&word, 190);
        let sample = subscription.take_timeout(TIMEOUT).expect("its word");
        assert_eq!(sample.data, word);
        wait_for_nodes(&context, 2);
        child.kill().unwrap();
        child.wait().unwrap();
        let killed = Instant::now();
        if round == 1 {
            // A successor is received while the dead process still has its lease.
            let mut next = start("successor", 190);
            let sample = subscription.take_timeout(TIMEOUT).expect("its word");
            assert_eq!(sample.data, "successor");
            assert!(killed.elapsed() < LEASE, "the machine is too busy to tell");
            wait_for_nodes(&context, 3);
            next.kill().unwrap();
            next.wait().unwrap();
        }
        wait_for_nodes(&context, 1);
        let noticed = killed.elapsed();
        assert!(noticed > LEASE / 2, "its lease was not over: {noticed:?}");
        assert_eq!(subscription.matched_count(), 0);
    }
    let mut ends = 0;
    while let Some(event) = subscription.take_event() {
        ends += usize::from(matches!(event, Event::Matched { change: -1, .. }));
    }
    assert_eq!(ends, 3);
}

#[test]
fn a_message_in_hundreds_of_fragments_arrives_intact_under_load() {
    let context = context(189, TIMEOUT);
    let node = context.create_node("parent").unwrap();
    let qos = QosProfile::default().transient_local();
    let subscription = node
        .create_polled_subscription::<Text>("word".qos(&qos))
        .unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    // Fragments as large as for a network.
    command.env(FRAGMENT_BYTES, "1344");
    let mut child = start_by(command, "speaks at length", 189);
    let sample = subscription.take_timeout(TIMEOUT).expect("its word");
    assert!(*sample == long_text());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_shared_memory_peer_is_removed_at_once_and_its_message_stays() {
    let context = open(196, TIMEOUT, true);
    let node = context.create_node("parent").unwrap();
    let qos = QosProfile::default().transient_local();
    let subscription = node
        .create_polled_subscription::<Text>("word".qos(&qos))
        .unwrap();
    for round in 1..=2 {
        let word = format!("linked {round}");
        let mut child = start(&word, 196);
        let sample = subscription.take_timeout(TIMEOUT).expect("its word");
        let peer = sample.info().publisher_gid;
        let linked = || context.delivery_path_to(peer).path == DeliveryPath::SharedMemory;
        let graph = context.graph();
        assert!(
            graph.wait_until(TIMEOUT, linked),
            "{:?}",
            context.delivery_path_to(peer)
        );
        wait_for_nodes(&context, 2);
        child.kill().unwrap();
        child.wait().unwrap();
        let killed = Instant::now();
        wait_for_nodes(&context, 1);
        let noticed = killed.elapsed();
        assert!(noticed < LEASE / 2, "by its lease: {noticed:?}");
        assert_eq!(subscription.matched_count(), 0);
        assert_eq!(sample.data, word);
    }
    assert_eq!(context.connection_counts().unwrap().connections, 0);
}

#[test]
fn an_interrupted_process_announces_its_departure() {
    let context = context(191, TIMEOUT);
    let node = context.create_node("parent").unwrap();
    let subscription = node
        .create_polled_subscription::<Text>("word".keep_last(10))
        .unwrap();
    let mut child = start("leaves", 191);
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    wait_for_nodes(&context, 2);
    let asked = Instant::now();
    interrupt(&child);
    assert_eq!(
        wait_for_line(&mut child, "shut down:").as_deref(),
        Some("true")
    );
    assert!(child.wait().unwrap().success());
    wait_for_nodes(&context, 1);
    assert!(
        asked.elapsed() < LEASE,
        "noticed by its lease, not its goodbye"
    );
}

#[test]
fn instances_of_a_killed_process_have_no_writers_and_of_an_exited_one_are_disposed() {
    let context = context(194, TIMEOUT);
    let node = context.create_node("parent").unwrap();
    let qos = QosProfile::default().transient_local();
    let shapes = node
        .create_polled_subscription::<Shape>("shape".qos(&qos))
        .unwrap();
    let next = || {
        let mut change = None;
        context.graph().wait_until(TIMEOUT, || {
            change = shapes.take_change();
            change.is_some()
        });
        match change.expect("a change") {
            ReceivedChange::Sample(sample) => (sample.color.clone(), None),
            ReceivedChange::End(end) => (end.key().color.clone(), Some(end.state())),
        }
    };
    let mut killed = start("killed", 194);
    assert_eq!(next(), ("killed".into(), None));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut ends = start("ends", 194);
    assert_eq!(next(), ("ends".into(), None));
    let no_writers = Some(InstanceState::NoWriters);
    assert_eq!(next(), ("killed".into(), no_writers));
    interrupt(&ends);
    assert_eq!(next(), ("ends".into(), Some(InstanceState::Disposed)));
    assert!(ends.wait().unwrap().success());
}

#[test]
fn a_background_job_of_a_script_receives_the_interrupt() {
    // Shells without job control start those with the signal ignored.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; exec \"$0\" \"$@\""]);
    shell.arg(std::env::current_exe().unwrap());
    let mut child = start_by(shell, "leaves", 193);
    interrupt(&child);
    assert_eq!(
        wait_for_line(&mut child, "shut down:").as_deref(),
        Some("true")
    );
    assert!(child.wait().unwrap().success());
}

#[test]
fn after_an_interrupt_spin_returns_at_once() {
    let mut child = start("lingers", 192);
    interrupt(&child);
    let spent: u64 = wait_for_line(&mut child, "spent").unwrap().parse().unwrap();
    assert!(spent < 200, "{spent} ms of processor time in 500 idle ones");
    assert!(child.wait().unwrap().success());
}

//! Processes come, go and are killed. Each story's other process is this test
//! binary again, told by environment variables which part to play.
#![allow(
    clippy::disallowed_methods,
    reason = "the test runs itself again and says so in variables"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pteros::interfaces::dds_shapes::msg::ShapeType as Shape;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{Change, EndpointEvent as Event, InstanceState, Path};

const PART: &str = "PTEROS_TEST_PART";
const DOMAIN: &str = "PTEROS_TEST_DOMAIN";
/// What a child reads of its environment, beside its part.
const FRAGMENT_BYTES: &str = "PTEROS_LOCAL_FRAGMENT_BYTES";
const PATIENCE: Duration = Duration::from_secs(20);

/// Short, so that a crash is noticed within the test's patience.
const LEASE: Duration = Duration::from_secs(2);

/// Whose peers are reached by UDP: their end is told by lease alone.
fn context(domain: u32, lease: Duration) -> Context {
    open(domain, lease, false)
}

fn open(domain: u32, lease: Duration, linked: bool) -> Context {
    let mut options = ContextOptions::local(domain);
    options.lease = Some(lease);
    options.shared_memory.on = linked;
    options.use_environment = std::env::var_os(FRAGMENT_BYTES).is_some();
    Context::with_options(options).unwrap()
}

/// The other process.
#[test]
fn child() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let domain = std::env::var(DOMAIN).unwrap().parse().unwrap();
    let context = open(domain, LEASE, part.starts_with("linked"));
    let node = context.node("child").unwrap();
    let latched = QosProfile::default().transient_local();
    let publisher = node.create_publisher::<Text>("word", &latched).unwrap();
    let word = match part.as_str() {
        "speaks at length" => at_length(),
        _ => Text { data: part.clone() },
    };
    publisher.publish(&word).unwrap();
    let shapes = node.create_publisher::<Shape>("shape", &latched).unwrap();
    let shape = Shape {
        color: part.clone(),
        ..Shape::default()
    };
    shapes.publish(&shape).unwrap();
    println!("ready");
    node.spin_until(|| false, PATIENCE * 3);
    println!("shut down: {}", context.is_shut_down());
    if part == "lingers" {
        // Everything is still open: does anybody spin in vain?
        let before = processor_time();
        let (_hold, never) = std::sync::mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(500));
        println!("spent {}", (processor_time() - before).as_millis());
    }
}

/// Some hundred fragments, each with other letters.
fn at_length() -> Text {
    let words = (0..40_000).map(|number| format!("{number:x} "));
    Text {
        data: words.collect(),
    }
}

/// What this process has used of the processor, all threads together.
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
        .args(["child", "--exact", "--nocapture"])
        .env(PART, part)
        .env(DOMAIN, domain.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(hears(&mut child, "ready").is_some());
    child
}

/// Reads the child's lines up to one that begins so; the rest of that line.
fn hears(child: &mut Child, wanted: &str) -> Option<String> {
    let out = child.stdout.as_mut().unwrap();
    let mut reader = BufReader::with_capacity(1, out);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        // The test runner's own words may stand before it.
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

/// Waits until the graph has so many nodes, ours included.
#[track_caller]
fn await_nodes(context: &Context, count: usize) {
    let graph = context.graph();
    let there = graph.wait_until(PATIENCE, || graph.nodes().len() == count);
    assert!(there, "{count}: {:?}", graph.nodes());
}

#[test]
fn a_killed_process_is_noticed_by_its_lease_and_may_start_again_at_once() {
    let context = context(190, PATIENCE);
    let node = context.node("parent").unwrap();
    let qos = QosProfile::default().transient_local();
    let subscription = node
        .create_polled_subscription::<Text>("word", &qos)
        .unwrap();
    for round in 1..=2 {
        let word = format!("round {round}");
        let mut child = start(&word, 190);
        let sample = subscription.take_timeout(PATIENCE).expect("its word");
        assert_eq!(sample.data, word);
        await_nodes(&context, 2);
        child.kill().unwrap();
        child.wait().unwrap();
        let killed = Instant::now();
        if round == 1 {
            // A successor is heard while the dead one still has its lease.
            let mut next = start("successor", 190);
            let sample = subscription.take_timeout(PATIENCE).expect("its word");
            assert_eq!(sample.data, "successor");
            assert!(killed.elapsed() < LEASE, "the machine is too busy to tell");
            await_nodes(&context, 3);
            next.kill().unwrap();
            next.wait().unwrap();
        }
        await_nodes(&context, 1);
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
fn a_message_in_hundreds_of_fragments_arrives_as_it_was_though_many_are_sent_at_once() {
    let context = context(189, PATIENCE);
    let node = context.node("parent").unwrap();
    let qos = QosProfile::default().transient_local();
    let subscription = node
        .create_polled_subscription::<Text>("word", &qos)
        .unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    // As large as for a network.
    command.env(FRAGMENT_BYTES, "1344");
    let mut child = start_by(command, "speaks at length", 189);
    let sample = subscription.take_timeout(PATIENCE).expect("its word");
    assert!(*sample == at_length());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_process_that_was_linked_is_missed_at_once_and_its_message_stays() {
    let context = open(196, PATIENCE, true);
    let node = context.node("parent").unwrap();
    let qos = QosProfile::default().transient_local();
    let subscription = node
        .create_polled_subscription::<Text>("word", &qos)
        .unwrap();
    for round in 1..=2 {
        let word = format!("linked {round}");
        let mut child = start(&word, 196);
        let sample = subscription.take_timeout(PATIENCE).expect("its word");
        let peer = sample.info().publisher;
        let linked = || context.path_to(peer).path == Path::SharedMemory;
        let graph = context.graph();
        assert!(
            graph.wait_until(PATIENCE, linked),
            "{:?}",
            context.path_to(peer)
        );
        await_nodes(&context, 2);
        child.kill().unwrap();
        child.wait().unwrap();
        let killed = Instant::now();
        await_nodes(&context, 1);
        let noticed = killed.elapsed();
        assert!(noticed < LEASE / 2, "by its lease: {noticed:?}");
        assert_eq!(subscription.matched_count(), 0);
        assert_eq!(sample.data, word);
    }
    assert_eq!(context.link_counts().unwrap().links, 0);
}

#[test]
fn an_interrupted_process_says_goodbye() {
    let context = context(191, PATIENCE);
    let node = context.node("parent").unwrap();
    let subscription = node.create_polled_subscription::<Text>("word", 10).unwrap();
    let mut child = start("leaves", 191);
    assert!(subscription.wait_for_matched(1, PATIENCE));
    await_nodes(&context, 2);
    let asked = Instant::now();
    interrupt(&child);
    assert_eq!(hears(&mut child, "shut down:").as_deref(), Some("true"));
    assert!(child.wait().unwrap().success());
    await_nodes(&context, 1);
    assert!(
        asked.elapsed() < LEASE,
        "noticed by its lease, not its goodbye"
    );
}

#[test]
fn what_a_killed_process_wrote_has_no_writers_and_what_one_wrote_that_ends_is_gone() {
    let context = context(194, PATIENCE);
    let node = context.node("parent").unwrap();
    let qos = QosProfile::default().transient_local();
    let shapes = node
        .create_polled_subscription::<Shape>("shape", &qos)
        .unwrap();
    let next = || {
        let mut change = None;
        context.graph().wait_until(PATIENCE, || {
            change = shapes.take_change();
            change.is_some()
        });
        match change.expect("a change") {
            Change::Sample(sample) => (sample.color.clone(), None),
            Change::End(end) => (end.key().color.clone(), Some(end.state())),
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
fn a_scripts_background_job_hears_an_interrupt_too() {
    // Shells without job control start those with the signal ignored.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; exec \"$0\" \"$@\""]);
    shell.arg(std::env::current_exe().unwrap());
    let mut child = start_by(shell, "leaves", 193);
    interrupt(&child);
    assert_eq!(hears(&mut child, "shut down:").as_deref(), Some("true"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn after_an_interrupt_nothing_spins_in_vain() {
    let mut child = start("lingers", 192);
    interrupt(&child);
    let spent: u64 = hears(&mut child, "spent").unwrap().parse().unwrap();
    assert!(spent < 200, "{spent} ms of processor time in 500 idle ones");
    assert!(child.wait().unwrap().success());
}

//! Callback chains: priority order, order of instances, latency reports.
#![allow(clippy::disallowed_methods, reason = "callbacks take real time")]

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::local::{context, publish};
use pteros::TimerOptions;
use pteros::executors::{Chain, ChainExecutor, ChainGraph, ChainReport};
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(1);

fn busy_for(span: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < span {
        std::hint::spin_loop();
    }
}

struct ChainFixture {
    context: Context,
    node: Node,
    log: Arc<Mutex<Vec<(&'static str, u64)>>>,
}

impl ChainFixture {
    fn new() -> Self {
        let context = context();
        Self {
            node: context.create_node("n").unwrap(),
            context,
            log: Arc::default(),
        }
    }

    fn executor(&self) -> ChainExecutor {
        let executor = ChainExecutor::new(&self.context);
        executor.add_node(&self.node).unwrap();
        executor
    }

    fn publisher(&self, topic: &str) -> Publisher<UInt64> {
        self.node.create_publisher(topic.keep_last(10)).unwrap()
    }

    /// Records the message and republishes it.
    fn callback(&self, topic: &'static str, to: &[&str]) -> Subscription<UInt64> {
        let log = self.log.clone();
        let to: Vec<_> = to.iter().map(|topic| self.publisher(topic)).collect();
        let callback = move |sample: Sample<UInt64>| {
            log.lock().unwrap().push((topic, sample.data));
            to.iter()
                .for_each(|publisher| publish(publisher, sample.data));
        };
        self.node
            .create_subscription(topic.keep_last(10), callback)
            .unwrap()
    }

    fn log(&self) -> Vec<(&'static str, u64)> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

#[test]
fn higher_priority_chains_run_first_and_unchained_callbacks_last() {
    let fixture = ChainFixture::new();
    let (none, low, high) = (
        fixture.callback("none", &[]),
        fixture.callback("low", &[]),
        fixture.callback("high", &[]),
    );
    let executor = fixture.executor();
    let chain = |name, priority, entity: &Subscription<UInt64>| {
        executor.add_chain(&Chain::new(name, priority).then(entity))
    };
    chain("low", 1, &low).unwrap();
    chain("high", 9, &high).unwrap();
    for topic in ["none", "low", "high"] {
        let publisher = fixture.publisher(topic);
        (0..2).for_each(|n| publish(&publisher, n));
    }
    assert_eq!(executor.spin_some(), 6);
    let expected = ["high", "low", "none"].map(|who| [(who, 0), (who, 1)]);
    assert_eq!(fixture.log(), expected.concat());
    drop(none);
}

#[test]
fn a_started_chain_instance_ends_before_another_begins() {
    let fixture = ChainFixture::new();
    let (a, b, c) = (
        fixture.callback("a", &["b"]),
        fixture.callback("b", &["c"]),
        fixture.callback("c", &[]),
    );
    let executor = fixture.executor();
    let chain = Chain::new("abc", 1).then(&a).then(&b).then(&c);
    executor.add_chain(&chain).unwrap();
    let publisher = fixture.publisher("a");
    (0..3).for_each(|n| publish(&publisher, n));
    assert_eq!(executor.spin_some(), 9);
    let expected: Vec<_> = (0..3)
        .flat_map(|n| [("a", n), ("b", n), ("c", n)])
        .collect();
    assert_eq!(fixture.log(), expected);
    let [report] = &executor.reports().all()[..] else {
        panic!("one chain");
    };
    assert_eq!((report.count, report.deadline_misses), (3, 0));
    assert!(report.min <= report.mean && report.mean <= report.max);
    assert!(report.p99 <= report.max && report.min > Duration::ZERO);
}

/// The timer at the head runs after the callbacks that it triggered. Ready
/// callbacks are re-evaluated after each callback.
#[test]
fn newly_ready_callbacks_are_considered_before_the_next_one() {
    let fixture = ChainFixture::new();
    let (other, brake, log) = (
        fixture.callback("other", &["brake"]),
        fixture.callback("brake", &[]),
        fixture.log.clone(),
    );
    let timer = fixture
        .node
        .create_timer(SOON, move || log.lock().unwrap().push(("timer", 0)))
        .unwrap();
    let executor = fixture.executor();
    let urgent = Chain::new("urgent", 5).then(&timer).then(&brake);
    executor.add_chain(&urgent).unwrap();
    executor
        .add_chain(&Chain::new("other", 1).then(&other))
        .unwrap();
    let (to_other, to_brake) = (fixture.publisher("other"), fixture.publisher("brake"));
    (1..=2).for_each(|n| publish(&to_other, n));
    publish(&to_brake, 0);
    busy_for(2 * SOON);
    executor.spin_some();
    timer.cancel();
    let mut seen = fixture.log();
    let at = seen.iter().position(|(who, _)| *who == "timer").unwrap();
    assert_eq!(at, 1, "after the brake, before all others");
    seen.retain(|(who, _)| *who != "timer");
    let expected = [
        ("brake", 0),
        ("other", 1),
        ("brake", 1),
        ("other", 2),
        ("brake", 2),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_chain_report_includes_waiting_time() {
    let fixture = ChainFixture::new();
    let (a, b) = (
        fixture.callback("a", &["b", "b"]),
        fixture.callback("b", &[]),
    );
    let executor = fixture.executor();
    let chain = Chain::new("ab", 3).then(&a).then(&b).deadline(2 * SOON);
    executor.add_chain(&chain).unwrap();
    let publisher = fixture.publisher("a");
    let reports = executor.reports();
    publish(&publisher, 1);
    // The executor is not spun during this time.
    busy_for(3 * SOON);
    executor.spin_some();
    let [late] = &reports.all()[..] else {
        panic!("one chain");
    };
    // One message led to two, so two instances end.
    assert_eq!((late.count, late.deadline_misses), (2, 2));
    assert!(late.min >= 3 * SOON, "{late:?}");
    assert_eq!((late.chain.as_str(), late.priority), ("ab", 3));
    reports.reset();
    assert_eq!(reports.all()[0].count, 0);
    // For a chain that starts with a timer: from its due time.
    let timer = fixture
        .node
        .create_timer(TimerOptions::new(SOON).one_shot(), || ())
        .unwrap();
    executor
        .add_chain(&Chain::new("t", 1).then(&timer))
        .unwrap();
    busy_for(4 * SOON);
    executor.spin_some();
    let of_timer = &reports.all()[1];
    assert_eq!(of_timer.count, 1);
    assert!(
        of_timer.min >= 2 * SOON && of_timer.max < TIMEOUT,
        "{of_timer:?}"
    );
}

#[test]
fn dropped_messages_do_not_complete_chain_instances() {
    let fixture = ChainFixture::new();
    let log = fixture.log.clone();
    let newest = fixture
        .node
        .create_subscription("b".keep_last(1), move |sample: Sample<UInt64>| {
            log.lock().unwrap().push(("b", sample.data));
        })
        .unwrap();
    let a = fixture.callback("a", &["b", "b", "b"]);
    let executor = fixture.executor();
    let chain = Chain::new("ab", 1).then(&a).then(&newest);
    executor.add_chain(&chain).unwrap();
    publish(&fixture.publisher("a"), 1);
    executor.spin_some();
    assert_eq!(fixture.log(), [("a", 1), ("b", 1)]);
    assert_eq!(executor.reports().all()[0].count, 1);
}

#[test]
fn chains_that_fork_and_join_are_measured_separately() {
    let fixture = ChainFixture::new();
    let (lidar, radar, fuse, left, right) = (
        fixture.callback("lidar", &["fuse"]),
        fixture.callback("radar", &["fuse"]),
        fixture.callback("fuse", &["left", "right"]),
        fixture.callback("left", &[]),
        fixture.callback("right", &[]),
    );
    let topics =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| format!("/{name}")).collect() };
    let graph = ChainGraph::new()
        .callback(&fuse, topics(&["left", "right"]))
        .callback(&lidar, topics(&["fuse"]))
        .callback(&radar, topics(&["fuse"]))
        .callback(&left, topics(&[]))
        .callback(&right, topics(&[]));
    let chains = graph.chains().unwrap();
    let names: Vec<_> = chains.iter().map(Chain::name).collect();
    let expected = [
        "/lidar → /fuse → /left",
        "/lidar → /fuse → /right",
        "/radar → /fuse → /left",
        "/radar → /fuse → /right",
    ];
    assert_eq!(names, expected);
    let executor = fixture.executor();
    for (chain, priority) in chains.into_iter().zip([4, 3, 2, 1]) {
        executor.add_chain(&chain.priority(priority)).unwrap();
    }
    let (to_lidar, to_radar) = (fixture.publisher("lidar"), fixture.publisher("radar"));
    publish(&to_radar, 1);
    publish(&to_lidar, 2);
    publish(&to_radar, 3);
    executor.spin_some();
    let order: Vec<_> = fixture
        .log()
        .into_iter()
        .map(|(who, _)| who)
        .take(4)
        .collect();
    assert_eq!(order, ["lidar", "fuse", "left", "right"]);
    let counts: Vec<_> = executor.reports().all().iter().map(|r| r.count).collect();
    assert_eq!(counts, [1, 1, 2, 2]);
}

#[test]
fn an_invalid_chain_is_rejected_with_a_reason() {
    let fixture = ChainFixture::new();
    let a = fixture.callback("a", &[]);
    let executor = fixture.executor();
    let empty = executor.add_chain(&Chain::new("odd", 1)).unwrap_err();
    assert_eq!(
        empty.to_string(),
        "chain \"odd\" has no callbacks; name them in order with `then`"
    );
    let twice = Chain::new("odd", 1).then(&a).then(&a);
    let refused = executor.add_chain(&twice).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "chain \"odd\" lists subscription \"/a\" of node \"/n\" twice; list each callback once"
    );
    for _ in 0..64 {
        executor.add_chain(&Chain::new("one", 1).then(&a)).unwrap();
    }
    let more = executor
        .add_chain(&Chain::new("odd", 1).then(&a))
        .unwrap_err();
    assert_eq!(
        more.to_string(),
        "chain \"odd\" is one too many: an executor has at most 64 chains; spread them over several"
    );
}

/// Under endless load, a message that arrives from another thread during a callback
/// is handled next.
#[test]
fn an_urgent_chain_waits_for_one_callback_of_a_busy_executor() {
    const ROUNDS: u64 = 20;
    let fixture = ChainFixture::new();
    let again = fixture.publisher("busy");
    let feed = again.clone();
    let (ask, asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel();
    let answered = Arc::new(Mutex::new(answered));
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let (again, log) = (again.clone(), fixture.log.clone());
            let (ask, answered) = (ask.clone(), answered.clone());
            let callback = move |sample: Sample<UInt64>| {
                publish(&again, sample.data);
                // Publishes urgent messages until the test ends.
                if ask.send(()).is_ok() {
                    answered.lock().unwrap().recv_timeout(TIMEOUT).unwrap();
                }
                log.lock().unwrap().push(("busy", 0));
            };
            let node = &fixture.node;
            node.create_subscription("busy".keep_last(10), callback)
                .unwrap()
        })
        .collect();
    let urgent = fixture.callback("urgent", &[]);
    let executor = fixture.executor();
    let chain = Chain::new("urgent", 1).then(&urgent);
    executor.add_chain(&chain).unwrap();
    let (handle, reports) = (executor.handle(), executor.reports());
    let to_urgent = fixture.publisher("urgent");
    publish(&feed, 1);
    thread::scope(|scope| {
        scope.spawn(move || executor.spin());
        for n in 0..ROUNDS {
            asked.recv_timeout(TIMEOUT).unwrap();
            publish(&to_urgent, n);
            answer.send(()).unwrap();
        }
        asked.recv_timeout(TIMEOUT).unwrap();
        handle.cancel();
        answer.send(()).unwrap();
    });
    let report: ChainReport = reports.all().remove(0);
    assert_eq!(report.count, ROUNDS);
    let expected: Vec<_> = (0..ROUNDS)
        .flat_map(|n| [("busy", 0), ("urgent", n)])
        .collect();
    assert_eq!(fixture.log()[..expected.len()], expected);
    drop(busy);
}

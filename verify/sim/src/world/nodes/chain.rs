//! Workload "executors": messages of a timer through single-threaded, static and
//! chain executors, each in its own process, under fault injection. Also checks the
//! period of a static executor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pteros::NamedQosExt;
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::{
    QosProfile, Sample,
    executors::{Chain, ChainExecutor, DataSemantics, StaticExecutor, Trigger},
};

use super::world::{ExecutorKind, NodeWorld, Process, REPAIR_MAX, SERVER};

/// Publish period of the source.
const PERIOD: Duration = Duration::from_millis(10);

/// Period of the periodic static executor.
const CYCLE: Duration = Duration::from_millis(25);

/// A history depth that holds everything published during an outage.
fn deep_qos() -> QosProfile {
    QosProfile::default().keep_last(5_000)
}

pub fn run(world: &NodeWorld) {
    let published = Arc::new(AtomicU64::new(0));
    let received: Arc<Mutex<Vec<u64>>> = Arc::default();
    let mut sink = world.process(3);
    let node = sink.context.create_node("sink").expect("a node");
    let log = received.clone();
    let _results = node
        .create_subscription("results".qos(deep_qos()), move |result: Sample<UInt64>| {
            log.lock().push(result.data);
        })
        .expect("a subscription");
    world.spin(&mut sink, ExecutorKind::Single, &[&node]);
    let chain_executor = chain_executor(world);
    let static_executor = static_executor(world);
    let (cycles, periodic_executor) = periodic_executor(world);
    world.sim.advance(REPAIR_MAX);
    let source = source(world, &published);
    world.run_fault_phase();
    world.sim.advance(REPAIR_MAX);
    drop(source);
    world.sim.advance(REPAIR_MAX);
    let (published, received) = (published.load(Ordering::Relaxed), received.lock());
    let expected: Vec<u64> = (0..published).map(|n| 2 * n + 1).collect();
    world
        .report
        .expect(published > 100 && *received == expected, || {
            let wrong = received
                .iter()
                .zip(&expected)
                .position(|(actual, expected)| actual != expected);
            format!(
                "I1 of {published} samples {} arrived, the first wrong one at {wrong:?}",
                received.len()
            )
        });
    let cycles = cycles.lock();
    let even = cycles.windows(2).all(|pair| pair[1] - pair[0] == CYCLE);
    world.report.expect(even && cycles.len() > 100, || {
        format!("E1 {} cycles at uneven distances", cycles.len())
    });
    let caller = world.caller(0);
    caller.call("check", REPAIR_MAX, || {});
    caller.mark_done();
    drop((chain_executor, static_executor, periodic_executor, sink));
}

/// Publishes the numbers from 0 on, driven by a timer.
fn source(world: &NodeWorld, published: &Arc<AtomicU64>) -> Process {
    let mut process = world.process(SERVER);
    let node = process.context.create_node("source").expect("a node");
    let numbers = node
        .create_publisher::<UInt64>("numbers".qos(deep_qos()))
        .expect("a publisher");
    assert!(
        numbers.wait_for_matched(2, REPAIR_MAX),
        "no endpoint was matched though the network has no faults yet"
    );
    let begin = world.sim.now();
    let (counter, sim, report) = (published.clone(), world.sim.clone(), world.report.clone());
    let timer = node.create_timer(PERIOD, move || {
        let n = counter.fetch_add(1, Ordering::Relaxed);
        let due = begin + PERIOD * u32::try_from(n + 1).unwrap_or(u32::MAX);
        report.expect(sim.now() == due, || {
            format!("E2 tick {n} at {:?}, due {due:?}", sim.now())
        });
        let _ = numbers.publish_owned(UInt64 { data: n });
    });
    let timer = timer.expect("a timer");
    world.spin(&mut process, ExecutorKind::Single, &[&node]);
    process.keep(timer);
    process
}

/// Doubles each number, in a static executor with logical execution time.
fn static_executor(world: &NodeWorld) -> Process {
    let mut process = world.process(1);
    let node = process.context.create_node("fixed").expect("a node");
    let numbers = node
        .create_polled_subscription::<UInt64>("numbers".qos(deep_qos()))
        .expect("a subscription");
    let doubled = node
        .create_publisher::<UInt64>("doubled".qos(deep_qos()))
        .expect("a publisher");
    let context = process.context.clone();
    let report = world.report.clone();
    process.add_thread(world.sim.spawn(Box::new(move || {
        let mut executor = StaticExecutor::new(&context);
        executor.set_semantics(DataSemantics::LogicalExecutionTime);
        let output = executor.add_output(&doubled, 10);
        let counts = doubled.clone();
        let step = executor.add_subscription(&numbers, move |number| {
            let before = counts.counts().published;
            output.publish(UInt64 {
                data: 2 * number.data,
            });
            let after = counts.counts().published;
            report.expect(before == after, || {
                "E3 published before the end of its cycle".into()
            });
        });
        step.expect("a step");
        executor.spin();
        drop(node);
    })));
    process
}

/// Adds one to each number, in a chain executor that also has a chain of lower
/// priority.
fn chain_executor(world: &NodeWorld) -> Process {
    let mut process = world.process(2);
    let node = process.context.create_node("chain").expect("a node");
    let results = node
        .create_publisher::<UInt64>("results".qos(deep_qos()))
        .expect("a publisher");
    let doubled = node
        .create_subscription("doubled".qos(deep_qos()), move |number: Sample<UInt64>| {
            let _ = results.publish_owned(UInt64 {
                data: number.data + 1,
            });
        })
        .expect("a subscription");
    let idle = node
        .create_timer(Duration::from_millis(70), || {})
        .expect("a timer");
    let context = process.context.clone();
    process.add_thread(world.sim.spawn(Box::new(move || {
        let executor = ChainExecutor::new(&context);
        executor.add_node(&node).expect("a node of this context");
        let urgent = Chain::new("urgent", 10).then(&doubled);
        executor.add_chain(&urgent).expect("a chain");
        executor
            .add_chain(&Chain::new("idle", 1).then(&idle))
            .expect("a chain");
        executor.spin();
    })));
    process
}

/// Start times of the cycles of a static executor with a period.
fn periodic_executor(world: &NodeWorld) -> (Arc<Mutex<Vec<Duration>>>, Process) {
    let cycles: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let mut process = world.process(4);
    let node = process.context.create_node("periodic").expect("a node");
    let numbers = node
        .create_polled_subscription::<UInt64>("numbers".keep_last(1))
        .expect("a subscription");
    let (context, notes, sim) = (process.context.clone(), cycles.clone(), world.sim.clone());
    process.add_thread(world.sim.spawn(Box::new(move || {
        let mut executor = StaticExecutor::new(&context);
        executor.set_trigger(Trigger::Always);
        let step = executor.add_subscription_always(&numbers, move |_| {
            notes.lock().push(sim.now());
        });
        step.expect("a step");
        executor.spin_period(CYCLE).expect("a period");
        drop(node);
    })));
    (cycles, process)
}

//! Executors: a timer's messages through single-threaded, static and chain executors,
//! each in a process of its own, under faults; and a static executor's period.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::{Chain, ChainExecutor, DataSemantics, QosProfile, Sample, StaticExecutor, Trigger};

use super::stage::{Process, SERVER, SOON, Spin, Stage};

/// The source speaks so often.
const PERIOD: Duration = Duration::from_millis(10);

/// The period of the static executor that keeps one.
const ROUND: Duration = Duration::from_millis(25);

/// All that is said while a process is cut off fits.
fn deep() -> QosProfile {
    QosProfile::default().keep_last(5_000)
}

pub fn play(stage: &Stage) {
    let said = Arc::new(AtomicU64::new(0));
    let heard: Arc<Mutex<Vec<u64>>> = Arc::default();
    let mut sink = stage.process(3);
    let node = sink.context.node("sink").expect("a node");
    let hears = heard.clone();
    let _results = node
        .create_subscription("results", deep(), move |result: Sample<UInt64>| {
            hears.lock().push(result.data);
        })
        .expect("a subscription");
    stage.spin(&mut sink, Spin::Single, &[&node]);
    let chain = chain(stage);
    let fixed = fixed(stage);
    let (rounds, periodic) = periodic(stage);
    stage.sim.pass(SOON);
    let source = source(stage, &said);
    stage.storm();
    stage.sim.pass(SOON);
    drop(source);
    stage.sim.pass(SOON);
    let (said, heard) = (said.load(Ordering::Relaxed), heard.lock());
    let expected: Vec<u64> = (0..said).map(|n| 2 * n + 1).collect();
    stage.book.expect(said > 100 && *heard == expected, || {
        let wrong = heard
            .iter()
            .zip(&expected)
            .position(|(one, other)| one != other);
        format!(
            "I1 of {said} came {}, the first wrong at {wrong:?}",
            heard.len()
        )
    });
    let rounds = rounds.lock();
    let even = rounds.windows(2).all(|pair| pair[1] - pair[0] == ROUND);
    stage.book.expect(even && rounds.len() > 100, || {
        format!("E1 {} rounds, not evenly apart", rounds.len())
    });
    let asker = stage.asker(0);
    asker.call("hear", SOON, || {});
    asker.note_done();
    drop((chain, fixed, periodic, sink));
}

/// Counts by a timer, from 0 on.
fn source(stage: &Stage, said: &Arc<AtomicU64>) -> Process {
    let mut process = stage.process(SERVER);
    let node = process.context.node("source").expect("a node");
    let numbers = node
        .create_publisher::<UInt64>("numbers", deep())
        .expect("a publisher");
    assert!(
        numbers.wait_for_matched(2, SOON),
        "no network yet that fails"
    );
    let begin = stage.sim.now();
    let (says, sim, book) = (said.clone(), stage.sim.clone(), stage.book.clone());
    let timer = node.create_timer(PERIOD, move || {
        let n = says.fetch_add(1, Ordering::Relaxed);
        let due = begin + PERIOD * u32::try_from(n + 1).unwrap_or(u32::MAX);
        book.expect(sim.now() == due, || {
            format!("E2 tick {n} at {:?}, due {due:?}", sim.now())
        });
        let _ = numbers.publish_owned(UInt64 { data: n });
    });
    let timer = timer.expect("a timer");
    stage.spin(&mut process, Spin::Single, &[&node]);
    process.keep(timer);
    process
}

/// Doubles what comes, in a static executor by logical execution time.
fn fixed(stage: &Stage) -> Process {
    let mut process = stage.process(1);
    let node = process.context.node("fixed").expect("a node");
    let numbers = node
        .create_polled_subscription::<UInt64>("numbers", deep())
        .expect("a subscription");
    let doubled = node
        .create_publisher::<UInt64>("doubled", deep())
        .expect("a publisher");
    let context = process.context.clone();
    let book = stage.book.clone();
    process.spins(stage.sim.companion(Box::new(move || {
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
            book.expect(before == after, || {
                "E3 given before its round was over".into()
            });
        });
        step.expect("a step");
        executor.spin();
        drop(node);
    })));
    process
}

/// Adds one, in a chain executor that has a less urgent chain besides.
fn chain(stage: &Stage) -> Process {
    let mut process = stage.process(2);
    let node = process.context.node("chain").expect("a node");
    let results = node
        .create_publisher::<UInt64>("results", deep())
        .expect("a publisher");
    let doubled = node
        .create_subscription("doubled", deep(), move |number: Sample<UInt64>| {
            let _ = results.publish_owned(UInt64 {
                data: number.data + 1,
            });
        })
        .expect("a subscription");
    let idle = node
        .create_timer(Duration::from_millis(70), || {})
        .expect("a timer");
    let context = process.context.clone();
    process.spins(stage.sim.companion(Box::new(move || {
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

/// When the rounds of a static executor with a period began.
fn periodic(stage: &Stage) -> (Arc<Mutex<Vec<Duration>>>, Process) {
    let rounds: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let mut process = stage.process(4);
    let node = process.context.node("periodic").expect("a node");
    let numbers = node
        .create_polled_subscription::<UInt64>("numbers", 1)
        .expect("a subscription");
    let (context, notes, sim) = (process.context.clone(), rounds.clone(), stage.sim.clone());
    process.spins(stage.sim.companion(Box::new(move || {
        let mut executor = StaticExecutor::new(&context);
        executor.set_trigger(Trigger::Always);
        let step = executor.add_subscription_always(&numbers, move |_| {
            notes.lock().push(sim.now());
        });
        step.expect("a step");
        executor.spin_period(ROUND).expect("a period");
        drop(node);
    })));
    (rounds, process)
}

//! Static executor: fixed order, triggers, logical execution time.
#![allow(clippy::disallowed_methods, reason = "another thread cancels")]

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pteros::TimerOptions;
use pteros::config::DiscoveryRange;
use pteros::executors::{DataSemantics, ExecutorError, StaticExecutor, Trigger};
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(1);
const NOW: Duration = Duration::ZERO;

/// A context without remote peers.
fn context() -> Context {
    let options = ContextOptions {
        discovery_range: Some(DiscoveryRange::Off),
        ..ContextOptions::default()
    };
    Context::with_options(options).unwrap()
}

fn publish(publisher: &Publisher<UInt64>, data: u64) {
    publisher.publish_owned(UInt64 { data }).unwrap();
}

/// Log of the steps run, in order.
#[derive(Clone, Default)]
struct StepLog(Arc<Mutex<Vec<StepRecord>>>);

/// The step and its message.
type StepRecord = (char, Option<u64>);

impl StepLog {
    fn note(&self, step: char, what: impl Into<Option<u64>>) {
        self.0.lock().unwrap().push((step, what.into()));
    }

    fn take(&self) -> Vec<StepRecord> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

struct StepFixture {
    context: Context,
    node: Node,
    log: StepLog,
    publishers: [Publisher<UInt64>; 3],
    subscriptions: [Subscription<UInt64>; 3],
}

impl StepFixture {
    fn new() -> Self {
        let context = context();
        let node = context.create_node("n").unwrap();
        let names = ["a", "b", "c"];
        Self {
            log: StepLog::default(),
            publishers: names.map(|name| node.create_publisher(name.keep_last(10)).unwrap()),
            subscriptions: names
                .map(|name| node.create_polled_subscription(name.keep_last(10)).unwrap()),
            context,
            node,
        }
    }

    fn step(&self, step: char) -> impl FnMut(Sample<UInt64>) + Send + use<> {
        let log = self.log.clone();
        move |sample| log.note(step, sample.data)
    }

    fn publish(&self, data: [Option<u64>; 3]) {
        for (publisher, data) in self.publishers.iter().zip(data) {
            if let Some(data) = data {
                publish(publisher, data);
            }
        }
    }
}

#[test]
fn steps_run_in_the_order_added_with_one_message_per_round() {
    let fixture = StepFixture::new();
    let mut executor = StaticExecutor::new(&fixture.context);
    let [a, b, c] = &fixture.subscriptions;
    executor.add_subscription(c, fixture.step('c')).unwrap();
    executor.add_subscription(a, fixture.step('a')).unwrap();
    executor.add_subscription(b, fixture.step('b')).unwrap();
    assert!(!executor.spin_once(NOW), "nothing is ready");
    fixture.publish([Some(1), Some(2), Some(3)]);
    fixture.publish([Some(4), None, None]);
    assert!(executor.spin_once(TIMEOUT));
    let first = [('c', Some(3)), ('a', Some(1)), ('b', Some(2))];
    assert_eq!(fixture.log.take(), first);
    assert!(executor.spin_once(NOW));
    assert_eq!(fixture.log.take(), [('a', Some(4))]);
    assert_eq!(executor.rounds(), 2);
    let twice = executor.add_subscription(a, |_| ()).unwrap_err();
    assert!(matches!(twice, ExecutorError::InWaitSet { .. }), "{twice}");
}

#[test]
fn a_round_begins_when_the_trigger_is_met() {
    let fixture = StepFixture::new();
    let mut executor = StaticExecutor::new(&fixture.context);
    let [a, b, c] = &fixture.subscriptions;
    executor.add_subscription(a, fixture.step('a')).unwrap();
    let key_b = executor.add_subscription(b, fixture.step('b')).unwrap();
    let log = fixture.log.clone();
    executor
        .add_subscription_always(c, move |sample| log.note('c', sample.map(|s| s.data)))
        .unwrap();

    executor.set_trigger(Trigger::All);
    fixture.publish([Some(1), None, Some(2)]);
    assert!(!executor.spin_once(NOW), "b is not ready");
    fixture.publish([None, Some(3), None]);
    assert!(executor.spin_once(NOW));
    let all = [('a', Some(1)), ('b', Some(3)), ('c', Some(2))];
    assert_eq!(fixture.log.take(), all);

    executor.set_trigger(Trigger::One(key_b));
    fixture.publish([Some(4), None, None]);
    assert!(!executor.spin_once(NOW));
    fixture.publish([None, Some(5), None]);
    assert!(executor.spin_once(NOW));
    let one = [('a', Some(4)), ('b', Some(5)), ('c', None)];
    assert_eq!(fixture.log.take(), one, "c runs in each round");

    executor.set_trigger(Trigger::Custom(Box::new(move |ready| {
        ready.count() >= 2 && !ready.is_ready(key_b)
    })));
    fixture.publish([Some(6), Some(7), None]);
    assert!(!executor.spin_once(NOW));
    executor.set_trigger(Trigger::Always);
    assert!(executor.spin_once(NOW));
    assert!(executor.spin_once(NOW), "with nothing at all");
    assert_eq!(fixture.log.take().len(), 4);
}

#[test]
fn with_logical_execution_time_a_round_takes_messages_at_its_start() {
    for semantics in [
        DataSemantics::RclcppExecutor,
        DataSemantics::LogicalExecutionTime,
    ] {
        let fixture = StepFixture::new();
        let mut executor = StaticExecutor::new(&fixture.context);
        executor.set_semantics(semantics);
        let [a, b, c] = &fixture.subscriptions;
        let [_, to_b, to_c] = fixture.publishers.clone();
        let output = executor.add_output(&to_c, 2);
        let mut note = fixture.step('a');
        let outside = c.clone();
        executor
            .add_subscription(a, move |sample| {
                // Publishes at once, to the next step, and by an output.
                publish(&to_b, sample.data + 10);
                for n in 0..3 {
                    output.publish(UInt64 { data: n });
                }
                assert_eq!(output.dropped(), 1, "two of three fit");
                assert!(outside.take().is_none(), "it goes out when the round ends");
                note(sample);
            })
            .unwrap();
        let log = fixture.log.clone();
        executor
            .add_subscription_always(b, move |sample| log.note('b', sample.map(|s| s.data)))
            .unwrap();
        publish(&fixture.publishers[0], 1);
        assert!(executor.spin_once(TIMEOUT));
        let seen = match semantics {
            DataSemantics::RclcppExecutor => Some(11),
            DataSemantics::LogicalExecutionTime => None,
        };
        assert_eq!(fixture.log.take(), [('a', Some(1)), ('b', seen)]);
        let given = [c.take(), c.take()].map(|sample| sample.map(|s| s.data));
        assert_eq!(given, [Some(1), Some(2)]);
        assert!(c.take().is_none());
    }
}

#[test]
fn outputs_are_published_at_the_period_end_and_overruns_are_skipped() {
    let fixture = StepFixture::new();
    let mut executor = StaticExecutor::new(&fixture.context);
    executor.set_semantics(DataSemantics::LogicalExecutionTime);
    executor.set_trigger(Trigger::Always);
    let [a, _, c] = &fixture.subscriptions;
    let output = executor.add_output(&fixture.publishers[2], 1);
    let (handle, log, outside) = (executor.handle(), fixture.log.clone(), c.clone());
    let period = 2 * SOON;
    let mut round = 0;
    executor
        .add_subscription_always(a, move |_| {
            // Exactly the messages of the previous round.
            log.note('c', outside.take().map(|sample| sample.data));
            output.publish(UInt64 { data: round });
            round += 1;
            if round == 3 {
                let begun = Instant::now();
                while begun.elapsed() < 3 * period {
                    std::hint::spin_loop();
                }
            }
            if round == 5 {
                handle.cancel();
            }
        })
        .unwrap();
    let overruns = executor.handle();
    let begun = Instant::now();
    executor.spin_period(period).unwrap();
    assert!(begun.elapsed() >= 6 * period);
    assert!(overruns.overruns() >= 2);
    let expected = [None, Some(0), Some(1), Some(2), Some(3)].map(|data| ('c', data));
    assert_eq!(fixture.log.take(), expected);
    assert_eq!(c.take().unwrap().data, 4, "the last goes out at the end");
    let zero = executor.spin_period(NOW).unwrap_err();
    assert!(matches!(zero, ExecutorError::ZeroPeriod), "{zero}");
}

#[test]
fn timers_guard_conditions_services_and_clients_are_steps() {
    let fixture = StepFixture::new();
    let (node, log) = (&fixture.node, &fixture.log);
    let mut executor = StaticExecutor::new(&fixture.context);
    let note = |step| {
        let log = log.clone();
        move || log.note(step, None)
    };
    let timer = node
        .create_timer(TimerOptions::new(SOON).one_shot(), note('t'))
        .unwrap();
    let guard = node.create_guard_condition(None, note('g'));
    let served = note('s');
    let service = node
        .create_service::<AddTwoInts>("add", move |request| {
            served();
            AddTwoIntsResponse {
                sum: request.a + request.b,
            }
        })
        .unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    executor.add_client(&client).unwrap();
    executor.add_service(&service).unwrap();
    executor.add_guard_condition(&guard).unwrap();
    executor.add_timer(&timer).unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let answered = log.clone();
    let then = move |answer: Result<Sample<AddTwoIntsResponse>, _>| {
        answered.note('a', u64::try_from(answer.unwrap().sum).ok());
    };
    let request = AddTwoIntsRequest { a: 20, b: 1 };
    client.call_then(&request, then).unwrap();
    guard.trigger();
    while timer.ticks() == 0 || log.0.lock().unwrap().len() < 4 {
        assert!(executor.spin_once(TIMEOUT));
    }
    let mut seen = log.take();
    // The response arrives in a later round than the request, independent of the
    // timer.
    seen.retain(|(step, _)| *step != 't');
    assert_eq!(seen, [('s', None), ('g', None), ('a', Some(21))]);
}

#[test]
fn another_thread_cancels_a_waiting_static_executor() {
    let fixture = StepFixture::new();
    let mut executor = StaticExecutor::new(&fixture.context);
    let [a, ..] = &fixture.subscriptions;
    executor.add_subscription(a, fixture.step('a')).unwrap();
    let handle = executor.handle();
    thread::scope(|scope| {
        let publisher = &fixture.publishers[0];
        let log = &fixture.log;
        scope.spawn(move || {
            publish(publisher, 1);
            let end = Instant::now() + TIMEOUT;
            while log.0.lock().unwrap().is_empty() && Instant::now() < end {
                thread::yield_now();
            }
            handle.cancel();
        });
        executor.spin();
    });
    assert_eq!(fixture.log.take(), [('a', Some(1))]);
}

#[test]
fn one_cancel_ends_one_wait_of_spin_once() {
    let fixture = StepFixture::new();
    let mut executor = StaticExecutor::new(&fixture.context);
    let [a, ..] = &fixture.subscriptions;
    executor.add_subscription(a, fixture.step('a')).unwrap();
    executor.handle().cancel();
    assert!(!executor.spin_once(Duration::MAX));
    publish(&fixture.publishers[0], 1);
    assert!(executor.spin_once(TIMEOUT), "the cancel has had its effect");
}

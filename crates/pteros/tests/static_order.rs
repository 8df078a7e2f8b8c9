//! The static executor: a fixed order, triggers, logical execution time.
#![allow(
    clippy::disallowed_methods,
    reason = "a step takes its time, and another thread cancels"
)]

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pteros::config::DiscoveryRange;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoInts_Request, AddTwoInts_Response,
};
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;
use pteros::{DataSemantics, ExecutorError, StaticExecutor, Trigger, WaitSetError};

const PATIENCE: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(1);
const NOW: Duration = Duration::ZERO;

/// One that meets nobody.
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

/// What steps did, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Entry>>>);

/// Which step, and its message.
type Entry = (char, Option<u64>);

impl Log {
    fn note(&self, who: char, what: impl Into<Option<u64>>) {
        self.0.lock().unwrap().push((who, what.into()));
    }

    fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

struct Scene {
    context: Context,
    node: Node,
    log: Log,
    publishers: [Publisher<UInt64>; 3],
    subscriptions: [Subscription<UInt64>; 3],
}

impl Scene {
    fn new() -> Self {
        let context = context();
        let node = context.node("n").unwrap();
        let names = ["a", "b", "c"];
        Self {
            log: Log::default(),
            publishers: names.map(|name| node.create_publisher(name, 10).unwrap()),
            subscriptions: names.map(|name| node.create_polled_subscription(name, 10).unwrap()),
            context,
            node,
        }
    }

    fn step(&self, who: char) -> impl FnMut(Sample<UInt64>) + Send + use<> {
        let log = self.log.clone();
        move |sample| log.note(who, sample.data)
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
fn steps_run_in_the_order_of_their_set_up_one_message_per_round() {
    let scene = Scene::new();
    let mut executor = StaticExecutor::new(&scene.context);
    let [a, b, c] = &scene.subscriptions;
    executor.add_subscription(c, scene.step('c')).unwrap();
    executor.add_subscription(a, scene.step('a')).unwrap();
    executor.add_subscription(b, scene.step('b')).unwrap();
    assert!(!executor.spin_once(NOW), "nothing is ready");
    scene.publish([Some(1), Some(2), Some(3)]);
    scene.publish([Some(4), None, None]);
    assert!(executor.spin_once(PATIENCE));
    let first = [('c', Some(3)), ('a', Some(1)), ('b', Some(2))];
    assert_eq!(scene.log.take(), first);
    assert!(executor.spin_once(NOW));
    assert_eq!(scene.log.take(), [('a', Some(4))]);
    assert_eq!(executor.rounds(), 2);
    let twice = executor.add_subscription(a, |_| ()).unwrap_err();
    assert!(matches!(twice, WaitSetError::InUse { .. }), "{twice}");
}

#[test]
fn a_round_begins_when_the_trigger_says_so() {
    let scene = Scene::new();
    let mut executor = StaticExecutor::new(&scene.context);
    let [a, b, c] = &scene.subscriptions;
    executor.add_subscription(a, scene.step('a')).unwrap();
    let key_b = executor.add_subscription(b, scene.step('b')).unwrap();
    let log = scene.log.clone();
    executor
        .add_subscription_always(c, move |sample| log.note('c', sample.map(|s| s.data)))
        .unwrap();

    executor.set_trigger(Trigger::All);
    scene.publish([Some(1), None, Some(2)]);
    assert!(!executor.spin_once(NOW), "b is not ready");
    scene.publish([None, Some(3), None]);
    assert!(executor.spin_once(NOW));
    let all = [('a', Some(1)), ('b', Some(3)), ('c', Some(2))];
    assert_eq!(scene.log.take(), all);

    executor.set_trigger(Trigger::One(key_b));
    scene.publish([Some(4), None, None]);
    assert!(!executor.spin_once(NOW));
    scene.publish([None, Some(5), None]);
    assert!(executor.spin_once(NOW));
    let one = [('a', Some(4)), ('b', Some(5)), ('c', None)];
    assert_eq!(scene.log.take(), one, "c runs in each round");

    executor.set_trigger(Trigger::Custom(Box::new(move |ready| {
        ready.count() >= 2 && !ready.is_ready(key_b)
    })));
    scene.publish([Some(6), Some(7), None]);
    assert!(!executor.spin_once(NOW));
    executor.set_trigger(Trigger::Always);
    assert!(executor.spin_once(NOW));
    assert!(executor.spin_once(NOW), "with nothing at all");
    assert_eq!(scene.log.take().len(), 4);
}

#[test]
fn with_logical_execution_time_a_round_sees_what_was_there_when_it_began() {
    for semantics in [DataSemantics::InTurn, DataSemantics::LogicalExecutionTime] {
        let scene = Scene::new();
        let mut executor = StaticExecutor::new(&scene.context);
        executor.set_semantics(semantics);
        let [a, b, c] = &scene.subscriptions;
        let [_, to_b, to_c] = scene.publishers.clone();
        let output = executor.add_output(&to_c, 2);
        let mut note = scene.step('a');
        let outside = c.clone();
        executor
            .add_subscription(a, move |sample| {
                // At once, to the next step; and by an output.
                publish(&to_b, sample.data + 10);
                for n in 0..3 {
                    output.publish(UInt64 { data: n });
                }
                assert_eq!(output.dropped(), 1, "two of three fit");
                assert!(outside.take().is_none(), "it goes out when the round ends");
                note(sample);
            })
            .unwrap();
        let log = scene.log.clone();
        executor
            .add_subscription_always(b, move |sample| log.note('b', sample.map(|s| s.data)))
            .unwrap();
        publish(&scene.publishers[0], 1);
        assert!(executor.spin_once(PATIENCE));
        let seen = match semantics {
            DataSemantics::InTurn => Some(11),
            DataSemantics::LogicalExecutionTime => None,
        };
        assert_eq!(scene.log.take(), [('a', Some(1)), ('b', seen)]);
        let given = [c.take(), c.take()].map(|sample| sample.map(|s| s.data));
        assert_eq!(given, [Some(1), Some(2)]);
        assert!(c.take().is_none());
    }
}

#[test]
fn an_output_goes_out_at_the_end_of_its_period_and_passed_periods_are_skipped() {
    let scene = Scene::new();
    let mut executor = StaticExecutor::new(&scene.context);
    executor.set_semantics(DataSemantics::LogicalExecutionTime);
    executor.set_trigger(Trigger::Always);
    let [a, _, c] = &scene.subscriptions;
    let output = executor.add_output(&scene.publishers[2], 1);
    let (handle, log, outside) = (executor.handle(), scene.log.clone(), c.clone());
    let period = 2 * SOON;
    let mut round = 0;
    executor
        .add_subscription_always(a, move |_| {
            // What the round before gave, not more and not less.
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
    assert_eq!(scene.log.take(), expected);
    assert_eq!(c.take().unwrap().data, 4, "the last goes out at the end");
    let zero = executor.spin_period(NOW).unwrap_err();
    assert!(matches!(zero, ExecutorError::ZeroPeriod), "{zero}");
}

#[test]
fn timers_guards_services_and_clients_are_steps_as_well() {
    let scene = Scene::new();
    let (node, log) = (&scene.node, &scene.log);
    let mut executor = StaticExecutor::new(&scene.context);
    let note = |who| {
        let log = log.clone();
        move || log.note(who, None)
    };
    let timer = node.create_one_shot_timer(SOON, note('t')).unwrap();
    let guard = node.create_guard_condition(note('g'));
    let served = note('s');
    let service = node
        .create_service::<AddTwoInts>("add", move |request| {
            served();
            AddTwoInts_Response {
                sum: request.a + request.b,
            }
        })
        .unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    executor.add_client(&client).unwrap();
    executor.add_service(&service).unwrap();
    executor.add_guard_condition(&guard).unwrap();
    executor.add_timer(&timer).unwrap();
    assert!(client.wait_for_service(PATIENCE));
    let answered = log.clone();
    let then = move |answer: Result<Sample<AddTwoInts_Response>, _>| {
        answered.note('a', u64::try_from(answer.unwrap().sum).ok());
    };
    let request = AddTwoInts_Request { a: 20, b: 1 };
    client.call_then(&request, then).unwrap();
    guard.trigger();
    while timer.ticks() == 0 || log.0.lock().unwrap().len() < 4 {
        assert!(executor.spin_once(PATIENCE));
    }
    let mut seen = log.take();
    // The answer comes in a later round than the request, whatever the timer does.
    seen.retain(|(who, _)| *who != 't');
    assert_eq!(seen, [('s', None), ('g', None), ('a', Some(21))]);
}

#[test]
fn it_is_cancelled_by_another_thread_while_it_waits() {
    let scene = Scene::new();
    let mut executor = StaticExecutor::new(&scene.context);
    let [a, ..] = &scene.subscriptions;
    executor.add_subscription(a, scene.step('a')).unwrap();
    let handle = executor.handle();
    thread::scope(|scope| {
        let publisher = &scene.publishers[0];
        let log = &scene.log;
        scope.spawn(move || {
            publish(publisher, 1);
            let end = Instant::now() + PATIENCE;
            while log.0.lock().unwrap().is_empty() && Instant::now() < end {
                thread::yield_now();
            }
            handle.cancel();
        });
        executor.spin();
    });
    assert_eq!(scene.log.take(), [('a', Some(1))]);
}

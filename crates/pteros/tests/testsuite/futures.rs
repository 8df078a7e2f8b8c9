//! Async tasks in executors: async callbacks, spawned tasks, sleeps and calls,
//! without an async runtime.
#![allow(clippy::disallowed_methods, reason = "executors spin beside the test")]

use std::future::{Future, pending, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::local::{context, publish};
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;
use pteros::{
    SubscriptionOptions,
    callback_groups::CallbackGroupType,
    executors::{ExecutorError, IsolatedExecutor, MultiThreadedExecutor, PanicPolicy},
    thread::ThreadSettings,
};

const TIMEOUT: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(1);

/// Shuts the context down on drop, also if the test fails.
struct ShutdownOnDrop<'c>(&'c Context);

impl Drop for ShutdownOnDrop<'_> {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

/// Runs a scenario once with each kind of executor, spun on another thread.
fn with_each_executor(scenario: impl Fn(&Context, &Node)) {
    for kind in ["single", "multi", "isolated"] {
        let context = context();
        let node = context.create_node(kind).unwrap();
        thread::scope(|scope| {
            let _end = ShutdownOnDrop(&context);
            match kind {
                "single" => {
                    let executor = SingleThreadedExecutor::new(&context);
                    executor.add_node(&node).unwrap();
                    scope.spawn(move || executor.spin());
                }
                "multi" => {
                    let executor = MultiThreadedExecutor::new(&context, 3);
                    executor.add_node(&node).unwrap();
                    scope.spawn(move || executor.spin().unwrap());
                }
                _ => {
                    let executor = IsolatedExecutor::new(&context);
                    executor.add_node(&node, ThreadSettings::default()).unwrap();
                    scope.spawn(move || executor.spin().unwrap());
                }
            }
            scenario(&context, &node);
        });
    }
}

/// Gate that lets waiting futures continue one by one, from any thread.
#[derive(Clone, Default)]
struct PermitGate(Arc<Mutex<Permits>>);

#[derive(Default)]
struct Permits {
    open: usize,
    waiting: Vec<Waker>,
}

impl PermitGate {
    fn pass(&self) -> impl Future<Output = ()> + Send + use<> {
        let pass = self.0.clone();
        poll_fn(move |context| {
            let mut pass = pass.lock().unwrap();
            if pass.open > 0 {
                pass.open -= 1;
                return Poll::Ready(());
            }
            pass.waiting.push(context.waker().clone());
            Poll::Pending
        })
    }

    fn open(&self, count: usize) {
        let waiting = {
            let mut pass = self.0.lock().unwrap();
            pass.open += count;
            std::mem::take(&mut pass.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[test]
fn an_exclusive_async_callback_takes_one_message_at_a_time() {
    with_each_executor(|_, node| {
        let permits = PermitGate::default();
        let (sender, receiver) = mpsc::channel();
        let (gate, begun) = (permits.clone(), sender.clone());
        let _slow = node
            .create_subscription("t".keep_last(10), move |sample: Sample<UInt64>| {
                let (gate, sender) = (gate.clone(), begun.clone());
                Box::pin(async move {
                    sender.send(("begins", sample.data)).unwrap();
                    gate.pass().await;
                    sender.send(("ends", sample.data)).unwrap();
                })
            })
            .unwrap();
        let _other = node
            .create_subscription("other".keep_last(10), move |sample: Sample<UInt64>| {
                sender.send(("other", sample.data)).unwrap();
            })
            .unwrap();
        let publisher = node.create_publisher("t".keep_last(10)).unwrap();
        let other = node.create_publisher("other".keep_last(10)).unwrap();
        let next = || receiver.recv_timeout(TIMEOUT).unwrap();
        for n in 0..3 {
            publish(&publisher, n);
        }
        assert_eq!(next(), ("begins", 0));
        for n in 0..3 {
            // Of the same group; the second message is handled later.
            publish(&other, n);
            assert_eq!(next(), ("other", n));
            permits.open(1);
            assert_eq!(next(), ("ends", n));
            if n < 2 {
                assert_eq!(next(), ("begins", n + 1));
            }
        }
        assert!(receiver.try_recv().is_err());
    });
}

#[test]
fn a_reentrant_group_limits_pending_futures() {
    with_each_executor(|_, node| {
        let group = node.create_callback_group(CallbackGroupType::Reentrant);
        let permits = PermitGate::default();
        let inside = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = mpsc::channel();
        let (gate, counted) = (permits.clone(), inside.clone());
        let options = SubscriptionOptions::new("t".keep_last(10))
            .callback_group(&group)
            .pending_max(3);
        let _slow = node
            .create_subscription(options, move |_: Sample<UInt64>| {
                let (gate, inside, sender) = (gate.clone(), counted.clone(), sender.clone());
                Box::pin(async move {
                    let count = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    sender.send(count).unwrap();
                    gate.pass().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                })
            })
            .unwrap();
        let publisher = node.create_publisher("t".keep_last(10)).unwrap();
        (0..8).for_each(|n| publish(&publisher, n));
        let mut most = 0;
        for n in 0..8 {
            if n >= 3 {
                permits.open(1);
            }
            most = most.max(receiver.recv_timeout(TIMEOUT).unwrap());
        }
        assert_eq!(most, 3);
        permits.open(3);
        let end = Instant::now() + TIMEOUT;
        while inside.load(Ordering::SeqCst) > 0 && Instant::now() < end {
            thread::yield_now();
        }
        assert_eq!(inside.load(Ordering::SeqCst), 0);
    });
}

/// Server, client and both callbacks are in one group of one node, where blocking
/// calls would deadlock.
#[test]
fn an_async_callback_awaits_a_service_of_its_own_executor() {
    with_each_executor(|_, node| {
        let clock = node.clone();
        let _service = Service::<AddTwoInts>::deferred(node, "add", move |call| {
            let clock = clock.clone();
            Box::pin(async move {
                clock.sleep(SOON).await;
                let sum = call.request().a + call.request().b;
                call.respond(AddTwoIntsResponse { sum }).unwrap();
            })
        })
        .unwrap();
        let client = node.create_client::<AddTwoInts>("add").unwrap();
        assert!(client.wait_for_service(TIMEOUT));
        let (sender, receiver) = mpsc::channel();
        let _doubler = node
            .create_subscription("number".keep_last(10), move |number: Sample<UInt64>| {
                let (client, sender) = (client.clone(), sender.clone());
                Box::pin(async move {
                    let half = number.data as i64;
                    let request = AddTwoIntsRequest { a: half, b: half };
                    let answer = client.call_async(&request).unwrap().await.unwrap();
                    sender.send(answer.sum).unwrap();
                })
            })
            .unwrap();
        let publisher = node.create_publisher("number".keep_last(10)).unwrap();
        for n in 1..=5 {
            publish(&publisher, n);
            assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(2 * n as i64));
        }
    });
}

#[test]
fn sleep_timeout_and_async_timers_work() {
    with_each_executor(|_, node| {
        let (sender, receiver) = mpsc::channel();
        let clock = node.clone();
        let begun = Instant::now();
        let task = node.spawn(async move {
            clock.sleep(2 * SOON).await;
            let slept = begun.elapsed();
            let never = clock.timeout(SOON, pending::<()>()).await;
            let at_once = clock.timeout(TIMEOUT, async { 7 }).await;
            sender.send((slept, never, at_once)).unwrap();
        });
        let (slept, never, at_once) = receiver.recv_timeout(TIMEOUT).unwrap();
        assert!(slept >= 2 * SOON, "{slept:?}");
        assert_eq!((never, at_once), (None, Some(7)));
        drop(task);

        let permits = PermitGate::default();
        let (sender, receiver) = mpsc::channel();
        let gate = permits.clone();
        let timer = node
            .create_timer(SOON, move || {
                sender.send(()).unwrap();
                Box::pin(gate.pass())
            })
            .unwrap();
        for _ in 0..3 {
            receiver.recv_timeout(TIMEOUT).unwrap();
            // However often it ticks meanwhile, only one future is pending.
            let ticks = timer.ticks();
            let end = Instant::now() + TIMEOUT;
            while timer.ticks() < ticks + 3 && Instant::now() < end {
                thread::yield_now();
            }
            assert!(receiver.try_recv().is_err());
            permits.open(1);
        }
    });
}

#[test]
fn a_task_awaits_the_next_message() {
    with_each_executor(|_, node| {
        let numbers = node
            .create_polled_subscription::<UInt64>("t".keep_last(10))
            .unwrap();
        let (sender, receiver) = mpsc::channel();
        let polled = numbers.clone();
        let task = node.spawn(async move {
            let mut sum = 0;
            while sum < 55 {
                sum += polled.next().await.data;
                sender.send(sum).unwrap();
            }
            sum
        });
        let mut task = task.unwrap();
        let publisher = node.create_publisher("t".keep_last(10)).unwrap();
        for n in 1..=10 {
            publish(&publisher, n);
            assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(n * (n + 1) / 2));
        }
        let end = Instant::now() + TIMEOUT;
        while !task.is_done() && Instant::now() < end {
            thread::yield_now();
        }
        assert_eq!(task.take(), Some(55));
        // Messages can be taken directly once no future awaits them.
        publish(&publisher, 99);
        assert_eq!(numbers.take_timeout(TIMEOUT).unwrap().data, 99);
    });
}

#[test]
fn a_spawned_task_ends_with_its_handle_unless_detached() {
    let context = context();
    let node = context
        .create_node(NodeOptions::new("n").tasks_max(2))
        .unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    let held = Arc::new(());
    let first = held.clone();
    let waits = node.spawn(async move {
        pending::<()>().await;
        drop(first);
    });
    let (second, permits) = (held.clone(), PermitGate::default());
    let gate = permits.clone();
    let detached = node.spawn(async move {
        gate.pass().await;
        drop(second);
    });
    detached.unwrap().detach();
    let refused = node.spawn(async {}).unwrap_err();
    assert!(
        matches!(&refused, ExecutorError::TooManyTasks { node, max: 2 } if node == "/n"),
        "{refused}"
    );
    executor.spin_some();
    assert_eq!(Arc::strong_count(&held), 3);
    drop(waits);
    assert_eq!(Arc::strong_count(&held), 2, "the first is gone");
    permits.open(1);
    executor.spin_some();
    assert_eq!(Arc::strong_count(&held), 1, "the second has run to its end");
    // A slot is free again.
    let mut done = node.spawn(async { "here" }).unwrap();
    executor.spin_some();
    assert_eq!(done.take(), Some("here"));
    // A task that waits forever ends with its node.
    let third = held.clone();
    let for_ever = node.spawn(async move {
        let _third = third;
        pending::<()>().await;
    });
    for_ever.unwrap().detach();
    executor.spin_some();
    assert_eq!(Arc::strong_count(&held), 2);
    drop((executor, done, node));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn spin_until_future_complete_returns_the_output() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    let inner = node.spawn(async { 20 }).unwrap();
    let clock = node.clone();
    // Not `Send`: it stays on this thread.
    let own = std::rc::Rc::new(1);
    let whole = async {
        clock.sleep(SOON).await;
        inner.await.unwrap() + *own
    };
    assert_eq!(
        executor.spin_until_future_complete(whole, TIMEOUT),
        Some(21)
    );
    assert_eq!(
        executor.spin_until_future_complete(pending::<()>(), SOON),
        None
    );
    // With an executor of the call's own, which runs the timer of the sleep.
    executor.remove_node(&node);
    let slept = node.sleep(SOON);
    assert_eq!(
        pteros::spin_until_future_complete(&node, slept, TIMEOUT),
        Some(())
    );
}

#[test]
fn the_panic_policy_applies_to_futures() {
    let context = context();
    let (bad, good) = (
        context.create_node("bad").unwrap(),
        context.create_node("good").unwrap(),
    );
    let executor = SingleThreadedExecutor::with_panic_policy(&context, PanicPolicy::Callback);
    executor.add_node(&bad).unwrap();
    executor.add_node(&good).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let subscribe = |node: &Node, panics: bool| {
        let (calls, clock) = (calls.clone(), node.clone());
        node.create_subscription("t".keep_last(10), move |_: Sample<UInt64>| {
            calls.fetch_add(1, Ordering::Relaxed);
            let sleep = clock.sleep(SOON);
            Box::pin(async move {
                sleep.await;
                assert!(!panics, "as it must");
            })
        })
    };
    let _both = (subscribe(&bad, true), subscribe(&good, false));
    let handle = bad.spawn(async { panic!("as it must") }).unwrap();
    let publisher: Publisher<UInt64> = good.create_publisher("t".keep_last(10)).unwrap();
    (0..4).for_each(|n| publish(&publisher, n));
    let all = || calls.load(Ordering::Relaxed) >= 5;
    executor.spin_until(all, TIMEOUT);
    executor.spin_until(|| false, 5 * SOON);
    // Four runs of the good task, one of the other.
    assert_eq!(calls.load(Ordering::Relaxed), 5);
    assert!(handle.is_done());
    let outcome: Option<Option<()>> = executor.spin_until_future_complete(handle, TIMEOUT);
    assert_eq!(outcome, Some(None));

    let strict = SingleThreadedExecutor::with_panic_policy(&context, PanicPolicy::Node);
    strict.add_node(&bad).unwrap();
    bad.spawn(async { panic!("as it must") }).unwrap().detach();
    strict.spin_some();
    assert!(!strict.remove_node(&bad), "it has left by itself");
}

#[test]
fn a_future_moves_with_its_node_and_may_wake_itself() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let (first, second) = (
        SingleThreadedExecutor::new(&context),
        SingleThreadedExecutor::new(&context),
    );
    first.add_node(&node).unwrap();
    let permits = PermitGate::default();
    let gate = permits.clone();
    let yields = async move {
        for _ in 0..3 {
            let mut yielded = false;
            poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::replace(&mut yielded, true) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
        gate.pass().await;
    };
    let task = node.spawn(yields).unwrap();
    first.spin_all(TIMEOUT);
    second.add_node(&node).unwrap();
    permits.open(1);
    first.spin_some();
    assert!(!task.is_done());
    second.spin_some();
    assert!(task.is_done());
}

#[test]
fn a_future_that_spins_its_own_executor_loses_no_wake_up() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let (inner, permits) = (node.clone(), PermitGate::default());
    let gate = permits.clone();
    let task = node
        .spawn(async move {
            let mut pass = Box::pin(gate.pass());
            poll_fn(move |context| {
                let poll = pass.as_mut().poll(context);
                if poll.is_pending() {
                    // The wake-up arrives during the poll, and its task runs in the
                    // nested spin.
                    gate.open(1);
                    inner.spin_once(Duration::ZERO);
                }
                poll
            })
            .await;
        })
        .unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    executor.spin_all(TIMEOUT);
    assert!(task.is_done());
}

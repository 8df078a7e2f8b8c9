//! Executors: callback groups, timers, panics, cancellation.
#![allow(clippy::disallowed_methods, reason = "parallel callbacks are threads")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::{Empty, UInt64};
use pteros::prelude::*;
use pteros::thread::CpuList;
use pteros::{
    SubscriptionOptions, TimerOptions,
    callback_groups::{CallbackGroup, CallbackGroupType},
    executors::{
        ExecutorError, ExecutorHandle, IsolatedExecutor, MultiThreadedExecutor, PanicPolicy,
    },
    thread::ThreadSettings,
};

const TIMEOUT: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(1);

/// Options of a context without remote peers.
fn options() -> ContextOptions {
    ContextOptions {
        discovery_range: Some(DiscoveryRange::Off),
        ..ContextOptions::default()
    }
}

fn context() -> Context {
    Context::with_options(options()).unwrap()
}

fn subscribe(
    node: &Node,
    topic: &str,
    group: Option<&CallbackGroup>,
    callback: impl FnMut(Sample<UInt64>) + Send + 'static,
) -> Subscription<UInt64> {
    let mut options = SubscriptionOptions::new(topic.keep_last(100));
    if let Some(group) = group {
        options = options.callback_group(group);
    }
    node.create_subscription(options, callback).unwrap()
}

fn publish(publisher: &Publisher<UInt64>, data: u64) {
    publisher.publish_owned(UInt64 { data }).unwrap();
}

/// Cancels the spin on drop, also if the test fails.
struct CancelOnDrop(ExecutorHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Spins on another thread while `act` runs.
fn with_spinning(executor: &MultiThreadedExecutor, act: impl FnOnce()) {
    thread::scope(|scope| {
        let spun = scope.spawn(|| executor.spin());
        let cancel = CancelOnDrop(executor.handle());
        act();
        drop(cancel);
        spun.join().unwrap().unwrap();
    });
}

#[test]
fn groups_run_in_parallel_but_one_exclusive_group_does_not() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let (left, right) = (
        node.create_callback_group(CallbackGroupType::MutuallyExclusive),
        node.create_callback_group(CallbackGroupType::MutuallyExclusive),
    );
    // The callbacks wait for each other: run one after the other, they would wait
    // forever.
    let meet = Arc::new(Barrier::new(2));
    let (done, met) = mpsc::channel();
    let waiting = |group: &CallbackGroup| {
        let (meet, done) = (meet.clone(), done.clone());
        subscribe(&node, "meet", Some(group), move |_| {
            meet.wait();
            done.send(()).unwrap();
        })
    };
    let _both = (waiting(&left), waiting(&right));
    // These share a group: never two at once.
    let inside = Arc::new(AtomicBool::new(false));
    let (count, overlaps) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let shared: Vec<_> = (0..3)
        .map(|_| {
            let (inside, count, overlaps) = (inside.clone(), count.clone(), overlaps.clone());
            subscribe(&node, "alone", None, move |_| {
                if inside.swap(true, Ordering::SeqCst) {
                    overlaps.fetch_add(1, Ordering::SeqCst);
                }
                thread::yield_now();
                inside.store(false, Ordering::SeqCst);
                count.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    let publisher = node.create_publisher("meet".keep_last(100)).unwrap();
    let alone = node.create_publisher("alone".keep_last(100)).unwrap();
    let executor = MultiThreadedExecutor::new(&context, 4);
    executor.add_node(&node).unwrap();
    with_spinning(&executor, || {
        for n in 0..50 {
            publish(&publisher, n);
            publish(&alone, n);
            for _ in 0..2 {
                met.recv_timeout(TIMEOUT).unwrap();
            }
        }
        let end = Instant::now() + TIMEOUT;
        while count.load(Ordering::SeqCst) < 150 && Instant::now() < end {
            thread::yield_now();
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 150);
    assert_eq!(overlaps.load(Ordering::SeqCst), 0);
    drop(shared);
}

#[test]
fn a_reentrant_group_runs_its_callbacks_in_parallel() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let group = node.create_callback_group(CallbackGroupType::Reentrant);
    let meet = Arc::new(Barrier::new(3));
    let (done, met) = mpsc::channel();
    let all: Vec<_> = (0..2)
        .map(|_| {
            let (meet, done) = (meet.clone(), done.clone());
            subscribe(&node, "t", Some(&group), move |_| {
                meet.wait();
                done.send(()).unwrap();
            })
        })
        .collect();
    let timer_meet = meet.clone();
    let timer = TimerOptions::new(SOON).one_shot().callback_group(&group);
    let _timer = node
        .create_timer(timer, move || {
            timer_meet.wait();
        })
        .unwrap();
    let publisher = node.create_publisher("t".keep_last(10)).unwrap();
    let executor = MultiThreadedExecutor::new(&context, 3);
    executor.add_node(&node).unwrap();
    publish(&publisher, 1);
    with_spinning(&executor, || {
        for _ in 0..2 {
            met.recv_timeout(TIMEOUT).unwrap();
        }
    });
    drop(all);
}

/// A group that always has work does not starve the others.
#[test]
fn a_group_that_is_always_ready_alternates_with_the_others() {
    let context = context();
    let (busy, calm) = (
        context.create_node("busy").unwrap(),
        context.create_node("calm").unwrap(),
    );
    let again = busy.create_publisher("busy".keep_last(100)).unwrap();
    let feed = again.clone();
    let _busy: Vec<_> = (0..2)
        .map(|_| {
            let again = again.clone();
            subscribe(&busy, "busy", None, move |sample| {
                publish(&again, sample.data)
            })
        })
        .collect();
    let (done, finished) = mpsc::channel();
    let _calm = subscribe(&calm, "calm", None, move |sample| {
        done.send(sample.data).unwrap();
    });
    let publisher = calm.create_publisher("calm".keep_last(100)).unwrap();
    for threads in [1, 2] {
        let executor = MultiThreadedExecutor::new(&context, threads);
        executor.add_node(&busy).unwrap();
        executor.add_node(&calm).unwrap();
        publish(&feed, 1);
        with_spinning(&executor, || {
            for n in 0..100 {
                publish(&publisher, n);
                assert_eq!(finished.recv_timeout(TIMEOUT), Ok(n), "{threads} threads");
            }
        });
    }
}

/// A queue that is never empty does not starve callbacks that waited at the gate of
/// their group.
#[test]
fn a_callback_that_waited_for_its_group_is_not_starved() {
    let context = context();
    let (busy, calm) = (
        context.create_node("busy").unwrap(),
        context.create_node("calm").unwrap(),
    );
    let reentrant = busy.create_callback_group(CallbackGroupType::Reentrant);
    let runs = Arc::new(AtomicUsize::new(0));
    let _busy: Vec<_> = (0..4)
        .map(|n| {
            let topic = format!("busy{n}");
            let again = busy
                .create_publisher(topic.as_str().keep_last(100))
                .unwrap();
            let (feed, runs) = (again.clone(), runs.clone());
            let fed = subscribe(&busy, &topic, Some(&reentrant), move |sample| {
                runs.fetch_add(1, Ordering::Relaxed);
                publish(&again, sample.data);
            });
            publish(&feed, 1);
            fed
        })
        .collect();
    let (done, finished) = mpsc::channel();
    let _calm: Vec<_> = (0..3)
        .map(|who| {
            let (done, runs) = (done.clone(), runs.clone());
            subscribe(&calm, "calm", None, move |_| {
                // Meanwhile the other thread works through the queue, and tasks of
                // this group find the gate closed.
                let enough = runs.load(Ordering::Relaxed) + 100;
                while runs.load(Ordering::Relaxed) < enough {
                    thread::yield_now();
                }
                done.send(who).unwrap();
            })
        })
        .collect();
    let publisher = calm.create_publisher("calm".keep_last(100)).unwrap();
    let executor = MultiThreadedExecutor::new(&context, 2);
    executor.add_node(&busy).unwrap();
    executor.add_node(&calm).unwrap();
    with_spinning(&executor, || {
        for n in 0..10 {
            publish(&publisher, n);
            let mut all = [(); 3].map(|()| finished.recv_timeout(TIMEOUT).unwrap());
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2]);
        }
    });
}

#[test]
fn a_timer_cancelled_while_it_waits_for_its_group_does_not_tick() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let (entered, inside) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let _holder = subscribe(&node, "hold", None, move |_| {
        entered.send(()).unwrap();
        let _ = released.lock().unwrap().recv_timeout(TIMEOUT);
    });
    let publisher = node.create_publisher("hold".keep_last(1)).unwrap();
    let free = node.create_callback_group(CallbackGroupType::Reentrant);
    let executor = MultiThreadedExecutor::new(&context, 2);
    executor.add_node(&node).unwrap();
    with_spinning(&executor, || {
        publish(&publisher, 1);
        inside.recv_timeout(TIMEOUT).unwrap();
        let timer = node
            .create_timer(TimerOptions::new(SOON).one_shot(), || ())
            .unwrap();
        // When a later timer has ticked, this one waits at the gate.
        let (tick, ticked) = mpsc::channel();
        let later = TimerOptions::new(2 * SOON).one_shot().callback_group(&free);
        let _later = node.create_timer(later, move || tick.send(()).unwrap());
        ticked.recv_timeout(TIMEOUT).unwrap();
        timer.cancel();
        release.send(()).unwrap();
        publish(&publisher, 2);
        inside.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(timer.ticks(), 0);
        release.send(()).unwrap();
    });
}

#[test]
fn timers_tick_on_any_thread_and_start_while_all_threads_sleep() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let executor = MultiThreadedExecutor::new(&context, 2);
    executor.add_node(&node).unwrap();
    let (tick, ticked) = mpsc::channel();
    with_spinning(&executor, || {
        // Until now no thread had a reason to wake up.
        let timer = node
            .create_timer(SOON, move || tick.send(()).unwrap())
            .unwrap();
        for _ in 0..10 {
            ticked.recv_timeout(TIMEOUT).unwrap();
        }
        timer.cancel();
    });
}

#[test]
fn a_timer_created_on_another_thread_wakes_the_sleeping_leader() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    let handle = executor.handle();
    let spun = thread::spawn(move || executor.spin());
    while !handle.is_spinning() {
        thread::yield_now();
    }
    let (tick, ticked) = mpsc::channel();
    let _timer = node
        .create_timer(SOON, move || {
            let _ = tick.send(());
        })
        .unwrap();
    for _ in 0..3 {
        ticked.recv_timeout(TIMEOUT).unwrap();
    }
    handle.cancel();
    spun.join().unwrap();
    assert!(!handle.is_spinning());
}

/// `cancel` before or during the wait: the next or the current one returns, once.
#[test]
fn cancel_ends_the_wait_of_spin_once() {
    let context = context();
    let executor = SingleThreadedExecutor::new(&context);
    executor
        .add_node(&context.create_node("n").unwrap())
        .unwrap();
    let handle = executor.handle();
    handle.cancel();
    assert!(!executor.spin_once(Duration::MAX), "cancelled before");
    let begun = Instant::now();
    assert!(!executor.spin_once(SOON));
    assert!(begun.elapsed() >= SOON, "one cancel ends one wait");
    let spun = thread::spawn(move || executor.spin_once(Duration::MAX));
    while !handle.is_spinning() {
        thread::yield_now();
    }
    handle.cancel();
    assert!(!spun.join().unwrap());
    assert!(!handle.is_spinning());
}

#[test]
fn a_callback_cancels_the_spin_while_nodes_are_added_and_removed() {
    let context = context();
    let (first, second) = (
        context.create_node("a").unwrap(),
        context.create_node("b").unwrap(),
    );
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&first).unwrap();
    let handle = executor.handle();
    let (count, joined) = (Arc::new(AtomicUsize::new(0)), second.clone());
    let ticks = count.clone();
    let from_first = handle.clone();
    let _timer = first
        .create_timer(SOON, move || {
            if ticks.fetch_add(1, Ordering::Relaxed) == 2 {
                from_first.add_node(&joined).unwrap();
            }
        })
        .unwrap();
    let from_second = handle.clone();
    let _other = second
        .create_timer(SOON, move || from_second.cancel())
        .unwrap();
    executor.spin();
    assert!(count.load(Ordering::Relaxed) >= 3);
    let twice = executor.add_node(&second).unwrap_err();
    assert!(
        matches!(twice, ExecutorError::AlreadyAdded { .. }),
        "{twice}"
    );
    assert!(executor.remove_node(&second));
    assert!(!executor.remove_node(&second));
    let foreign_node = Context::with_options(options()).unwrap();
    let foreign_node = foreign_node.create_node("foreign_node").unwrap();
    let other = executor.add_node(&foreign_node).unwrap_err();
    assert!(
        matches!(other, ExecutorError::OtherContext { .. }),
        "{other}"
    );
}

#[test]
fn an_executor_is_spun_by_one_caller_at_a_time() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let executor = MultiThreadedExecutor::new(&context, 2);
    executor.add_node(&node).unwrap();
    with_spinning(&executor, || {
        while !executor.handle().is_spinning() {
            thread::yield_now();
        }
        let twice = executor.spin().unwrap_err();
        assert!(matches!(twice, ExecutorError::AlreadySpinning), "{twice}");
    });
}

#[test]
fn a_timer_that_is_always_due_alternates_with_other_callbacks() {
    let context = context();
    let node = context.create_node("one_at_a_time").unwrap();
    let finished = Arc::new(AtomicUsize::new(0));
    let count = finished.clone();
    let _subscription = subscribe(&node, "samples", None, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let _timer = node.create_timer(Duration::from_nanos(1), || {}).unwrap();
    let publisher = node
        .create_publisher::<UInt64>("samples".keep_last(100))
        .unwrap();
    let publish_some = || (0..5).for_each(|data| publish(&publisher, data));
    publish_some();
    // Each call creates its own executor.
    for _ in 0..10 {
        assert!(node.spin_once(TIMEOUT));
    }
    assert_eq!(finished.load(Ordering::Relaxed), 5);
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    publish_some();
    for _ in 0..10 {
        assert!(executor.spin_once(TIMEOUT));
    }
    assert_eq!(finished.load(Ordering::Relaxed), 10);
}

#[test]
fn spin_all_repeats_until_nothing_is_ready() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let publisher: Publisher<UInt64> = node.create_publisher("t".keep_last(10)).unwrap();
    let again = publisher.clone();
    let _echo = subscribe(&node, "t", None, move |sample| {
        if sample.data > 0 {
            publish(&again, sample.data - 1);
        }
    });
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    publish(&publisher, 200);
    assert_eq!(executor.spin_all(TIMEOUT), 201);
    assert_eq!(executor.spin_all(TIMEOUT), 0);
}

#[test]
fn the_panic_policy_decides_what_a_panic_ends() {
    let context = context();
    let (bad, good) = (
        context.create_node("bad").unwrap(),
        context.create_node("good").unwrap(),
    );
    let publisher: Publisher<UInt64> = good.create_publisher("t".keep_last(10)).unwrap();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let note = |node: &Node, who: &'static str, panics: bool| {
        let calls = calls.clone();
        subscribe(node, "t", None, move |_| {
            calls.lock().unwrap().push(who);
            assert!(!panics, "as it must");
        })
    };
    let _all = (
        note(&bad, "panics", true),
        note(&bad, "its sibling", false),
        note(&good, "good", false),
    );
    let run = |policy| {
        let executor = SingleThreadedExecutor::with_panic_policy(&context, policy);
        executor.add_node(&bad).unwrap();
        executor.add_node(&good).unwrap();
        for n in 0..2 {
            publish(&publisher, n);
            executor.spin_all(TIMEOUT);
        }
        drop(executor);
        std::mem::take(&mut *calls.lock().unwrap())
    };
    let count = |calls: &[&str], who: &str| calls.iter().filter(|c| **c == who).count();
    let of_callback = run(PanicPolicy::Callback);
    let counts = ["panics", "its sibling", "good"].map(|who| count(&of_callback, who));
    assert_eq!(counts, [1, 2, 2]);
    let of_node = run(PanicPolicy::Node);
    let counts = ["panics", "its sibling", "good"].map(|who| count(&of_node, who));
    assert_eq!((counts[0], counts[2]), (1, 2));
    assert!(counts[1] <= 1, "its node left the executor");
    let ended = catch_unwind(AssertUnwindSafe(|| run(PanicPolicy::Process)));
    let payload = ended.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"as it must"));
}

fn panic_on_some_thread() {
    panic!("on some thread");
}

#[test]
fn a_panic_on_any_thread_ends_the_spin_of_all_threads() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let _timer = node
        .create_timer(TimerOptions::new(SOON).one_shot(), panic_on_some_thread)
        .unwrap();
    let executor = MultiThreadedExecutor::new(&context, 3);
    executor.add_node(&node).unwrap();
    let ended = catch_unwind(AssertUnwindSafe(|| executor.spin()));
    let payload = ended.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"on some thread"));
}

/// A callback that panics, another one of its node, and one of another node.
struct PanicFixture {
    context: Context,
    bad: Node,
    good: Node,
    publisher: Publisher<UInt64>,
    /// Number of calls of each, in that order.
    counts: Arc<[AtomicUsize; 3]>,
    _all: [Subscription<UInt64>; 3],
}

impl PanicFixture {
    fn new() -> Self {
        let context = context();
        let (bad, good) = (
            context.create_node("bad").unwrap(),
            context.create_node("good").unwrap(),
        );
        let counts: Arc<[AtomicUsize; 3]> = Arc::default();
        let note = |node: &Node, who: usize| {
            let counts = counts.clone();
            subscribe(node, "t", None, move |_| {
                counts[who].fetch_add(1, Ordering::Relaxed);
                assert_ne!(who, 0, "as it must");
            })
        };
        Self {
            publisher: good.create_publisher("t".keep_last(10)).unwrap(),
            _all: [note(&bad, 0), note(&bad, 1), note(&good, 2)],
            counts,
            context,
            bad,
            good,
        }
    }

    fn counts(&self) -> [usize; 3] {
        [0, 1, 2].map(|who| self.counts[who].load(Ordering::Relaxed))
    }

    /// Publishes during and after the panic, and checks the calls.
    fn check_policy(&self, policy: PanicPolicy) {
        let until = |what: &str, done: &dyn Fn() -> bool| {
            let begin = Instant::now();
            while !done() {
                assert!(begin.elapsed() < TIMEOUT, "{what}: {:?}", self.counts());
                thread::yield_now();
            }
        };
        publish(&self.publisher, 0);
        until("called", &|| self.counts()[0] == 1);
        for n in 1..=2 {
            publish(&self.publisher, n);
        }
        until("the other node is called", &|| self.counts()[2] == 3);
        match policy {
            PanicPolicy::Callback => until("its sibling", &|| self.counts()[1] == 3),
            _ => assert!(self.counts()[1] <= 1, "its node has left"),
        }
        assert_eq!(self.counts()[0], 1, "called no more");
    }
}

#[test]
fn the_panic_policy_holds_in_multi_threaded_and_isolated_executors() {
    for policy in [PanicPolicy::Callback, PanicPolicy::Node] {
        let scene = PanicFixture::new();
        let crowd = MultiThreadedExecutor::with_panic_policy(&scene.context, 3, policy);
        crowd.add_node(&scene.bad).unwrap();
        crowd.add_node(&scene.good).unwrap();
        with_spinning(&crowd, || scene.check_policy(policy));

        let scene = PanicFixture::new();
        let apart = IsolatedExecutor::with_panic_policy(&scene.context, policy);
        let settings = ThreadSettings::default;
        let handle = apart.add_node(&scene.bad, settings()).unwrap();
        let of_good = apart.add_node(&scene.good, settings()).unwrap();
        thread::scope(|scope| {
            let spun = scope.spawn(|| apart.spin());
            let cancels = [CancelOnDrop(handle), CancelOnDrop(of_good)];
            scene.check_policy(policy);
            drop(cancels);
            spun.join().unwrap().unwrap();
        });
    }
}

#[test]
fn isolated_nodes_do_not_wait_for_each_other() {
    let context = context();
    let (slow, quick) = (
        context.create_node("slow").unwrap(),
        context.create_node("quick").unwrap(),
    );
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let _slow = slow
        .create_timer(TimerOptions::new(SOON).one_shot(), move || {
            held.lock().unwrap().recv_timeout(TIMEOUT).unwrap();
        })
        .unwrap();
    let (done, finished) = mpsc::channel();
    let _quick = subscribe(&quick, "t", None, move |sample| {
        done.send(sample.data).unwrap();
    });
    let publisher = quick.create_publisher("t".keep_last(10)).unwrap();
    let executor = IsolatedExecutor::new(&context);
    let settings = ThreadSettings::default;
    executor.add_node(&slow, settings()).unwrap();
    executor.add_node(&quick, settings()).unwrap();
    let twice = executor.add_node(&quick, settings()).unwrap_err();
    assert!(
        matches!(twice, ExecutorError::AlreadyAdded { .. }),
        "{twice}"
    );
    // A callback group can also have its own thread.
    let group = quick.create_callback_group(CallbackGroupType::MutuallyExclusive);
    let (seen, threads) = mpsc::channel();
    let _other = subscribe(&quick, "t", Some(&group), move |_| {
        seen.send(thread::current().id()).unwrap();
    });
    thread::scope(|scope| {
        let spun = scope.spawn(|| executor.spin());
        executor.add_callback_group(&group, settings()).unwrap();
        for n in 0..10 {
            publish(&publisher, n);
            assert_eq!(finished.recv_timeout(TIMEOUT), Ok(n));
            threads.recv_timeout(TIMEOUT).unwrap();
        }
        release.send(()).unwrap();
        executor.cancel();
        spun.join().unwrap().unwrap();
    });
}

#[test]
fn a_thread_without_its_settings_ends_every_spin() {
    let context = context();
    let (plain, picky) = (
        context.create_node("plain").unwrap(),
        context.create_node("picky").unwrap(),
    );
    let executor = IsolatedExecutor::new(&context);
    executor
        .add_node(&plain, ThreadSettings::default())
        .unwrap();
    let nowhere = ThreadSettings {
        cpus: Some(CpuList::new([1_000]).unwrap()),
        ..ThreadSettings::default()
    };
    executor.add_node(&picky, nowhere).unwrap();
    for _ in 0..2 {
        let refused = executor.spin().unwrap_err();
        assert!(matches!(refused, ExecutorError::Thread(_)), "{refused}");
    }
}

#[test]
fn a_node_moves_from_a_multi_threaded_to_a_single_threaded_executor() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let publisher: Publisher<Empty> = node.create_publisher("t".keep_last(100)).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let all: Vec<_> = (0..4)
        .map(|_| {
            let count = count.clone();
            node.create_subscription("t".keep_last(100), move |_: Sample<Empty>| {
                count.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap()
        })
        .collect();
    for round in 1..=20 {
        let crowd = MultiThreadedExecutor::new(&context, 3);
        crowd.add_node(&node).unwrap();
        with_spinning(&crowd, || publisher.publish_owned(Empty {}).unwrap());
        drop(crowd);
        let one = SingleThreadedExecutor::new(&context);
        one.add_node(&node).unwrap();
        one.spin_until(|| count.load(Ordering::Relaxed) == round * 4, TIMEOUT);
        assert_eq!(count.load(Ordering::Relaxed), round * 4);
    }
    drop(all);
}

#[test]
fn spinning_an_executor_from_its_own_callback_is_an_error() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let crowd = Arc::new(MultiThreadedExecutor::new(&context, 2));
    let apart = Arc::new(IsolatedExecutor::new(&context));
    let (refuse, refused) = mpsc::channel();
    // Weak: an owning reference would form a cycle.
    let (inner_crowd, inner_apart) = (Arc::downgrade(&crowd), Arc::downgrade(&apart));
    let _own = subscribe(&node, "t", None, move |sample| {
        let spun = match sample.data {
            0 => inner_crowd.upgrade().unwrap().spin(),
            _ => inner_apart.upgrade().unwrap().spin(),
        };
        refuse.send(spun.unwrap_err().to_string()).unwrap();
    });
    let publisher = node.create_publisher("t".keep_last(10)).unwrap();
    let hint = "give it more threads, or create another executor";
    crowd.add_node(&node).unwrap();
    with_spinning(&crowd, || {
        for _ in 0..2 {
            publish(&publisher, 0);
            let message = refused.recv_timeout(TIMEOUT).unwrap();
            assert!(message.contains(hint), "{message}");
        }
    });
    apart.add_node(&node, ThreadSettings::default()).unwrap();
    thread::scope(|scope| {
        let spun = scope.spawn(|| apart.spin());
        for _ in 0..2 {
            publish(&publisher, 1);
            let message = refused.recv_timeout(TIMEOUT).unwrap();
            assert!(message.contains(hint), "{message}");
        }
        apart.cancel();
        spun.join().unwrap().unwrap();
    });
}

#[test]
fn a_group_is_added_once_and_only_in_its_own_context() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let group = node.create_callback_group(CallbackGroupType::Reentrant);
    let foreign_node = self::context().create_node("foreign_node").unwrap();
    let foreign_group = foreign_node.create_callback_group(CallbackGroupType::Reentrant);
    let is_twice = |error: ExecutorError| {
        assert!(
            matches!(&error, ExecutorError::AlreadyAdded { entity } if entity.contains("group of node \"/n\"")),
            "{error}"
        );
        assert!(error.to_string().contains("add it once"), "{error}");
    };
    let is_strange = |error: ExecutorError| {
        assert_eq!(
            error.to_string(),
            "node \"/foreign_node\" belongs to another context than the executor; create both from the same one"
        );
    };
    let single = SingleThreadedExecutor::new(&context);
    single.add_callback_group(&group).unwrap();
    is_twice(single.add_callback_group(&group).unwrap_err());
    is_strange(single.add_callback_group(&foreign_group).unwrap_err());
    let crowd = MultiThreadedExecutor::new(&context, 2);
    crowd.add_callback_group(&group).unwrap();
    is_twice(crowd.add_callback_group(&group).unwrap_err());
    let twice = crowd.handle();
    twice.add_node(&node).unwrap();
    let again = twice.add_node(&node).unwrap_err();
    assert!(
        matches!(again, ExecutorError::AlreadyAdded { .. }),
        "{again}"
    );
    let apart = IsolatedExecutor::new(&context);
    let settings = ThreadSettings::default;
    apart.add_callback_group(&group, settings()).unwrap();
    is_twice(apart.add_callback_group(&group, settings()).unwrap_err());
    is_strange(
        apart
            .add_callback_group(&foreign_group, settings())
            .unwrap_err(),
    );
}

//! Several threads and one context: no lost wake-up, no deadlock.
#![allow(clippy::disallowed_methods, reason = "tests real threads")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{PublisherOptions, SubscriptionOptions, event_handler::EndpointEvent};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Far above the duration of a wake-up, far below the time-out after which a
/// sleeper with a lost wake-up continues.
const WAKE_UP_LIMIT: Duration = Duration::from_secs(2);

fn context(domain: u32) -> Context {
    Context::with_options(ContextOptions::local(domain)).unwrap()
}

fn text(n: usize) -> Text {
    Text {
        data: n.to_string(),
    }
}

/// Ping-pong of a number between two nodes, each spun by its own thread.
fn ping_pong(a: &Node, b: &Node, rounds: usize) {
    let done = AtomicBool::new(false);
    let forth = a.create_publisher::<Text>("forth".keep_last(10)).unwrap();
    let back = b.create_publisher::<Text>("back".keep_last(10)).unwrap();
    let _b = b.create_subscription::<Text>("forth".keep_last(10), move |sample| {
        back.publish(&sample).unwrap();
    });
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, next) = (count.clone(), forth.clone());
    let to_a = a
        .create_subscription::<Text>("back".keep_last(10), move |_| {
            let n = counted.fetch_add(1, Ordering::Relaxed) + 1;
            if n < rounds {
                next.publish(&text(n)).unwrap();
            }
        })
        .unwrap();
    assert!(forth.wait_for_matched(1, TIMEOUT));
    assert!(to_a.wait_for_matched(1, TIMEOUT));
    std::thread::scope(|scope| {
        scope.spawn(|| b.spin_until(|| done.load(Ordering::Acquire), TIMEOUT));
        forth.publish(&text(0)).unwrap();
        let all = || count.load(Ordering::Relaxed) == rounds;
        let met = a.spin_until(all, TIMEOUT);
        done.store(true, Ordering::Release);
        forth.publish(&text(0)).unwrap();
        assert!(met, "{count:?} of {rounds} rounds");
    });
}

#[test]
fn two_executors_of_one_context_wake_each_other() {
    let context = context(170);
    let (a, b) = (
        context.create_node("a").unwrap(),
        context.create_node("b").unwrap(),
    );
    ping_pong(&a, &b, 3000);
}

#[test]
fn two_contexts_of_one_process_communicate_over_udp() {
    let (a, b) = (context(171), context(171));
    ping_pong(
        &a.create_node("a").unwrap(),
        &b.create_node("b").unwrap(),
        500,
    );
}

#[test]
fn a_thread_that_takes_is_served_while_another_spins() {
    let context = context(172);
    let (a, b) = (
        context.create_node("a").unwrap(),
        context.create_node("b").unwrap(),
    );
    let publisher = a.create_publisher::<Text>("t".keep_last(10)).unwrap();
    let subscription = b
        .create_polled_subscription::<Text>("t".keep_last(10))
        .unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| a.spin_until(|| done.load(Ordering::Acquire), TIMEOUT));
        let (ask, asked) = mpsc::channel();
        scope.spawn(move || {
            for n in asked {
                publisher.publish(&text(n)).unwrap();
            }
        });
        let started = Instant::now();
        for n in 0..1000 {
            ask.send(n).unwrap();
            let sample = subscription.take_timeout(TIMEOUT);
            assert_eq!(*sample.expect("what was published"), text(n));
        }
        // 1000 polls of 5 ms would take longer.
        assert!(started.elapsed() < Duration::from_secs(4));
        drop(ask);
        done.store(true, Ordering::Release);
        context.shutdown();
    });
}

#[test]
fn threads_that_take_from_one_subscription_share_its_samples() {
    let context = context(173);
    let node = context.create_node("a").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(100)).unwrap();
    let subscription = node
        .create_polled_subscription::<Text>("t".keep_last(100))
        .unwrap();
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let subscription = subscription.clone();
            let taken = &taken;
            scope.spawn(move || {
                while taken.load(Ordering::Acquire) < 90 {
                    if subscription
                        .take_timeout(Duration::from_millis(200))
                        .is_some()
                    {
                        taken.fetch_add(1, Ordering::AcqRel);
                    }
                }
            });
        }
        for n in 0..90 {
            publisher.publish(&text(n)).unwrap();
        }
    });
    assert_eq!(taken.load(Ordering::Acquire), 90);
}

#[test]
fn a_wait_ends_at_once_when_another_thread_meets_the_condition() {
    let context = context(174);
    let node = context.create_node("a").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let started = Instant::now();
            assert!(publisher.wait_for_matched(1, TIMEOUT));
            started.elapsed()
        });
        // Let it fall asleep in the poll of the sockets.
        let (_hold, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(50));
        let subscription = node
            .create_polled_subscription::<Text>("t".keep_last(10))
            .unwrap();
        assert!(waiting.join().unwrap() < WAKE_UP_LIMIT);
        drop(subscription);
    });
}

#[test]
fn a_writer_blocked_by_back_pressure_is_woken_by_the_taker() {
    let context = context(175);
    let node = context.create_node("a").unwrap();
    let mut qos = QosProfile::default().keep_all();
    qos.resource_limits.max_samples = Some(1);
    qos.max_blocking_time = Some(TIMEOUT);
    let publisher = node.create_publisher::<Text>("t".qos(&qos)).unwrap();
    let subscription = node
        .create_polled_subscription::<Text>("t".qos(&qos))
        .unwrap();
    publisher.publish(&text(0)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let started = Instant::now();
            publisher.publish(&text(1)).unwrap();
            started.elapsed()
        });
        let (_hold, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(50));
        assert_eq!(*subscription.take().unwrap(), text(0));
        assert!(waiting.join().unwrap() < WAKE_UP_LIMIT);
    });
    assert_eq!(*subscription.take().unwrap(), text(1));
}

#[test]
fn a_busy_callback_does_not_stop_the_protocol() {
    let (a, b) = (context(176), context(176));
    let (talker, listener) = (
        a.create_node("talker").unwrap(),
        b.create_node("listener").unwrap(),
    );
    let publisher = talker.create_publisher::<Text>("t".keep_last(10)).unwrap();
    let (sender, receiver) = mpsc::channel::<bool>();
    let (begin, began) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let _subscription = listener.create_subscription::<Text>("t".keep_last(10), move |_| {
        begin.send(()).unwrap();
        // Stands for a computation that occupies the thread.
        let acknowledged = receiver.lock().unwrap().recv_timeout(TIMEOUT);
        assert_eq!(acknowledged, Ok(true));
    });
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    std::thread::scope(|scope| {
        let spinning = scope.spawn(|| listener.spin_once(TIMEOUT));
        publisher.publish(&text(0)).unwrap();
        began.recv_timeout(TIMEOUT).unwrap();
        publisher.publish(&text(1)).unwrap();
        sender.send(publisher.wait_for_all_acked(TIMEOUT)).unwrap();
        assert!(spinning.join().unwrap());
    });
}

#[test]
fn callbacks_that_are_always_ready_do_not_starve_the_network() {
    let (a, b) = (context(177), context(177));
    let (talker, listener) = (
        a.create_node("talker").unwrap(),
        b.create_node("listener").unwrap(),
    );
    let publisher = talker
        .create_publisher::<Text>("stop".keep_last(10))
        .unwrap();
    let round = listener
        .create_publisher::<Text>("round".keep_last(10))
        .unwrap();
    let next = round.clone();
    let _round = listener.create_subscription::<Text>("round".keep_last(10), move |sample| {
        next.publish(&sample).unwrap();
    });
    let received = Arc::new(AtomicBool::new(false));
    let sink = received.clone();
    let _stop = listener.create_subscription::<Text>("stop".keep_last(10), move |_| {
        sink.store(true, Ordering::Release);
    });
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    round.publish(&text(0)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| publisher.publish(&text(0)).unwrap());
        assert!(listener.spin_until(|| received.load(Ordering::Acquire), TIMEOUT));
    });
}

#[test]
fn spinning_without_waiting_still_receives() {
    let (a, b) = (context(178), context(178));
    let (talker, listener) = (
        a.create_node("talker").unwrap(),
        b.create_node("listener").unwrap(),
    );
    let publisher = talker.create_publisher::<Text>("t".keep_last(10)).unwrap();
    let received = Arc::new(AtomicUsize::new(0));
    let sink = received.clone();
    let _subscription = listener.create_subscription::<Text>("t".keep_last(10), move |_| {
        sink.fetch_add(1, Ordering::Relaxed);
    });
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    let executor = SingleThreadedExecutor::new(&b);
    executor.add_node(&listener).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    for n in 1..=20 {
        publisher.publish(&text(n)).unwrap();
        while received.load(Ordering::Relaxed) < n {
            match n % 2 {
                0 => executor.spin_some() > 0,
                _ => executor.spin_once(Duration::ZERO),
            };
            assert!(Instant::now() < deadline, "deaf at {n}");
        }
    }
}

#[test]
fn a_callback_may_create_and_drop_all_entities() {
    let context = context(179);
    let node = context.create_node("a").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    let held: Arc<Mutex<Vec<Box<dyn Send>>>> = Arc::default();
    let (own, sink) = (node.clone(), held.clone());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let subscription = node
        .create_subscription::<Text>("t".keep_last(10), move |_| {
            let mut held = sink.lock().unwrap();
            held.clear();
            held.push(Box::new(
                own.create_publisher::<Text>("t".keep_last(10)).unwrap(),
            ));
            held.push(Box::new(
                own.create_subscription::<Text>("t".keep_last(10), |_| {}),
            ));
            held.push(Box::new(own.create_timer(Duration::from_secs(1), || {})));
            held.push(Box::new(own.context().create_node("inner").unwrap()));
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    for n in 1..=20 {
        publisher.publish(&text(n)).unwrap();
        assert!(node.spin_until(|| count.load(Ordering::Relaxed) == n, TIMEOUT));
    }
    // Drops itself from its own callback.
    let slot: Arc<Mutex<Option<Subscription<Text>>>> = Arc::default();
    let (inner, gone) = (slot.clone(), count.clone());
    *slot.lock().unwrap() = node
        .create_subscription::<Text>("t".keep_last(10), move |_| {
            drop(inner.lock().unwrap().take());
            gone.fetch_add(100, Ordering::Relaxed);
        })
        .ok();
    publisher.publish(&text(0)).unwrap();
    assert!(node.spin_until(|| count.load(Ordering::Relaxed) == 121, TIMEOUT));
    drop(subscription);
    held.lock().unwrap().clear();
    assert_eq!(publisher.matched_count(), 0);
}

#[test]
fn a_callback_may_spin_its_own_node() {
    let context = context(180);
    let node = context.create_node("a").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    let (count, other) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, within, own) = (count.clone(), other.clone(), node.clone());
    let _nested = node.create_subscription::<Text>("t".keep_last(10), move |_| {
        let before = within.load(Ordering::Relaxed);
        // A timer ticks in the nested spin; this callback does not run again.
        let ticked = || within.load(Ordering::Relaxed) > before + 1;
        assert!(own.spin_until(ticked, TIMEOUT));
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let _timer = node.create_timer(Duration::from_millis(2), move || {
        other.fetch_add(1, Ordering::Relaxed);
    });
    for n in 0..5 {
        publisher.publish(&text(n)).unwrap();
    }
    // All five run, so the node returned to the outer spin.
    assert!(node.spin_until(|| count.load(Ordering::Relaxed) == 5, TIMEOUT));
}

#[test]
fn event_callbacks_may_publish_create_and_spin() {
    let context = context(181);
    let node = context.create_node("a").unwrap();
    let matches = Arc::new(AtomicUsize::new(0));
    let (counted, own) = (matches.clone(), node.clone());
    let options = PublisherOptions::new("t".keep_last(10)).on_event(move |event| {
        if let EndpointEvent::Matched { change: 1, .. } = event {
            let other = own.create_publisher::<Text>("t".keep_last(10)).unwrap();
            other.publish(&text(1)).unwrap();
            own.spin_once(Duration::ZERO);
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let _publisher = node.create_publisher::<Text>(options).unwrap();
    let received = Arc::new(AtomicUsize::new(0));
    let sink = received.clone();
    let listening = SubscriptionOptions::new("t".keep_last(10));
    let _subscription = node
        .create_subscription(listening, move |_: Sample<Text>| {
            sink.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    let both = || matches.load(Ordering::Relaxed) == 1 && received.load(Ordering::Relaxed) == 1;
    assert!(node.spin_until(both, TIMEOUT));
}

#[test]
fn a_thread_that_stops_spinning_hands_the_sockets_over() {
    let context = context(182);
    let nodes: Vec<Node> = ["a", "b", "c"]
        .iter()
        .map(|name| context.create_node(*name).unwrap())
        .collect();
    let remote = crate::threads::context(182);
    let talker = remote.create_node("talker").unwrap();
    let publisher = talker.create_publisher::<Text>("t".keep_last(10)).unwrap();
    let counts: Vec<Arc<AtomicUsize>> = nodes.iter().map(|_| Arc::default()).collect();
    let _subscriptions: Vec<_> = nodes
        .iter()
        .zip(&counts)
        .map(|(node, count)| {
            let count = count.clone();
            // Deep enough for a thread that wakes up slowly.
            node.create_subscription::<Text>("t".keep_last(150), move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap()
        })
        .collect();
    assert!(publisher.wait_for_matched(3, TIMEOUT));
    std::thread::scope(|scope| {
        // Each ends its spin at another message; the last message is also handled.
        for (at, (node, count)) in nodes.iter().zip(&counts).enumerate() {
            scope.spawn(move || {
                let enough = || count.load(Ordering::Relaxed) >= (at + 1) * 50;
                assert!(node.spin_until(enough, TIMEOUT), "{at}: {count:?}");
            });
        }
        for n in 0..150 {
            publisher.publish(&text(n)).unwrap();
            assert!(publisher.wait_for_all_acked(TIMEOUT));
        }
    });
}

#[test]
fn shutting_down_ends_every_wait() {
    let context = context(183);
    let (a, b) = (
        context.create_node("a").unwrap(),
        context.create_node("b").unwrap(),
    );
    let publisher = a.create_publisher::<Text>("t".keep_last(10)).unwrap();
    let subscription = b
        .create_polled_subscription::<Text>("u".keep_last(10))
        .unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| a.spin());
        scope.spawn(|| b.spin());
        scope.spawn(|| assert!(!publisher.wait_for_matched(1, TIMEOUT * 10)));
        scope.spawn(|| assert!(subscription.take_timeout(TIMEOUT * 10).is_none()));
        scope.spawn(|| context.graph().wait_until(TIMEOUT * 10, || false));
        let (_hold, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(30));
        context.shutdown();
    });
}

#[test]
fn a_node_returns_to_the_executor_that_still_spins_it() {
    let context = context(184);
    let node = context.create_node("a").unwrap();
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let _subscription = node.create_subscription::<Text>("t".keep_last(10), move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let executor = || SingleThreadedExecutor::new(&context);
    let (first, second, third) = (executor(), executor(), executor());
    first.add_node(&node).unwrap();
    second.add_node(&node).unwrap();
    third.add_node(&node).unwrap();
    // Not in the order in which they started.
    drop(second);
    publisher.publish(&text(0)).unwrap();
    assert!(third.spin_once(TIMEOUT));
    third.remove_node(&node);
    publisher.publish(&text(1)).unwrap();
    assert!(first.spin_once(TIMEOUT));
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[test]
fn a_message_is_sent_although_its_callback_then_blocks() {
    let (near, far) = (context(185), context(185));
    let (node, other) = (
        near.create_node("near").unwrap(),
        far.create_node("far").unwrap(),
    );
    let (sender, receiver) = mpsc::channel();
    let _outside = other.create_subscription::<Text>("t".keep_last(10), move |sample| {
        sender.send(sample.data.clone()).unwrap();
    });
    let publisher = node.create_publisher::<Text>("t".keep_last(10)).unwrap();
    // Its callback blocks after publishing.
    let _local = node.create_subscription::<Text>("t".keep_last(10), |_| {});
    assert!(publisher.wait_for_matched(2, TIMEOUT));
    let answered = Arc::new(AtomicBool::new(false));
    let noted = answered.clone();
    let receiver = Mutex::new(receiver);
    let _asked = node.create_subscription::<Text>("ask".keep_last(10), move |_| {
        publisher.publish(&text(1)).unwrap();
        let answer = receiver.lock().unwrap().recv_timeout(WAKE_UP_LIMIT);
        noted.store(answer.is_ok(), Ordering::Release);
    });
    let ask = node.create_publisher::<Text>("ask".keep_last(10)).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| other.spin_until(|| over.load(Ordering::Acquire), TIMEOUT));
        ask.publish(&text(0)).unwrap();
        let is_answered = || answered.load(Ordering::Acquire);
        let met = node.spin_until(is_answered, TIMEOUT);
        over.store(true, Ordering::Release);
        assert!(met, "in time");
    });
}

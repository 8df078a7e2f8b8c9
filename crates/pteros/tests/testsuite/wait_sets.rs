//! Wait sets, and the descriptor of a polled executor in an external event loop.
#![allow(clippy::disallowed_methods, reason = "other threads cause events")]

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::local::{context, publish};
use pteros::config::DiscoveryRange;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;
use pteros::{executors::ExecutorError, executors::PolledExecutor, wait_set::WaitSet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const TIMEOUT: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(1);
const NOW: Duration = Duration::ZERO;

fn context_in(discovery_range: DiscoveryRange, domain_id: Option<u32>) -> Context {
    let options = ContextOptions {
        discovery_range: Some(discovery_range),
        domain_id,
        ..ContextOptions::default()
    };
    Context::with_options(options).unwrap()
}

#[test]
fn a_wait_returns_ready_entities_until_their_data_is_taken() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let (a, b) = (
        node.create_polled_subscription::<UInt64>("a".keep_last(10))
            .unwrap(),
        node.create_polled_subscription::<UInt64>("b".keep_last(10))
            .unwrap(),
    );
    let (to_a, to_b) = (
        node.create_publisher("a".keep_last(10)).unwrap(),
        node.create_publisher("b".keep_last(10)).unwrap(),
    );
    let mut set = WaitSet::new(&context);
    let (key_a, key_b) = (set.add(&a).unwrap(), set.add(&b).unwrap());
    assert_eq!(set.wait(NOW), []);
    publish(&to_b, 1);
    publish(&to_b, 2);
    assert_eq!(set.wait(TIMEOUT), [key_b]);
    assert!(set.is_ready(key_b) && !set.is_ready(key_a));
    assert_eq!(set.wait(NOW), [key_b], "nobody has taken it");
    assert_eq!(b.take().unwrap().data, 1);
    publish(&to_a, 3);
    assert_eq!(set.wait(TIMEOUT), [key_b, key_a], "one is left, one came");
    assert_eq!(b.take().unwrap().data, 2);
    assert_eq!(a.take().unwrap().data, 3);
    assert_eq!(set.wait(NOW), []);
    // Data that arrived before the entity was added counts as ready.
    assert!(set.remove(key_a));
    assert!(!set.remove(key_a));
    publish(&to_a, 4);
    assert_eq!(set.wait(NOW), []);
    let key_a = set.add(&a).unwrap();
    assert_eq!(set.wait(NOW), [key_a]);
    assert_eq!(a.take().unwrap().data, 4);
    // Outside the set it can be waited for as usual.
    set.remove(key_a);
    publish(&to_a, 5);
    assert_eq!(a.take_timeout(TIMEOUT).unwrap().data, 5);
}

#[test]
fn a_wait_is_woken_by_other_threads_and_timers() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let numbers = node
        .create_polled_subscription::<UInt64>("t".keep_last(10))
        .unwrap();
    let publisher = node.create_publisher("t".keep_last(10)).unwrap();
    let guard = node.create_guard_condition(None, || ());
    let timer = node.create_timer(SOON, || ()).unwrap();
    let mut set = WaitSet::new(&context);
    let (number, guarded, tick) = (
        set.add(&numbers).unwrap(),
        set.add(&guard).unwrap(),
        set.add(&timer).unwrap(),
    );
    assert_eq!(set.wait(TIMEOUT), [tick]);
    // It stays due until it runs.
    assert_eq!(set.wait(NOW), [tick]);
    assert!(set.run(tick));
    assert_eq!(timer.ticks(), 1);
    assert_eq!(set.wait(TIMEOUT), [tick], "the next tick");
    timer.cancel();
    assert_eq!(set.wait(NOW), []);
    thread::scope(|scope| {
        scope.spawn(|| publish(&publisher, 7));
        assert_eq!(set.wait(TIMEOUT), [number]);
        assert_eq!(numbers.take().unwrap().data, 7);
        let trigger = guard.trigger_handle();
        scope.spawn(move || trigger.trigger());
        assert_eq!(set.wait(TIMEOUT), [guarded]);
        assert!(guard.take());
        assert_eq!(set.wait(NOW), []);
    });
    timer.reset();
    assert_eq!(set.wait(TIMEOUT), [tick]);
}

#[test]
fn a_service_and_its_client_share_one_wait_set() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let service = Service::<AddTwoInts>::polled(&node, "add").unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let mut set = WaitSet::new(&context);
    let (asked, answered) = (set.add(&service).unwrap(), set.add(&client).unwrap());
    let mut call = client
        .call_async(&AddTwoIntsRequest { a: 2, b: 3 })
        .unwrap();
    assert_eq!(set.wait(TIMEOUT), [asked]);
    let request = service.take_request().unwrap();
    let sum = request.request().a + request.request().b;
    request.respond(AddTwoIntsResponse { sum }).unwrap();
    assert_eq!(set.wait(TIMEOUT), [answered]);
    assert_eq!(call.take().unwrap().unwrap().sum, 5);
    assert_eq!(set.wait(NOW), []);
    assert!(service.take_request().is_none());
}

#[test]
fn an_entity_in_a_wait_set_leaves_its_executor_and_returns() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let numbers = node
        .create_subscription("t".keep_last(10), move |_: Sample<UInt64>| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    let publisher = node.create_publisher("t".keep_last(10)).unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    let mut set = WaitSet::new(&context);
    let key = set.add(&numbers).unwrap();
    publish(&publisher, 1);
    assert_eq!(executor.spin_some(), 0);
    assert_eq!(set.wait(TIMEOUT), [key]);
    assert!(set.run(key), "its callback, by hand");
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // Also if its node moves to another executor.
    let other = SingleThreadedExecutor::new(&context);
    other.add_node(&node).unwrap();
    publish(&publisher, 2);
    assert_eq!(other.spin_some(), 0);
    let twice = set.add(&numbers).unwrap_err();
    let description = "subscription \"/t\" of node \"/n\"".to_owned();
    assert!(
        matches!(&twice, ExecutorError::InWaitSet { entity } if *entity == description),
        "{twice}"
    );
    let elsewhere = WaitSet::new(&context).add(&numbers).unwrap_err();
    assert!(
        matches!(&elsewhere, ExecutorError::InWaitSet { entity } if *entity == description),
        "{elsewhere}"
    );
    let error = WaitSet::new(&self::context()).add(&numbers).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{description} belongs to another context than the wait set; create both from the same one"
        )
    );
    drop(set);
    assert_eq!(other.spin_some(), 1);
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

// --- polled executor ---

/// Whether it becomes readable within `timeout`.
fn is_readable(executor: &PolledExecutor, timeout: Duration) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(executor.as_fd(), PollFlags::IN)];
    let timeout = Timespec::try_from(timeout).unwrap();
    poll(&mut watched, Some(&timeout)).unwrap() > 0
}

fn polled(context: &Context, node: &Node) -> PolledExecutor {
    let executor = SingleThreadedExecutor::new(context);
    executor.add_node(node).unwrap();
    let executor = PolledExecutor::new(executor).unwrap();
    spin_until_idle(&executor);
    executor
}

/// Spins until no work is left.
fn spin_until_idle(executor: &PolledExecutor) {
    let end = Instant::now() + TIMEOUT;
    while is_readable(executor, NOW) {
        executor.spin_some();
        assert!(Instant::now() < end, "there is always something to do");
    }
}

#[test]
fn the_descriptor_is_readable_only_while_work_is_ready() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let _numbers = node
        .create_subscription("t".keep_last(10), move |_: Sample<UInt64>| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    let guard = node.create_guard_condition(None, || ());
    let publisher = node.create_publisher("t".keep_last(10)).unwrap();
    let executor = polled(&context, &node);
    for n in 1..=3 {
        spin_until_idle(&executor);
        publish(&publisher, n);
        assert!(is_readable(&executor, NOW));
        assert_eq!(executor.spin_some(), 1);
    }
    assert_eq!(count.load(Ordering::Relaxed), 3);
    // From another thread, while this one sleeps in its loop.
    thread::scope(|scope| {
        let trigger = guard.trigger_handle();
        scope.spawn(move || trigger.trigger());
        assert!(is_readable(&executor, TIMEOUT));
    });
    assert_eq!(executor.spin_some(), 1);
    assert_eq!(guard.runs(), 1);
    // A timer created by another thread.
    let timer = thread::scope(|scope| {
        let made = scope.spawn(|| node.create_timer(SOON, || ()).unwrap());
        made.join().unwrap()
    });
    let end = Instant::now() + TIMEOUT;
    while timer.ticks() < 3 && Instant::now() < end {
        assert!(is_readable(&executor, TIMEOUT));
        executor.spin_some();
    }
    timer.cancel();
    spin_until_idle(&executor);
    context.shutdown();
    assert!(is_readable(&executor, TIMEOUT), "the loop looks at the end");
    let executor = executor.into_inner();
    publish(&publisher, 4);
    assert_eq!(executor.spin_some(), 1);
}

/// Discovery, ACKNACKs and heartbeats work in a loop that polls only the
/// descriptor.
#[test]
fn two_processes_communicate_with_one_in_an_external_event_loop() {
    let contexts = [(); 2].map(|()| context_in(DiscoveryRange::Localhost, Some(214)));
    let [host, guest] = &contexts;
    let (host_node, guest_node) = (
        host.create_node("host").unwrap(),
        guest.create_node("guest").unwrap(),
    );
    let echo = guest_node.create_publisher("echo".keep_last(10)).unwrap();
    let _ping = guest_node
        .create_subscription("ping".keep_last(10), move |sample: Sample<UInt64>| {
            publish(&echo, sample.data + 1);
        })
        .unwrap();
    let ping = host_node.create_publisher("ping".keep_last(10)).unwrap();
    let echoes = host_node
        .create_polled_subscription::<UInt64>("echo".keep_last(10))
        .unwrap();
    let executor = polled(guest, &guest_node);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(ping.wait_for_matched(1, TIMEOUT));
            assert!(echoes.wait_for_matched(1, TIMEOUT));
            for n in 0..50 {
                publish(&ping, n);
                assert_eq!(echoes.take_timeout(TIMEOUT).unwrap().data, n + 1);
            }
            guest.shutdown();
        });
        while !guest.is_shut_down() {
            assert!(is_readable(&executor, TIMEOUT));
            executor.spin_some();
        }
    });
}

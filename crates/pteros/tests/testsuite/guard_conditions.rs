//! Guard conditions: triggered from any thread, run in the node's executor.
#![allow(clippy::disallowed_methods, reason = "triggers come from threads")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::local::context;
use pteros::prelude::*;
use pteros::{
    callback_groups::CallbackGroupType,
    executors::{IsolatedExecutor, MultiThreadedExecutor, PanicPolicy},
    thread::ThreadSettings,
};

const TIMEOUT: Duration = Duration::from_secs(20);

fn counter() -> (Arc<AtomicUsize>, impl FnMut() + Send + 'static) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    (count, move || {
        counted.fetch_add(1, Ordering::Relaxed);
    })
}

#[test]
fn triggers_before_the_callback_begins_coalesce() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let (count, callback) = counter();
    let guard = node.create_guard_condition(None, callback);
    let handle = guard.trigger_handle();
    // Not spun yet: the trigger stays pending.
    for _ in 0..5 {
        handle.trigger();
    }
    assert!(guard.is_triggered());
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    assert_eq!(executor.spin_some(), 1);
    assert_eq!((count.load(Ordering::Relaxed), guard.runs()), (1, 1));
    assert!(!guard.is_triggered());
    handle.trigger();
    assert!(guard.take(), "taken back");
    executor.spin_some();
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // After the trigger was taken, none is pending.
    handle.trigger();
    executor.spin_some();
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[test]
fn a_trigger_from_its_own_callback_runs_it_once_more() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let own = Arc::new(Mutex::new(None::<pteros::guard_condition::TriggerHandle>));
    let (mut left, handle) = (3, own.clone());
    let guard = node.create_guard_condition(None, move || {
        left -= 1;
        if left > 0 {
            let handle = handle.lock().unwrap();
            let handle = handle.as_ref().unwrap();
            handle.trigger();
            handle.trigger();
        }
    });
    *own.lock().unwrap() = Some(guard.trigger_handle());
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node).unwrap();
    guard.trigger();
    executor.spin_all(TIMEOUT);
    assert_eq!(guard.runs(), 3);
}

#[test]
fn a_trigger_from_another_thread_wakes_the_executor() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let group = node.create_callback_group(CallbackGroupType::Reentrant);
    let (done, ran) = mpsc::channel();
    let guard = node.create_guard_condition(Some(&group), move || done.send(()).unwrap());
    let rounds = || {
        for _ in 0..20 {
            guard.trigger();
            ran.recv_timeout(TIMEOUT).unwrap();
        }
    };
    let apart = IsolatedExecutor::new(&context);
    thread::scope(|scope| {
        let single = SingleThreadedExecutor::new(&context);
        single.add_node(&node).unwrap();
        let handle = single.handle();
        let spun = scope.spawn(move || single.spin());
        rounds();
        handle.cancel();
        spun.join().unwrap();

        let crowd = MultiThreadedExecutor::new(&context, 3);
        crowd.add_node(&node).unwrap();
        let handle = crowd.handle();
        let spun = scope.spawn(move || crowd.spin());
        rounds();
        handle.cancel();
        spun.join().unwrap().unwrap();

        apart.add_node(&node, ThreadSettings::default()).unwrap();
        let spun = scope.spawn(|| apart.spin());
        rounds();
        apart.cancel();
        spun.join().unwrap().unwrap();
    });
}

#[test]
fn a_panicked_or_dropped_guard_condition_does_not_run() {
    let context = context();
    let node = context.create_node("n").unwrap();
    let bad = node.create_guard_condition(None, || panic!("as it must"));
    let (count, callback) = counter();
    let gone = node.create_guard_condition(None, callback);
    let executor = SingleThreadedExecutor::with_panic_policy(&context, PanicPolicy::Callback);
    executor.add_node(&node).unwrap();
    for _ in 0..2 {
        bad.trigger();
        executor.spin_some();
    }
    assert_eq!(bad.runs(), 1);
    let handle = gone.trigger_handle();
    handle.trigger();
    drop(gone);
    handle.trigger();
    executor.spin_some();
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

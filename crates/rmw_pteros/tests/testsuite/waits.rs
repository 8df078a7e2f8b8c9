//! Waits look only at entities that may be ready. No message and no event may be missed.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use pteros_rcl::event_status::StatusKind;
use rmw_pteros_cpp::abi::{
    GuardCondition, MatchedStatus, Ret, Subscription, Time, WaitArray, WaitSet, ret,
};
use rmw_pteros_cpp::platform::with_platform;

use crate::harness::*;
use crate::system_calls::CountingPlatform;

const AT_ONCE: Duration = Duration::ZERO;

#[test]
fn a_message_that_another_wait_set_was_told_of_is_found() {
    let mut party = Party::new(unused_domain());
    let ty = Text::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    party.await_match(publisher, 1);
    assert!(!party.wait(subscription, AT_ONCE));
    publish(publisher, &Text::new(1, "first"));
    party.renew_wait_set();
    assert!(party.wait(subscription, AT_ONCE));
    let mut received = Text::new(0, "");
    assert!(take(subscription, &mut received));
    assert_eq!(received.text(), "first");
    assert!(!party.wait(subscription, AT_ONCE));
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

#[test]
fn no_message_is_missed_that_comes_while_a_wait_begins_or_ends() {
    /// Enough for a message to meet each step of a wait now and then.
    const MESSAGES: u32 = 5_000;
    let party = Party::new(unused_domain());
    let ty = Text::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    party.await_match(publisher, 1);
    let address = publisher as usize;
    let (taken, next) = std::sync::mpsc::channel();
    let publishing = std::thread::spawn(move || {
        for id in 1..=MESSAGES {
            publish(address as *mut _, &Text::new(id, "text"));
            next.recv().unwrap();
        }
    });
    let mut received = Text::new(0, "");
    for id in 1..=MESSAGES {
        party.wait_for_message(subscription);
        assert!(take(subscription, &mut received));
        assert_eq!(received.id, id);
        taken.send(()).unwrap();
        // Another message may come before this look, in it, or after it.
        party.wait(subscription, AT_ONCE);
    }
    publishing.join().unwrap();
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

/// Of a match, which Humble has no event for.
#[cfg(not(distribution = "humble"))]
#[test]
fn an_event_is_ready_from_when_it_happens_until_it_is_taken() {
    const KINDS: [StatusKind; 2] = [StatusKind::DeadlineMissed, StatusKind::Matched];
    let mut party = Party::new(unused_domain());
    let ty = Text::type_support();
    let publisher = party.publisher(ty);
    let [mut missed, mut matched] = KINDS.map(|kind| party.event(publisher, kind));
    assert!(!party.has_event(&mut matched));
    let mut subscriptions = Vec::new();
    for total in 1..=3 {
        // As the other middlewares, the plug-in initializes it again.
        party.init_event(&mut matched, publisher, KINDS[1]);
        subscriptions.push(party.subscription(ty, null_mut()));
        party.await_match(publisher, total);
        // Another wait set was told of it.
        party.renew_wait_set();
        party.await_condition(|| party.has_event(&mut matched));
        assert!(party.has_event(&mut matched), "it was not taken");
        assert!(!party.has_event(&mut missed));
        let (mut status, mut taken): (MatchedStatus, bool) = (zeroed(), false);
        // SAFETY: an event, and the status of its kind.
        let code =
            unsafe { rmw_take_event(&raw const matched, (&raw mut status).cast(), &mut taken) };
        assert_eq!((code, taken), (ret::OK, true));
        assert_eq!((status.total_count, status.total_count_change), (total, 1));
        assert!(!party.has_event(&mut matched), "it was taken");
    }
    party.destroy_publisher(publisher);
    for subscription in subscriptions {
        party.destroy_subscription(subscription);
    }
}

/// Waits for both. Returns the code, and what was ready.
fn wait_for_both(
    wait_set: *mut WaitSet,
    guard: *mut GuardCondition,
    subscription: *mut Subscription,
    timeout: Option<Duration>,
) -> (Ret, [bool; 2]) {
    let timeout = timeout.map(|timeout| Time {
        sec: timeout.as_secs(),
        nsec: u64::from(timeout.subsec_nanos()),
    });
    // SAFETY: both are alive; the arrays are of one entry.
    unsafe {
        let mut entries: [*mut c_void; 2] = [(*guard).data, (*subscription).data];
        let [guards, data] = &mut entries;
        let array = |entry| WaitArray {
            count: 1,
            entries: entry,
        };
        let (mut guards, mut data) = (array(guards), array(data));
        let none = null_mut;
        let code = rmw_wait(
            &mut data,
            &mut guards,
            none(),
            none(),
            none(),
            wait_set,
            timeout.as_ref().map_or(null(), std::ptr::from_ref),
        );
        (code, entries.map(|entry| !entry.is_null()))
    }
}

/// rclcpp takes a node from its executor, destroys it, and the next node publishes. The wait
/// of the executor's thread that began before all this must not end with that message: its
/// callback is of the destroyed node.
#[test]
fn a_guard_condition_that_interrupts_a_wait_goes_before_messages() {
    const ROUNDS: u32 = 10;
    let platform = CountingPlatform::new();
    let party = with_platform(platform.clone(), || Party::new(unused_domain()));
    let ty = Text::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    party.await_match(publisher, 1);
    // SAFETY: a context.
    let guard = unsafe { rmw_create_guard_condition(party.context()) };
    let trigger = |guard: *const GuardCondition| {
        // SAFETY: a guard condition, which is destroyed after its last use.
        assert_eq!(unsafe { rmw_trigger_guard_condition(guard) }, ret::OK);
    };
    let wait = |timeout| wait_for_both(party.wait_set(), guard, subscription, timeout);
    let mut received = Text::new(0, "");
    for id in 1..=ROUNDS {
        let addresses = (guard as usize, publisher as usize);
        platform.before_next_sleep(move || {
            trigger(addresses.0 as *const _);
            publish(addresses.1 as *mut _, &Text::new(id, "text"));
        });
        assert_eq!(wait(None), (ret::OK, [true, false]));
        // The next wait reports it, even if the guard condition is triggered again.
        trigger(guard);
        assert_eq!(wait(Some(TIMEOUT)), (ret::OK, [true, true]));
        assert_eq!(wait(Some(AT_ONCE)), (ret::OK, [false, true]));
        assert!(take(subscription, &mut received));
        assert_eq!(received.id, id);
        assert_eq!(wait(Some(AT_ONCE)), (ret::TIMEOUT, [false, false]));
    }
    // A trigger of another thread goes before messages that wait already, once.
    publish(publisher, &Text::new(0, "text"));
    let address = guard as usize;
    for _ in 0..ROUNDS {
        for guard_alone in [true, false] {
            let triggering = std::thread::spawn(move || trigger(address as *const _));
            triggering.join().unwrap();
            assert_eq!(wait(None), (ret::OK, [true, !guard_alone]));
        }
    }
    // A look shows everything.
    let triggering = std::thread::spawn(move || trigger(address as *const _));
    triggering.join().unwrap();
    assert_eq!(wait(Some(AT_ONCE)), (ret::OK, [true, true]));
    assert!(take(subscription, &mut received));
    // SAFETY: made above.
    assert_eq!(unsafe { rmw_destroy_guard_condition(guard) }, ret::OK);
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

#[test]
fn a_context_installs_no_signal_handler_and_no_signal_ends_its_waits() {
    run_alone("waits::waits_last_after_signals_and_shutdown", &[]);
}

/// The signals that this process handles.
fn handled_signals() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("SigCgt"));
    line.unwrap().to_owned()
}

#[test]
#[ignore = "run by the test above, alone in its process"]
fn waits_last_after_signals_and_shutdown() {
    unsafe extern "C" {
        fn signal(number: c_int, handler: extern "C" fn(c_int)) -> *mut c_void;
        fn raise(number: c_int) -> c_int;
    }
    extern "C" fn ignore(_: c_int) {}
    const SIGINT: c_int = 2;
    const SIGTERM: c_int = 15;
    const SPAN: Duration = Duration::from_millis(20);
    const ROUNDS: usize = 100;
    let before = handled_signals();
    let party = Party::new(given_domain());
    assert_eq!(handled_signals(), before);
    let ty = Text::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    party.await_match(publisher, 1);
    // SAFETY: a context.
    let guard = unsafe { rmw_create_guard_condition(party.context()) };
    let end_of_context = || {
        // SAFETY: a context.
        assert_eq!(unsafe { rmw_shutdown(party.context()) }, ret::OK);
    };
    let send = |number: c_int| {
        // SAFETY: the handler does nothing.
        unsafe {
            signal(number, ignore);
            assert_eq!(raise(number), 0);
        }
    };
    let causes: [&dyn Fn(); 3] = [&|| send(SIGINT), &|| send(SIGTERM), &end_of_context];
    for cause in causes {
        cause();
        // A wait with a timeout takes its time.
        let began = Instant::now();
        let waited = wait_for_both(party.wait_set(), guard, subscription, Some(SPAN));
        assert_eq!(waited, (ret::TIMEOUT, [false, false]));
        assert!(began.elapsed() >= SPAN);
        // One without ends with what is ready.
        let address = guard as usize;
        let (begin, begun) = sync_channel(0);
        let triggering = std::thread::spawn(move || {
            while let Ok(()) = begun.recv() {
                let guard = address as *const GuardCondition;
                // SAFETY: it is destroyed after this thread.
                assert_eq!(unsafe { rmw_trigger_guard_condition(guard) }, ret::OK);
            }
        });
        for _ in 0..ROUNDS {
            begin.send(()).unwrap();
            let waited = wait_for_both(party.wait_set(), guard, subscription, None);
            assert_eq!(waited, (ret::OK, [true, false]));
        }
        drop(begin);
        triggering.join().unwrap();
        // Messages go on: rclcpp's callbacks before a shutdown use them.
        publish(publisher, &Text::new(1, "text"));
        party.wait_for_message(subscription);
        assert!(take(subscription, &mut Text::new(0, "")));
    }
    // SAFETY: made above.
    assert_eq!(unsafe { rmw_destroy_guard_condition(guard) }, ret::OK);
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

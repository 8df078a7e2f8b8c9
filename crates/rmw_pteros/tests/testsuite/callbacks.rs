//! Callbacks for new messages, as rclcpp's events executor uses them: no thread of the
//! user waits, so the plug-in's callback thread receives.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;

use parking_lot::Mutex;

use rmw_pteros_cpp::abi::{EventCallback, Publisher, QosProfile, Subscription, ret};

use crate::harness::*;

/// Messages of the test; more than the default depth.
const MESSAGES: u32 = 500;

/// Adds what it is told of to the counter that is its user data.
unsafe extern "C" fn add(told: *const c_void, count: usize) {
    // SAFETY: the counters outlive the callbacks.
    unsafe { &*told.cast::<AtomicUsize>() }.fetch_add(count, Ordering::SeqCst);
}

fn set_callback(subscription: *mut Subscription, told: Option<&AtomicUsize>) {
    let callback: EventCallback = match told {
        Some(_) => Some(add),
        None => None,
    };
    let data = told.map_or(null_mut(), |told| from_ref(told).cast_mut());
    set_any_callback(subscription, callback, data.cast());
}

fn set_any_callback(
    subscription: *mut Subscription,
    callback: EventCallback,
    user_data: *const c_void,
) {
    // SAFETY: a subscription, and a callback that may run with that data.
    let code =
        unsafe { rmw_subscription_set_on_new_message_callback(subscription, callback, user_data) };
    assert_eq!(code, ret::OK);
}

#[test]
fn a_callback_is_told_of_every_message_while_nobody_waits() {
    let domain = unused_domain();
    let (here, there) = (Party::new(domain), Party::new(domain));
    let ty = Text::type_support();
    let deep = QosProfile {
        depth: 2 * MESSAGES as usize,
        ..qos()
    };
    let publisher = here.publisher_with(ty, &deep);
    let near = here.subscription_with(ty, &deep, null_mut());
    let far = there.subscription_with(ty, &deep, null_mut());
    let told = [const { AtomicUsize::new(0) }; 2];
    set_callback(near, Some(&told[0]));
    set_callback(far, Some(&told[1]));
    let all_told = |count: u32| {
        let is_count = |told: &AtomicUsize| told.load(Ordering::SeqCst) == count as usize;
        told.iter().all(is_count)
    };
    here.await_match(publisher, 2);
    for id in 0..MESSAGES {
        publish(publisher, &Text::new(id, "told"));
    }
    here.await_condition(|| all_told(MESSAGES));
    let mut received = Text::new(0, "");
    for subscription in [near, far] {
        for id in 0..MESSAGES {
            assert!(take(subscription, &mut received), "message {id}");
            assert_eq!(received.id, id);
        }
        assert!(!take(subscription, &mut received));
    }

    // Without callbacks messages wait, and the next callbacks are told of them at once.
    set_callback(near, None);
    set_callback(far, None);
    publish(publisher, &Text::new(0, "unread"));
    there.wait_for_message(far);
    assert!(all_told(MESSAGES), "{told:?}");
    set_callback(near, Some(&told[0]));
    set_callback(far, Some(&told[1]));
    assert!(all_told(MESSAGES + 1), "{told:?}");

    here.destroy_publisher(publisher);
    here.destroy_subscription(near);
    there.destroy_subscription(far);
}

/// rclcpp replaces a callback by clearing it and setting another. What the first was told
/// of is unread for nobody, although it was not taken.
fn each_message_is_told_once(here: &Party, there: &Party) {
    let ty = Text::type_support();
    let publisher = here.publisher(ty);
    let subscription = there.subscription(ty, null_mut());
    here.await_match(publisher, 1);
    let told = [const { AtomicUsize::new(0) }; 4];
    let counts = || told.each_ref().map(|told| told.load(Ordering::SeqCst));
    let publish = |count| {
        for id in 0..count {
            publish(publisher, &Text::new(id, "told once"));
        }
    };
    let mut received = Text::new(0, "");
    set_callback(subscription, Some(&told[0]));
    publish(1);
    there.await_condition(|| counts()[0] == 1);
    // Another replaces it at once, and then after an end.
    set_callback(subscription, Some(&told[1]));
    publish(2);
    there.await_condition(|| counts()[1] == 2);
    set_callback(subscription, None);
    set_callback(subscription, Some(&told[2]));
    assert_eq!(counts(), [1, 2, 0, 0]);
    // Three come while there is none. Of the six, the first four are taken.
    set_callback(subscription, None);
    publish(3);
    let mut taken = 0;
    there.await_condition(|| {
        taken += usize::from(take(subscription, &mut received));
        taken == 4
    });
    set_callback(subscription, Some(&told[3]));
    there.await_condition(|| counts()[3] == 2);
    set_callback(subscription, None);
    assert_eq!(counts(), [1, 2, 0, 2]);
    here.destroy_publisher(publisher);
    there.destroy_subscription(subscription);
}

#[test]
fn a_second_callback_is_not_told_again_within_a_context() {
    let party = Party::new(unused_domain());
    each_message_is_told_once(&party, &party);
}

#[test]
fn a_second_callback_is_not_told_again_in_two_contexts() {
    let domain = unused_domain();
    each_message_is_told_once(&Party::new(domain), &Party::new(domain));
}

/// Notes the thread that it runs on.
unsafe extern "C" fn note_thread(threads: *const c_void, _count: usize) {
    // SAFETY: the list outlives the callbacks.
    let threads = unsafe { &*threads.cast::<Mutex<Vec<ThreadId>>>() };
    threads.lock().push(std::thread::current().id());
}

#[test]
fn a_message_within_a_context_calls_back_in_the_publishing_thread() {
    let party = Party::new(unused_domain());
    let ty = Text::type_support();
    let publisher = party.publisher(ty);
    let subscription = party.subscription(ty, null_mut());
    let threads = Mutex::new(Vec::<ThreadId>::new());
    set_any_callback(subscription, Some(note_thread), from_ref(&threads).cast());
    party.await_match(publisher, 1);
    for id in 1..=3 {
        publish(publisher, &Text::new(id, "near"));
        assert_eq!(
            *threads.lock(),
            vec![std::thread::current().id(); id as usize]
        );
    }
    set_any_callback(subscription, None, null_mut());
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

thread_local! {
    /// Callbacks on this thread that have not returned.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A publisher, and what its callbacks have counted.
struct Echo {
    publisher: *mut Publisher,
    told: AtomicUsize,
    deepest: AtomicUsize,
}

/// Publishes again on the topic that it is told of, until there were ten messages.
unsafe extern "C" fn publish_again(echo: *const c_void, count: usize) {
    // SAFETY: it outlives the callbacks.
    let echo = unsafe { &*echo.cast::<Echo>() };
    DEPTH.set(DEPTH.get() + 1);
    echo.deepest.fetch_max(DEPTH.get(), Ordering::SeqCst);
    if echo.told.fetch_add(count, Ordering::SeqCst) + count < 10 {
        publish(echo.publisher, &Text::new(0, "again"));
    }
    DEPTH.set(DEPTH.get() - 1);
}

#[test]
fn callbacks_that_publish_do_not_nest() {
    let party = Party::new(unused_domain());
    let ty = Text::type_support();
    let publisher = party.publisher(ty);
    let subscriptions = [(); 2].map(|()| party.subscription(ty, null_mut()));
    let echo = Echo {
        publisher,
        told: AtomicUsize::new(0),
        deepest: AtomicUsize::new(0),
    };
    for subscription in subscriptions {
        set_any_callback(subscription, Some(publish_again), from_ref(&echo).cast());
    }
    party.await_match(publisher, 2);
    publish(publisher, &Text::new(0, "first"));
    party.await_condition(|| echo.told.load(Ordering::SeqCst) >= 10);
    for subscription in subscriptions {
        set_any_callback(subscription, None, null_mut());
    }
    assert_eq!(echo.deepest.load(Ordering::SeqCst), 1);
    party.destroy_publisher(publisher);
    for subscription in subscriptions {
        party.destroy_subscription(subscription);
    }
}

/// A lock of the user, which a callback takes.
#[derive(Default)]
struct Guarded {
    lock: Mutex<()>,
    begun: AtomicUsize,
    ended: AtomicUsize,
    gave_up: AtomicBool,
}

unsafe extern "C" fn take_lock(guarded: *const c_void, count: usize) {
    // SAFETY: it outlives the callbacks.
    let guarded = unsafe { &*guarded.cast::<Guarded>() };
    guarded.begun.fetch_add(count, Ordering::SeqCst);
    if guarded.lock.try_lock_for(TIMEOUT / 2).is_none() {
        guarded.gave_up.store(true, Ordering::SeqCst);
    }
    guarded.ended.fetch_add(count, Ordering::SeqCst);
}

#[test]
fn publishing_does_not_wait_for_a_callback_that_waits_for_the_publisher() {
    let domain = unused_domain();
    let (here, there) = (Party::new(domain), Party::new(domain));
    let ty = Text::type_support();
    let (near, far) = (here.publisher(ty), there.publisher(ty));
    let subscription = here.subscription(ty, null_mut());
    let guarded = Guarded::default();
    set_any_callback(subscription, Some(take_lock), from_ref(&guarded).cast());
    here.await_match(near, 1);
    there.await_match(far, 1);
    let lock = guarded.lock.lock();
    publish(far, &Text::new(1, "far"));
    there.await_condition(|| guarded.begun.load(Ordering::SeqCst) == 1);
    publish(near, &Text::new(2, "near"));
    drop(lock);
    there.await_condition(|| guarded.ended.load(Ordering::SeqCst) == 2);
    assert!(!guarded.gave_up.load(Ordering::SeqCst), "a deadlock");
    set_any_callback(subscription, None, null_mut());
    here.destroy_publisher(near);
    there.destroy_publisher(far);
    here.destroy_subscription(subscription);
}

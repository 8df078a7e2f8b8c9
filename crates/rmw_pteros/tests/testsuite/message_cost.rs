//! Cost of a message through the plug-in, counted: allocations, bytes and wake-ups.

use std::ptr::null_mut;
use std::sync::mpsc;

use pteros_rcl::event_status::StatusKind;
use rmw_pteros_cpp::counts::serialized_count;
use rmw_pteros_cpp::platform::with_platform;

use crate::allocations::{Allocations, count};
use crate::harness::*;
use crate::system_calls::{CountingPlatform, SystemCalls};

/// Rounds that are counted, after some that are not.
const ROUNDS: u32 = 100;

/// The least cost of one message: work that is due besides falls into some rounds.
#[derive(Debug, Clone, Copy)]
struct Cost {
    publish: Allocations,
    take: Allocations,
    /// Of the publisher's context, to publish.
    sent: SystemCalls,
    /// Of the subscription's context, to wait and take.
    received: SystemCalls,
}

fn least(one: Allocations, other: Allocations) -> Allocations {
    Allocations {
        count: one.count.min(other.count),
        bytes: one.bytes.min(other.bytes),
    }
}

fn fewest(one: SystemCalls, other: SystemCalls) -> SystemCalls {
    SystemCalls {
        sends: one.sends.min(other.sends),
        receives: one.receives.min(other.receives),
        waits: one.waits.min(other.waits),
        wakes: one.wakes.min(other.wakes),
    }
}

/// Publishes and takes messages between two contexts that shared memory connects.
fn between_contexts<const BYTES: usize>() -> Cost {
    let domain = unused_domain();
    let platforms = [CountingPlatform::new(), CountingPlatform::new()];
    let parties = platforms
        .each_ref()
        .map(|platform| with_platform(platform.clone(), || Party::new(domain)));
    let ([talker, listener], [here, there]) = (&parties, &platforms);
    let ty = Frame::<BYTES>::type_support();
    let (publisher, subscription) = (talker.publisher(ty), listener.subscription(ty, null_mut()));
    listener.await_match(publisher, 1);
    let mut received = Frame::<BYTES>::boxed(0, 0);
    let mut least_cost: Option<Cost> = None;
    for id in 0..ROUNDS {
        let message = Frame::<BYTES>::boxed(id, 5);
        let publishing = || count(|| publish(publisher, &*message)).0;
        let (sent, published) = here.counters.count(publishing);
        let (got, (taken_by, taken)) = there.counters.count(|| {
            listener.wait_for_message(subscription);
            count(|| take(subscription, &mut *received))
        });
        assert!(taken);
        assert_eq!((received.id, received.data[BYTES - 1]), (id, 5));
        let before = least_cost.unwrap_or(Cost {
            publish: published,
            take: taken_by,
            sent,
            received: got,
        });
        least_cost = Some(Cost {
            publish: least(before.publish, published),
            take: least(before.take, taken_by),
            sent: fewest(before.sent, sent),
            received: fewest(before.received, got),
        });
        talker.poll();
    }
    talker.destroy_publisher(publisher);
    listener.destroy_subscription(subscription);
    least_cost.unwrap()
}

/// A message through shared memory is no datagram, and the thread that waits finds it
/// with one poll at most.
#[track_caller]
fn assert_no_datagram(cost: &Cost) {
    assert_eq!((cost.sent.sends, cost.sent.wakes), (0, 0), "{cost:?}");
    assert_eq!(
        (cost.received.receives, cost.received.wakes),
        (0, 0),
        "{cost:?}"
    );
    assert!(cost.received.waits <= 1, "{cost:?}");
}

#[test]
fn a_small_message_is_allocated_once_on_each_side() {
    let cost = between_contexts::<56>();
    assert!(cost.publish.count <= 2, "{cost:?}");
    assert_eq!(
        cost.take.count, 0,
        "decoded into the user's struct: {cost:?}"
    );
    assert_no_datagram(&cost);
}

#[test]
fn a_large_message_is_serialized_into_shared_memory_and_decoded_from_there() {
    let cost = between_contexts::<{ 1 << 20 }>();
    assert!(cost.publish.count <= 2, "{cost:?}");
    assert!(
        cost.publish.bytes < 1_024,
        "the chunk is no allocation: {cost:?}"
    );
    assert_eq!(
        cost.take.count, 0,
        "decoded into the user's struct: {cost:?}"
    );
    assert_no_datagram(&cost);
}

/// The cost of one message within a context, whose publisher must not serialize.
#[derive(Debug, Clone, Copy)]
struct LocalCost {
    publish: Allocations,
    take: Allocations,
}

/// Publishes and takes messages within one context.
fn within_a_context<const BYTES: usize>() -> LocalCost {
    let party = Party::new(unused_domain());
    let ty = Frame::<BYTES>::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    party.await_match(publisher, 1);
    let mut received = Frame::<BYTES>::boxed(0, 0);
    let mut least_cost: Option<LocalCost> = None;
    for id in 0..ROUNDS {
        let message = Frame::<BYTES>::boxed(id, 5);
        let (published, ()) = count(|| publish(publisher, &*message));
        party.wait_for_message(subscription);
        let (taken_by, taken) = count(|| take(subscription, &mut *received));
        assert!(taken);
        assert_eq!((received.id, received.data[BYTES - 1]), (id, 5));
        let before = least_cost.unwrap_or(LocalCost {
            publish: published,
            take: taken_by,
        });
        least_cost = Some(LocalCost {
            publish: least(before.publish, published),
            take: least(before.take, taken_by),
        });
    }
    // SAFETY: a publisher.
    let serialized = unsafe { serialized_count(publisher) };
    assert_eq!(serialized, Some(0), "no CDR within a context");
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
    least_cost.unwrap()
}

/// A struct beside the message that is shared: its owner count, and what is on its way.
const SHARED_BYTES_MAX: u64 = 256;

#[test]
fn within_a_context_a_small_message_is_a_copied_struct() {
    let cost = within_a_context::<56>();
    assert!(cost.publish.count <= 2, "{cost:?}");
    assert_eq!(cost.take, Allocations::default(), "{cost:?}");
}

#[test]
fn within_a_context_a_large_message_is_allocated_once_and_not_serialized() {
    const BYTES: usize = 1 << 20;
    let cost = within_a_context::<BYTES>();
    let size = size_of::<Frame<BYTES>>() as u64;
    assert!(cost.publish.count <= 2, "{cost:?}");
    assert!(
        (size..size + SHARED_BYTES_MAX).contains(&cost.publish.bytes),
        "one copy of the struct: {cost:?}"
    );
    assert_eq!(cost.take, Allocations::default(), "{cost:?}");
}

#[test]
fn within_a_context_all_subscriptions_share_one_copy_of_the_struct() {
    const BYTES: usize = 1 << 20;
    let party = Party::new(unused_domain());
    let ty = Frame::<BYTES>::type_support();
    let publisher = party.publisher(ty);
    let subscriptions = [(); 3].map(|()| party.subscription(ty, null_mut()));
    party.await_match(publisher, subscriptions.len());
    let mut received = Frame::<BYTES>::boxed(0, 0);
    for id in 0..10 {
        let message = Frame::<BYTES>::boxed(id, 9);
        let (sent, ()) = count(|| publish(publisher, &*message));
        let size = size_of::<Frame<BYTES>>() as u64;
        assert!((size..size + 4_096).contains(&sent.bytes), "{sent:?}");
        for subscription in subscriptions {
            party.wait_for_message(subscription);
            let (copied, taken) = count(|| take(subscription, &mut *received));
            assert!(taken && copied.count == 0, "{copied:?}");
            assert_eq!((received.id, received.data[BYTES - 1]), (id, 9));
        }
    }
    // SAFETY: a publisher.
    assert_eq!(unsafe { serialized_count(publisher) }, Some(0));
    party.destroy_publisher(publisher);
    for subscription in subscriptions {
        party.destroy_subscription(subscription);
    }
}

/// How often this thread has slept since its start (`proc_pid_status(5)`).
fn sleeps_of_this_thread() -> u32 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

#[test]
fn a_waiting_thread_wakes_once_for_a_message() {
    let domain = unused_domain();
    let (report, reports) = mpsc::channel();
    let listener = std::thread::spawn(move || {
        let listener = Party::new(domain);
        let subscription = listener.subscription(Frame::<56>::type_support(), null_mut());
        let mut received = Frame::<56>::boxed(0, 0);
        let mut before = 0;
        for id in 0..=ROUNDS {
            listener.wait_for_message(subscription);
            assert!(take(subscription, &mut *received));
            assert_eq!(received.id, id);
            if id == 0 {
                before = sleeps_of_this_thread();
            }
            report.send(id).unwrap();
        }
        let sleeps = sleeps_of_this_thread() - before;
        listener.destroy_subscription(subscription);
        sleeps
    });
    let talker = Party::new(domain);
    let publisher = talker.publisher(Frame::<56>::type_support());
    talker.await_match(publisher, 1);
    for id in 0..=ROUNDS {
        publish(publisher, &*Frame::<56>::boxed(id, 1));
        assert_eq!(reports.recv().unwrap(), id);
        // Acknowledgements arrive, so that no timeout wakes the listener.
        talker.poll();
    }
    let sleeps = listener.join().unwrap();
    // Announcements of both contexts wake it now and then.
    assert!(
        sleeps <= ROUNDS + ROUNDS / 4,
        "{sleeps} sleeps for {ROUNDS} messages"
    );
    talker.destroy_publisher(publisher);
}

/// Found by a benchmark beside an earlier version: each wait made the text of an error for
/// each of its events, and threw it away.
#[test]
fn a_wait_with_an_event_allocates_nothing() {
    let party = Party::new(unused_domain());
    let publisher = party.publisher(Text::type_support());
    let mut event = party.event(publisher, StatusKind::DeadlineMissed);
    let waits = (0..ROUNDS).map(|_| count(|| assert!(!party.has_event(&mut event))).0);
    let fewest = waits.reduce(least);
    assert_eq!(fewest, Some(Allocations::default()));
    party.destroy_publisher(publisher);
}

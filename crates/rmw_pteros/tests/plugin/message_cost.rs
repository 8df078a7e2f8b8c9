//! Cost of a message through the plug-in, counted: allocations, bytes and wake-ups.

use std::ptr::null_mut;
use std::sync::mpsc;

use crate::allocations::{Allocations, count};
use crate::harness::*;

/// Rounds that are counted, after some that are not.
const ROUNDS: u32 = 100;

/// What one message costs at least: work that is due besides falls into some rounds.
#[derive(Debug, Clone, Copy)]
struct Cost {
    publish: Allocations,
    take: Allocations,
}

fn least(one: Allocations, other: Allocations) -> Allocations {
    Allocations {
        count: one.count.min(other.count),
        bytes: one.bytes.min(other.bytes),
    }
}

/// Publishes and takes messages between two contexts that shared memory connects.
fn between_contexts<const BYTES: usize>() -> Cost {
    let domain = unused_domain();
    let (talker, listener) = (Party::new(domain), Party::new(domain));
    let ty = Frame::<BYTES>::type_support();
    let (publisher, subscription) = (talker.publisher(ty), listener.subscription(ty, null_mut()));
    listener.await_match(publisher, 1);
    let mut received = Frame::<BYTES>::boxed(0, 0);
    let mut cost: Option<Cost> = None;
    for id in 0..ROUNDS {
        let message = Frame::<BYTES>::boxed(id, 5);
        let (publish, ()) = count(|| publish(publisher, &*message));
        listener.wait_for_message(subscription);
        let (take, taken) = count(|| take(subscription, &mut *received));
        assert!(taken);
        assert_eq!((received.id, received.data[BYTES - 1]), (id, 5));
        cost = Some(cost.map_or(Cost { publish, take }, |before| Cost {
            publish: least(before.publish, publish),
            take: least(before.take, take),
        }));
        talker.poll();
    }
    talker.destroy_publisher(publisher);
    listener.destroy_subscription(subscription);
    cost.unwrap()
}

#[test]
fn a_small_message_is_allocated_once_on_each_side() {
    let cost = between_contexts::<56>();
    assert!(cost.publish.count <= 2, "{cost:?}");
    assert_eq!(
        cost.take.count, 0,
        "decoded into the user's struct: {cost:?}"
    );
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
}

#[test]
fn within_a_context_a_message_is_serialized_once_for_all_subscriptions() {
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
        let serialized = (BYTES + 12) as u64;
        assert!(
            (serialized..serialized + 4_096).contains(&sent.bytes),
            "{sent:?}"
        );
        for subscription in subscriptions {
            party.wait_for_message(subscription);
            let (copied, taken) = count(|| take(subscription, &mut *received));
            assert!(taken && copied.count == 0, "{copied:?}");
            assert_eq!((received.id, received.data[BYTES - 1]), (id, 9));
        }
    }
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

//! The walk through shared memory: a message is written into memory that its
//! readers read, nobody calls the kernel but for one who sleeps, and he wakes
//! once.

use std::sync::atomic::AtomicBool;

use pteros::msg::view::Cow;
use pteros::{LinkCounts, View};

use super::*;

/// Two linked parties, a publisher of one and a subscription of the other.
fn linked<M: Message + Send + Sync + 'static>(
    domain: u32,
    heard: &Heard,
) -> (Party, Party, Publisher<M>, Subscription<M>) {
    linked_with(domain, heard, &QosProfile::from(10))
}

fn linked_with<M: Message + Send + Sync + 'static>(
    domain: u32,
    heard: &Heard,
    qos: &QosProfile,
) -> (Party, Party, Publisher<M>, Subscription<M>) {
    let (talker, listener) = (Party::open(domain, true), Party::open(domain, true));
    let sink = heard.clone();
    let subscription = listener
        .node
        .create_subscription::<M>("t", qos, move |_| sink.note())
        .unwrap();
    let publisher = talker.node.create_publisher::<M>("t", qos).unwrap();
    await_link(&talker, &listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    (talker, listener, publisher, subscription)
}

/// Waits until the two are matched and linked, for long enough.
fn await_link(talker: &Party, listener: &Party, is_matched: impl Fn() -> bool) {
    let is_linked = |one: &Party, other: &Party| {
        one.context.path_to(other.context.guid()).path == pteros::Path::SharedMemory
    };
    until(talker, listener, || {
        is_matched() && is_linked(talker, listener) && is_linked(listener, talker)
    });
    // Until the link is no longer young, sockets are looked at before it.
    for party in [talker, listener] {
        let graph = party.context.graph();
        graph.wait_until(Duration::from_millis(110), || false);
    }
}

fn link_counts(party: &Party) -> LinkCounts {
    party.context.link_counts().expect("it has links")
}

#[test]
fn a_small_message_through_shared_memory_calls_no_kernel() {
    let heard = Heard::default();
    let (talker, listener, publisher, _subscription) = linked::<Text>(204, &heard);
    let mut rounds = Rounds::new(&talker, &listener, &publisher, &heard);
    rounds.play(100, false);
    let rung = link_counts(&talker).rung;
    rounds.play(ROUNDS, true);
    let rung = link_counts(&talker).rung - rung;
    let Rounds { sent, received, .. } = rounds;
    println!("publishing {ROUNDS}: {sent:?}, {rung} rung; receiving: {received:?}");
    heard.on_this_thread();

    let (allocations, calls) = sent;
    assert!(
        allocations <= 2 * ROUNDS,
        "{allocations}: payload and count"
    );
    let kernel = (calls.sends, calls.receives, calls.waits, calls.wakes);
    assert_eq!(kernel, (0, 0, 0, 0));
    assert_eq!(rung, 0, "the listener did not sleep");
    let (allocations, calls) = received;
    // The payload and the decoded string.
    assert!(allocations <= 2 * ROUNDS + ROUNDS / 10, "{allocations}");
    assert_eq!((calls.sends, calls.receives, calls.wakes), (0, 0, 0));
    assert!(calls.waits <= ROUNDS / 10, "{calls:?}: it waits already");
}

#[test]
fn a_megabyte_through_shared_memory_is_written_once_and_read_in_place() {
    const BYTES: usize = 1 << 20;
    let heard = Heard::default();
    let (talker, listener, publisher, _subscription) = linked::<UInt8MultiArray>(205, &heard);
    let message = UInt8MultiArray {
        data: vec![7; BYTES],
        ..Default::default()
    };
    for round in 1..=5 {
        let (before, counts) = (talker.calls(), link_counts(&talker));
        let (_, allocated) = so_far();
        publisher.publish(&message).unwrap();
        let out = so_far().1 - allocated;
        assert!(out < 10_000, "{out} bytes allocated");
        assert_eq!(talker.calls().sends, before.sends);
        let after = link_counts(&talker);
        assert_eq!(
            (after.named - counts.named, after.copied),
            (1, counts.copied)
        );

        let (_, allocated) = so_far();
        while heard.count() < round {
            listener.executor.spin_once(Duration::from_millis(1));
        }
        let within = so_far().1 - allocated;
        // The message decoded, and nothing else of its size.
        assert!(within < BYTES as u64 * 11 / 10, "{within} bytes allocated");
        talker.executor.spin_some();
        listener.executor.spin_some();
    }
}

#[test]
fn a_megabyte_that_late_joiners_may_want_is_kept_once_as_its_readers_have_it() {
    let qos = QosProfile::default().transient_local().keep_all();
    let heard = Heard::default();
    let (talker, listener, publisher, _subscription) =
        linked_with::<UInt8MultiArray>(224, &heard, &qos);
    let message = UInt8MultiArray {
        data: vec![7; 1 << 20],
        ..Default::default()
    };
    for round in 1..=4 {
        let (_, allocated) = so_far();
        publisher.publish(&message).unwrap();
        let out = so_far().1 - allocated;
        assert!(out < 10_000, "{out} bytes allocated");
        until(&talker, &listener, || heard.count() == round);
    }
    let late = talker
        .node
        .create_polled_subscription::<UInt8MultiArray>("t", &qos)
        .unwrap();
    let kept: Vec<_> = std::iter::from_fn(|| late.take()).collect();
    assert_eq!(kept.len(), 4);
    assert!(kept.iter().all(|sample| **sample == message));
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "one sleeps while the other publishes"
)]
fn who_sleeps_is_woken_once_per_message_through_shared_memory() {
    let heard = Heard::default();
    let (talker, listener, publisher, _subscription) = linked::<Text>(206, &heard);
    let over = AtomicBool::new(false);
    let (counters, count) = (listener.counters.clone(), heard.clone());
    std::thread::scope(|scope| {
        let executor = listener.executor;
        let over = &over;
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                executor.spin_once(PATIENCE);
            }
        });
        // Before each wait the listener has said that it sleeps.
        let asleep_again = |waits: u64| {
            while counters.so_far().waits == waits {
                std::thread::yield_now();
            }
        };
        let mut round = |n: usize| {
            let waits = counters.so_far().waits;
            publisher.publish(&Text::default()).unwrap();
            while count.count() < n {
                std::thread::yield_now();
            }
            asleep_again(waits);
        };
        let (first, rounds) = (20, 100);
        (1..=first).for_each(&mut round);
        let (waits, rung) = (counters.so_far().waits, link_counts(&talker).rung);
        (first + 1..=first + rounds).for_each(&mut round);
        let waits = counters.so_far().waits - waits;
        let rung = link_counts(&talker).rung - rung;
        println!("{rounds} messages: {rung} rung, {waits} waits");
        over.store(true, Ordering::Relaxed);
        listener.context.shutdown();
        let (rung, waits) = (rung as usize, waits as usize);
        assert!((rounds - rounds / 10..=rounds).contains(&rung), "{rung}");
        // Timers of the protocol wake it now and then, besides.
        assert!(waits <= rounds + rounds / 5, "{waits}");
    });
}

#[test]
fn a_megabyte_in_a_loan_is_copied_by_nobody() {
    const BYTES: usize = 1 << 20;
    let heard = Heard::default();
    let (talker, listener) = (Party::open(207, true), Party::open(207, true));
    let (publisher, _subscription) = {
        let sink = heard.clone();
        let callback = move |array: View<'_, UInt8MultiArray>| {
            assert!(matches!(array.data, Cow::Borrowed(_)));
            assert_eq!((array.data.len(), array.data[77]), (BYTES, 7));
            sink.note();
        };
        let views = listener.node.create_view_subscription("t", 10, callback);
        let publisher = talker.node.create_publisher::<UInt8MultiArray>("t", 10);
        (publisher.unwrap(), views.unwrap())
    };
    await_link(&talker, &listener, || publisher.matched_count() == 1);
    let mut draft = UInt8MultiArray::default();
    for round in 1..=5 {
        let (before, counts) = (talker.calls(), link_counts(&talker));
        let (_, allocated) = so_far();
        let loan = publisher.loan_sequence(&mut draft, |array| &mut array.data, BYTES);
        let mut loan = loan.unwrap();
        // What was written once, in the first two rounds, is there still.
        if round <= 2 {
            loan.fill(7);
        }
        publisher.publish_loaned(loan).unwrap();
        let out = so_far().1 - allocated;
        assert!(out < 2_000, "{out} bytes allocated");
        assert_eq!(talker.calls().sends, before.sends);
        let after = link_counts(&talker);
        let named = after.named - counts.named;
        assert_eq!((named, after.copied), (1, counts.copied));

        let (_, allocated) = so_far();
        while heard.count() < round {
            listener.executor.spin_once(Duration::from_millis(1));
        }
        let within = so_far().1 - allocated;
        assert!(within < 2_000, "{within} bytes allocated");
        talker.executor.spin_some();
        listener.executor.spin_some();
    }
}

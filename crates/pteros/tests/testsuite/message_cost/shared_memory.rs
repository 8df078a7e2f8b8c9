//! Cost of a message through shared memory: written once into memory that its
//! readers read. Only waking a sleeping reader is a system call, once per message.

use std::sync::atomic::AtomicBool;

use pteros::NamedQosExt;
use pteros::Publisher;
use pteros::msg::view::Cow;
use pteros::{
    shared_memory::ConnectionCounts,
    subscription::{MessageView, in_place},
};

use super::*;

/// Two processes connected by shared memory, with a publisher and a subscription.
fn connected<M: Message + Send + Sync + 'static>(
    callbacks: &CallbackCounter,
) -> (
    CountingProcess,
    CountingProcess,
    Publisher<M>,
    Subscription<M>,
) {
    connected_with(callbacks, &QosProfile::from(10))
}

fn connected_with<M: Message + Send + Sync + 'static>(
    callbacks: &CallbackCounter,
    qos: &QosProfile,
) -> (
    CountingProcess,
    CountingProcess,
    Publisher<M>,
    Subscription<M>,
) {
    let domain = unused_domain();
    let (talker, listener) = (
        CountingProcess::open(domain, true),
        CountingProcess::open(domain, true),
    );
    let sink = callbacks.clone();
    let subscription = listener
        .node
        .create_subscription::<M>("t".qos(qos), move |_| sink.note())
        .unwrap();
    let publisher = talker.node.create_publisher::<M>("t".qos(qos)).unwrap();
    await_connection(&talker, &listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    (talker, listener, publisher, subscription)
}

/// Waits until both are matched and connected for long enough.
fn await_connection(
    talker: &CountingProcess,
    listener: &CountingProcess,
    is_matched: impl Fn() -> bool,
) {
    let is_linked = |one: &CountingProcess, other: &CountingProcess| {
        one.context.delivery_path_to(other.context.guid()).path
            == pteros::subscription::DeliveryPath::SharedMemory
    };
    spin_both_until(talker, listener, || {
        is_matched() && is_linked(talker, listener) && is_linked(listener, talker)
    });
    // A new connection's sockets are polled before it.
    for party in [talker, listener] {
        let graph = party.context.graph();
        graph.wait_until(Duration::from_millis(110), || false);
    }
}

fn connection_counts(party: &CountingProcess) -> ConnectionCounts {
    party.context.connection_counts().expect("it has links")
}

#[test]
fn a_small_message_through_shared_memory_calls_no_kernel() {
    let callbacks = CallbackCounter::default();
    let (talker, listener, publisher, _subscription) = connected::<Text>(&callbacks);
    let mut rounds = Rounds::new(&talker, &listener, &publisher, &callbacks);
    rounds.run(100, false);
    let rung = connection_counts(&talker).doorbells_rung;
    rounds.run(ROUNDS, true);
    let rung = connection_counts(&talker).doorbells_rung - rung;
    let Rounds { sent, received, .. } = rounds;
    println!("publishing {ROUNDS}: {sent:?}, {rung} rung; receiving: {received:?}");
    callbacks.assert_on_this_thread();

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
    let callbacks = CallbackCounter::default();
    let (talker, listener, publisher, _subscription) = connected::<UInt8MultiArray>(&callbacks);
    let message = UInt8MultiArray {
        data: vec![7; BYTES],
        ..Default::default()
    };
    for round in 1..=5 {
        let (before, counts) = (talker.system_calls(), connection_counts(&talker));
        let (_, allocated) = snapshot();
        publisher.publish(&message).unwrap();
        let out = snapshot().1 - allocated;
        assert!(out < 10_000, "{out} bytes allocated");
        assert_eq!(talker.system_calls().sends, before.sends);
        let after = connection_counts(&talker);
        assert_eq!(
            (after.zero_copy - counts.zero_copy, after.copied),
            (1, counts.copied)
        );

        let (_, allocated) = snapshot();
        while callbacks.count() < round {
            listener.executor.spin_once(Duration::from_millis(1));
        }
        let within = snapshot().1 - allocated;
        // The decoded message, and nothing else of its size.
        assert!(within < BYTES as u64 * 11 / 10, "{within} bytes allocated");
        talker.executor.spin_some();
        listener.executor.spin_some();
    }
}

#[test]
fn a_transient_local_megabyte_is_kept_once_in_the_form_of_its_readers() {
    let qos = QosProfile::default().transient_local().keep_all();
    let callbacks = CallbackCounter::default();
    let (talker, listener, publisher, _subscription) =
        connected_with::<UInt8MultiArray>(&callbacks, &qos);
    let message = UInt8MultiArray {
        data: vec![7; 1 << 20],
        ..Default::default()
    };
    for round in 1..=4 {
        let (_, allocated) = snapshot();
        publisher.publish(&message).unwrap();
        let out = snapshot().1 - allocated;
        assert!(out < 10_000, "{out} bytes allocated");
        spin_both_until(&talker, &listener, || callbacks.count() == round);
    }
    let late = talker
        .node
        .create_polled_subscription::<UInt8MultiArray>("t".qos(&qos))
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
fn a_sleeping_reader_is_woken_once_per_shared_memory_message() {
    let callbacks = CallbackCounter::default();
    let (talker, listener, publisher, _subscription) = connected::<Text>(&callbacks);
    let over = AtomicBool::new(false);
    let (counters, count) = (listener.counters.clone(), callbacks.clone());
    std::thread::scope(|scope| {
        let executor = listener.executor;
        let over = &over;
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                executor.spin_once(TIMEOUT);
            }
        });
        // Before each wait the listener has armed its doorbell.
        let asleep_again = |waits: u64| {
            while counters.snapshot().waits == waits {
                std::thread::yield_now();
            }
        };
        let mut round = |n: usize| {
            let waits = counters.snapshot().waits;
            publisher.publish(&Text::default()).unwrap();
            while count.count() < n {
                std::thread::yield_now();
            }
            asleep_again(waits);
        };
        let (first, rounds) = (20, 100);
        (1..=first).for_each(&mut round);
        let (waits, rung) = (
            counters.snapshot().waits,
            connection_counts(&talker).doorbells_rung,
        );
        (first + 1..=first + rounds).for_each(&mut round);
        let waits = counters.snapshot().waits - waits;
        let rung = connection_counts(&talker).doorbells_rung - rung;
        println!("{rounds} messages: {rung} rung, {waits} waits");
        over.store(true, Ordering::Relaxed);
        listener.context.shutdown();
        let (rung, waits) = (rung as usize, waits as usize);
        assert!((rounds - rounds / 10..=rounds).contains(&rung), "{rung}");
        // Protocol timers wake it now and then, besides.
        assert!(waits <= rounds + rounds / 5, "{waits}");
    });
}

#[test]
fn a_loaned_megabyte_is_never_copied() {
    const BYTES: usize = 1 << 20;
    let callbacks = CallbackCounter::default();
    let domain = unused_domain();
    let (talker, listener) = (
        CountingProcess::open(domain, true),
        CountingProcess::open(domain, true),
    );
    let (publisher, _subscription) = {
        let sink = callbacks.clone();
        let callback = move |array: MessageView<'_, UInt8MultiArray>| {
            assert!(matches!(array.data, Cow::Borrowed(_)));
            assert_eq!((array.data.len(), array.data[77]), (BYTES, 7));
            sink.note();
        };
        let views = listener
            .node
            .create_subscription("t".keep_last(10), in_place(callback));
        let publisher = talker
            .node
            .create_publisher::<UInt8MultiArray>("t".keep_last(10));
        (publisher.unwrap(), views.unwrap())
    };
    await_connection(&talker, &listener, || publisher.matched_count() == 1);
    let mut draft = UInt8MultiArray::default();
    for round in 1..=5 {
        let (before, counts) = (talker.system_calls(), connection_counts(&talker));
        let (_, allocated) = snapshot();
        let loan = publisher.borrow_loaned_sequence(&mut draft, |array| &mut array.data, BYTES);
        let mut loan = loan.unwrap();
        // Samples of the first two rounds are still there.
        if round <= 2 {
            loan.fill(7);
        }
        publisher.publish_loaned(loan).unwrap();
        let out = snapshot().1 - allocated;
        assert!(out < 2_000, "{out} bytes allocated");
        assert_eq!(talker.system_calls().sends, before.sends);
        let after = connection_counts(&talker);
        let named = after.zero_copy - counts.zero_copy;
        assert_eq!((named, after.copied), (1, counts.copied));

        let (_, allocated) = snapshot();
        while callbacks.count() < round {
            listener.executor.spin_once(Duration::from_millis(1));
        }
        let within = snapshot().1 - allocated;
        assert!(within < 2_000, "{within} bytes allocated");
        talker.executor.spin_some();
        listener.executor.spin_some();
    }
}

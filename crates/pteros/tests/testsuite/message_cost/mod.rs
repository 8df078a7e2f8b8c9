//! Cost of a message, counted: allocations, copies, system calls and thread hops of
//! the path that ARCHITECTURE.md describes.
//!
//! Each count is taken after a warm-up, when queues have their size.

mod deferred_send;
mod intra_process;
mod local_and_remote;
mod secured;
mod shared_memory;
mod static_allocation;
mod system_calls;
mod traced;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::prelude::*;
use pteros::shared_memory::SharedMemoryOptions;
use pteros::trace::TraceOptions;

use pteros_test_support::allocations::snapshot;
use system_calls::{CallCounters, CountingEnv, SystemCalls};

const TIMEOUT: Duration = Duration::from_secs(20);
const ROUNDS: u64 = 100;

/// Batches of rounds: the context's own announcements, which this thread sends when
/// due, fall into some of them.
const BATCHES: usize = 5;

/// Allocations of a batch of rounds without other work due, after a warm-up.
fn allocations_of(mut round: impl FnMut()) -> u64 {
    (0..20).for_each(|_| round());
    let batch = |_| {
        let (before, _) = snapshot();
        (0..ROUNDS).for_each(|_| round());
        snapshot().0 - before
    };
    (0..BATCHES).map(batch).min().unwrap()
}

/// A domain that no other test of this program uses. Tests run in parallel, and
/// equal topics of two tests would match.
fn unused_domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    17 + NEXT.fetch_add(1, Ordering::Relaxed) % 24
}

/// A context that counts system calls, and its executor.
struct CountingProcess {
    context: Context,
    node: Node,
    executor: SingleThreadedExecutor,
    counters: Arc<CallCounters>,
}

impl CountingProcess {
    /// Two processes of an unused domain, with peers reached by UDP.
    fn two() -> [Self; 2] {
        let domain = unused_domain();
        [Self::new(domain), Self::new(domain)]
    }

    /// With peers reached by UDP.
    fn new(domain: u32) -> Self {
        Self::open(domain, false)
    }

    /// With peers reached by UDP, or connected by shared memory.
    fn open(domain: u32, connected: bool) -> Self {
        Self::open_traced(domain, connected, None)
    }

    fn open_traced(domain: u32, connected: bool, trace: Option<TraceOptions>) -> Self {
        Self::with(ContextOptions {
            shared_memory: SharedMemoryOptions {
                enabled: connected,
                ..SharedMemoryOptions::default()
            },
            trace,
            ..ContextOptions::local(domain)
        })
    }

    fn with(options: ContextOptions) -> Self {
        let env = CountingEnv::new();
        let counters = env.counters.clone();
        let context = Context::with_platform(Arc::new(env), options).unwrap();
        let node = context.create_node("party").unwrap();
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node).unwrap();
        Self {
            context,
            node,
            executor,
            counters,
        }
    }

    fn system_calls(&self) -> SystemCalls {
        self.counters.snapshot()
    }
}

/// Counts callbacks and records the thread of the last one.
#[derive(Clone, Default)]
struct CallbackCounter {
    count: Arc<AtomicUsize>,
    thread: Arc<Mutex<Option<ThreadId>>>,
}

impl CallbackCounter {
    fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        *self.thread.lock().unwrap() = Some(std::thread::current().id());
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    #[track_caller]
    fn assert_on_this_thread(&self) {
        assert_eq!(
            *self.thread.lock().unwrap(),
            Some(std::thread::current().id())
        );
    }
}

/// Spins both in turn until `done` is true.
#[track_caller]
fn spin_both_until(a: &CountingProcess, b: &CountingProcess, mut done: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if done() {
            return;
        }
        a.executor.spin_once(Duration::from_micros(500));
        b.executor.spin_once(Duration::from_micros(500));
    }
    panic!("not within many turns");
}

/// Publishes a small message repeatedly, and counts allocations and system calls of
/// publishing and receiving.
struct Rounds<'p> {
    talker: &'p CountingProcess,
    listener: &'p CountingProcess,
    publisher: &'p Publisher<Text>,
    callbacks: &'p CallbackCounter,
    expected: usize,
    sent: (u64, SystemCalls),
    received: (u64, SystemCalls),
}

impl<'p> Rounds<'p> {
    fn new(
        talker: &'p CountingProcess,
        listener: &'p CountingProcess,
        publisher: &'p Publisher<Text>,
        callbacks: &'p CallbackCounter,
    ) -> Self {
        Self {
            talker,
            listener,
            publisher,
            callbacks,
            expected: 0,
            sent: Default::default(),
            received: Default::default(),
        }
    }

    fn run(&mut self, count: u64, counted: bool) {
        let message = Text {
            data: "sixty-four bytes or so, as a status or a command may be".into(),
        };
        let (talker, listener) = (self.talker, self.listener);
        for _ in 0..count {
            let (before, (allocated, _)) = (talker.system_calls(), snapshot());
            self.publisher.publish(&message).unwrap();
            if counted {
                self.sent.0 += snapshot().0 - allocated;
                self.sent.1 = sum(self.sent.1, before, talker.system_calls());
            }
            self.expected += 1;
            let (before, (allocated, _)) = (listener.system_calls(), snapshot());
            while self.callbacks.count() < self.expected {
                listener.executor.spin_once(TIMEOUT);
            }
            if counted {
                self.received.0 += snapshot().0 - allocated;
                self.received.1 = sum(self.received.1, before, listener.system_calls());
            }
            // Acknowledgements and timers between messages are not the message's.
            talker.executor.spin_some();
            listener.executor.spin_some();
        }
    }
}

/// The cost of [`ROUNDS`] small messages for the publisher and for the
/// subscription, on this thread.
fn small_messages(talker: &CountingProcess, listener: &CountingProcess) -> [(u64, SystemCalls); 2] {
    let callbacks = CallbackCounter::default();
    let sink = callbacks.clone();
    let subscription = listener
        .node
        .create_subscription::<Text>("t".keep_last(10), move |_| sink.note())
        .unwrap();
    let publisher = talker
        .node
        .create_publisher::<Text>("t".keep_last(10))
        .unwrap();
    spin_both_until(talker, listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    let mut rounds = Rounds::new(talker, listener, &publisher, &callbacks);
    rounds.run(100, false);
    rounds.run(ROUNDS, true);
    let Rounds { sent, received, .. } = rounds;
    println!("publishing {ROUNDS}: {sent:?}; receiving: {received:?}");
    callbacks.assert_on_this_thread();
    [sent, received]
}

#[test]
fn over_udp_a_small_message_is_one_datagram_and_one_wake_up() {
    let [talker, listener] = CountingProcess::two();
    let [sent, received] = small_messages(&talker, &listener);

    let (allocations, system_calls) = sent;
    assert!(
        allocations <= 2 * ROUNDS,
        "the payload and its count of owners"
    );
    // Now and then one more: a separate heartbeat that requests an acknowledgement.
    assert!(
        (ROUNDS..=ROUNDS + ROUNDS / 10).contains(&system_calls.sends),
        "{system_calls:?}"
    );
    assert_eq!(
        (
            system_calls.receives,
            system_calls.waits,
            system_calls.wakes
        ),
        (0, 0, 0)
    );

    let (allocations, system_calls) = received;
    // The payload and the decoded string; queues grow no more.
    assert!(allocations <= 2 * ROUNDS + ROUNDS / 10, "{allocations}");
    assert!(
        (ROUNDS..=ROUNDS + ROUNDS / 10).contains(&system_calls.receives),
        "{system_calls:?}"
    );
    assert!(
        system_calls.waits <= ROUNDS + ROUNDS / 10,
        "{system_calls:?}"
    );
    assert_eq!(system_calls.wakes, 0, "nobody else is woken");
}

#[test]
fn over_udp_user_code_does_not_wait_until_its_message_is_acknowledged() {
    const MESSAGES: usize = 20;
    let [talker, listener] = CountingProcess::two();
    let callbacks = CallbackCounter::default();
    let in_callback = Arc::new(Mutex::new(0));
    let (sink, noted, counters) = (
        callbacks.clone(),
        in_callback.clone(),
        listener.counters.clone(),
    );
    let hear = move |_| {
        *noted.lock().unwrap() = counters.snapshot().sends;
        sink.note();
    };
    let subscription = listener
        .node
        .create_subscription::<Text>("t".keep_last(10), hear);
    let subscription = subscription.unwrap();
    let publisher = talker
        .node
        .create_publisher::<Text>("t".keep_last(10))
        .unwrap();
    spin_both_until(&talker, &listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    let (mut first, mut soon_after) = (0, 0);
    for n in 1..=MESSAGES {
        // After a pause a message requests its acknowledgement.
        let pause = Duration::from_millis(6);
        talker.executor.spin_until(|| false, pause);
        listener.executor.spin_some();
        let before = listener.system_calls().sends;
        publisher.publish(&Text::default()).unwrap();
        while callbacks.count() < n {
            listener.executor.spin_once(TIMEOUT);
        }
        first += usize::from(*in_callback.lock().unwrap() == before);
        listener.executor.spin_some();
        soon_after += usize::from(listener.system_calls().sends > before);
    }
    // An announcement falls into some of them.
    let most = MESSAGES - 4..=MESSAGES;
    assert!(most.contains(&first), "{first} callbacks were first");
    assert!(most.contains(&soon_after), "{soon_after} acknowledgements");
}

#[test]
fn with_a_latency_budget_a_hundred_small_messages_are_a_few_datagrams() {
    let [talker, listener] = CountingProcess::two();
    let callbacks = CallbackCounter::default();
    let sink = callbacks.clone();
    let budget = QosProfile::default()
        .keep_last(1_000)
        .latency_budget(Duration::from_secs(60));
    let subscription = listener
        .node
        .create_subscription::<Text>("t".qos(&budget), move |_| sink.note())
        .unwrap();
    let publisher = talker
        .node
        .create_publisher::<Text>("t".qos(&budget))
        .unwrap();
    spin_both_until(&talker, &listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    let message = Text {
        data: "sixty-four bytes or so, as a status or a command may be".into(),
    };
    // A reader that has acknowledged gets shorter datagrams.
    publisher.publish(&message).unwrap();
    publisher.flush();
    spin_both_until(&talker, &listener, || callbacks.count() == 1);
    talker.executor.spin_some();

    let (sent, received) = (talker.system_calls(), listener.system_calls());
    for _ in 0..ROUNDS {
        publisher.publish(&message).unwrap();
    }
    assert_eq!(talker.system_calls().sends, sent.sends, "nothing yet");
    publisher.flush();
    let sends = talker.system_calls().sends - sent.sends;
    while callbacks.count() as u64 <= ROUNDS {
        listener.executor.spin_once(TIMEOUT);
    }
    let receives = listener.system_calls().receives - received.receives;
    println!("{ROUNDS} messages: {sends} sends, {receives} receives");
    assert!(sends <= 2, "{sends}");
    assert!(receives <= 2 + ROUNDS / 10, "{receives}");
}

fn sum(total: SystemCalls, before: SystemCalls, after: SystemCalls) -> SystemCalls {
    SystemCalls {
        sends: total.sends + after.sends - before.sends,
        receives: total.receives + after.receives - before.receives,
        waits: total.waits + after.waits - before.waits,
        wakes: total.wakes + after.wakes - before.wakes,
        monotonic_reads: total.monotonic_reads + after.monotonic_reads - before.monotonic_reads,
        wall_reads: total.wall_reads + after.wall_reads - before.wall_reads,
    }
}

#[test]
fn a_megabyte_is_copied_once_on_the_way_out_and_twice_on_the_way_in() {
    const BYTES: usize = 1 << 20;
    let [talker, listener] = CountingProcess::two();
    let callbacks = CallbackCounter::default();
    let sink = callbacks.clone();
    let subscription = listener
        .node
        .create_subscription::<UInt8MultiArray>("t".keep_last(10), move |_| sink.note())
        .unwrap();
    let publisher = talker
        .node
        .create_publisher::<UInt8MultiArray>("t".keep_last(10))
        .unwrap();
    spin_both_until(&talker, &listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    let message = UInt8MultiArray {
        data: vec![7; BYTES],
        ..Default::default()
    };
    let before = talker.system_calls();
    let (_, allocated) = snapshot();
    publisher.publish(&message).unwrap();
    let out = snapshot().1 - allocated;
    let sends = talker.system_calls().sends - before.sends;
    assert!(out < BYTES as u64 * 11 / 10, "{out} bytes allocated");
    assert_eq!(sends, (BYTES as u64).div_ceil(63_000));

    let (_, allocated) = snapshot();
    while callbacks.count() == 0 {
        listener.executor.spin_once(Duration::from_millis(1));
        talker.executor.spin_some();
    }
    let intra_process = snapshot().1 - allocated;
    // The reassembled sample, and the message decoded from it.
    assert!(
        intra_process < BYTES as u64 * 22 / 10,
        "{intra_process} bytes allocated"
    );
}

//! ARCHITECTURE.md's walk of one message, counted: allocations, system calls,
//! thread hops. Each count is taken after a warm-up, when queues have their
//! size.

mod allocations;
mod aside;
mod beside;
mod calls;
mod fixed;
mod links;
mod secured;
mod traced;
mod within;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use pteros::SharedMemoryOptions;
use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::prelude::*;
use pteros::trace::TraceOptions;

use allocations::so_far;
use calls::{Calls, Counters, CountingEnv};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

const PATIENCE: Duration = Duration::from_secs(20);
const ROUNDS: u64 = 100;

/// Batches of rounds: the context's own announcements, which this thread sends
/// when they are due, fall into some of them.
const BATCHES: usize = 5;

/// What a batch of rounds allocates if nothing else is due, after a warm-up.
fn allocations_of(mut round: impl FnMut()) -> u64 {
    (0..20).for_each(|_| round());
    let batch = |_| {
        let (before, _) = so_far();
        (0..ROUNDS).for_each(|_| round());
        so_far().0 - before
    };
    (0..BATCHES).map(batch).min().unwrap()
}

/// A context that counts, and an executor for it.
struct Party {
    context: Context,
    node: Node,
    executor: SingleThreadedExecutor,
    counters: Arc<Counters>,
}

impl Party {
    /// Whose peers are reached by UDP.
    fn new(domain: u32) -> Self {
        Self::open(domain, false)
    }

    /// Whose peers are reached by UDP, or linked by shared memory.
    fn open(domain: u32, linked: bool) -> Self {
        Self::open_traced(domain, linked, None)
    }

    fn open_traced(domain: u32, linked: bool, trace: Option<TraceOptions>) -> Self {
        Self::with(ContextOptions {
            shared_memory: SharedMemoryOptions {
                on: linked,
                ..SharedMemoryOptions::default()
            },
            trace,
            ..ContextOptions::local(domain)
        })
    }

    fn with(options: ContextOptions) -> Self {
        let env = CountingEnv::new();
        let counters = env.counters.clone();
        let context = Context::with_env(Arc::new(env), options).unwrap();
        let node = context.node("party").unwrap();
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node).unwrap();
        Self {
            context,
            node,
            executor,
            counters,
        }
    }

    fn calls(&self) -> Calls {
        self.counters.so_far()
    }
}

/// Counts callbacks and notes which thread ran the last one.
#[derive(Clone, Default)]
struct Heard {
    count: Arc<AtomicUsize>,
    thread: Arc<Mutex<Option<ThreadId>>>,
}

impl Heard {
    fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        *self.thread.lock().unwrap() = Some(std::thread::current().id());
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    #[track_caller]
    fn on_this_thread(&self) {
        assert_eq!(
            *self.thread.lock().unwrap(),
            Some(std::thread::current().id())
        );
    }
}

/// Turns both until something is so.
#[track_caller]
fn until(a: &Party, b: &Party, mut done: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if done() {
            return;
        }
        a.executor.spin_once(Duration::from_micros(500));
        b.executor.spin_once(Duration::from_micros(500));
    }
    panic!("not within many turns");
}

/// A small message again and again, and what publishing and receiving it cost:
/// allocations and calls.
struct Rounds<'p> {
    talker: &'p Party,
    listener: &'p Party,
    publisher: &'p Publisher<Text>,
    heard: &'p Heard,
    expected: usize,
    sent: (u64, Calls),
    received: (u64, Calls),
}

impl<'p> Rounds<'p> {
    fn new(
        talker: &'p Party,
        listener: &'p Party,
        publisher: &'p Publisher<Text>,
        heard: &'p Heard,
    ) -> Self {
        Self {
            talker,
            listener,
            publisher,
            heard,
            expected: 0,
            sent: Default::default(),
            received: Default::default(),
        }
    }

    fn play(&mut self, count: u64, counted: bool) {
        let message = Text {
            data: "sixty-four bytes or so, as a status or a command may be".into(),
        };
        let (talker, listener) = (self.talker, self.listener);
        for _ in 0..count {
            let (before, (allocated, _)) = (talker.calls(), so_far());
            self.publisher.publish(&message).unwrap();
            if counted {
                self.sent.0 += so_far().0 - allocated;
                self.sent.1 = sum(self.sent.1, before, talker.calls());
            }
            self.expected += 1;
            let (before, (allocated, _)) = (listener.calls(), so_far());
            while self.heard.count() < self.expected {
                listener.executor.spin_once(PATIENCE);
            }
            if counted {
                self.received.0 += so_far().0 - allocated;
                self.received.1 = sum(self.received.1, before, listener.calls());
            }
            // Answers and timers between messages are not the message's.
            talker.executor.spin_some();
            listener.executor.spin_some();
        }
    }
}

/// What [`ROUNDS`] small messages cost the one who sends them and the one who hears
/// them, on this thread.
fn small_messages(talker: &Party, listener: &Party) -> [(u64, Calls); 2] {
    let heard = Heard::default();
    let sink = heard.clone();
    let subscription = listener
        .node
        .create_subscription::<Text>("t", 10, move |_| sink.note())
        .unwrap();
    let publisher = talker.node.create_publisher::<Text>("t", 10).unwrap();
    until(talker, listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    let mut rounds = Rounds::new(talker, listener, &publisher, &heard);
    rounds.play(100, false);
    rounds.play(ROUNDS, true);
    let Rounds { sent, received, .. } = rounds;
    println!("publishing {ROUNDS}: {sent:?}; receiving: {received:?}");
    heard.on_this_thread();
    [sent, received]
}

#[test]
fn over_udp_a_small_message_is_one_datagram_and_one_wake_up() {
    let (talker, listener) = (Party::new(201), Party::new(201));
    let [sent, received] = small_messages(&talker, &listener);

    let (allocations, calls) = sent;
    assert!(
        allocations <= 2 * ROUNDS,
        "the payload and its count of owners"
    );
    // Now and then one more: a heartbeat of its own that asks for an answer.
    assert!(
        (ROUNDS..=ROUNDS + ROUNDS / 10).contains(&calls.sends),
        "{calls:?}"
    );
    assert_eq!((calls.receives, calls.waits, calls.wakes), (0, 0, 0));

    let (allocations, calls) = received;
    // The payload and the decoded string; queues grow no more.
    assert!(allocations <= 2 * ROUNDS + ROUNDS / 10, "{allocations}");
    assert!(
        (ROUNDS..=ROUNDS + ROUNDS / 10).contains(&calls.receives),
        "{calls:?}"
    );
    assert!(calls.waits <= ROUNDS + ROUNDS / 10, "{calls:?}");
    assert_eq!(calls.wakes, 0, "nobody else is woken");
}

#[test]
fn over_udp_user_code_does_not_wait_until_its_message_is_acknowledged() {
    const MESSAGES: usize = 20;
    let (talker, listener) = (Party::new(223), Party::new(223));
    let heard = Heard::default();
    let in_callback = Arc::new(Mutex::new(0));
    let (sink, noted, counters) = (
        heard.clone(),
        in_callback.clone(),
        listener.counters.clone(),
    );
    let hear = move |_| {
        *noted.lock().unwrap() = counters.so_far().sends;
        sink.note();
    };
    let subscription = listener.node.create_subscription::<Text>("t", 10, hear);
    let subscription = subscription.unwrap();
    let publisher = talker.node.create_publisher::<Text>("t", 10).unwrap();
    until(&talker, &listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    let (mut first, mut soon_after) = (0, 0);
    for n in 1..=MESSAGES {
        // After a pause a message asks for its acknowledgement.
        let pause = Duration::from_millis(6);
        talker.executor.spin_until(|| false, pause);
        listener.executor.spin_some();
        let before = listener.calls().sends;
        publisher.publish(&Text::default()).unwrap();
        while heard.count() < n {
            listener.executor.spin_once(PATIENCE);
        }
        first += usize::from(*in_callback.lock().unwrap() == before);
        listener.executor.spin_some();
        soon_after += usize::from(listener.calls().sends > before);
    }
    // An announcement falls into some of them.
    let most = MESSAGES - 4..=MESSAGES;
    assert!(most.contains(&first), "{first} callbacks were first");
    assert!(most.contains(&soon_after), "{soon_after} acknowledgements");
}

#[test]
fn with_a_latency_budget_a_hundred_small_messages_are_a_few_datagrams() {
    let (talker, listener) = (Party::new(203), Party::new(203));
    let heard = Heard::default();
    let sink = heard.clone();
    let budget = QosProfile::default()
        .keep_last(1_000)
        .latency_budget(Duration::from_secs(60));
    let subscription = listener
        .node
        .create_subscription::<Text>("t", &budget, move |_| sink.note())
        .unwrap();
    let publisher = talker.node.create_publisher::<Text>("t", &budget).unwrap();
    until(&talker, &listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    let message = Text {
        data: "sixty-four bytes or so, as a status or a command may be".into(),
    };
    // A reader that has answered is told more briefly.
    publisher.publish(&message).unwrap();
    publisher.flush();
    until(&talker, &listener, || heard.count() == 1);
    talker.executor.spin_some();

    let (sent, received) = (talker.calls(), listener.calls());
    for _ in 0..ROUNDS {
        publisher.publish(&message).unwrap();
    }
    assert_eq!(talker.calls().sends, sent.sends, "nothing yet");
    publisher.flush();
    let sends = talker.calls().sends - sent.sends;
    while heard.count() as u64 <= ROUNDS {
        listener.executor.spin_once(PATIENCE);
    }
    let receives = listener.calls().receives - received.receives;
    println!("{ROUNDS} messages: {sends} sends, {receives} receives");
    assert!(sends <= 2, "{sends}");
    assert!(receives <= 2 + ROUNDS / 10, "{receives}");
}

fn sum(total: Calls, before: Calls, after: Calls) -> Calls {
    Calls {
        sends: total.sends + after.sends - before.sends,
        receives: total.receives + after.receives - before.receives,
        waits: total.waits + after.waits - before.waits,
        wakes: total.wakes + after.wakes - before.wakes,
        nows: total.nows + after.nows - before.nows,
        walls: total.walls + after.walls - before.walls,
    }
}

#[test]
fn a_megabyte_is_copied_once_on_the_way_out_and_twice_on_the_way_in() {
    const BYTES: usize = 1 << 20;
    let (talker, listener) = (Party::new(202), Party::new(202));
    let heard = Heard::default();
    let sink = heard.clone();
    let subscription = listener
        .node
        .create_subscription::<UInt8MultiArray>("t", 10, move |_| sink.note())
        .unwrap();
    let publisher = talker
        .node
        .create_publisher::<UInt8MultiArray>("t", 10)
        .unwrap();
    until(&talker, &listener, || {
        publisher.matched_count() == 1 && subscription.matched_count() == 1
    });
    let message = UInt8MultiArray {
        data: vec![7; BYTES],
        ..Default::default()
    };
    let before = talker.calls();
    let (_, allocated) = so_far();
    publisher.publish(&message).unwrap();
    let out = so_far().1 - allocated;
    let sends = talker.calls().sends - before.sends;
    assert!(out < BYTES as u64 * 11 / 10, "{out} bytes allocated");
    assert_eq!(sends, (BYTES as u64).div_ceil(63_000));

    let (_, allocated) = so_far();
    while heard.count() == 0 {
        listener.executor.spin_once(Duration::from_millis(1));
        talker.executor.spin_some();
    }
    let within = so_far().1 - allocated;
    // The sample put together, and the message decoded from it.
    assert!(within < BYTES as u64 * 22 / 10, "{within} bytes allocated");
}

//! Outbox of a viewer: what waits for its socket.
//!
//! Control messages go first, in order. Data wait by subscription, each with a limit, and
//! the newest are kept: a slow viewer skips messages of a large topic and still gets each
//! of a small one. Latched messages go before others. Among the rest the subscription goes
//! next that has sent the fewest bytes (fair queueing). Skipped messages are counted.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_net::Waker;
use tungstenite::Message;

/// Control messages that wait, and their bytes. A viewer that lets more wait is cut off.
const CONTROL_MAX: usize = 4096;
const CONTROL_BYTES_MAX: usize = 64 << 20;
/// Bytes of data that wait in all, and by subscription; one message waits in any case.
const DATA_BYTES_MAX: usize = 64 << 20;
const QUEUE_BYTES_MAX: usize = 16 << 20;

/// Waiting messages of one viewer. Thread-safe.
pub struct Outbox {
    state: Mutex<State>,
    waker: Waker,
    is_woken: AtomicBool,
}

#[derive(Default)]
struct State {
    control: VecDeque<Message>,
    control_bytes: usize,
    is_cut: bool,
    /// The newest time, if it has not been sent.
    time: Option<Message>,
    queues: BTreeMap<u32, Queue>,
    data_bytes: usize,
    /// The served bytes of the queue that was served last.
    served: u64,
}

struct Queue {
    options: QueueOptions,
    waiting: VecDeque<Data>,
    bytes: usize,
    served: u64,
    skipped: u64,
}

/// How the messages of a subscription wait.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    pub channel: u32,
    /// Messages that wait; at least one.
    pub depth: usize,
    /// Whether its messages go before those of others.
    pub is_latched: bool,
}

struct Data {
    log_time: u64,
    payload: Bytes,
}

/// The next message for the socket.
#[derive(Debug, PartialEq)]
pub enum Outgoing {
    Control(Message),
    Data {
        subscription: u32,
        log_time: u64,
        payload: Bytes,
    },
}

/// How many messages a channel skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub channel: u32,
    pub count: u64,
}

impl Outbox {
    /// An empty outbox.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            state: Mutex::default(),
            waker: Waker::new()?,
            is_woken: AtomicBool::new(false),
        })
    }

    /// Readable when there is something new.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Wakes the thread of the socket.
    pub fn wake(&self) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Ends the wake-up, before [`Self::next`].
    pub fn drain(&self) {
        self.waker.drain();
        self.is_woken.store(false, Ordering::Release);
    }

    /// Queues a control message.
    pub fn send(&self, message: Message) {
        let mut state = self.state.lock();
        state.control_bytes += message.len();
        state.control.push_back(message);
        if state.control.len() > CONTROL_MAX || state.control_bytes > CONTROL_BYTES_MAX {
            state.is_cut = true;
            state.control.clear();
            state.control_bytes = 0;
        }
        drop(state);
        self.wake();
    }

    /// Replaces the time that waits.
    pub fn set_time(&self, message: Message) {
        self.state.lock().time = Some(message);
        self.wake();
    }

    /// Whether the viewer let too many control messages wait.
    pub fn is_cut(&self) -> bool {
        self.state.lock().is_cut
    }

    /// Opens the queue of a subscription.
    pub fn open(&self, subscription: u32, options: QueueOptions) {
        let mut state = self.state.lock();
        let queue = Queue {
            options,
            waiting: VecDeque::new(),
            bytes: 0,
            served: state.served,
            skipped: 0,
        };
        state.queues.insert(subscription, queue);
    }

    /// Closes the queue of a subscription and drops its messages.
    pub fn close(&self, subscription: u32) {
        let mut state = self.state.lock();
        if let Some(queue) = state.queues.remove(&subscription) {
            state.data_bytes -= queue.bytes;
        }
    }

    /// Queues a message of a subscription. The oldest ones make space.
    pub fn push(&self, subscription: u32, log_time: u64, payload: Bytes) {
        let mut state = self.state.lock();
        let now = state.served;
        let Some(queue) = state.queues.get_mut(&subscription) else {
            return;
        };
        if queue.waiting.is_empty() {
            // An idle queue saves nothing up.
            queue.served = queue.served.max(now);
        }
        let length = payload.len();
        queue.waiting.push_back(Data { log_time, payload });
        queue.bytes += length;
        let mut dropped = 0;
        while queue.waiting.len() > queue.options.depth
            || (queue.bytes > QUEUE_BYTES_MAX && queue.waiting.len() > 1)
        {
            dropped += queue.drop_oldest();
        }
        state.data_bytes = state.data_bytes + length - dropped;
        state.keep_total();
        drop(state);
        self.wake();
    }

    /// Takes the next message.
    pub fn next(&self) -> Option<Outgoing> {
        let mut state = self.state.lock();
        if let Some(message) = state.control.pop_front() {
            state.control_bytes -= message.len();
            return Some(Outgoing::Control(message));
        }
        if let Some(time) = state.time.take() {
            return Some(Outgoing::Control(time));
        }
        let waiting = state.queues.iter_mut();
        let waiting = waiting.filter(|(_, queue)| !queue.waiting.is_empty());
        let (subscription, queue) =
            waiting.min_by_key(|(_, queue)| (!queue.options.is_latched, queue.served))?;
        let subscription = *subscription;
        let Data { log_time, payload } = queue.waiting.pop_front()?;
        queue.bytes -= payload.len();
        let served = queue.served;
        queue.served += payload.len() as u64 + 1;
        if !queue.options.is_latched {
            state.served = state.served.max(served);
        }
        state.data_bytes -= payload.len();
        Some(Outgoing::Data {
            subscription,
            log_time,
            payload,
        })
    }

    /// Skipped messages by channel, since each was subscribed to.
    pub fn skipped(&self) -> Vec<Skipped> {
        let state = self.state.lock();
        let skipped = state.queues.values().filter(|queue| queue.skipped > 0);
        skipped
            .map(|queue| Skipped {
                channel: queue.options.channel,
                count: queue.skipped,
            })
            .collect()
    }
}

impl State {
    /// Drops the oldest messages of the largest queues until the total fits.
    fn keep_total(&mut self) {
        while self.data_bytes > DATA_BYTES_MAX {
            let largest = self.queues.values_mut().max_by_key(|queue| queue.bytes);
            let Some(largest) = largest.filter(|queue| queue.bytes > 0) else {
                return;
            };
            self.data_bytes -= largest.drop_oldest();
        }
    }
}

impl Queue {
    /// Drops the oldest message; returns its bytes.
    fn drop_oldest(&mut self) -> usize {
        let bytes = self
            .waiting
            .pop_front()
            .map_or(0, |data| data.payload.len());
        self.bytes -= bytes;
        self.skipped += 1;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(channel: u32, depth: usize) -> QueueOptions {
        QueueOptions {
            channel,
            depth,
            is_latched: false,
        }
    }

    fn taken(outbox: &Outbox) -> Vec<u32> {
        let next = || match outbox.next()? {
            Outgoing::Data { subscription, .. } => Some(subscription),
            Outgoing::Control(_) => Some(0),
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn the_newest_messages_are_kept_and_the_skipped_counted() {
        let outbox = Outbox::new().unwrap();
        outbox.open(1, options(7, 2));
        for time in 0..5 {
            outbox.push(1, time, Bytes::from_static(b"x"));
        }
        let times = std::iter::from_fn(|| match outbox.next()? {
            Outgoing::Data { log_time, .. } => Some(log_time),
            Outgoing::Control(_) => None,
        });
        assert_eq!(times.collect::<Vec<_>>(), [3, 4]);
        assert_eq!(
            outbox.skipped(),
            [Skipped {
                channel: 7,
                count: 3
            }]
        );
    }

    #[test]
    fn small_messages_do_not_wait_for_large_ones() {
        let outbox = Outbox::new().unwrap();
        outbox.open(1, options(1, 100));
        outbox.open(2, options(2, 100));
        for _ in 0..3 {
            outbox.push(1, 0, Bytes::from(vec![0; 1_000_000]));
        }
        for _ in 0..10 {
            outbox.push(2, 0, Bytes::from_static(b"small"));
        }
        assert_eq!(taken(&outbox), [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1]);
    }

    #[test]
    fn control_and_latched_messages_go_first() {
        let outbox = Outbox::new().unwrap();
        outbox.open(1, options(1, 10));
        let latched = QueueOptions {
            is_latched: true,
            ..options(2, 10)
        };
        outbox.open(2, latched);
        outbox.push(1, 0, Bytes::from_static(b"a"));
        outbox.push(2, 0, Bytes::from_static(b"b"));
        outbox.send(Message::text("{}"));
        assert_eq!(taken(&outbox), [0, 2, 1]);
    }

    #[test]
    fn memory_is_bounded() {
        let outbox = Outbox::new().unwrap();
        let large = Bytes::from(vec![0; 5 << 20]);
        for subscription in 0..20 {
            outbox.open(subscription, options(subscription, 100));
            (0..10).for_each(|time| outbox.push(subscription, time, large.clone()));
        }
        assert!(outbox.state.lock().data_bytes <= DATA_BYTES_MAX);
        assert_eq!(taken(&outbox).len(), DATA_BYTES_MAX / large.len());
        assert_eq!(outbox.state.lock().data_bytes, 0);
        (0..=CONTROL_MAX).for_each(|_| outbox.send(Message::text("{}")));
        assert!(outbox.is_cut() && outbox.next().is_none());
    }
}

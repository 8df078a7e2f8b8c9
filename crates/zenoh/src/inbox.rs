//! The inbox: arrivals that Zenoh's threads have received and the context has not
//! polled yet.
//!
//! A callback of Zenoh puts an arrival in and schedules a poll; it runs no code of the
//! user. The inbox has a limit for data and one for tokens, so that a flood of one
//! leaves space for the other. What is beyond is dropped and counted. A dropped
//! sample is a gap in its writer's sequence numbers, which is reported as a loss.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;
use pteros_runtime::wire::WireScheduler;
use zenoh::query::Query;

use crate::attachment::Attachment;
use crate::gid::Gid;
use crate::session_id::SessionId;
use crate::token::TOKEN_BYTES_MAX;

/// Samples, requests and replies that wait. A spinning thread takes them within microseconds.
const ARRIVALS_MAX: usize = 16_384;
/// Bytes of their payloads: four samples of the largest size by default.
const BYTES_MAX: usize = 256 << 20;

/// Something that Zenoh has reported.
pub enum Arrival {
    /// A liveliness token has appeared, or is gone.
    Token {
        /// Its key.
        key: String,
        /// Whether it has appeared.
        is_alive: bool,
    },
    /// A sample for one local reader.
    Sample {
        /// The reader.
        reader: Guid,
        /// Sender, number and stamp.
        attachment: Attachment,
        /// The serialized message.
        payload: Bytes,
    },
    /// A request for a local server.
    Request {
        /// The server's reader of requests.
        server: Guid,
        /// Client, number and stamp.
        attachment: Attachment,
        /// The serialized request.
        payload: Bytes,
        /// The query that the reply goes to.
        query: Query,
    },
    /// A reply to a local client.
    Reply {
        /// The client's writer of requests.
        client: Guid,
        /// The number of the request.
        sequence: i64,
        /// The session that has replied, if Zenoh tells it.
        replier: Option<SessionId>,
        /// The key of the service.
        service: Arc<str>,
        /// The server's stamp.
        source_timestamp: i64,
        /// The serialized reply.
        payload: Bytes,
    },
}

impl Arrival {
    /// Bytes of its payload.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Sample { payload, .. }
            | Self::Request { payload, .. }
            | Self::Reply { payload, .. } => payload.len(),
            Self::Token { .. } => 0,
        }
    }

    /// The gid of its sender, if it has an attachment.
    pub fn sender(&self) -> Option<Gid> {
        match self {
            Self::Sample { attachment, .. } | Self::Request { attachment, .. } => {
                Some(attachment.gid)
            }
            Self::Token { .. } | Self::Reply { .. } => None,
        }
    }
}

/// See the module documentation. Thread-safe.
pub struct Inbox {
    scheduler: WireScheduler,
    waiting: Mutex<Waiting>,
    malformed: AtomicU64,
    dropped: AtomicU64,
    refused_tokens: AtomicU64,
}

struct Waiting {
    arrivals: VecDeque<Arrival>,
    /// Samples, requests and replies among them, and the bytes of their payloads.
    data: usize,
    bytes: usize,
    /// Tokens among them, and how many there may be.
    tokens: usize,
    tokens_max: usize,
    /// By local writer: whether some subscriber of another session has its key. Only
    /// the last news counts.
    has_readers: BTreeMap<Guid, bool>,
}

impl Waiting {
    fn new(tokens_max: usize) -> Self {
        Self {
            arrivals: VecDeque::new(),
            data: 0,
            bytes: 0,
            tokens: 0,
            tokens_max,
            has_readers: BTreeMap::new(),
        }
    }

    /// Appends an arrival, unless there is no space for it.
    fn push(&mut self, arrival: Arrival) -> bool {
        match arrival {
            Arrival::Token { .. } => {
                if self.tokens >= self.tokens_max {
                    return false;
                }
                self.tokens += 1;
            }
            Arrival::Sample { .. } | Arrival::Request { .. } | Arrival::Reply { .. } => {
                let bytes = self.bytes.saturating_add(arrival.bytes());
                if self.data >= ARRIVALS_MAX || bytes > BYTES_MAX {
                    return false;
                }
                self.data += 1;
                self.bytes = bytes;
            }
        }
        self.arrivals.push_back(arrival);
        true
    }

    fn pop(&mut self) -> Option<Arrival> {
        let arrival = self.arrivals.pop_front()?;
        match arrival {
            Arrival::Token { .. } => self.tokens -= 1,
            Arrival::Sample { .. } | Arrival::Request { .. } | Arrival::Reply { .. } => {
                self.data -= 1;
                self.bytes = self.bytes.saturating_sub(arrival.bytes());
            }
        }
        Some(arrival)
    }
}

impl Inbox {
    /// An empty inbox that schedules with `scheduler`, for as many tokens.
    pub fn new(scheduler: WireScheduler, tokens_max: usize) -> Self {
        Self {
            scheduler,
            waiting: Mutex::new(Waiting::new(tokens_max)),
            malformed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            refused_tokens: AtomicU64::new(0),
        }
    }

    /// Puts a token in and schedules a poll. One that is too long is not copied.
    pub fn push_token(&self, key: &str, is_alive: bool) {
        if key.len() > TOKEN_BYTES_MAX {
            self.refused_tokens.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.push(Arrival::Token {
            key: key.into(),
            is_alive,
        });
    }

    /// Puts an arrival in and schedules a poll. Drops and counts it if there is no
    /// space for it.
    pub fn push(&self, arrival: Arrival) {
        let is_token = matches!(arrival, Arrival::Token { .. });
        let mut waiting = self.waiting.lock();
        if waiting.push(arrival) {
            self.scheduler.schedule(Some(Instant::ZERO));
        } else if is_token {
            self.refused_tokens.fetch_add(1, Ordering::Relaxed);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes whether some subscriber of another session has the key of a local writer,
    /// and schedules a poll.
    pub fn note_matching(&self, writer: Guid, has_readers: bool) {
        let mut waiting = self.waiting.lock();
        waiting.has_readers.insert(writer, has_readers);
        self.scheduler.schedule(Some(Instant::ZERO));
    }

    /// Takes what [`Inbox::note_matching`] has noted since the last call.
    pub fn take_matching(&self) -> BTreeMap<Guid, bool> {
        std::mem::take(&mut self.waiting.lock().has_readers)
    }

    /// Takes the oldest arrival.
    pub fn pop(&self) -> Option<Arrival> {
        self.waiting.lock().pop()
    }

    /// Schedules the next poll: at once if something waits here, else at `at`.
    pub fn schedule(&self, at: Option<Instant>) {
        let waiting = self.waiting.lock();
        let is_empty = waiting.arrivals.is_empty() && waiting.has_readers.is_empty();
        let at_once = (!is_empty).then_some(Instant::ZERO);
        // Under the lock: the time of a new arrival must not be replaced.
        self.scheduler.schedule(at_once.or(at));
    }

    /// Counts a malformed sample, request or reply, which is dropped.
    pub fn note_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Malformed arrivals, in total.
    pub fn malformed_count(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// Tokens dropped because they were too long or the inbox had too many, in total.
    pub fn refused_token_count(&self) -> u64 {
        self.refused_tokens.load(Ordering::Relaxed)
    }

    /// Data dropped because the inbox was full, in total.
    pub fn dropped_count(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use pteros_rtps::id::{EntityId, GuidPrefix};

    use super::*;

    fn token() -> Arrival {
        Arrival::Token {
            key: "@ros2_lv/0/1/0/0/NN/%/%/node".into(),
            is_alive: true,
        }
    }

    fn sample(bytes: usize) -> Arrival {
        Arrival::Sample {
            reader: GuidPrefix([1; 12]).with(EntityId::PARTICIPANT),
            attachment: Attachment {
                sequence: 1,
                source_timestamp: 0,
                gid: Gid([2; 16]),
            },
            payload: vec![0; bytes].into(),
        }
    }

    #[test]
    fn a_flood_of_tokens_leaves_space_for_data_and_data_for_tokens() {
        let mut waiting = Waiting::new(3);
        let taken = (0..100).filter(|_| waiting.push(token())).count();
        assert_eq!(taken, 3);
        let taken = (0..ARRIVALS_MAX + 9).filter(|_| waiting.push(sample(8)));
        assert_eq!(taken.count(), ARRIVALS_MAX);
        assert_eq!(waiting.bytes, ARRIVALS_MAX * 8);
        assert!(matches!(waiting.pop(), Some(Arrival::Token { .. })));
        assert!(waiting.push(token()) && !waiting.push(token()));
        while waiting.pop().is_some() {}
        assert_eq!((waiting.data, waiting.bytes, waiting.tokens), (0, 0, 0));
    }

    #[test]
    fn payloads_have_a_limit_of_bytes() {
        let mut waiting = Waiting::new(3);
        assert!(waiting.push(sample(BYTES_MAX)));
        assert!(!waiting.push(sample(1)) && waiting.push(token()));
    }
}

//! Inbox: arrivals that Zenoh's threads have received and the context has not yet polled.
//!
//! A callback of Zenoh appends an arrival and schedules a poll. It runs no user code.
//! Data and tokens have separate limits, so a flood of one leaves space for the other.
//! Arrivals above a limit are dropped and counted. A dropped sample is a gap in its
//! writer's sequence numbers, which is reported as a loss.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;
use pteros_runtime::transport::TransportScheduler;
use zenoh::query::Query;

use crate::attachment::Attachment;
use crate::gid::Gid;
use crate::session_id::SessionId;
use crate::token::TOKEN_BYTES_MAX;

/// Samples, requests and replies in the inbox. A spinning thread takes them within
/// microseconds.
const ARRIVALS_MAX: usize = 16_384;
/// Bytes of their payloads: four samples of the default maximum size.
const BYTES_MAX: usize = 256 << 20;

/// An event that Zenoh has reported.
pub enum Arrival {
    /// A liveliness token was declared or undeclared.
    Token {
        /// Key expression of the token.
        key: String,
        /// True for a declaration.
        is_alive: bool,
    },
    /// A sample for one local reader.
    Sample {
        /// GUID of the local subscription.
        reader: Guid,
        /// Sender, sequence number and source timestamp.
        attachment: Attachment,
        /// The serialized message.
        payload: Bytes,
    },
    /// A request for a local server.
    Request {
        /// GUID of the server's request reader.
        server: Guid,
        /// Client, sequence number and source timestamp.
        attachment: Attachment,
        /// The serialized request.
        payload: Bytes,
        /// Query to which the reply is sent.
        query: Query,
    },
    /// A reply to a local client.
    Reply {
        /// GUID of the client's request writer.
        client: Guid,
        /// Sequence number of the request.
        sequence: i64,
        /// The replying session, if Zenoh reports it.
        replier: Option<SessionId>,
        /// Key of the service.
        service: Arc<str>,
        /// Source timestamp of the server.
        source_timestamp: i64,
        /// The serialized reply.
        payload: Bytes,
    },
}

impl Arrival {
    /// Size of the payload.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Sample { payload, .. }
            | Self::Request { payload, .. }
            | Self::Reply { payload, .. } => payload.len(),
            Self::Token { .. } => 0,
        }
    }

    /// The gid of the sender, if the arrival has an attachment.
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
    scheduler: TransportScheduler,
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
    /// Tokens among them, and their limit.
    tokens: usize,
    tokens_max: usize,
    /// By local writer: whether a subscriber of another session has its key. Only the
    /// latest value counts.
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

    /// Appends an arrival if there is space.
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
    /// An empty inbox that schedules polls by `scheduler`, with a limit of tokens.
    pub fn new(scheduler: TransportScheduler, tokens_max: usize) -> Self {
        Self {
            scheduler,
            waiting: Mutex::new(Waiting::new(tokens_max)),
            malformed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            refused_tokens: AtomicU64::new(0),
        }
    }

    /// Appends a token and schedules a poll. A token that is too long is not copied.
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

    /// Appends an arrival and schedules a poll. Without space the arrival is dropped and
    /// counted.
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

    /// Notes whether a subscriber of another session has the key of a local writer, and
    /// schedules a poll.
    pub fn note_matching(&self, writer: Guid, has_readers: bool) {
        let mut waiting = self.waiting.lock();
        waiting.has_readers.insert(writer, has_readers);
        self.scheduler.schedule(Some(Instant::ZERO));
    }

    /// Takes the values of [`Inbox::note_matching`] since the last call.
    pub fn take_matching(&self) -> BTreeMap<Guid, bool> {
        std::mem::take(&mut self.waiting.lock().has_readers)
    }

    /// Takes the oldest arrival.
    pub fn pop(&self) -> Option<Arrival> {
        self.waiting.lock().pop()
    }

    /// Schedules the next poll: at once if arrivals wait, else at `at`.
    pub fn schedule(&self, at: Option<Instant>) {
        let waiting = self.waiting.lock();
        let is_empty = waiting.arrivals.is_empty() && waiting.has_readers.is_empty();
        let at_once = (!is_empty).then_some(Instant::ZERO);
        // Under the lock, so that the time of a new arrival is not replaced.
        self.scheduler.schedule(at_once.or(at));
    }

    /// Counts a malformed sample, request or reply.
    pub fn note_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Total of malformed arrivals.
    pub fn malformed_count(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// Total of tokens dropped because of their length or the limit.
    pub fn refused_token_count(&self) -> u64 {
        self.refused_tokens.load(Ordering::Relaxed)
    }

    /// Total of data dropped because the inbox was full.
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

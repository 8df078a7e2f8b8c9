//! The inbox: arrivals that Zenoh's threads have received and the context has not
//! polled yet.
//!
//! A callback of Zenoh puts an arrival in and schedules a poll; it runs no code of the
//! user. The inbox has a limit. Data beyond it is dropped and counted. A dropped
//! sample is a gap in its writer's sequence numbers, which is reported as a loss.

use std::collections::VecDeque;
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

/// Arrivals that wait. A spinning thread takes them within microseconds.
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
        /// The service.
        service: Arc<str>,
        /// The server's stamp.
        source_timestamp: i64,
        /// The serialized reply.
        payload: Bytes,
    },
    /// Whether some subscriber of another session has the key of a local writer.
    Matching {
        /// The writer.
        writer: Guid,
        /// From now on.
        has_readers: bool,
    },
}

impl Arrival {
    /// Bytes of its payload.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Sample { payload, .. }
            | Self::Request { payload, .. }
            | Self::Reply { payload, .. } => payload.len(),
            Self::Token { key, .. } => key.len(),
            Self::Matching { .. } => 0,
        }
    }

    /// The gid of its sender, if it has an attachment.
    pub fn sender(&self) -> Option<Gid> {
        match self {
            Self::Sample { attachment, .. } | Self::Request { attachment, .. } => {
                Some(attachment.gid)
            }
            Self::Token { .. } | Self::Reply { .. } | Self::Matching { .. } => None,
        }
    }

    fn is_data(&self) -> bool {
        !matches!(self, Self::Token { .. } | Self::Matching { .. })
    }
}

/// See the module documentation. Thread-safe.
pub struct Inbox {
    scheduler: WireScheduler,
    waiting: Mutex<Waiting>,
    malformed: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    arrivals: VecDeque<Arrival>,
    bytes: usize,
}

impl Inbox {
    /// An empty inbox that schedules with `scheduler`.
    pub fn new(scheduler: WireScheduler) -> Self {
        Self {
            scheduler,
            waiting: Mutex::default(),
            malformed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Puts an arrival in and schedules a poll.
    pub fn push(&self, arrival: Arrival) {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes.saturating_add(arrival.bytes());
        let is_full = waiting.arrivals.len() >= ARRIVALS_MAX || bytes > BYTES_MAX;
        // Discovery has its own limits in the tables it goes to.
        if is_full && arrival.is_data() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes = bytes;
        waiting.arrivals.push_back(arrival);
        self.scheduler.schedule(Some(Instant::ZERO));
    }

    /// Takes the oldest arrival.
    pub fn pop(&self) -> Option<Arrival> {
        let mut waiting = self.waiting.lock();
        let arrival = waiting.arrivals.pop_front()?;
        waiting.bytes = waiting.bytes.saturating_sub(arrival.bytes());
        Some(arrival)
    }

    /// Schedules the next poll: at once if something waits here, else at `at`.
    pub fn schedule(&self, at: Option<Instant>) {
        let waiting = self.waiting.lock();
        let at_once = (!waiting.arrivals.is_empty()).then_some(Instant::ZERO);
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

    /// Data dropped because the inbox was full, in total.
    pub fn dropped_count(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

//! One message on its way to a subscription, whatever path it took.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History};
use pteros_rtps::time::{Instant, Timestamp};

/// How a sample came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Path {
    /// Within this process, as a shared pointer.
    IntraProcess,
    /// Through shared memory of this host.
    SharedMemory,
    /// Over the network, loopback included.
    Network,
}

impl Path {
    /// The path's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IntraProcess => "intra-process",
            Self::SharedMemory => "shared memory",
            Self::Network => "UDP",
        }
    }
}

/// The message itself.
#[derive(Clone)]
pub enum Body {
    /// The publisher's own value.
    Shared(Arc<dyn Any + Send + Sync>),
    /// CDR with its encapsulation header.
    Serialized(Bytes),
}

/// What is known about a sample besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleMeta {
    /// When the publisher stamped it, wall clock.
    pub source: Option<Timestamp>,
    /// When it reached the subscription, wall clock.
    pub reception: Timestamp,
    /// The publisher's number for it, from 1 on.
    pub sequence: i64,
    /// Who published it.
    pub publisher: Guid,
    /// How it came.
    pub path: Path,
}

/// A sample waiting to be taken.
#[derive(Clone)]
pub struct Item {
    /// The message.
    pub body: Body,
    /// What is known about it.
    pub meta: SampleMeta,
    /// When its LIFESPAN ends: it is not handed over after that.
    pub expires_at: Instant,
}

/// The samples of one subscription that have not been taken.
///
/// KEEP_LAST drops the oldest and counts it; KEEP_ALL is said to be full, so
/// that a reliable writer is held back.
pub struct SampleQueue {
    items: VecDeque<Item>,
    depth: usize,
    keep_all: bool,
    /// Some sample may end its lifespan while it waits.
    may_expire: bool,
    /// More waits behind this queue and comes when there is room.
    held_back: bool,
    /// Samples that made room for newer ones.
    pub overwritten: u64,
    /// Samples whose lifespan ended while they waited.
    pub expired: u64,
}

/// What [`SampleQueue::pop`] found.
pub struct Popped {
    /// The sample.
    pub item: Option<Item>,
    /// The queue was full and no longer is.
    pub made_room: bool,
    /// There is room enough to fetch what was held back.
    pub resume: bool,
}

/// Bound of KEEP_ALL queues without RESOURCE_LIMITS: at 1 kHz five seconds of
/// a stalled reader.
pub const KEEP_ALL_SAMPLES_DEFAULT: usize = 5_000;

impl SampleQueue {
    /// A queue as deep as `qos` says.
    pub fn new(qos: &EndpointQos) -> Self {
        let limit = qos.resource_limits.max_samples.map(|n| n.max(1) as usize);
        let (depth, keep_all) = match qos.history {
            History::KeepLast(depth) => (
                limit.unwrap_or(usize::MAX).min(depth.max(1) as usize),
                false,
            ),
            History::KeepAll => (limit.unwrap_or(KEEP_ALL_SAMPLES_DEFAULT), true),
        };
        Self {
            items: VecDeque::new(),
            depth,
            keep_all,
            may_expire: false,
            held_back: false,
            overwritten: 0,
            expired: 0,
        }
    }

    /// Whether another sample would be refused.
    pub fn is_full(&self) -> bool {
        self.keep_all && self.items.len() >= self.depth
    }

    /// Adds a sample; with KEEP_LAST the oldest makes room. KEEP_ALL takes it
    /// even when full: those who look before they push may be several.
    pub fn push_or_drop_oldest(&mut self, item: Item) {
        if !self.keep_all && self.items.len() >= self.depth {
            self.items.pop_front();
            self.overwritten += 1;
        }
        self.may_expire |= item.expires_at != Instant::FAR_FUTURE;
        self.items.push_back(item);
    }

    /// Notes that samples were left behind for lack of room.
    pub fn hold_back(&mut self) {
        self.held_back = true;
    }

    /// Takes the oldest sample whose lifespan has not ended. `now` is asked
    /// only if some sample may end.
    pub fn pop(&mut self, now: impl FnOnce() -> Instant) -> Popped {
        let was_full = self.is_full();
        let now = match self.may_expire {
            true => now(),
            false => Instant::ZERO,
        };
        let mut item = self.items.pop_front();
        while item.as_ref().is_some_and(|item| item.expires_at <= now) {
            self.expired += 1;
            item = self.items.pop_front();
        }
        // Half empty, so that a slow reader does not ask for each sample.
        let resume = self.held_back && self.items.len() <= self.depth / 2;
        self.held_back &= !resume;
        Popped {
            item,
            made_room: was_full && !self.is_full(),
            resume,
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

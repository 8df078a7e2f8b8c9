//! Counters of a route: forwarded, limited and failed messages.

use std::sync::atomic::{AtomicU64, Ordering};

/// See the module documentation. Thread-safe.
#[derive(Default, Debug)]
pub struct RouteCounters {
    forwarded: AtomicU64,
    limited: AtomicU64,
    failed: AtomicU64,
}

/// The counts of a route since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouteCounts {
    /// Messages forwarded; of a service, requests that were answered.
    pub forwarded: u64,
    /// Messages dropped because they exceed the rate.
    pub limited: u64,
    /// Messages that could not be published; of a service, requests without an answer.
    pub failed: u64,
}

impl RouteCounters {
    /// Notes a forwarded message.
    pub fn note_forwarded(&self) {
        self.forwarded.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a message above the rate.
    pub fn note_limited(&self) {
        self.limited.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes messages that were not forwarded.
    pub fn note_failed(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.failed.fetch_add(count, Ordering::Relaxed);
    }

    /// Their values.
    pub fn counts(&self) -> RouteCounts {
        RouteCounts {
            forwarded: self.forwarded.load(Ordering::Relaxed),
            limited: self.limited.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

impl RouteCounts {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            forwarded: self.forwarded.saturating_add(other.forwarded),
            limited: self.limited.saturating_add(other.limited),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

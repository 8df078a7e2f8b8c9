//! Counters of a route: forwarded, rate-limited and failed messages.

use std::sync::atomic::{AtomicU64, Ordering};

/// See the module documentation. Thread-safe.
#[derive(Default, Debug)]
pub struct RouteCounters {
    forwarded: AtomicU64,
    limited: AtomicU64,
    failed: AtomicU64,
}

/// Counts of a route since it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouteCounts {
    /// Forwarded messages; for a service, answered requests.
    pub forwarded: u64,
    /// Messages dropped by the rate limit.
    pub limited: u64,
    /// Messages that could not be published; for a service, requests without a reply.
    pub failed: u64,
}

impl RouteCounters {
    /// Counts a forwarded message.
    pub fn note_forwarded(&self) {
        self.forwarded.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message above the rate.
    pub fn note_limited(&self) {
        self.limited.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts messages that were not forwarded.
    pub fn note_failed(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.failed.fetch_add(count, Ordering::Relaxed);
    }

    /// Reads the counters.
    pub fn counts(&self) -> RouteCounts {
        RouteCounts {
            forwarded: self.forwarded.load(Ordering::Relaxed),
            limited: self.limited.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

impl RouteCounts {
    /// Adds two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            forwarded: self.forwarded.saturating_add(other.forwarded),
            limited: self.limited.saturating_add(other.limited),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

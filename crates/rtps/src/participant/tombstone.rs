//! Tombstones: participants whose lease expired and that may return with stale
//! state.
//!
//! A peer whose datagrams no longer arrive may still receive ours and keep our
//! endpoints. If we delete an endpoint meanwhile, the peer must learn of it when it
//! is discovered again. So while a tombstone exists, SEDP keeps its dispose
//! changes.

use alloc::collections::VecDeque;

use crate::id::GuidPrefix;
use crate::time::{Duration, Instant};

/// Lifetime of a tombstone. The peer drops our state sooner, unless it receives our
/// datagrams all that time while its own are lost.
const TOMBSTONE_LIFETIME: Duration = Duration::from_secs(300);
/// The limit of tombstones; the oldest are dropped.
const TOMBSTONES_MAX: usize = 64;

/// Lost participants, oldest first.
#[derive(Default)]
pub(super) struct Tombstones {
    entries: VecDeque<(Instant, GuidPrefix)>,
}

impl Tombstones {
    pub(super) fn add(&mut self, now: Instant, prefix: GuidPrefix) {
        self.remove(prefix);
        if self.entries.len() >= TOMBSTONES_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back((now, prefix));
    }

    pub(super) fn remove(&mut self, prefix: GuidPrefix) {
        self.entries.retain(|(_, lost)| *lost != prefix);
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.entries
            .retain(|(since, _)| *since + TOMBSTONE_LIFETIME > now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.entries
            .front()
            .map(|(since, _)| *since + TOMBSTONE_LIFETIME)
    }
}

//! Participants lost by their lease that may be back.
//!
//! A peer that we no longer hear may hear us, and then keeps what it knows of
//! us. An endpoint that we delete meanwhile must be told to it when it is met
//! again, or it would believe in that endpoint for ever. So while somebody lies
//! here, SEDP keeps its endings.

use alloc::collections::VecDeque;

use crate::id::GuidPrefix;
use crate::time::{Duration, Instant};

/// How long a lost participant is thought of. A peer forgets us sooner unless
/// it hears us all that time while we don't hear it.
const MEMORY: Duration = Duration::from_secs(300);
/// How many; the oldest go first.
const TOMBSTONES_MAX: usize = 64;

/// Lost participants, oldest first.
#[derive(Default)]
pub(super) struct Tombstones {
    graves: VecDeque<(Instant, GuidPrefix)>,
}

impl Tombstones {
    pub(super) fn raise(&mut self, now: Instant, prefix: GuidPrefix) {
        self.lower(prefix);
        if self.graves.len() >= TOMBSTONES_MAX {
            self.graves.pop_front();
        }
        self.graves.push_back((now, prefix));
    }

    pub(super) fn lower(&mut self, prefix: GuidPrefix) {
        self.graves.retain(|(_, lost)| *lost != prefix);
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.graves.retain(|(since, _)| *since + MEMORY > now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.graves.is_empty()
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.graves.front().map(|(since, _)| *since + MEMORY)
    }
}

//! Timers of the instances of a topic: deadline monitor, time-based filter and
//! autopurge. At most one of each kind per instance.

use alloc::collections::{BTreeMap, BTreeSet};

use pteros_msg::key::KeyHash;
use pteros_rtps::time::Instant;

/// The purpose of a timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum InstanceTimer {
    /// No sample arrived, or was written, within the DEADLINE.
    Deadline,
    /// The time-based filter releases the sample that it holds.
    Release,
    /// The rest of an ended instance is purged.
    Purge,
}

/// The timers of one endpoint.
#[derive(Default)]
pub(crate) struct InstanceTimers {
    due: BTreeSet<(Instant, KeyHash, InstanceTimer)>,
    due_at: BTreeMap<(KeyHash, InstanceTimer), Instant>,
}

impl InstanceTimers {
    /// Sets or resets a timer; [`Instant::FAR_FUTURE`] stops it.
    pub(crate) fn set(&mut self, key: KeyHash, timer: InstanceTimer, at: Instant) {
        self.stop(key, timer);
        if at != Instant::FAR_FUTURE {
            self.due.insert((at, key, timer));
            self.due_at.insert((key, timer), at);
        }
    }

    /// Number of timers that are set.
    pub(crate) fn len(&self) -> usize {
        self.due_at.len()
    }

    pub(crate) fn stop(&mut self, key: KeyHash, timer: InstanceTimer) {
        if let Some(at) = self.due_at.remove(&(key, timer)) {
            self.due.remove(&(at, key, timer));
        }
    }

    /// Stops all timers of an instance.
    pub(crate) fn forget(&mut self, key: KeyHash) {
        for timer in [
            InstanceTimer::Deadline,
            InstanceTimer::Release,
            InstanceTimer::Purge,
        ] {
            self.stop(key, timer);
        }
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, ..)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(KeyHash, InstanceTimer)> {
        let (_, key, timer) = *self.due.first().filter(|(at, ..)| *at <= now)?;
        self.stop(key, timer);
        Some((key, timer))
    }
}

//! What is due at which instance of a topic, and when. At most one alarm of
//! each kind per instance.

use std::collections::{BTreeMap, BTreeSet};

use pteros_msg::key::KeyHash;
use pteros_rtps::time::Instant;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Alarm {
    /// No sample came, or was written, within the DEADLINE.
    Deadline,
    /// The time filter hands over what it holds.
    Release,
    /// What is left of an ended instance is thrown away.
    Purge,
}

/// The alarms of one endpoint.
#[derive(Default)]
pub(crate) struct Alarms {
    due: BTreeSet<(Instant, KeyHash, Alarm)>,
    at: BTreeMap<(KeyHash, Alarm), Instant>,
}

impl Alarms {
    /// Sets an alarm, or sets it anew; the far future stops it.
    pub(crate) fn set(&mut self, key: KeyHash, alarm: Alarm, at: Instant) {
        self.stop(key, alarm);
        if at != Instant::FAR_FUTURE {
            self.due.insert((at, key, alarm));
            self.at.insert((key, alarm), at);
        }
    }

    /// How many are set.
    pub(crate) fn len(&self) -> usize {
        self.at.len()
    }

    pub(crate) fn stop(&mut self, key: KeyHash, alarm: Alarm) {
        if let Some(at) = self.at.remove(&(key, alarm)) {
            self.due.remove(&(at, key, alarm));
        }
    }

    /// Stops whatever is due at an instance that is forgotten.
    pub(crate) fn forget(&mut self, key: KeyHash) {
        for alarm in [Alarm::Deadline, Alarm::Release, Alarm::Purge] {
            self.stop(key, alarm);
        }
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, ..)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(KeyHash, Alarm)> {
        let (_, key, alarm) = *self.due.first().filter(|(at, ..)| *at <= now)?;
        self.stop(key, alarm);
        Some((key, alarm))
    }
}

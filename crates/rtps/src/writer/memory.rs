//! How much a writer holds, against what it may: for those who check.

use super::Writer;
use super::proxy::FRAGMENT_REQUESTS_MAX;
use crate::history::Change;

impl Writer {
    /// Bytes kept now, what goes along with each sample included. Never above
    /// [`Writer::worst_case_bytes`] but by that of a single sample.
    pub fn memory_bytes(&self) -> usize {
        self.history.bytes().saturating_sub(Change::OVERHEAD_BYTES)
    }

    /// The first of its limits that is exceeded, by name with count and
    /// limit; `None` always, unless there is a bug. O(readers).
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let limits = &self.config.limits;
        let keyless = !self.config.guid.entity.is_keyed();
        let samples_max = match keyless {
            true => self.depth.min(self.samples_max),
            false => self.samples_max,
        };
        let requests = self.readers.iter().map(|reader| reader.fragments.len());
        [
            // One more while it is on its way to the first of its readers.
            (
                "samples kept",
                self.history.samples(),
                samples_max.saturating_add(1),
            ),
            ("readers", self.readers.len(), limits.readers_max),
            (
                "requests for pieces",
                requests.max().unwrap_or(0),
                FRAGMENT_REQUESTS_MAX,
            ),
        ]
        .into_iter()
        .find(|(_, held, max)| held > max)
    }

    /// When the next heartbeat asks for what has not been acknowledged;
    /// `None` while nothing is owed.
    pub fn heartbeat_due(&self) -> Option<crate::time::Instant> {
        let owed = self.reliable_readers > 0 && !self.is_acked_by_all();
        owed.then(|| self.timers.at(super::TIMER_HEARTBEAT))
    }

    /// The longest pause between a write and the heartbeat that follows it.
    pub fn heartbeat_pause_max(&self) -> crate::time::Duration {
        match self.trusts_links() {
            true => self.config.heartbeat.linked,
            false => self.config.heartbeat.first,
        }
    }
}

//! Memory use of a writer against its limits, for invariant checks.

use super::Writer;
use super::fragment_requests::FragmentRequests;
use crate::change::WriterChange;

impl Writer {
    /// Bytes in the history, bookkeeping included. It exceeds
    /// [`Writer::worst_case_bytes`] by at most the bookkeeping of one sample.
    pub fn memory_bytes(&self) -> usize {
        self.cache
            .history
            .bytes()
            .saturating_sub(WriterChange::OVERHEAD_BYTES)
    }

    /// The first exceeded limit: name, count and limit. `None` unless there is a
    /// bug. O(readers).
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let limits = &self.config.limits;
        let is_keyed = self.config.guid.entity.is_keyed();
        let samples_max = self.cache.retention.samples_max_of(is_keyed);
        // One more while it is partly sent to its first reader.
        let partly_sent =
            usize::from(!self.config.is_keep_all() && self.transmission.cursor.is_partly_sent());
        let requests = self
            .matched
            .proxies
            .iter()
            .map(|reader| reader.requests.fragments.len());
        [
            (
                "history samples",
                self.cache.history.samples(),
                samples_max.saturating_add(partly_sent),
            ),
            ("readers", self.matched.proxies.len(), limits.readers_max),
            (
                "fragment requests",
                requests.max().unwrap_or(0),
                FragmentRequests::MAX,
            ),
        ]
        .into_iter()
        .find(|(_, held, max)| held > max)
    }

    /// When the next heartbeat requests acknowledgements; `None` while nothing is
    /// unacknowledged.
    pub fn next_heartbeat(&self) -> Option<crate::time::Instant> {
        let is_unacked = self.matched.counts.reliable > 0 && !self.matched.is_acked_by_all();
        is_unacked.then(|| self.timers.at(super::timers::TIMER_HEARTBEAT))
    }

    /// The longest delay between a write and the heartbeat that follows it.
    pub fn heartbeat_period(&self) -> crate::time::Duration {
        if self
            .matched
            .counts
            .expects_unsolicited_acks(self.cache.retention.blocked)
        {
            self.config.heartbeat.shared_memory_period
        } else {
            self.config.heartbeat.period
        }
    }
}

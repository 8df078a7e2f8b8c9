//! Memory use of a reader against its limits, for invariant checks.

use super::Reader;

impl Reader {
    /// Payload bytes in the receive queue, the reorder buffer and fragment
    /// reassembly. Never above [`Reader::worst_case_bytes`]. O(samples ready +
    /// writers).
    pub fn memory_bytes(&self) -> usize {
        let ready = self.ready.changes.iter().map(|c| c.payload.len());
        let waiting = self.writers.values().map(|proxy| proxy.buffered_bytes());
        ready.chain(waiting).fold(0, usize::saturating_add)
    }

    /// The first exceeded limit: name, count and limit. `None` unless there is a
    /// bug. O(writers).
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let limits = &self.config.limits;
        let own = [
            // Unmatching delivers reordered samples beyond the limit.
            (
                "samples ready",
                self.ready.changes.len(),
                self.ready
                    .samples_max
                    .saturating_add(self.ready.unmatched_max),
            ),
            ("writers", self.writers.len(), limits.writers_max),
            (
                "resume points",
                self.resume_points.len(),
                super::RESUME_POINTS_MAX,
            ),
        ];
        let of_writers = self.writers.values().flat_map(|proxy| proxy.queue_limits());
        own.into_iter()
            .chain(of_writers)
            .find(|(_, held, max)| held > max)
    }
}

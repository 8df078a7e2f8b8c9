//! How much a reader holds, against what it may: for those who check.

use super::Reader;

impl Reader {
    /// Bytes of payload held now: ready, waiting for an earlier one, in
    /// pieces. Never above [`Reader::worst_case_bytes`]. O(samples ready + writers).
    pub fn memory_bytes(&self) -> usize {
        let ready = self.ready.changes.iter().map(|c| c.payload.len());
        let waiting = self.writers.values().map(|proxy| proxy.held_bytes());
        ready.chain(waiting).fold(0, usize::saturating_add)
    }

    /// The first of its limits that is exceeded, by name with count and
    /// limit; `None` always, unless there is a bug. O(writers).
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let limits = &self.config.limits;
        let own = [
            // The end of a match hands on what waited, beyond the limit.
            (
                "samples ready",
                self.ready.changes.len(),
                self.ready.samples_max.saturating_add(self.ready.left_max),
            ),
            ("writers", self.writers.len(), limits.writers_max),
            (
                "writers remembered",
                self.left_off.len(),
                super::LEFT_OFF_MAX,
            ),
        ];
        let of_writers = self.writers.values().flat_map(|proxy| proxy.held());
        own.into_iter()
            .chain(of_writers)
            .find(|(_, held, max)| held > max)
    }
}

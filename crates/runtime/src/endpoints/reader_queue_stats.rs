//! Statistics of a reader's queue: samples received, samples waiting and their age.

use std::sync::atomic::Ordering;

use pteros_rtps::time::Timestamp;

use crate::endpoints::reader::ReaderEndpoint;

impl ReaderEndpoint {
    /// Samples that arrived so far; see
    /// [`ReaderCounts::received`](crate::endpoints::reader::ReaderCounts::received).
    pub fn received_count(&self) -> u64 {
        self.received.load(Ordering::Relaxed) + self.cache().received
    }

    /// Samples that can be taken, without those in coherent sets.
    pub fn queued_count(&self) -> usize {
        self.cache().len()
    }

    /// Wall-clock reception time of the sample that is taken next; `None` without
    /// one, or on keyed topics.
    pub fn oldest_reception(&self) -> Option<Timestamp> {
        let cache = self.cache();
        match cache.instances {
            None => cache.queue.front().map(|item| item.meta.reception),
            Some(_) => None,
        }
    }
}

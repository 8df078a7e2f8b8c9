//! What waits at a reader, for those who measure how long.

use std::sync::atomic::Ordering;

use pteros_rtps::time::Timestamp;

use crate::reader::ReaderEndpoint;

impl ReaderEndpoint {
    /// Samples that came so far; see [`ReaderCounts::received`](crate::reader::ReaderCounts::received).
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed) + self.intake().received
    }

    /// Samples that wait to be taken, those of coherent sets aside.
    pub fn waiting(&self) -> usize {
        self.intake().len()
    }

    /// When the sample that is taken next reached us, by the wall clock; `None`
    /// without one, or where instances are told apart.
    pub fn waits_since(&self) -> Option<Timestamp> {
        let intake = self.intake();
        match intake.instances {
            None => intake.queue.front().map(|item| item.meta.reception),
            Some(_) => None,
        }
    }
}

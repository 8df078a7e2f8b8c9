//! The ready queue of a reader: samples in order, for its owner.

use core::ops::Bound;

use super::Reader;
use crate::change::CacheChange;
use crate::stats::Tally;

impl Reader {
    /// Whether its queue has space for a further sample.
    pub fn has_space(&self) -> bool {
        self.ready.has_space()
    }

    /// Whether a sample is ready for [`Self::poll_sample`].
    pub fn has_samples(&self) -> bool {
        !self.ready.changes.is_empty()
    }

    /// The next sample; those of a reliable writer are in order.
    pub fn poll_sample(&mut self) -> Option<CacheChange> {
        loop {
            let change = self.ready.changes.pop_front()?;
            if self.ready.stalled {
                self.resume_stalled();
            }
            if change.expires_at <= self.clock {
                self.stats.expired.tally();
                continue;
            }
            self.stats.delivered.tally_by(u64::from(change.is_sample()));
            return Some(change);
        }
    }

    /// Delivers samples that found the queue full, and requests more from their
    /// writers.
    ///
    /// They have turns: it begins with the writer after the last one that found space.
    fn resume_stalled(&mut self) {
        self.ready.stalled = false;
        let last = self.resumed;
        let after = (Bound::Excluded(last), Bound::Unbounded);
        let up_to = (Bound::Unbounded, Bound::Included(last));
        for turn in [after, up_to] {
            for (guid, proxy) in self.writers.range_mut(turn) {
                let ready = self.ready.changes.len();
                proxy.deliver_in_order(&mut self.ready);
                if self.ready.changes.len() > ready {
                    self.resumed = *guid;
                }
                if proxy.is_missing_something() && proxy.acks.enqueue() {
                    proxy.acks.due = true;
                    self.writers_to_answer.push(*guid);
                }
            }
        }
    }
}

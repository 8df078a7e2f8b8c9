//! Memory of a reader: charges of complete samples to the account of their participant
//! (`memory_budget.rs`), and its use against its limits, for invariant checks.

use super::{Reader, ReaderEvent};
use crate::id::Guid;
use crate::memory_budget::SampleCharge;
use crate::seq::SequenceNumber;
use crate::stats::Tally;

impl Reader {
    /// Charges a sample that came whole. `None` when its participant has no memory
    /// left: a reliable sample stays missing and is requested again, another is lost.
    pub(super) fn charge_sample(
        &mut self,
        guid: Guid,
        sequence: SequenceNumber,
        bytes: usize,
    ) -> Option<SampleCharge> {
        let proxy = self.writers.get_mut(&guid)?;
        let mut charge = proxy.defrag.reserve_sample(bytes);
        while charge.is_none() && proxy.free_reordered_above(sequence) {
            charge = proxy.defrag.reserve_sample(bytes);
        }
        if charge.is_some() {
            return charge;
        }
        self.stats.samples_rejected.tally();
        if proxy.reliable {
            proxy.announced = proxy.announced.max(sequence.0);
        } else {
            let lost = proxy.receive_best_effort(sequence);
            self.events.note_lost(
                guid,
                lost.map_or(0, |lost| lost.saturating_add(1)),
                &mut self.stats,
                self.config.limits.events_max,
            );
        }
        self.note_memory_refused(guid, bytes);
        None
    }

    /// Reports that the memory of a participant, or of the context, is used up.
    pub(super) fn note_memory_refused(&mut self, writer: Guid, sample_bytes: usize) {
        let Some(proxy) = self.writers.get(&writer) else {
            return;
        };
        let charger = proxy.defrag.charger();
        if charger.note_refused() {
            let event = ReaderEvent::MemoryFull {
                writer,
                sample_bytes,
                fill: charger.fill(),
            };
            self.events
                .push_or_drop_oldest(event, self.config.limits.events_max);
        }
    }

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
                super::match_start::ResumePoints::MAX,
            ),
        ];
        let of_writers = self.writers.values().flat_map(|proxy| proxy.queue_limits());
        own.into_iter()
            .chain(of_writers)
            .find(|(_, held, max)| held > max)
    }
}

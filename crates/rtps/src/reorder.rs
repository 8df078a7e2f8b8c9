//! Reorder buffer of a reliable reader: samples that arrived before a missing one
//! (RTPS 2.5 §8.4.12).
//!
//! Bounded by count and bytes. When it is full, the highest number is dropped,
//! stays missing and is requested again. GAPs are kept as number runs elsewhere, so
//! a full buffer cannot lose one.

use alloc::collections::VecDeque;

use crate::change::CacheChange;
use crate::memory_budget::{MemoryCharge, MemoryCharger, SampleCharge};
use crate::seq::SequenceNumber;

/// The outcome of an insertion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReorderOutcome {
    /// The sample is stored.
    Stored,
    /// The sample is stored, and this higher one was dropped.
    Replaced(SequenceNumber),
    /// The buffer is full of lower numbers.
    Full,
    /// The participant has no memory left; this higher one was dropped.
    Refused(Option<SequenceNumber>),
}

/// A change and its part of the participant's memory.
#[derive(Debug)]
struct ReorderedChange {
    change: CacheChange,
    charge: MemoryCharge,
}

/// Places that an empty buffer keeps. Those of a longer loss are freed.
const RETAINED_MAX: usize = 256;

/// Changes of one writer, sorted by number. Insertion at the back is O(1).
#[derive(Debug)]
pub(crate) struct ReorderBuffer {
    changes: VecDeque<ReorderedChange>,
    charger: MemoryCharger,
    bytes: usize,
    samples_max: usize,
    bytes_max: usize,
}

impl ReorderBuffer {
    pub fn new(samples_max: usize, bytes_max: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            charger: MemoryCharger::default(),
            bytes: 0,
            samples_max,
            bytes_max,
        }
    }

    /// Charges this account from now on.
    pub fn set_charger(&mut self, charger: MemoryCharger) {
        self.charger = charger;
    }

    /// Drops the highest change if its number is above `sequence`, for a lower one
    /// that found no memory.
    pub fn drop_above(&mut self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        let last = self.changes.back()?;
        let dropped = last.change.sequence;
        if dropped <= sequence {
            return None;
        }
        let last = self.changes.pop_back()?;
        self.bytes = self.bytes.saturating_sub(last.change.payload.len());
        Some(dropped)
    }

    pub fn len(&self) -> usize {
        self.changes.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn samples_max(&self) -> usize {
        // One sample always fits.
        self.samples_max.max(1)
    }

    pub fn first(&self) -> Option<SequenceNumber> {
        self.changes.front().map(|kept| kept.change.sequence)
    }

    /// Stores `change`, whose number is not in the buffer.
    pub fn insert(&mut self, mut change: CacheChange) -> ReorderOutcome {
        // Reordered samples find less memory than complete ones.
        change.charge = SampleCharge::default();
        let at = self
            .changes
            .partition_point(|kept| kept.change.sequence < change.sequence);
        let charged = change
            .payload
            .len()
            .saturating_add(size_of::<ReorderedChange>());
        let mut charge = self.charger.reserve_from_half(charged);
        let space = charge.is_some()
            && self.changes.len() < self.samples_max
            && self.bytes.saturating_add(change.payload.len()) <= self.bytes_max;
        let mut kept = ReorderOutcome::Stored;
        if !space && !self.changes.is_empty() {
            if at == self.changes.len() {
                return ReorderOutcome::Full;
            }
            if let Some(ReorderedChange {
                change: dropped, ..
            }) = self.changes.pop_back()
            {
                self.bytes = self.bytes.saturating_sub(dropped.payload.len());
                kept = ReorderOutcome::Replaced(dropped.sequence);
            }
        }
        charge = charge.or_else(|| self.charger.reserve_from_half(charged));
        let Some(charge) = charge else {
            self.charger.note_refused();
            return match kept {
                ReorderOutcome::Replaced(dropped) => ReorderOutcome::Refused(Some(dropped)),
                _ => ReorderOutcome::Refused(None),
            };
        };
        self.bytes = self.bytes.saturating_add(change.payload.len());
        self.changes.insert(at, ReorderedChange { change, charge });
        kept
    }

    /// The lowest change if its number is below `limit`.
    pub fn pop_below(&mut self, limit: SequenceNumber) -> Option<CacheChange> {
        self.changes
            .front()
            .filter(|kept| kept.change.sequence < limit)?;
        let ReorderedChange { mut change, charge } = self.changes.pop_front()?;
        self.bytes = self.bytes.saturating_sub(change.payload.len());
        change.charge = self.charger.complete(charge);
        if self.changes.is_empty() && self.changes.capacity() > RETAINED_MAX {
            self.changes = VecDeque::new();
        }
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Carrier, ChangeKind};
    use crate::id::Guid;
    use crate::time::Instant;
    use bytes::Bytes;

    fn change(sequence: i64) -> CacheChange {
        CacheChange {
            kind: ChangeKind::Alive,
            writer: Guid::UNKNOWN,
            sequence: SequenceNumber(sequence),
            source_timestamp: None,
            carrier: Carrier::Datagrams,
            payload: Bytes::from_static(&[0; 10]),
            key_only: false,
            key_hash: None,
            related_sample_identity: None,
            original_writer_info: None,
            expires_at: Instant::FAR_FUTURE,
            coherent_mark: None,
            charge: SampleCharge::default(),
        }
    }

    #[test]
    fn an_empty_buffer_keeps_few_places() {
        let mut buffer = ReorderBuffer::new(4_096, usize::MAX);
        for number in 2..4_000 {
            assert_eq!(buffer.insert(change(number)), ReorderOutcome::Stored);
        }
        while buffer.pop_below(SequenceNumber(i64::MAX)).is_some() {}
        assert!(buffer.changes.capacity() <= RETAINED_MAX);
    }

    #[test]
    fn a_full_reorder_buffer_prefers_the_lowest_numbers() {
        let mut buffer = ReorderBuffer::new(2, 1000);
        assert_eq!(buffer.insert(change(9)), ReorderOutcome::Stored);
        assert_eq!(buffer.insert(change(5)), ReorderOutcome::Stored);
        assert_eq!(buffer.insert(change(10)), ReorderOutcome::Full);
        assert_eq!(
            buffer.insert(change(4)),
            ReorderOutcome::Replaced(SequenceNumber(9))
        );
        assert!(buffer.pop_below(SequenceNumber(4)).is_none());
        let order: alloc::vec::Vec<_> =
            core::iter::from_fn(|| buffer.pop_below(SequenceNumber(100)))
                .map(|c| c.sequence.0)
                .collect();
        assert_eq!(order, [4, 5]);
        assert_eq!(buffer.bytes, 0);
    }

    #[test]
    fn bytes_bound_the_buffer_too_but_one_sample_always_fits() {
        let mut buffer = ReorderBuffer::new(100, 5);
        assert_eq!(buffer.insert(change(9)), ReorderOutcome::Stored);
        assert_eq!(buffer.insert(change(10)), ReorderOutcome::Full);
        assert_eq!(
            buffer.insert(change(3)),
            ReorderOutcome::Replaced(SequenceNumber(9))
        );
    }
}

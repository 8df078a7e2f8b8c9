//! Samples that came before their predecessors (RTPS 2.5 §8.4.12, reliable
//! reader): kept in order until the gap is filled.
//!
//! Bounded by count and bytes. When full, the sample nearest to delivery wins:
//! the highest number is dropped, stays missing and is asked for again. GAPs
//! are not kept here but as intervals, so a full buffer can't lose one.

use alloc::collections::VecDeque;

use crate::history::CacheChange;
use crate::seq::SequenceNumber;

/// What became of a sample offered to the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is kept.
    Yes,
    /// It is kept, and this higher one had to go.
    Instead(SequenceNumber),
    /// No room: everything kept is nearer to delivery.
    No,
}

/// Changes of one writer, sorted by number. Insertion at the back is O(1).
#[derive(Debug)]
pub(crate) struct ReorderBuffer {
    changes: VecDeque<CacheChange>,
    bytes: usize,
    samples_max: usize,
    bytes_max: usize,
}

impl ReorderBuffer {
    pub fn new(samples_max: usize, bytes_max: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            bytes: 0,
            samples_max,
            bytes_max,
        }
    }

    pub fn len(&self) -> usize {
        self.changes.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn samples_max(&self) -> usize {
        // One always fits.
        self.samples_max.max(1)
    }

    pub fn first(&self) -> Option<SequenceNumber> {
        self.changes.front().map(|change| change.sequence)
    }

    /// Keeps `change`, whose number is not in the buffer.
    pub fn insert(&mut self, change: CacheChange) -> Kept {
        let at = self
            .changes
            .partition_point(|kept| kept.sequence < change.sequence);
        if fault!("no-room-to-reorder") {
            return Kept::No;
        }
        let room = (self.changes.len() < self.samples_max
            && self.bytes.saturating_add(change.payload.len()) <= self.bytes_max)
            || fault!("reordering-without-limit");
        let mut kept = Kept::Yes;
        if !room && !self.changes.is_empty() {
            if at == self.changes.len() {
                return Kept::No;
            }
            if let Some(dropped) = self.changes.pop_back() {
                self.bytes = self.bytes.saturating_sub(dropped.payload.len());
                kept = Kept::Instead(dropped.sequence);
            }
        }
        self.bytes = self.bytes.saturating_add(change.payload.len());
        self.changes.insert(at, change);
        kept
    }

    /// The lowest change if its number is below `limit`.
    pub fn pop_below(&mut self, limit: SequenceNumber) -> Option<CacheChange> {
        self.changes
            .front()
            .filter(|change| change.sequence < limit)?;
        let change = self.changes.pop_front()?;
        self.bytes = self.bytes.saturating_sub(change.payload.len());
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::ChangeKind;
    use crate::id::Guid;
    use crate::time::Instant;
    use bytes::Bytes;

    fn change(sequence: i64) -> CacheChange {
        CacheChange {
            kind: ChangeKind::Alive,
            writer: Guid::UNKNOWN,
            sequence: SequenceNumber(sequence),
            source_timestamp: None,
            by_link: false,
            payload: Bytes::from_static(&[0; 10]),
            key_only: false,
            key_hash: None,
            related: None,
            original: None,
            expires_at: Instant::FAR_FUTURE,
            mark: None,
        }
    }

    #[test]
    fn a_full_buffer_prefers_what_is_nearest_to_delivery() {
        let mut buffer = ReorderBuffer::new(2, 1000);
        assert_eq!(buffer.insert(change(9)), Kept::Yes);
        assert_eq!(buffer.insert(change(5)), Kept::Yes);
        assert_eq!(buffer.insert(change(10)), Kept::No);
        assert_eq!(buffer.insert(change(4)), Kept::Instead(SequenceNumber(9)));
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
        assert_eq!(buffer.insert(change(9)), Kept::Yes);
        assert_eq!(buffer.insert(change(10)), Kept::No);
        assert_eq!(buffer.insert(change(3)), Kept::Instead(SequenceNumber(9)));
    }
}

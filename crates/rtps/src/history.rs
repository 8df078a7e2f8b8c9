//! Writer history cache: the changes of a writer in order of sequence number (RTPS
//! 2.5 §8.4.2, HistoryCache; DDS 1.4 §2.2.3.18–19, keep last / keep all).
//!
//! Numbers may be missing: skipped, expired, or replaced within their instance. A
//! missing number is irrelevant, and a GAP declares it to readers. Payloads are
//! shared, never copied.

use crate::stats::Tally;
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;

use crate::change::WriterChange;
use crate::change_store::ChangeStore;
use crate::seq::SequenceNumber;

pub use crate::change::{CacheChange, Carrier, ChangeKind};

/// The history cache of one writer.
#[derive(Debug, Default)]
pub(crate) struct HistoryCache {
    changes: ChangeStore,
    bytes: usize,
    /// Sequence numbers per instance, for keyed writers only.
    instances: BTreeMap<[u8; 16], VecDeque<SequenceNumber>>,
    /// Changes that unregister their instance.
    unregistrations: usize,
    /// Ends of coherent sets: they are no samples.
    set_ends: usize,
}

impl HistoryCache {
    /// The number of samples, disposes and unregisters.
    pub fn samples(&self) -> usize {
        self.changes.len().saturating_sub(self.set_ends)
    }

    /// The oldest end of a coherent set, when `max` are kept.
    pub fn excess_set_end(&self, max: usize) -> Option<SequenceNumber> {
        let mut changes = self.changes.iter();
        let oldest = || changes.find(|change| change.is_set_end());
        (self.set_ends >= max).then(oldest)?.map(|end| end.sequence)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether some change unregisters its instance.
    pub fn has_unregistrations(&self) -> bool {
        self.unregistrations > 0
    }

    pub fn first(&self) -> Option<&WriterChange> {
        self.changes.first()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &WriterChange> {
        self.changes.iter()
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut WriterChange> {
        self.changes.iter_mut()
    }

    /// Appends a change; its number is higher than all before.
    pub fn push(&mut self, change: WriterChange) {
        self.bytes = self.bytes.saturating_add(change.size_bytes());
        let unregisters = usize::from(change.kind.is_unregistered());
        self.unregistrations.tally_by(unregisters);
        self.set_ends.tally_by(change.is_set_end().into());
        if let Some(key) = change.key_hash {
            self.changes.expect_gaps();
            self.instances
                .entry(key)
                .or_default()
                .push_back(change.sequence);
        }
        self.changes.push(change);
    }

    /// Sets the payload of a deferred change.
    pub fn set_payload(&mut self, sequence: SequenceNumber, payload: Bytes) {
        let Some(change) = self.changes.find_mut(sequence) else {
            return;
        };
        let before = change.size_bytes();
        change.deferred_bytes = 0;
        change.payload = payload;
        let bytes = self.bytes.saturating_sub(before);
        self.bytes = bytes.saturating_add(change.size_bytes());
    }

    pub fn find(&self, sequence: SequenceNumber) -> Option<&WriterChange> {
        self.changes.find(sequence)
    }

    pub fn find_mut(&mut self, sequence: SequenceNumber) -> Option<&mut WriterChange> {
        self.changes.find_mut(sequence)
    }

    /// The first change numbered `sequence` or higher.
    pub fn from(&self, sequence: SequenceNumber) -> Option<&WriterChange> {
        self.iter_from(sequence).next()
    }

    /// The changes numbered `sequence` or higher.
    pub fn iter_from(&self, sequence: SequenceNumber) -> impl Iterator<Item = &WriterChange> {
        self.changes.iter_from(sequence)
    }

    /// The number of the first of the last `count` samples.
    pub fn first_of_last(&self, count: usize) -> Option<SequenceNumber> {
        if self.set_ends > 0 {
            let samples = self.changes.iter().filter(|change| !change.is_set_end());
            let skipped = self.samples().saturating_sub(count);
            return samples.map(|change| change.sequence).nth(skipped);
        }
        let start = self.changes.first_of_last(count);
        start.map(|change| change.sequence)
    }

    pub fn pop_first(&mut self) -> Option<WriterChange> {
        let first = self.changes.pop_first()?;
        self.unindex(&first);
        Some(first)
    }

    pub fn remove(&mut self, sequence: SequenceNumber) -> Option<WriterChange> {
        let change = self.changes.remove(sequence)?;
        self.unindex(&change);
        Some(change)
    }

    fn unindex(&mut self, change: &WriterChange) {
        self.bytes = self.bytes.saturating_sub(change.size_bytes());
        let unregisters = usize::from(change.kind.is_unregistered());
        self.unregistrations = self.unregistrations.saturating_sub(unregisters);
        self.set_ends = self.set_ends.saturating_sub(change.is_set_end().into());
        let Some(key) = change.key_hash else {
            return;
        };
        if let Some(numbers) = self.instances.get_mut(&key) {
            match numbers.binary_search(&change.sequence) {
                // Nearly always the oldest.
                Ok(at) => drop(numbers.remove(at)),
                Err(_) => debug_assert!(false, "the instance has no such sequence number"),
            }
            if numbers.is_empty() {
                self.instances.remove(&key);
            }
        }
    }

    /// Removes the changes of an instance up to and with number `last`.
    pub fn remove_instance(&mut self, key: &[u8; 16], last: SequenceNumber) {
        while let Some((first, _)) = self.instance(key).filter(|(first, _)| *first <= last) {
            self.remove(first);
        }
    }

    /// The change of an instance that follows this one.
    pub fn next_of_instance(
        &self,
        key: &[u8; 16],
        after: SequenceNumber,
    ) -> Option<SequenceNumber> {
        let numbers = self.instances.get(key)?;
        let at = numbers.partition_point(|number| *number <= after);
        numbers.get(at).copied()
    }

    /// The oldest change of an instance, and how many it has.
    pub fn instance(&self, key: &[u8; 16]) -> Option<(SequenceNumber, usize)> {
        let numbers = self.instances.get(key)?;
        Some((*numbers.front()?, numbers.len()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::time::Instant;

    pub(crate) fn change(sequence: i64) -> WriterChange {
        WriterChange {
            sequence: SequenceNumber(sequence),
            kind: ChangeKind::Alive,
            payload: Bytes::from_static(b"1234"),
            deferred_bytes: 0,
            source_timestamp: None,
            related_sample_identity: None,
            key_hash: None,
            original_writer_info: None,
            directed_to: None,
            expires_at: Instant::FAR_FUTURE,
            coherent_mark: None,
            filter_outcome: None,
            fragment_size: 0,
        }
    }

    #[test]
    fn changes_are_found_whether_or_not_numbers_are_missing() {
        for key_hash in [None, Some([7; 16])] {
            changes_are_found(key_hash);
        }
    }

    fn changes_are_found(key_hash: Option<[u8; 16]>) {
        let mut history = HistoryCache::default();
        for sequence in [5, 6, 9, 10, 20] {
            history.push(WriterChange {
                key_hash,
                ..change(sequence)
            });
        }
        let found = |h: &HistoryCache, s| h.from(SequenceNumber(s)).map(|c| c.sequence.0);
        assert_eq!(found(&history, -3), Some(5));
        assert_eq!(found(&history, 6), Some(6));
        assert_eq!(found(&history, 7), Some(9));
        assert_eq!(found(&history, 11), Some(20));
        assert_eq!(found(&history, 21), None);
        assert!(history.find(SequenceNumber(8)).is_none());
        assert!(history.find(SequenceNumber(i64::MAX)).is_none());
        assert_eq!(history.first_of_last(2), Some(SequenceNumber(10)));
        assert_eq!(history.first_of_last(9), Some(SequenceNumber(5)));
        assert_eq!(history.first_of_last(0), None);
        let backwards = history.iter().rev().map(|c| c.sequence.0);
        assert!(backwards.eq([20, 10, 9, 6, 5]));
        if let Some(key) = key_hash {
            let next = history.next_of_instance(&key, SequenceNumber(6));
            assert_eq!(next, Some(SequenceNumber(9)));
        }
        history.remove(SequenceNumber(9));
        assert_eq!(found(&history, 7), Some(10));
        if let Some(key) = key_hash {
            let next = history.next_of_instance(&key, SequenceNumber(6));
            assert_eq!(next, Some(SequenceNumber(10)));
        }
        while history.pop_first().is_some() {}
        assert_eq!(history.bytes(), 0);
        assert!(history.instances.is_empty());
    }
}

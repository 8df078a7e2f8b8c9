//! Changes, and what a writer keeps of them in order of sequence number
//! (RTPS 2.5 §8.4.2, HistoryCache; DDS 1.4 §2.2.3.18–19).
//!
//! Numbers may be missing (skipped, expired, replaced within their instance);
//! absent means irrelevant, and readers are told by GAP. Payloads are shared,
//! never copied.

use crate::stats::Tally;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;

use crate::changes::Changes;
use crate::content_filter::Filtering;
use crate::id::Guid;
use crate::mark::{Mark, MarkKind};
use crate::seq::{SampleIdentity, SequenceNumber};
use crate::time::{Instant, Timestamp};

/// What a change says about its instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum ChangeKind {
    /// New data.
    #[default]
    Alive,
    /// The instance is gone.
    Disposed,
    /// The writer no longer writes the instance.
    Unregistered,
    /// Both.
    DisposedUnregistered,
}

impl ChangeKind {
    /// Whether the instance is said to be gone.
    pub const fn is_disposed(self) -> bool {
        matches!(self, Self::Disposed | Self::DisposedUnregistered)
    }

    /// Whether the writer says that it no longer writes the instance.
    pub const fn is_unregistered(self) -> bool {
        matches!(self, Self::Unregistered | Self::DisposedUnregistered)
    }
}

/// One change as a reader delivers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheChange {
    /// What it says about its instance.
    pub kind: ChangeKind,
    /// Who wrote it.
    pub writer: Guid,
    /// Its number at that writer.
    pub sequence: SequenceNumber,
    /// When the writer says it was written.
    pub source_timestamp: Option<Timestamp>,
    /// Whether it came by a link of shared memory.
    pub by_link: bool,
    /// The serialized sample with its encapsulation header; for endings of
    /// instances the serialized key, or nothing.
    pub payload: Bytes,
    /// The payload is the serialized key, not a sample.
    pub key_only: bool,
    /// The hash of the instance's key, if the writer sent it.
    pub key_hash: Option<[u8; 16]>,
    /// The request this replies to, or the reply's own relation (DDS-RPC).
    pub related: Option<SampleIdentity>,
    /// The sample as it was first written, if this writer did not first write
    /// it (RTPS 2.5 §8.7.9): two changes of one original are one sample.
    pub original: Option<SampleIdentity>,
    /// When its lifespan ends; [`Instant::FAR_FUTURE`] if never. Counted from
    /// reception, so wall clocks that differ do no harm.
    pub expires_at: Instant,
    /// Its coherent set and its place in its publisher, for readers whose
    /// PRESENTATION asks for them. One that is no sample has no payload.
    pub mark: Option<Box<Mark>>,
}

impl CacheChange {
    /// Whether it is a sample or the end of an instance, not word of a coherent
    /// set or of the publisher's place.
    pub(crate) fn is_sample(&self) -> bool {
        let mark = self.mark.as_ref();
        mark.is_none_or(|mark| mark.kind == MarkKind::Change)
    }

    /// No change: word that all up to `last` is settled and that the writer's
    /// publisher is at `current`.
    pub(crate) fn settled(writer: Guid, last: SequenceNumber, current: SequenceNumber) -> Self {
        let mark = Mark {
            kind: MarkKind::Settled,
            group_sequence: Some(current),
            ..Mark::default()
        };
        Self {
            kind: ChangeKind::Alive,
            writer,
            sequence: last,
            source_timestamp: None,
            by_link: false,
            payload: Bytes::new(),
            key_hash: None,
            key_only: false,
            related: None,
            original: None,
            expires_at: Instant::FAR_FUTURE,
            mark: Some(Box::new(mark)),
        }
    }
}

/// One change as the writer keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub sequence: SequenceNumber,
    pub kind: ChangeKind,
    pub payload: Bytes,
    /// The size of a payload that is not here yet; else 0.
    pub deferred_bytes: usize,
    pub source_timestamp: Option<Timestamp>,
    pub related: Option<SampleIdentity>,
    pub key_hash: Option<[u8; 16]>,
    pub original: Option<SampleIdentity>,
    /// The only reader it is meant for.
    pub only_for: Option<Guid>,
    /// When its lifespan ends.
    pub expires_at: Instant,
    /// Its coherent set and its place in its publisher.
    pub mark: Option<Box<Mark>>,
    /// What readers' filters say of it, where some reader filters.
    pub filtering: Option<Box<Filtering>>,
    /// Fixed when it is first sent, so that fragments repaired later mean the
    /// same bytes to every reader. Zero until then.
    pub fragment_size: u16,
}

impl Change {
    /// What it weighs against the byte limits.
    pub fn weight(&self) -> usize {
        let bytes = self.payload.len().max(self.deferred_bytes);
        bytes.saturating_add(Self::OVERHEAD_BYTES)
    }

    /// Whether it ends a coherent set and is no sample.
    pub fn is_end(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.ends())
    }

    /// Bookkeeping of one change, counted so that empty samples have a weight.
    pub const OVERHEAD_BYTES: usize = size_of::<Self>();
}

/// Changes in order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct History {
    changes: Changes,
    bytes: usize,
    /// Numbers per instance, for keyed writers only.
    instances: BTreeMap<[u8; 16], VecDeque<SequenceNumber>>,
    /// Changes that unregister their instance.
    unregistrations: usize,
    /// Ends of coherent sets: they are no samples.
    ends: usize,
}

impl History {
    /// How many of the changes are samples and endings of instances.
    pub fn samples(&self) -> usize {
        self.changes.len().saturating_sub(self.ends)
    }

    /// The oldest end of a coherent set, when `max` are kept.
    pub fn excess_end(&self, max: usize) -> Option<SequenceNumber> {
        let mut changes = self.changes.iter();
        let oldest = || changes.find(|change| change.is_end());
        (self.ends >= max).then(oldest)?.map(|end| end.sequence)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether some change unregisters its instance.
    pub fn has_unregistrations(&self) -> bool {
        self.unregistrations > 0
    }

    pub fn first(&self) -> Option<&Change> {
        self.changes.first()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.changes.iter()
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Change> {
        self.changes.iter_mut()
    }

    /// Appends a change; its number is higher than all before.
    pub fn push(&mut self, change: Change) {
        self.bytes = self.bytes.saturating_add(change.weight());
        let unregisters = usize::from(change.kind.is_unregistered());
        self.unregistrations.tally_by(unregisters);
        self.ends.tally_by(change.is_end().into());
        if let Some(key) = change.key_hash {
            self.changes.expect_gaps();
            self.instances
                .entry(key)
                .or_default()
                .push_back(change.sequence);
        }
        self.changes.push(change);
    }

    /// Gives a change the payload that was deferred.
    pub fn supply(&mut self, sequence: SequenceNumber, payload: Bytes) {
        let Some(change) = self.changes.find_mut(sequence) else {
            return;
        };
        let before = change.weight();
        change.deferred_bytes = 0;
        change.payload = payload;
        let bytes = self.bytes.saturating_sub(before);
        self.bytes = bytes.saturating_add(change.weight());
    }

    pub fn find(&self, sequence: SequenceNumber) -> Option<&Change> {
        self.changes.find(sequence)
    }

    pub fn find_mut(&mut self, sequence: SequenceNumber) -> Option<&mut Change> {
        self.changes.find_mut(sequence)
    }

    /// The first change numbered `sequence` or higher.
    pub fn from(&self, sequence: SequenceNumber) -> Option<&Change> {
        self.iter_from(sequence).next()
    }

    /// The changes numbered `sequence` or higher.
    pub fn iter_from(&self, sequence: SequenceNumber) -> impl Iterator<Item = &Change> {
        self.changes.iter_from(sequence)
    }

    /// The number with which the last `count` samples begin.
    pub fn start_of_last(&self, count: usize) -> Option<SequenceNumber> {
        if self.ends > 0 {
            let samples = self.changes.iter().filter(|change| !change.is_end());
            let skipped = self.samples().saturating_sub(count);
            return samples.map(|change| change.sequence).nth(skipped);
        }
        let start = self.changes.start_of_last(count);
        start.map(|change| change.sequence)
    }

    pub fn pop_first(&mut self) -> Option<Change> {
        let first = self.changes.pop_first()?;
        self.forget(&first);
        Some(first)
    }

    pub fn remove(&mut self, sequence: SequenceNumber) -> Option<Change> {
        let change = self.changes.remove(sequence)?;
        self.forget(&change);
        Some(change)
    }

    fn forget(&mut self, change: &Change) {
        self.bytes = self.bytes.saturating_sub(change.weight());
        let unregisters = usize::from(change.kind.is_unregistered());
        self.unregistrations = self.unregistrations.saturating_sub(unregisters);
        self.ends = self.ends.saturating_sub(change.is_end().into());
        let Some(key) = change.key_hash else {
            return;
        };
        if let Some(numbers) = self.instances.get_mut(&key) {
            match numbers.binary_search(&change.sequence) {
                // The oldest, nearly always.
                Ok(at) => drop(numbers.remove(at)),
                Err(_) => debug_assert!(false, "no such number of the instance"),
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
mod tests {
    use super::*;

    pub(crate) fn change(sequence: i64) -> Change {
        Change {
            sequence: SequenceNumber(sequence),
            kind: ChangeKind::Alive,
            payload: Bytes::from_static(b"1234"),
            deferred_bytes: 0,
            source_timestamp: None,
            related: None,
            key_hash: None,
            original: None,
            only_for: None,
            expires_at: Instant::FAR_FUTURE,
            mark: None,
            filtering: None,
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
        let mut history = History::default();
        for sequence in [5, 6, 9, 10, 20] {
            history.push(Change {
                key_hash,
                ..change(sequence)
            });
        }
        let found = |h: &History, s| h.from(SequenceNumber(s)).map(|c| c.sequence.0);
        assert_eq!(found(&history, -3), Some(5));
        assert_eq!(found(&history, 6), Some(6));
        assert_eq!(found(&history, 7), Some(9));
        assert_eq!(found(&history, 11), Some(20));
        assert_eq!(found(&history, 21), None);
        assert!(history.find(SequenceNumber(8)).is_none());
        assert!(history.find(SequenceNumber(i64::MAX)).is_none());
        assert_eq!(history.start_of_last(2), Some(SequenceNumber(10)));
        assert_eq!(history.start_of_last(9), Some(SequenceNumber(5)));
        assert_eq!(history.start_of_last(0), None);
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

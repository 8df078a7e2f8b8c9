//! Storage of the writer history cache: changes in order of their sequence numbers,
//! some of which may be missing.
//!
//! Without keys, changes are added and removed at the ends: a ring buffer. With
//! keys, a sample replaces one of its instance anywhere. A ring would move up to
//! half of the rest each time, so keyed histories use a tree.

use alloc::collections::{BTreeMap, VecDeque};

use crate::change::WriterChange;
use crate::seq::SequenceNumber;

/// A ring without keys, a tree with keys.
#[derive(Debug)]
pub(crate) enum ChangeStore {
    Ring(VecDeque<WriterChange>),
    Tree(BTreeMap<SequenceNumber, WriterChange>),
}

/// Iterator over either storage.
enum ChangeIter<R, T> {
    Ring(R),
    Tree(T),
}

impl<R: Iterator, T: Iterator<Item = R::Item>> Iterator for ChangeIter<R, T> {
    type Item = R::Item;

    fn next(&mut self) -> Option<R::Item> {
        match self {
            Self::Ring(ring) => ring.next(),
            Self::Tree(tree) => tree.next(),
        }
    }
}

impl<R, T> DoubleEndedIterator for ChangeIter<R, T>
where
    R: DoubleEndedIterator,
    T: DoubleEndedIterator<Item = R::Item>,
{
    fn next_back(&mut self) -> Option<R::Item> {
        match self {
            Self::Ring(ring) => ring.next_back(),
            Self::Tree(tree) => tree.next_back(),
        }
    }
}

impl Default for ChangeStore {
    fn default() -> Self {
        Self::Ring(VecDeque::new())
    }
}

impl ChangeStore {
    /// Switches to a tree, since changes will be removed anywhere.
    pub fn expect_gaps(&mut self) {
        if let Self::Ring(ring) = self {
            let all = core::mem::take(ring).into_iter();
            *self = Self::Tree(all.map(|change| (change.sequence, change)).collect());
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Ring(ring) => ring.len(),
            Self::Tree(tree) => tree.len(),
        }
    }

    pub fn first(&self) -> Option<&WriterChange> {
        match self {
            Self::Ring(ring) => ring.front(),
            Self::Tree(tree) => tree.first_key_value().map(|(_, change)| change),
        }
    }

    /// Adds a change whose number is higher than all others.
    pub fn push(&mut self, change: WriterChange) {
        debug_assert!(
            self.iter()
                .next_back()
                .is_none_or(|last| last.sequence < change.sequence)
        );
        match self {
            Self::Ring(ring) => ring.push_back(change),
            Self::Tree(tree) => drop(tree.insert(change.sequence, change)),
        }
    }

    pub fn find(&self, sequence: SequenceNumber) -> Option<&WriterChange> {
        match self {
            Self::Ring(ring) => ring.get(index_of(ring, sequence).ok()?),
            Self::Tree(tree) => tree.get(&sequence),
        }
    }

    pub fn find_mut(&mut self, sequence: SequenceNumber) -> Option<&mut WriterChange> {
        match self {
            Self::Ring(ring) => {
                let at = index_of(ring, sequence).ok()?;
                ring.get_mut(at)
            }
            Self::Tree(tree) => tree.get_mut(&sequence),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &WriterChange> {
        match self {
            Self::Ring(ring) => ChangeIter::Ring(ring.iter()),
            Self::Tree(tree) => ChangeIter::Tree(tree.values()),
        }
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut WriterChange> {
        match self {
            Self::Ring(ring) => ChangeIter::Ring(ring.iter_mut()),
            Self::Tree(tree) => ChangeIter::Tree(tree.values_mut()),
        }
    }

    /// The changes numbered `sequence` or higher.
    pub fn iter_from(&self, sequence: SequenceNumber) -> impl Iterator<Item = &WriterChange> {
        match self {
            Self::Ring(ring) => {
                let at = index_of(ring, sequence).unwrap_or_else(|at| at);
                ChangeIter::Ring(ring.range(at..))
            }
            Self::Tree(tree) => ChangeIter::Tree(tree.range(sequence..).map(|(_, change)| change)),
        }
    }

    /// The first of the last `count` changes; O(count) in a tree.
    pub fn first_of_last(&self, count: usize) -> Option<&WriterChange> {
        let before = self.len().saturating_sub(count);
        match self {
            Self::Ring(ring) => ring.get(before),
            Self::Tree(tree) if before == 0 => tree.values().next(),
            Self::Tree(tree) => tree.values().rev().nth(count.checked_sub(1)?),
        }
    }

    pub fn pop_first(&mut self) -> Option<WriterChange> {
        match self {
            Self::Ring(ring) => ring.pop_front(),
            Self::Tree(tree) => tree.pop_first().map(|(_, change)| change),
        }
    }

    pub fn remove(&mut self, sequence: SequenceNumber) -> Option<WriterChange> {
        match self {
            Self::Ring(ring) => {
                let at = index_of(ring, sequence).ok()?;
                ring.remove(at)
            }
            Self::Tree(tree) => tree.remove(&sequence),
        }
    }
}

/// The index of `sequence`, or where it would be. O(1) while no number is missing,
/// O(log n) otherwise.
fn index_of(ring: &VecDeque<WriterChange>, sequence: SequenceNumber) -> Result<usize, usize> {
    let Some(front) = ring.front() else {
        return Err(0);
    };
    let Ok(guess) = usize::try_from(sequence.0.saturating_sub(front.sequence.0)) else {
        return Err(0);
    };
    match ring.get(guess) {
        Some(change) if change.sequence == sequence => Ok(guess),
        _ => ring.binary_search_by_key(&sequence, |change| change.sequence),
    }
}

//! Changes in order of their numbers, some of which may be missing.
//!
//! Without keys they come and go at the ends: a ring. Where samples replace
//! others of their instance they go from anywhere, and a ring would move up to
//! half of the rest each time: a tree.

use alloc::collections::{BTreeMap, VecDeque};

use crate::history::Change;
use crate::seq::SequenceNumber;

/// See the module's description.
#[derive(Debug)]
pub(crate) enum Changes {
    Ring(VecDeque<Change>),
    Tree(BTreeMap<SequenceNumber, Change>),
}

/// One of two ways to walk.
enum Walk<R, T> {
    Ring(R),
    Tree(T),
}

impl<R: Iterator, T: Iterator<Item = R::Item>> Iterator for Walk<R, T> {
    type Item = R::Item;

    fn next(&mut self) -> Option<R::Item> {
        match self {
            Self::Ring(ring) => ring.next(),
            Self::Tree(tree) => tree.next(),
        }
    }
}

impl<R, T> DoubleEndedIterator for Walk<R, T>
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

impl Default for Changes {
    fn default() -> Self {
        Self::Ring(VecDeque::new())
    }
}

impl Changes {
    /// From now on changes go from anywhere.
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

    pub fn first(&self) -> Option<&Change> {
        match self {
            Self::Ring(ring) => ring.front(),
            Self::Tree(tree) => tree.first_key_value().map(|(_, change)| change),
        }
    }

    /// Adds a change whose number is higher than all others.
    pub fn push(&mut self, change: Change) {
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

    pub fn find(&self, sequence: SequenceNumber) -> Option<&Change> {
        match self {
            Self::Ring(ring) => ring.get(place_in(ring, sequence).ok()?),
            Self::Tree(tree) => tree.get(&sequence),
        }
    }

    pub fn find_mut(&mut self, sequence: SequenceNumber) -> Option<&mut Change> {
        match self {
            Self::Ring(ring) => {
                let at = place_in(ring, sequence).ok()?;
                ring.get_mut(at)
            }
            Self::Tree(tree) => tree.get_mut(&sequence),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Change> {
        match self {
            Self::Ring(ring) => Walk::Ring(ring.iter()),
            Self::Tree(tree) => Walk::Tree(tree.values()),
        }
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Change> {
        match self {
            Self::Ring(ring) => Walk::Ring(ring.iter_mut()),
            Self::Tree(tree) => Walk::Tree(tree.values_mut()),
        }
    }

    /// Those numbered `sequence` or higher.
    pub fn iter_from(&self, sequence: SequenceNumber) -> impl Iterator<Item = &Change> {
        match self {
            Self::Ring(ring) => {
                let at = place_in(ring, sequence).unwrap_or_else(|at| at);
                Walk::Ring(ring.range(at..))
            }
            Self::Tree(tree) => Walk::Tree(tree.range(sequence..).map(|(_, change)| change)),
        }
    }

    /// The one with which the last `count` begin; O(count) in a tree.
    pub fn start_of_last(&self, count: usize) -> Option<&Change> {
        let before = self.len().saturating_sub(count);
        match self {
            Self::Ring(ring) => ring.get(before),
            Self::Tree(tree) if before == 0 => tree.values().next(),
            Self::Tree(tree) => tree.values().rev().nth(count.checked_sub(1)?),
        }
    }

    pub fn pop_first(&mut self) -> Option<Change> {
        match self {
            Self::Ring(ring) => ring.pop_front(),
            Self::Tree(tree) => tree.pop_first().map(|(_, change)| change),
        }
    }

    pub fn remove(&mut self, sequence: SequenceNumber) -> Option<Change> {
        match self {
            Self::Ring(ring) => {
                let at = place_in(ring, sequence).ok()?;
                ring.remove(at)
            }
            Self::Tree(tree) => tree.remove(&sequence),
        }
    }
}

/// Where `sequence` is, or would be. O(1) while no number is missing, O(log n)
/// otherwise.
fn place_in(ring: &VecDeque<Change>, sequence: SequenceNumber) -> Result<usize, usize> {
    let Some(front) = ring.front() else {
        return Err(0);
    };
    let Ok(guess) = usize::try_from(sequence.0.saturating_sub(front.sequence.0)) else {
        return Err(0);
    };
    match ring.get(guess) {
        Some(change) if change.sequence == sequence && !fault!("place-not-guessed") => Ok(guess),
        _ => ring.binary_search_by_key(&sequence, |change| change.sequence),
    }
}

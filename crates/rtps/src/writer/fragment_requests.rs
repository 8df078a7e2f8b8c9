//! The fragments that one reader requests by NACK_FRAG (RTPS 2.5 §8.3.8.12).

use alloc::vec::Vec;

use crate::seq::{FragmentNumber, SequenceNumber};
use crate::wire::FragmentSet;

/// Sets of requested fragments, lowest first. Sets of one sample do not overlap.
///
/// It has at most [`Self::MAX`] sets: of more, the lowest are kept. A reader repeats
/// the others with its next request.
#[derive(Clone, Debug, Default)]
pub(super) struct FragmentRequests(Vec<(SequenceNumber, FragmentSet)>);

impl FragmentRequests {
    /// As many NACK_FRAGs as a reader of Pteros sends at a time.
    pub const MAX: usize = 16;

    /// Whether nothing is requested.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of sets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The samples, lowest first; one with several sets is named for each.
    pub fn sequences(&self) -> impl Iterator<Item = SequenceNumber> + '_ {
        self.0.iter().map(|(sequence, _)| *sequence)
    }

    /// Adds a request. It replaces what was requested within its span, where the reader
    /// has what it does not name. False when too many lower sets are requested.
    pub fn insert(&mut self, sequence: SequenceNumber, set: FragmentSet) -> bool {
        let (first, end) = (set.base().0, end_of(&set));
        let overlaps = |old: &FragmentSet| old.base().0 < end && first < end_of(old);
        let of_sample = self.0.iter_mut().filter(|(of, _)| *of == sequence);
        for (_, old) in of_sample.filter(|(_, old)| overlaps(old)) {
            let is_open = |number: &FragmentNumber| !(first..end).contains(&number.0);
            let mut open = old.iter().filter(is_open).peekable();
            let base = open.peek().copied().unwrap_or(old.base());
            *old = FragmentSet::from_numbers(base, open);
        }
        self.0.retain(|(_, old)| !old.is_empty());
        let key = |of: SequenceNumber, set: &FragmentSet| (of, set.base().0);
        let at = self
            .0
            .partition_point(|(of, old)| key(*of, old) < key(sequence, &set));
        if at >= Self::MAX {
            return false;
        }
        self.0.insert(at, (sequence, set));
        self.0.truncate(Self::MAX);
        true
    }

    /// The lowest set of the sample.
    pub fn first_mut(&mut self, sequence: SequenceNumber) -> Option<&mut FragmentSet> {
        let mut sets = self.0.iter_mut();
        let (_, set) = sets.find(|(of, _)| *of == sequence)?;
        Some(set)
    }

    /// Removes the lowest set of the sample.
    pub fn remove_first(&mut self, sequence: SequenceNumber) {
        if let Some(at) = self.0.iter().position(|(of, _)| *of == sequence) {
            self.0.remove(at);
        }
    }

    /// Removes all sets of the sample.
    pub fn remove(&mut self, sequence: SequenceNumber) {
        self.0.retain(|(of, _)| *of != sequence);
    }

    /// Removes the sets of all samples below `base`.
    pub fn remove_below(&mut self, base: SequenceNumber) {
        self.0.retain(|(of, _)| *of >= base);
    }
}

/// The number behind the span of a set.
fn end_of(set: &FragmentSet) -> u32 {
    set.base().0.saturating_add(set.span())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: SequenceNumber = SequenceNumber(7);

    fn set(numbers: impl IntoIterator<Item = u32>) -> FragmentSet {
        let numbers: Vec<_> = numbers.into_iter().map(FragmentNumber).collect();
        FragmentSet::from_numbers(numbers[0], numbers)
    }

    fn numbers(requests: &FragmentRequests, sequence: SequenceNumber) -> Vec<u32> {
        let sets = requests.0.iter().filter(|(of, _)| *of == sequence);
        sets.flat_map(|(_, set)| set.iter().map(|number| number.0))
            .collect()
    }

    #[test]
    fn sets_of_one_sample_stand_side_by_side() {
        let mut requests = FragmentRequests::default();
        assert!(requests.insert(SAMPLE, set([600, 700])));
        assert!(requests.insert(SAMPLE, set([3, 200])));
        assert!(requests.insert(SequenceNumber(6), set([1])));
        assert_eq!(numbers(&requests, SAMPLE), [3, 200, 600, 700]);
        assert_eq!(
            requests.first_mut(SAMPLE).map(|set| *set),
            Some(set([3, 200]))
        );
        requests.remove_first(SAMPLE);
        assert_eq!(numbers(&requests, SAMPLE), [600, 700]);
        requests.remove_below(SAMPLE);
        assert_eq!(requests.len(), 1);
    }

    #[test]
    fn a_request_replaces_what_its_span_covered() {
        let mut requests = FragmentRequests::default();
        requests.insert(SAMPLE, set([3, 100, 200]));
        requests.insert(SAMPLE, set([300, 400]));
        // 200 and 300 were received since, 150 was lost again.
        requests.insert(SAMPLE, set([150, 301]));
        assert_eq!(numbers(&requests, SAMPLE), [3, 100, 150, 301, 400]);
        requests.insert(SAMPLE, set([3]));
        assert_eq!(numbers(&requests, SAMPLE), [3, 100, 150, 301, 400]);
    }

    #[test]
    fn the_lowest_sets_are_kept() {
        let mut requests = FragmentRequests::default();
        for index in (0..20u32).rev() {
            requests.insert(SAMPLE, set([1 + index * 256]));
        }
        assert_eq!(requests.len(), FragmentRequests::MAX);
        assert_eq!(numbers(&requests, SAMPLE).last(), Some(&(1 + 15 * 256)));
        assert!(!requests.insert(SequenceNumber(8), set([1])));
        assert!(requests.insert(SequenceNumber(6), set([1])));
        assert_eq!(requests.len(), FragmentRequests::MAX);
    }
}

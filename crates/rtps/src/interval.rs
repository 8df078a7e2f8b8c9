//! Number runs: sets of sequence numbers or fragment numbers, kept as intervals.
//!
//! A peer chooses the numbers, so cost must not depend on them. A run of 2^60
//! numbers costs as much as one, and a set never holds more runs than its limit. A
//! number that does not fit is refused and stays missing.

use alloc::vec::Vec;

/// A run of numbers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NumberRun {
    /// The lowest number.
    pub first: i64,
    /// The highest number, not below `first`.
    pub last: i64,
}

impl NumberRun {
    /// How many numbers it holds.
    pub fn count(self) -> u64 {
        self.last.abs_diff(self.first).saturating_add(1)
    }
}

/// A set of numbers as sorted, disjoint runs that do not touch.
///
/// Insertion is O(log runs) to find the place and moves at most `runs_max`
/// entries. Allocates only while the number of runs grows.
#[derive(Clone, Debug)]
pub struct IntervalSet {
    runs: Vec<NumberRun>,
    runs_max: usize,
}

impl IntervalSet {
    /// An empty set of at most `runs_max` runs.
    pub const fn new(runs_max: usize) -> Self {
        Self {
            runs: Vec::new(),
            runs_max,
        }
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// How many runs it may hold.
    pub fn runs_max(&self) -> usize {
        self.runs_max
    }

    /// Removes everything; keeps the memory.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// The runs, lowest first.
    pub fn runs(&self) -> &[NumberRun] {
        &self.runs
    }

    /// Whether `number` is in the set.
    pub fn contains(&self, number: i64) -> bool {
        let at = self.runs.partition_point(|run| run.last < number);
        self.runs.get(at).is_some_and(|run| run.first <= number)
    }

    /// Adds all of `first..=last`. Returns false, without a change, when that would
    /// exceed the limit of runs, or when the run is empty.
    pub fn insert(&mut self, first: i64, last: i64) -> bool {
        if first > last {
            return false;
        }
        // Runs from `from` up to (not including) `to` overlap or touch.
        let from = self
            .runs
            .partition_point(|run| run.last.saturating_add(1) < first);
        let to = self
            .runs
            .partition_point(|run| run.first <= last.saturating_add(1));
        let Some(touched) = self.runs.get(from..to).filter(|t| !t.is_empty()) else {
            if self.runs.len() >= self.runs_max {
                return false;
            }
            self.runs.insert(from, NumberRun { first, last });
            return true;
        };
        let merged = NumberRun {
            first: touched.first().map_or(first, |run| run.first.min(first)),
            last: touched.last().map_or(last, |run| run.last.max(last)),
        };
        if let Some(run) = self.runs.get_mut(from) {
            *run = merged;
        }
        self.runs.drain(from.saturating_add(1)..to);
        true
    }

    /// Removes every number below `number`.
    pub fn remove_below(&mut self, number: i64) {
        let count_below = self.runs.partition_point(|run| run.last < number);
        self.runs.drain(..count_below);
        if let Some(run) = self.runs.first_mut() {
            run.first = run.first.max(number);
        }
    }

    /// Adds `first..=last` below or touching everything in the set, beyond the
    /// limit if necessary.
    ///
    /// The lowest run decides what can be delivered, so it is never refused.
    /// Repeated calls share that one extra run as long as `first` does not rise
    /// past its end.
    pub fn insert_lowest(&mut self, first: i64, last: i64) {
        let limit = self.runs_max;
        self.runs_max = limit.saturating_add(1);
        self.insert(first, last);
        self.runs_max = limit;
    }

    /// Removes one number. In the middle of a run this adds one run. If the limit
    /// forbids that, everything above is removed too.
    pub fn remove(&mut self, number: i64) {
        let at = self.runs.partition_point(|run| run.last < number);
        let full = self.runs.len() >= self.runs_max;
        let Some(run) = self.runs.get_mut(at).filter(|run| run.first <= number) else {
            return;
        };
        let old = *run;
        match (run.first == number, run.last == number) {
            (true, true) => {
                self.runs.remove(at);
            }
            (true, false) => run.first = run.first.saturating_add(1),
            (false, true) => run.last = run.last.saturating_sub(1),
            (false, false) => {
                run.last = number.saturating_sub(1);
                if full {
                    self.runs.truncate(at.saturating_add(1));
                } else {
                    let above = NumberRun {
                        first: number.saturating_add(1),
                        last: old.last,
                    };
                    self.runs.insert(at.saturating_add(1), above);
                }
            }
        }
    }

    /// The lowest number from `number` on that is not in the set.
    pub fn first_missing(&self, number: i64) -> i64 {
        let at = self.runs.partition_point(|run| run.last < number);
        match self.runs.get(at) {
            Some(run) if run.first <= number => run.last.saturating_add(1),
            _ => number,
        }
    }

    /// The runs within `first..=last` that are not in the set, lowest first.
    pub fn missing(&self, first: i64, last: i64) -> MissingRuns<'_> {
        let at = self.runs.partition_point(|run| run.last < first);
        MissingRuns {
            known: self.runs.get(at..).unwrap_or(&[]),
            next: first,
            last,
            done: first > last,
        }
    }

    /// How many numbers of `first..=last` are not in the set, saturating.
    pub fn count_missing(&self, first: i64, last: i64) -> u64 {
        self.missing(first, last)
            .fold(0, |sum: u64, run| sum.saturating_add(run.count()))
    }
}

/// Iterator over the runs missing in a set.
pub struct MissingRuns<'a> {
    known: &'a [NumberRun],
    next: i64,
    last: i64,
    done: bool,
}

impl Iterator for MissingRuns<'_> {
    type Item = NumberRun;

    fn next(&mut self) -> Option<NumberRun> {
        while !self.done {
            let first = self.next;
            let Some((run, rest)) = self
                .known
                .split_first()
                .filter(|(r, _)| r.first <= self.last)
            else {
                self.done = true;
                return Some(NumberRun {
                    first,
                    last: self.last,
                });
            };
            self.known = rest;
            self.done = run.last >= self.last;
            self.next = run.last.saturating_add(1);
            if run.first > first {
                return Some(NumberRun {
                    first,
                    last: run.first.saturating_sub(1),
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    fn set(runs: &[(i64, i64)]) -> IntervalSet {
        let mut set = IntervalSet::new(8);
        for (first, last) in runs {
            assert!(set.insert(*first, *last));
        }
        set
    }

    #[test]
    fn a_run_of_the_whole_number_range_costs_one_entry() {
        let mut set = set(&[(i64::MIN, i64::MAX)]);
        assert_eq!(set.runs().len(), 1);
        assert_eq!(set.first_missing(5), i64::MAX);
        assert_eq!(set.missing(1, i64::MAX).count(), 0);
        set.remove_below(i64::MAX);
        assert_eq!(set.runs().last().map(|run| run.last), Some(i64::MAX));
        assert!(set.contains(i64::MAX));
    }

    #[test]
    fn runs_beyond_the_limit_are_refused_but_holes_can_still_be_filled() {
        let mut set = set(&[
            (1, 1),
            (3, 3),
            (5, 5),
            (7, 7),
            (9, 9),
            (11, 11),
            (13, 13),
            (15, 15),
        ]);
        assert!(!set.insert(17, 17));
        assert!(set.insert(16, 16));
        assert!(set.insert(2, 4));
        assert!(set.insert(20, 30));
        assert!(!set.insert(4, 3));
        assert_eq!(set.count_missing(1, 20), 8);
    }

    #[test]
    fn it_agrees_with_a_plain_set() {
        let mut seed = 7_u64;
        let mut random = move |below: i64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) as i64) % below
        };
        for _ in 0..300 {
            let mut set = IntervalSet::new(64);
            let mut oracle = BTreeSet::new();
            for _ in 0..30 {
                let first = random(60);
                let last = first + random(5);
                assert!(set.insert(first, last));
                oracle.extend(first..=last);
                if random(10) == 0 {
                    let below = random(40);
                    set.remove_below(below);
                    oracle.retain(|n| *n >= below);
                }
                let known: BTreeSet<i64> = (0..70).filter(|n| set.contains(*n)).collect();
                assert_eq!(known, oracle);
                let missing: BTreeSet<i64> = set
                    .missing(0, 69)
                    .flat_map(|run| run.first..=run.last)
                    .collect();
                assert_eq!(missing, (0..70).filter(|n| !oracle.contains(n)).collect());
                assert!(set.runs().windows(2).all(|w| w[0].last + 1 < w[1].first));
            }
        }
    }
}

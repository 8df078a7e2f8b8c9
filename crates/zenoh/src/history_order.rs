//! Order of a transient-local publisher's history and its live samples.
//!
//! A subscription queries the history of each publisher that it discovers. zenoh-ext
//! (1.10) delivers a live sample at once if it precedes the reply, and then drops the
//! history. So live samples wait here until a query for the samples before them has
//! ended. A publisher's very first sample need not wait.
//!
//! A subscription with a content filter queries the whole history. The filter is applied
//! here, because the depth counts only samples that pass.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Id of a publisher: its session and its entity number.
pub type Source = ([u8; 16], u32);

/// Publishers of one subscription. When full, a new publisher replaces the one that was
/// removed first. If none was removed, the new publisher's samples are not ordered.
const SOURCES_MAX: usize = 4_096;

/// Samples that a KEEP_ALL subscription requests of one history, and that wait for a poll
/// at a time.
pub const HISTORY_MAX: usize = 16_384;

/// Whether a sample passes a content filter.
type Passes<'f, T> = Option<&'f dyn Fn(&T) -> bool>;

/// See the module documentation. Sans-IO: the caller sends the queries.
pub struct HistoryOrder<T> {
    sources: BTreeMap<Source, Progress<T>>,
    /// Removed publishers, in the order of their removal. They are kept while there is
    /// space: after a link failure a publisher may return, and its repeated samples must
    /// not be delivered twice.
    gone: VecDeque<Source>,
    /// History depth of the subscription.
    depth: usize,
}

enum Progress<T> {
    /// Its newest samples, by number, while its history is being queried.
    Waiting {
        samples: BTreeMap<u32, T>,
        max: usize,
    },
    /// Samples after this number are delivered.
    Passing(u32),
}

/// Consequences of a sample.
#[derive(PartialEq, Eq, Debug)]
pub struct Taken<T> {
    /// Samples to deliver, in order.
    pub deliver: Vec<T>,
    /// Query to send. Call [`HistoryOrder::end`] when it ends.
    pub query: Option<HistoryQuery>,
}

/// Query for the history of a publisher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryQuery {
    /// Upper bound, exclusive, of the sample numbers.
    pub before: u32,
    /// Maximum number of samples; the newest ones are returned.
    pub max: usize,
}

impl<T> HistoryOrder<T> {
    /// No publishers yet. `depth` is the history depth of the subscription.
    pub fn new(depth: usize) -> Self {
        Self {
            sources: BTreeMap::new(),
            gone: VecDeque::new(),
            depth,
        }
    }

    /// Handles a live or repeated sample. Drops one that was delivered before.
    pub fn take(
        &mut self,
        source: Source,
        number: u32,
        sample: T,
        passes: Passes<'_, T>,
    ) -> Taken<T> {
        let deliver = |deliver| Taken {
            deliver,
            query: None,
        };
        let is_full = self.sources.len() >= SOURCES_MAX
            && !self.sources.contains_key(&source)
            && !self.make_space();
        let max = if passes.is_some() {
            HISTORY_MAX
        } else {
            self.depth
        };
        match self.sources.entry(source) {
            Entry::Vacant(_) if is_full => deliver(vec![sample]),
            Entry::Vacant(new) if number == 0 || max <= 1 => {
                new.insert(Progress::Passing(number));
                deliver(vec![sample])
            }
            Entry::Vacant(new) => {
                let samples = BTreeMap::from([(number, sample)]);
                new.insert(Progress::Waiting { samples, max });
                let before = number;
                Taken {
                    deliver: Vec::new(),
                    query: Some(HistoryQuery { before, max }),
                }
            }
            Entry::Occupied(mut known) => match known.get_mut() {
                Progress::Passing(last) if number <= *last => deliver(Vec::new()),
                Progress::Passing(last) => {
                    *last = number;
                    deliver(vec![sample])
                }
                Progress::Waiting { samples, max } => {
                    samples.insert(number, sample);
                    // An older sample would not be kept.
                    let is_complete = samples.len() >= *max;
                    deliver(if is_complete {
                        self.end(source, passes)
                    } else {
                        Vec::new()
                    })
                }
            },
        }
    }

    /// Drops the publisher that was removed first, among those whose queries have ended.
    /// Returns false if there is none.
    fn make_space(&mut self) -> bool {
        let has_ended = |source| matches!(self.sources.get(source), Some(Progress::Passing(_)));
        let Some(at) = self.gone.iter().position(has_ended) else {
            return false;
        };
        let oldest = self.gone.remove(at);
        oldest.is_some_and(|source| self.sources.remove(&source).is_some())
    }

    /// Notes that a publisher was removed. Replies of its session may still arrive, so
    /// its live samples wait until the query ends.
    pub fn note_gone(&mut self, source: Source) {
        if self.sources.contains_key(&source) && !self.gone.contains(&source) {
            self.gone.push_back(source);
        }
    }

    /// Notes that a publisher is announced, possibly again.
    pub fn note_there(&mut self, source: Source) {
        self.gone.retain(|gone| *gone != source);
    }

    /// Handles a reply to the history query. When full, the oldest sample is dropped.
    pub fn take_history(&mut self, source: Source, number: u32, sample: T) {
        if let Some(Progress::Waiting { samples, max }) = self.sources.get_mut(&source) {
            samples.entry(number).or_insert(sample);
            if samples.len() > *max {
                samples.pop_first();
            }
        }
    }

    /// Handles the end of the query. Returns the waiting samples in order: as many of the
    /// last passing ones as the depth allows. Later samples pass at once.
    pub fn end(&mut self, source: Source, passes: Passes<'_, T>) -> Vec<T> {
        let Some(progress) = self.sources.get_mut(&source) else {
            return Vec::new();
        };
        let Progress::Waiting { samples, .. } = progress else {
            return Vec::new();
        };
        let samples = std::mem::take(samples);
        let last = samples.last_key_value().map_or(0, |(number, _)| *number);
        *progress = Progress::Passing(last);
        let mut samples: Vec<T> = samples.into_values().collect();
        // A sample that does not pass stays in the sequence, because it is not lost.
        let passes = |sample: &T| passes.is_none_or(|passes| passes(sample));
        let passing = samples.iter().enumerate().rev();
        let mut passing = passing.filter(|(_, sample)| passes(sample));
        let first = passing.nth(self.depth.saturating_sub(1));
        if let Some(first) = first.map(|(at, _)| at) {
            samples.drain(..first);
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Source = ([1; 16], 7);
    const OTHER: Source = ([1; 16], 8);

    fn delivered(numbers: &[u32]) -> Taken<u32> {
        Taken {
            deliver: numbers.to_vec(),
            query: None,
        }
    }

    fn asks(before: u32, max: usize) -> Taken<u32> {
        Taken {
            deliver: Vec::new(),
            query: Some(HistoryQuery { before, max }),
        }
    }

    #[test]
    fn a_sample_that_outruns_the_history_waits_for_it() {
        let mut order = HistoryOrder::new(10);
        assert_eq!(order.take(ONE, 3, 3, None), asks(3, 10));
        assert_eq!(order.take(ONE, 4, 4, None), delivered(&[]));
        for number in [2, 1, 3] {
            order.take_history(ONE, number, number);
        }
        // Another publisher does not wait for it.
        assert_eq!(order.take(OTHER, 0, 0, None), delivered(&[0]));
        assert_eq!(order.end(ONE, None), [1, 2, 3, 4]);
        assert_eq!(order.take(ONE, 4, 4, None), delivered(&[]), "a second time");
        assert_eq!(order.take(ONE, 5, 5, None), delivered(&[5]));
        // A second end, as after a reconnection, changes nothing.
        assert!(order.end(ONE, None).is_empty());
        order.take_history(ONE, 1, 1);
        assert_eq!(order.take(ONE, 6, 6, None), delivered(&[6]));
    }

    #[test]
    fn a_publisher_that_begins_now_or_a_full_history_does_not_wait() {
        let mut order = HistoryOrder::new(3);
        assert_eq!(order.take(ONE, 0, 0, None), delivered(&[0]));
        assert_eq!(order.take(ONE, 1, 1, None), delivered(&[1]));
        assert_eq!(order.take(OTHER, 7, 7, None), asks(7, 3));
        assert_eq!(order.take(OTHER, 8, 8, None), delivered(&[]));
        assert_eq!(order.take(OTHER, 9, 9, None), delivered(&[7, 8, 9]));
        assert!(order.end(OTHER, None).is_empty());
        assert_eq!(HistoryOrder::new(1).take(ONE, 7, 7, None), delivered(&[7]));
    }

    #[test]
    fn what_waits_and_how_many_publishers_are_known_has_a_limit() {
        let mut order = HistoryOrder::new(3);
        assert_eq!(order.take(ONE, 9, 9, None), asks(9, 3));
        for number in 0..9 {
            order.take_history(ONE, number, number);
        }
        assert_eq!(order.end(ONE, None), [7, 8, 9]);
        for entity in 0..2 * SOURCES_MAX as u32 {
            order.take(([2; 16], entity), 5, 5, None);
        }
        assert_eq!(order.sources.len(), SOURCES_MAX);
        assert_eq!(order.take(([3; 16], 0), 5, 5, None), delivered(&[5]));
    }

    /// Regression: one sample that overtook a history of the full depth made the
    /// subscription lose its newest sample, in the middle of the delivered ones.
    #[test]
    fn samples_that_outrun_the_history_replace_its_oldest() {
        let mut order = HistoryOrder::new(3);
        assert_eq!(order.take(ONE, 5, 5, None), asks(5, 3));
        for number in [2, 3, 4] {
            order.take_history(ONE, number, number);
        }
        assert_eq!(order.end(ONE, None), [3, 4, 5]);
    }

    #[test]
    fn a_depth_counts_the_samples_that_pass_the_filter() {
        let is_even = |sample: &u32| sample.is_multiple_of(2);
        let passes: Passes<'_, u32> = Some(&is_even);
        // A subscription of depth 1 also queries more.
        for (depth, expected) in [
            (1, vec![6, 7]),
            (2, vec![4, 5, 6, 7]),
            (9, vec![1, 2, 3, 4]),
        ] {
            let mut order = HistoryOrder::new(depth);
            assert_eq!(order.take(ONE, 5, 5, passes), asks(5, HISTORY_MAX));
            for number in [6, 7] {
                assert_eq!(order.take(ONE, number, number, passes), delivered(&[]));
            }
            for number in 1..5 {
                order.take_history(ONE, number, number);
            }
            let waited = order.end(ONE, passes);
            assert!(waited.starts_with(&expected), "{depth}: {waited:?}");
            assert_eq!(waited.last(), Some(&7));
            assert_eq!(order.take(ONE, 8, 8, passes), delivered(&[8]));
        }
    }

    #[test]
    fn a_publisher_that_is_gone_gives_way_to_a_new_one() {
        let mut order = HistoryOrder::new(10);
        let new = |number: u32| ([2; 16], number);
        for number in 0..SOURCES_MAX as u32 {
            order.take(new(number), 0, 0, None);
        }
        assert_eq!(order.take(ONE, 5, 5, None), delivered(&[5]), "no space");
        order.note_gone(new(3));
        order.note_gone(new(4));
        order.note_gone(new(3));
        order.note_there(new(3));
        order.note_there(new(9));
        assert_eq!(
            order.take(ONE, 5, 5, None),
            asks(5, 10),
            "in the place of number 4"
        );
        assert_eq!(order.take(OTHER, 5, 5, None), delivered(&[5]), "no space");
        // Number 3 is back, and its repeated samples are known.
        assert_eq!(order.take(new(3), 0, 0, None), delivered(&[]));
        order.note_gone(OTHER);
        assert!(order.gone.is_empty(), "never known");
    }

    /// The removal of a publisher can overtake its replies.
    #[test]
    fn the_history_of_a_publisher_that_is_gone_still_comes_before_its_last_sample() {
        let mut order = HistoryOrder::new(10);
        assert_eq!(order.take(ONE, 2, 2, None), asks(2, 10));
        order.note_gone(ONE);
        let new = |number: u32| ([2; 16], number);
        for number in 1..SOURCES_MAX as u32 {
            order.take(new(number), 0, 0, None);
        }
        // It is not replaced before.
        assert_eq!(order.take(OTHER, 5, 5, None), delivered(&[5]), "no space");
        order.take_history(ONE, 1, 1);
        order.take_history(ONE, 0, 0);
        assert_eq!(order.end(ONE, None), [0, 1, 2]);
        assert_eq!(order.take(OTHER, 6, 6, None), asks(6, 10));
    }
}

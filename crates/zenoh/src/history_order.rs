//! The history of a transient-local publisher before what it publishes meanwhile.
//!
//! A subscription asks each publisher that it discovers for its history. zenoh-ext (1.10)
//! delivers a sample that is published before the reply at once, and drops the history
//! that comes after it. So the first sample of a publisher waits here, unless it is the
//! first one ever, until a query for those before it has ended.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// A publisher: its session and the entity there.
pub type Source = ([u8; 16], u32);

/// Publishers of one subscription. A new one takes the place of the one that is gone
/// for the longest time. If none is gone, its samples are not put in order.
const SOURCES_MAX: usize = 4_096;

/// See the module documentation. Sans-IO: the caller asks the queries.
pub struct HistoryOrder<T> {
    sources: BTreeMap<Source, Progress<T>>,
    /// Those whose publisher is gone, in the order in which they went. They are kept
    /// while there is space: after a cut link a publisher comes back, and what it
    /// repeats then must not be delivered again.
    gone: VecDeque<Source>,
    /// As many samples of a publisher as the subscription keeps.
    depth: usize,
}

enum Progress<T> {
    /// Its samples wait for the history, by number.
    Waiting(BTreeMap<u32, T>),
    /// They pass, after this one.
    Passing(u32),
}

/// The steps that follow a sample.
#[derive(PartialEq, Eq, Debug)]
pub struct Taken<T> {
    /// Deliver these, in order.
    pub deliver: Vec<T>,
    /// Ask the publisher for its history before this number, then call
    /// [`HistoryOrder::end`].
    pub query_before: Option<u32>,
}

impl<T> HistoryOrder<T> {
    /// No publisher yet, for a subscription that keeps so many samples.
    pub fn new(depth: usize) -> Self {
        Self {
            sources: BTreeMap::new(),
            gone: VecDeque::new(),
            depth,
        }
    }

    /// Takes a sample that was published or repeated. One that was delivered is dropped.
    pub fn take(&mut self, source: Source, number: u32, sample: T) -> Taken<T> {
        let deliver = |deliver| Taken {
            deliver,
            query_before: None,
        };
        let is_full = self.sources.len() >= SOURCES_MAX
            && !self.sources.contains_key(&source)
            && !self.make_space();
        match self.sources.entry(source) {
            Entry::Vacant(_) if is_full => deliver(vec![sample]),
            Entry::Vacant(new) if number == 0 || self.depth <= 1 => {
                new.insert(Progress::Passing(number));
                deliver(vec![sample])
            }
            Entry::Vacant(new) => {
                new.insert(Progress::Waiting(BTreeMap::from([(number, sample)])));
                Taken {
                    deliver: Vec::new(),
                    query_before: Some(number),
                }
            }
            Entry::Occupied(mut known) => match known.get_mut() {
                Progress::Passing(last) if number <= *last => deliver(Vec::new()),
                Progress::Passing(last) => {
                    *last = number;
                    deliver(vec![sample])
                }
                Progress::Waiting(samples) => {
                    samples.insert(number, sample);
                    // Nothing older would be kept.
                    let is_complete = samples.len() >= self.depth;
                    deliver(if is_complete {
                        self.end(source)
                    } else {
                        Vec::new()
                    })
                }
            },
        }
    }

    /// Drops the publisher that is gone for the longest time, and whose query has ended.
    /// False if none has.
    fn make_space(&mut self) -> bool {
        let has_ended = |source| matches!(self.sources.get(source), Some(Progress::Passing(_)));
        let Some(at) = self.gone.iter().position(has_ended) else {
            return false;
        };
        let oldest = self.gone.remove(at);
        oldest.is_some_and(|source| self.sources.remove(&source).is_some())
    }

    /// A publisher is gone. Replies of its session may still come, so what waits for its
    /// history waits until the query ends.
    pub fn note_gone(&mut self, source: Source) {
        if self.sources.contains_key(&source) && !self.gone.contains(&source) {
            self.gone.push_back(source);
        }
    }

    /// A publisher is there, perhaps again.
    pub fn note_there(&mut self, source: Source) {
        self.gone.retain(|gone| *gone != source);
    }

    /// Takes a reply to the query for a publisher's history.
    pub fn take_history(&mut self, source: Source, number: u32, sample: T) {
        if let Some(Progress::Waiting(samples)) = self.sources.get_mut(&source)
            && samples.len() < self.depth
        {
            samples.entry(number).or_insert(sample);
        }
    }

    /// The query has ended. Returns what waited, in order. Samples pass from now on.
    pub fn end(&mut self, source: Source) -> Vec<T> {
        let Some(progress) = self.sources.get_mut(&source) else {
            return Vec::new();
        };
        let Progress::Waiting(samples) = progress else {
            return Vec::new();
        };
        let samples = std::mem::take(samples);
        let last = samples.last_key_value().map_or(0, |(number, _)| *number);
        *progress = Progress::Passing(last);
        samples.into_values().collect()
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
            query_before: None,
        }
    }

    fn asks(number: u32) -> Taken<u32> {
        Taken {
            deliver: Vec::new(),
            query_before: Some(number),
        }
    }

    #[test]
    fn a_sample_that_outruns_the_history_waits_for_it() {
        let mut order = HistoryOrder::new(10);
        assert_eq!(order.take(ONE, 3, 3), asks(3));
        assert_eq!(order.take(ONE, 4, 4), delivered(&[]));
        for number in [2, 1, 3] {
            order.take_history(ONE, number, number);
        }
        // Another publisher does not wait for it.
        assert_eq!(order.take(OTHER, 0, 0), delivered(&[0]));
        assert_eq!(order.end(ONE), [1, 2, 3, 4]);
        assert_eq!(order.take(ONE, 4, 4), delivered(&[]), "a second time");
        assert_eq!(order.take(ONE, 5, 5), delivered(&[5]));
        // A second end, as after a reconnection, changes nothing.
        assert!(order.end(ONE).is_empty());
        order.take_history(ONE, 1, 1);
        assert_eq!(order.take(ONE, 6, 6), delivered(&[6]));
    }

    #[test]
    fn a_publisher_that_begins_now_or_a_full_history_does_not_wait() {
        let mut order = HistoryOrder::new(3);
        assert_eq!(order.take(ONE, 0, 0), delivered(&[0]));
        assert_eq!(order.take(ONE, 1, 1), delivered(&[1]));
        assert_eq!(order.take(OTHER, 7, 7), asks(7));
        assert_eq!(order.take(OTHER, 8, 8), delivered(&[]));
        assert_eq!(order.take(OTHER, 9, 9), delivered(&[7, 8, 9]));
        assert!(order.end(OTHER).is_empty());
        assert_eq!(HistoryOrder::new(1).take(ONE, 7, 7), delivered(&[7]));
    }

    #[test]
    fn what_waits_and_how_many_publishers_are_known_has_a_limit() {
        let mut order = HistoryOrder::new(3);
        assert_eq!(order.take(ONE, 9, 9), asks(9));
        for number in 0..9 {
            order.take_history(ONE, number, number);
        }
        assert_eq!(order.end(ONE), [0, 1, 9]);
        for entity in 0..2 * SOURCES_MAX as u32 {
            order.take(([2; 16], entity), 5, 5);
        }
        assert_eq!(order.sources.len(), SOURCES_MAX);
        assert_eq!(order.take(([3; 16], 0), 5, 5), delivered(&[5]));
    }

    #[test]
    fn a_publisher_that_is_gone_gives_way_to_a_new_one() {
        let mut order = HistoryOrder::new(10);
        let new = |number: u32| ([2; 16], number);
        for number in 0..SOURCES_MAX as u32 {
            order.take(new(number), 0, 0);
        }
        assert_eq!(order.take(ONE, 5, 5), delivered(&[5]), "no space");
        order.note_gone(new(3));
        order.note_gone(new(4));
        order.note_gone(new(3));
        order.note_there(new(3));
        order.note_there(new(9));
        assert_eq!(order.take(ONE, 5, 5), asks(5), "in the place of number 4");
        assert_eq!(order.take(OTHER, 5, 5), delivered(&[5]), "no space");
        // Number 3 is back, and what it repeats is known.
        assert_eq!(order.take(new(3), 0, 0), delivered(&[]));
        order.note_gone(OTHER);
        assert!(order.gone.is_empty(), "never known");
    }

    /// The word that a publisher is gone can overtake its replies.
    #[test]
    fn the_history_of_a_publisher_that_is_gone_still_comes_before_its_last_sample() {
        let mut order = HistoryOrder::new(10);
        assert_eq!(order.take(ONE, 2, 2), asks(2));
        order.note_gone(ONE);
        let new = |number: u32| ([2; 16], number);
        for number in 1..SOURCES_MAX as u32 {
            order.take(new(number), 0, 0);
        }
        // It does not give way before.
        assert_eq!(order.take(OTHER, 5, 5), delivered(&[5]), "no space");
        order.take_history(ONE, 1, 1);
        order.take_history(ONE, 0, 0);
        assert_eq!(order.end(ONE), [0, 1, 2]);
        assert_eq!(order.take(OTHER, 6, 6), asks(6));
    }
}

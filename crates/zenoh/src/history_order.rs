//! Order of a transient-local publisher's history and its live samples.
//!
//! A subscription queries the history of each publisher that it discovers. Live samples
//! wait here until the query has ended, or until as many wait as the depth allows. A
//! publisher's very first sample need not wait. A gap in the numbers of a reliable
//! publisher is queried in the same way, and so are those that a heartbeat announces.
//!
//! A live sample is always delivered, at once or after a query: its number may be forged, so
//! no later one is dropped because of it. The reader drops repeated ones
//! (`Reader::handle_whole_sample`).
//!
//! A subscription with a content filter queries the whole history. The filter is applied
//! here, because the depth counts only samples that pass.

use std::collections::{BTreeMap, VecDeque};

/// Id of a publisher: its session, and its entity number. Without one it does not number
/// its samples, and their timestamps order them.
pub type Source = ([u8; 16], Option<u32>);

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
    /// Whether the subscription is reliable.
    is_reliable: bool,
    /// Whether the first query, to all publishers, has not ended.
    is_starting: bool,
    last_query: u64,
}

struct Progress<T> {
    delivered: Runs,
    waiting: Option<Waiting<T>>,
}

/// Runs of delivered numbers, each first and last, the newest run first. There are two,
/// because the numbers of a publisher go on beside a forged one. Older runs are forgotten.
#[derive(Default)]
struct Runs([Option<(i64, i64)>; 2]);

impl Runs {
    fn contains(&self, number: i64) -> bool {
        let runs = self.0.iter().flatten();
        runs.clone()
            .any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// The first number that is missing before this one, or this one.
    fn first_missing(&self, number: i64) -> i64 {
        let lasts = self.0.iter().flatten().map(|(_, last)| *last);
        let before = lasts.clone().filter(|last| *last < number).max();
        match before {
            Some(last) => last.saturating_add(1),
            None if lasts.count() == 0 => 0,
            None => number,
        }
    }

    /// The first number that may be missing; 0 before the first sample.
    fn next(&self) -> i64 {
        let lasts = self.0.iter().flatten().map(|(_, last)| *last);
        lasts.min().map_or(0, |last| last.saturating_add(1))
    }

    /// Notes a delivered sample. Times have gaps, so they make one run.
    fn note(&mut self, number: i64, is_time: bool) {
        if self.contains(number) {
            return;
        }
        let [newest, older] = self.0;
        let longer = |run: Option<(i64, i64)>| {
            let (first, last) = run?;
            let is_next = last.checked_add(1) == Some(number);
            (is_next || is_time).then(|| (first.min(number), last.max(number)))
        };
        self.0 = match (longer(newest), longer(older)) {
            (Some(longer), _) => [Some(longer), older],
            (None, Some(longer)) => [Some(longer), newest],
            (None, None) => [Some((number, number)), newest],
        };
    }
}

/// The newest samples, by number, while missing ones are being queried.
struct Waiting<T> {
    samples: BTreeMap<i64, T>,
    max: usize,
    /// The query, unless only the one to all publishers goes on.
    query: Option<u64>,
    /// Whether samples have arrived by a query.
    is_answered: bool,
}

/// Consequences of a sample.
#[derive(PartialEq, Eq, Debug)]
pub struct Taken<T> {
    /// Samples to deliver, in order.
    pub deliver: Vec<T>,
    /// Query to send.
    pub query: Option<HistoryQuery>,
}

/// Query for samples of a publisher. Call [`HistoryOrder::end`] when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryQuery {
    /// The publisher.
    pub source: Source,
    /// Its number among the queries.
    pub id: u64,
    /// The first number; 0 for the whole history.
    pub from: i64,
    /// The last number, if it matters.
    pub to: Option<i64>,
    /// Maximum number of samples; the newest ones are returned.
    pub max: usize,
}

impl<T> Default for Progress<T> {
    fn default() -> Self {
        Self {
            delivered: Runs::default(),
            waiting: None,
        }
    }
}

impl<T> HistoryOrder<T> {
    /// No publishers yet. `depth` is the history depth of the subscription. The first query,
    /// to all publishers, is the caller's: see [`HistoryOrder::end_start`].
    pub fn new(depth: usize, is_reliable: bool) -> Self {
        Self {
            sources: BTreeMap::new(),
            gone: VecDeque::new(),
            depth,
            is_reliable,
            is_starting: true,
            last_query: 0,
        }
    }

    /// Samples that a query may return.
    pub fn max(&self, is_filtered: bool) -> usize {
        if is_filtered { HISTORY_MAX } else { self.depth }
    }

    /// Handles a live sample.
    pub fn take(
        &mut self,
        source: Source,
        number: i64,
        sample: T,
        passes: Passes<'_, T>,
    ) -> Taken<T> {
        let deliver = |deliver| Taken {
            deliver,
            query: None,
        };
        let max = self.max(passes.is_some());
        let Some(progress) = self.progress(source) else {
            return deliver(vec![sample]);
        };
        let waits = progress.waiting.is_some();
        let missing = progress.delivered.first_missing(number);
        let is_new = progress.delivered.next() == 0;
        let is_missing = match source.1 {
            Some(_) => missing < number && (self.is_reliable || is_new),
            None => is_new,
        };
        if !waits && (!is_missing || max <= 1) {
            self.note_delivered(source, number);
            return deliver(vec![sample]);
        }
        let query = if waits {
            None
        } else {
            self.wait(source, max, missing, Some(number.saturating_sub(1)))
        };
        let waiting = self.sources.get_mut(&source);
        let waiting = waiting.and_then(|progress| progress.waiting.as_mut());
        let mut is_complete = false;
        if let Some(waiting) = waiting {
            waiting.samples.insert(number, sample);
            // An older sample would not be kept.
            is_complete = waits && waiting.samples.len() >= waiting.max;
        }
        if is_complete {
            return deliver(self.deliver_waiting(source, passes));
        }
        Taken {
            deliver: Vec::new(),
            query,
        }
    }

    fn note_delivered(&mut self, source: Source, number: i64) {
        if let Some(progress) = self.sources.get_mut(&source) {
            progress.delivered.note(number, source.1.is_none());
        }
    }

    /// The state of a publisher, possibly a new one. `None` if there is no space.
    fn progress(&mut self, source: Source) -> Option<&mut Progress<T>> {
        let is_full = self.sources.len() >= SOURCES_MAX;
        if is_full && !self.sources.contains_key(&source) && !self.make_space() {
            return None;
        }
        Some(self.sources.entry(source).or_default())
    }

    /// Lets the samples of a known publisher wait for those from `from` to `to`. Returns the
    /// query for them; none during the first one, whose end decides.
    fn wait(
        &mut self,
        source: Source,
        max: usize,
        from: i64,
        to: Option<i64>,
    ) -> Option<HistoryQuery> {
        let progress = self.sources.get_mut(&source)?;
        progress.waiting = Some(Waiting {
            samples: BTreeMap::new(),
            max,
            query: None,
            is_answered: false,
        });
        if self.is_starting {
            return None;
        }
        self.ask(source, from, to)
    }

    /// The query by which a publisher's samples wait from now on.
    fn ask(&mut self, source: Source, from: i64, to: Option<i64>) -> Option<HistoryQuery> {
        let waiting = self.sources.get_mut(&source)?.waiting.as_mut()?;
        self.last_query += 1;
        waiting.query = Some(self.last_query);
        Some(HistoryQuery {
            source,
            id: self.last_query,
            from,
            to,
            max: waiting.max,
        })
    }

    /// Drops the publisher that was removed first, among those whose queries have ended.
    /// Returns false if there is none.
    fn make_space(&mut self) -> bool {
        let has_ended = |source| {
            let progress = self.sources.get(source);
            progress.is_some_and(|progress| progress.waiting.is_none())
        };
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

    /// Notes that a publisher is announced, possibly again. Returns the query for its
    /// history, or for what was published since its last sample. It does not wait for the
    /// end of the first query, which may not have reached the publisher.
    pub fn note_there(&mut self, source: Source, is_filtered: bool) -> Option<HistoryQuery> {
        self.gone.retain(|gone| *gone != source);
        let max = self.max(is_filtered);
        let progress = self.progress(source)?;
        let from = progress.delivered.next();
        match &progress.waiting {
            None => {
                let query = self.wait(source, max, from, None);
                query.or_else(|| self.ask(source, from, None))
            }
            Some(Waiting {
                query: None,
                is_answered: false,
                ..
            }) => self.ask(source, from, None),
            Some(_) => None,
        }
    }

    /// Handles the heartbeat of a reliable publisher: the number of its last sample. Returns
    /// the query for those that are missing.
    pub fn note_heartbeat(
        &mut self,
        source: Source,
        number: i64,
        is_filtered: bool,
    ) -> Option<HistoryQuery> {
        let max = self.max(is_filtered);
        let progress = self.progress(source)?;
        let delivered = &progress.delivered;
        if progress.waiting.is_some() || delivered.contains(number) {
            return None;
        }
        let from = delivered.first_missing(number);
        self.wait(source, max, from, Some(number))
    }

    /// Handles a reply to a query. When full, the oldest sample is dropped.
    pub fn take_history(&mut self, source: Source, number: i64, sample: T, is_filtered: bool) {
        let (is_starting, max) = (self.is_starting, self.max(is_filtered));
        let Some(progress) = self.progress(source) else {
            return;
        };
        let is_new = progress.waiting.is_none() && progress.delivered.next() == 0;
        if is_new && is_starting {
            self.wait(source, max, 0, None);
        }
        if let Some(progress) = self.sources.get_mut(&source)
            && !progress.delivered.contains(number)
            && let Some(waiting) = &mut progress.waiting
        {
            waiting.is_answered = true;
            waiting.samples.entry(number).or_insert(sample);
            if waiting.samples.len() > waiting.max {
                waiting.samples.pop_first();
            }
        }
    }

    /// Handles the end of the first query, to all publishers. Returns the samples to
    /// deliver, and the queries to publishers that it may not have reached.
    pub fn end_start(&mut self, passes: Passes<'_, T>) -> (Vec<T>, Vec<HistoryQuery>) {
        self.is_starting = false;
        let (mut deliver, mut queries) = (Vec::new(), Vec::new());
        let sources: Vec<Source> = self.sources.keys().copied().collect();
        for source in sources {
            let waiting = self.sources.get(&source);
            let Some(waiting) = waiting.and_then(|progress| progress.waiting.as_ref()) else {
                continue;
            };
            match (waiting.query, waiting.is_answered) {
                (None, true) => deliver.extend(self.deliver_waiting(source, passes)),
                (None, false) => queries.extend(self.ask(source, 0, None)),
                (Some(_), _) => {}
            }
        }
        (deliver, queries)
    }

    /// Handles the end of a query. Returns the waiting samples, see
    /// [`HistoryOrder::deliver_waiting`].
    pub fn end(&mut self, source: Source, query: u64, passes: Passes<'_, T>) -> Vec<T> {
        let progress = self.sources.get(&source);
        let waiting = progress.and_then(|progress| progress.waiting.as_ref());
        if waiting.is_some_and(|waiting| waiting.query == Some(query)) {
            self.deliver_waiting(source, passes)
        } else {
            Vec::new()
        }
    }

    /// The waiting samples in order: as many of the last passing ones as the depth allows.
    /// Later samples pass at once.
    fn deliver_waiting(&mut self, source: Source, passes: Passes<'_, T>) -> Vec<T> {
        let Some(progress) = self.sources.get_mut(&source) else {
            return Vec::new();
        };
        let Some(Waiting { samples, .. }) = progress.waiting.take() else {
            return Vec::new();
        };
        for number in samples.keys() {
            progress.delivered.note(*number, source.1.is_none());
        }
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

    const ONE: Source = ([1; 16], Some(7));
    const OTHER: Source = ([1; 16], Some(8));
    /// A publisher whose samples have no numbers.
    const BY_TIME: Source = ([1; 16], None);

    fn new(entity: u32) -> Source {
        ([2; 16], Some(entity))
    }

    /// A reliable subscription whose first query has ended.
    fn started(depth: usize) -> HistoryOrder<i64> {
        let mut order = HistoryOrder::new(depth, true);
        assert_eq!(order.end_start(None), (Vec::new(), Vec::new()));
        order
    }

    impl HistoryOrder<i64> {
        /// Takes a sample that is its own number, and expects no query.
        #[track_caller]
        fn takes(&mut self, source: Source, number: i64) -> Vec<i64> {
            let taken = self.take(source, number, number, None);
            assert_eq!(taken.query, None, "{number}");
            taken.deliver
        }

        /// Takes a sample that waits, and returns the query: its id, numbers and maximum.
        #[track_caller]
        fn asks(&mut self, source: Source, number: i64) -> (u64, i64, Option<i64>, usize) {
            let taken = self.take(source, number, number, None);
            assert!(taken.deliver.is_empty(), "{number}");
            parts(taken.query)
        }

        fn answer(&mut self, source: Source, numbers: impl IntoIterator<Item = i64>) {
            for number in numbers {
                self.take_history(source, number, number, false);
            }
        }

        fn ends(&mut self, source: Source, query: u64) -> Vec<i64> {
            self.end(source, query, None)
        }
    }

    #[track_caller]
    fn parts(query: Option<HistoryQuery>) -> (u64, i64, Option<i64>, usize) {
        let query = query.unwrap();
        (query.id, query.from, query.to, query.max)
    }

    const NOTHING: [i64; 0] = [];

    #[test]
    fn a_sample_that_outruns_the_history_waits_for_it() {
        let mut order = started(10);
        assert_eq!(order.asks(ONE, 3), (1, 0, Some(2), 10));
        assert_eq!(order.takes(ONE, 4), NOTHING);
        order.answer(ONE, [2, 1, 3]);
        // Another publisher does not wait for it.
        assert_eq!(order.takes(OTHER, 0), [0]);
        assert_eq!(order.ends(ONE, 1), [1, 2, 3, 4]);
        assert_eq!(order.takes(ONE, 4), [4], "the reader drops it");
        assert_eq!(order.takes(ONE, 5), [5]);
        // A second end, as after a reconnection, changes nothing.
        assert_eq!(order.ends(ONE, 1), NOTHING);
        order.answer(ONE, [1]);
        assert_eq!(order.takes(ONE, 6), [6]);
    }

    #[test]
    fn a_publisher_that_begins_now_or_a_full_history_does_not_wait() {
        let mut order = started(3);
        assert_eq!(order.takes(ONE, 0), [0]);
        assert_eq!(order.takes(ONE, 1), [1]);
        assert_eq!(order.asks(OTHER, 7), (1, 0, Some(6), 3));
        assert_eq!(order.takes(OTHER, 8), NOTHING);
        assert_eq!(order.takes(OTHER, 9), [7, 8, 9]);
        assert_eq!(order.ends(OTHER, 1), NOTHING);
        let mut of_one = started(1);
        assert_eq!(of_one.takes(ONE, 7), [7]);
        assert_eq!(of_one.takes(ONE, 9), [9], "a gap");
    }

    #[test]
    fn what_waits_and_how_many_publishers_are_known_has_a_limit() {
        let mut order = started(3);
        let (query, ..) = order.asks(ONE, 9);
        order.answer(ONE, 0..9);
        assert_eq!(order.ends(ONE, query), [7, 8, 9]);
        for entity in 0..2 * SOURCES_MAX as u32 {
            order.take(new(entity), 5, 5, None);
        }
        assert_eq!(order.sources.len(), SOURCES_MAX);
        assert_eq!(order.takes(([3; 16], Some(0)), 5), [5]);
    }

    /// Regression: one sample that overtook a history of the full depth made the
    /// subscription lose its newest sample, in the middle of the delivered ones.
    #[test]
    fn samples_that_outrun_the_history_replace_its_oldest() {
        let mut order = started(3);
        let (query, ..) = order.asks(ONE, 5);
        order.answer(ONE, 2..5);
        assert_eq!(order.ends(ONE, query), [3, 4, 5]);
    }

    #[test]
    fn a_depth_counts_the_samples_that_pass_the_filter() {
        let is_even = |sample: &i64| sample % 2 == 0;
        let passes: Passes<'_, i64> = Some(&is_even);
        // A subscription of depth 1 also queries more.
        for (depth, expected) in [
            (1, vec![6, 7]),
            (2, vec![4, 5, 6, 7]),
            (9, vec![1, 2, 3, 4]),
        ] {
            let mut order = started(depth);
            let query = parts(order.take(ONE, 5, 5, passes).query);
            assert_eq!(query, (1, 0, Some(4), HISTORY_MAX));
            for number in [6, 7] {
                let taken = order.take(ONE, number, number, passes);
                assert!(taken.deliver.is_empty());
            }
            for number in 1..5 {
                order.take_history(ONE, number, number, true);
            }
            let waited = order.end(ONE, 1, passes);
            assert!(waited.starts_with(&expected), "{depth}: {waited:?}");
            assert_eq!(waited.last(), Some(&7));
            assert_eq!(order.take(ONE, 8, 8, passes).deliver, [8]);
        }
    }

    #[test]
    fn a_publisher_that_is_gone_gives_way_to_a_new_one() {
        let mut order = started(10);
        for number in 0..SOURCES_MAX as u32 {
            order.takes(new(number), 0);
        }
        assert_eq!(order.takes(ONE, 5), [5], "no space");
        order.note_gone(new(3));
        order.note_gone(new(4));
        order.note_gone(new(3));
        for there in [3, 9] {
            assert!(order.note_there(new(there), false).is_some());
        }
        let (query, ..) = order.asks(ONE, 5);
        assert_eq!(order.ends(ONE, query), [5], "in the place of number 4");
        assert_eq!(order.takes(OTHER, 5), [5], "no space");
        // Number 3 is back, and its repeated samples are known.
        order.answer(new(3), [0]);
        assert_eq!(order.takes(new(3), 1), NOTHING, "it waits");
        assert_eq!(order.ends(new(3), 1), [1]);
        order.note_gone(OTHER);
        assert!(order.gone.is_empty(), "never known");
    }

    /// The removal of a publisher can overtake its replies.
    #[test]
    fn the_history_of_a_publisher_that_is_gone_still_comes_before_its_last_sample() {
        let mut order = started(10);
        let (query, ..) = order.asks(ONE, 2);
        order.note_gone(ONE);
        for number in 1..SOURCES_MAX as u32 {
            order.takes(new(number), 0);
        }
        // It is not replaced before.
        assert_eq!(order.takes(OTHER, 5), [5], "no space");
        order.answer(ONE, [1, 0]);
        assert_eq!(order.ends(ONE, query), [0, 1, 2]);
        order.asks(OTHER, 6);
    }

    #[test]
    fn the_first_query_brings_the_history_and_those_that_it_did_not_reach_are_queried() {
        let mut order = HistoryOrder::new(10, true);
        order.answer(ONE, [1, 2]);
        assert_eq!(order.note_there(ONE, false), None, "it has answered");
        assert_eq!(order.takes(ONE, 3), NOTHING);
        let (of_other, ..) = parts(order.note_there(OTHER, false));
        assert_eq!(order.note_there(OTHER, false), None, "once");
        assert_eq!(order.takes(new(0), 0), [0]);
        assert_eq!(order.takes(BY_TIME, 900), NOTHING);
        let (deliver, queries) = order.end_start(None);
        assert_eq!(deliver, [1, 2, 3]);
        let asked: Vec<Source> = queries.iter().map(|query| query.source).collect();
        assert_eq!(asked, [BY_TIME]);
        order.answer(BY_TIME, [700, 900, 800]);
        assert_eq!(order.ends(BY_TIME, queries[0].id), [700, 800, 900]);
        assert_eq!(order.takes(BY_TIME, 950), [950]);
        assert_eq!(order.takes(OTHER, 4), NOTHING, "it waits");
        order.answer(OTHER, [3]);
        assert_eq!(order.ends(OTHER, of_other), [3, 4]);
    }

    #[test]
    fn missing_samples_are_queried_by_a_gap_a_heartbeat_and_the_publishers_return() {
        let mut order = started(10);
        assert_eq!(order.takes(ONE, 0), [0]);
        let (query, from, to, _) = order.asks(ONE, 3);
        assert_eq!((from, to), (1, Some(2)));
        assert_eq!(order.takes(ONE, 4), NOTHING);
        order.answer(ONE, [2, 1]);
        assert_eq!(order.ends(ONE, query), [1, 2, 3, 4]);
        assert_eq!(order.note_heartbeat(ONE, 4, false), None);
        let (query, from, to, _) = parts(order.note_heartbeat(ONE, 6, false));
        assert_eq!((from, to), (5, Some(6)));
        assert_eq!(order.note_heartbeat(ONE, 6, false), None, "once");
        order.answer(ONE, [5, 6]);
        assert_eq!(order.ends(ONE, query - 1), NOTHING, "of an older query");
        assert_eq!(order.ends(ONE, query), [5, 6]);
        order.note_gone(ONE);
        let (query, from, to, _) = parts(order.note_there(ONE, false));
        assert_eq!((from, to), (7, None));
        order.answer(ONE, [6, 7]);
        assert_eq!(order.ends(ONE, query), [7]);
        // A best-effort subscription misses them.
        let mut order = HistoryOrder::new(10, false);
        order.end_start(None);
        assert_eq!(order.takes(ONE, 0), [0]);
        assert_eq!(order.takes(ONE, 3), [3]);
    }

    /// Regression: one forged sample with a higher number silenced the publisher for good,
    /// as with zenoh-ext's subscriber.
    #[test]
    fn no_forged_number_hides_a_live_sample() {
        for (source, depth) in [(ONE, 50), (ONE, 1), (BY_TIME, 50)] {
            for forged in [310, 1 << 31, i64::MAX - 1] {
                let mut order = started(depth);
                let mut seen = Vec::new();
                let mut live = |number| {
                    let taken = order.take(source, number, number, None);
                    seen.extend(taken.deliver);
                    if let Some(query) = taken.query {
                        // The publisher has none of those.
                        seen.extend(order.end(source, query.id, None));
                    }
                };
                let mut expected = Vec::new();
                for number in 0..40 {
                    live(number);
                    expected.push(number);
                    if number % 10 == 5 {
                        for forged in [forged, forged + 1, 0, number] {
                            live(forged);
                            expected.push(forged);
                        }
                    }
                }
                assert_eq!(seen, expected, "{source:?} {depth}");
            }
        }
    }

    #[test]
    fn those_missing_beside_a_forged_number_are_queried() {
        let mut order = started(10);
        assert_eq!(order.takes(ONE, 0), [0]);
        let (query, from, to, _) = order.asks(ONE, 300);
        assert_eq!((from, to), (1, Some(299)));
        assert_eq!(order.takes(ONE, 1), NOTHING);
        assert_eq!(order.ends(ONE, query), [1, 300]);
        assert_eq!(order.takes(ONE, 2), [2]);
        let (query, from, to, _) = order.asks(ONE, 5);
        assert_eq!((from, to), (3, Some(4)));
        order.answer(ONE, [1, 3, 4]);
        assert_eq!(order.ends(ONE, query), [3, 4, 5]);
        let (_, from, to, _) = parts(order.note_heartbeat(ONE, 7, false));
        assert_eq!((from, to), (6, Some(7)));
    }

    #[test]
    fn a_forged_heartbeat_changes_nothing() {
        let mut order = started(10);
        for number in 0..5 {
            assert_eq!(order.takes(ONE, number), [number]);
        }
        let (query, ..) = parts(order.note_heartbeat(ONE, i64::from(u32::MAX), false));
        assert_eq!(order.takes(ONE, 5), NOTHING);
        assert_eq!(order.ends(ONE, query), [5]);
        assert_eq!(order.takes(ONE, 6), [6]);
    }
}

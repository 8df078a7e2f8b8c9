//! Order of a transient-local publisher's history and its live samples.
//!
//! A subscription queries the history of each publisher that it discovers. Live samples
//! wait here until the query has ended, or until as many wait as the depth allows. A
//! publisher's very first sample need not wait. A gap in the numbers of a reliable
//! publisher is queried in the same way, and so are those that a heartbeat announces.
//!
//! A stranger's queryable may match the same query and never end its reply. So a publisher's
//! samples wait at most [`STALL_MAX`] for its next reply ([`HistoryOrder::expire`]). Replies
//! that come later are delivered as they come, if they are newer than what was delivered.
//!
//! A live sample is always delivered, at once or after a query: its number may be forged, so
//! no later one is dropped because of it. The reader drops repeated ones
//! (`Reader::handle_whole_sample`).
//!
//! A subscription with a content filter queries the whole history. The filter is applied
//! here, because the depth counts only samples that pass.

use std::collections::{BTreeMap, VecDeque};

use pteros_rtps::time::{Duration, Instant};

/// Id of a publisher: its session, and its entity number. Without one it does not number
/// its samples, and their timestamps order them.
pub type Source = ([u8; 16], Option<u32>);

/// Publishers of one subscription. When full, a new publisher replaces the one that was
/// removed first, or one that no token announces. Without such, the new publisher's samples
/// are not ordered.
const SOURCES_MAX: usize = 4_096;
/// Publishers of one session among them.
const SESSION_SOURCES_MAX: usize = SOURCES_MAX / 2;

/// Longest wait for the next reply of a publisher.
pub const STALL_MAX: Duration = Duration::from_millis(2_000);

/// Bytes of all waiting samples. When full, those of the publisher that exceeds it are
/// delivered.
const WAITING_BYTES_MAX: usize = 256 << 20;

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
    /// When the first query, to all publishers, began, until it ends.
    starting: Option<Instant>,
    last_query: u64,
    /// Bytes of a sample.
    size_of: fn(&T) -> usize,
    /// Publishers whose samples wait.
    waits: usize,
    /// Bytes of all waiting samples.
    bytes: usize,
}

struct Progress<T> {
    delivered: Runs,
    waiting: Option<Waiting<T>>,
    /// Whether it has a token.
    is_announced: bool,
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

    /// Notes a delivered sample. Times have gaps, so those within a minute make one run.
    fn note(&mut self, number: i64, is_time: bool) {
        if self.contains(number) {
            return;
        }
        let [newest, older] = self.0;
        let longer = |run: Option<(i64, i64)>| {
            let (first, last) = run?;
            let is_next = last.checked_add(1) == Some(number);
            let is_near = is_time && number.abs_diff(last) < TIME_GAP_MAX;
            (is_next || is_near).then(|| (first.min(number), last.max(number)))
        };
        self.0 = match (longer(newest), longer(older)) {
            (Some(longer), _) => [Some(longer), older],
            (None, Some(longer)) => [Some(longer), newest],
            (None, None) => [Some((number, number)), newest],
        };
    }
}

/// A minute, in the unit of Zenoh's times.
const TIME_GAP_MAX: u64 = 60 << 32;

/// The newest samples, by number, while missing ones are being queried.
struct Waiting<T> {
    samples: BTreeMap<i64, T>,
    max: usize,
    /// The query, unless only the one to all publishers goes on.
    query: Option<u64>,
    /// The queried numbers, if the last one is known.
    missing: Option<(i64, i64)>,
    /// Whether samples have arrived by a query.
    is_answered: bool,
    /// When the wait began, or the last reply of the publisher itself arrived.
    progressed_at: Instant,
}

impl<T> Waiting<T> {
    /// Whether all queried samples are there, as many as fit.
    fn is_complete(&self) -> bool {
        let Some((from, to)) = self.missing else {
            return false;
        };
        let queried = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        let queried = queried.saturating_add(1).min(self.max);
        if self.samples.len() < queried {
            return false;
        }
        let newer = self.samples.range(to.saturating_add(1)..).count();
        let fitting = queried.min(self.max.saturating_sub(newer));
        let mut newest = self.samples.range(from..=to).rev().take(fitting);
        let is_dense = newest
            .by_ref()
            .zip(0..)
            .all(|((number, _), at)| to - at == *number);
        let count = self.samples.range(from..=to).count();
        is_dense && count >= fitting
    }
}

/// Consequences of a sample.
#[derive(PartialEq, Eq, Debug)]
pub struct Taken<T> {
    /// Samples to deliver, in order.
    pub deliver: Vec<T>,
    /// Query to send.
    pub query: Option<HistoryQuery>,
}

/// A reply to a query.
pub struct HistoryReply<T> {
    pub sample: T,
    /// Whether the publisher's session sent it.
    pub is_own: bool,
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
            is_announced: false,
        }
    }
}

impl<T> HistoryOrder<T> {
    /// No publishers yet. `depth` is the history depth of the subscription, `size_of` the
    /// bytes of a sample. The first query, to all publishers, is the caller's: see
    /// [`HistoryOrder::end_start`].
    pub fn new(now: Instant, depth: usize, is_reliable: bool, size_of: fn(&T) -> usize) -> Self {
        Self {
            sources: BTreeMap::new(),
            gone: VecDeque::new(),
            depth,
            is_reliable,
            starting: Some(now),
            last_query: 0,
            size_of,
            waits: 0,
            bytes: 0,
        }
    }

    /// Samples that a query may return.
    pub fn max(&self, is_filtered: bool) -> usize {
        if is_filtered { HISTORY_MAX } else { self.depth }
    }

    /// Handles a live sample.
    pub fn take(
        &mut self,
        now: Instant,
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
            self.wait(now, source, max, missing, Some(number.saturating_sub(1)))
        };
        self.keep(source, number, sample);
        let waiting = self.waiting(source);
        // An older sample would not be kept.
        let is_full = waits && waiting.is_some_and(|of| of.samples.len() >= of.max);
        if is_full || self.bytes > WAITING_BYTES_MAX {
            return deliver(self.deliver_waiting(source, passes));
        }
        Taken {
            deliver: Vec::new(),
            query,
        }
    }

    fn waiting(&self, source: Source) -> Option<&Waiting<T>> {
        self.sources.get(&source)?.waiting.as_ref()
    }

    /// Keeps a sample that waits, in the place of another one with its number.
    fn keep(&mut self, source: Source, number: i64, sample: T) {
        let size_of = self.size_of;
        let waiting = self.sources.get_mut(&source);
        if let Some(waiting) = waiting.and_then(|of| of.waiting.as_mut()) {
            self.bytes = self.bytes.saturating_add(size_of(&sample));
            let before = waiting.samples.insert(number, sample);
            let before = before.as_ref().map_or(0, size_of);
            self.bytes = self.bytes.saturating_sub(before);
        }
    }

    fn note_delivered(&mut self, source: Source, number: i64) {
        if let Some(progress) = self.sources.get_mut(&source) {
            progress.delivered.note(number, source.1.is_none());
        }
    }

    /// The state of a publisher, possibly a new one. `None` if there is no space.
    fn progress(&mut self, source: Source) -> Option<&mut Progress<T>> {
        if !self.sources.contains_key(&source) {
            let (session, _) = source;
            let its = (session, None)..=(session, Some(u32::MAX));
            let has_share = self.sources.range(its).count() < SESSION_SOURCES_MAX;
            if !has_share || (self.sources.len() >= SOURCES_MAX && !self.make_space()) {
                return None;
            }
        }
        Some(self.sources.entry(source).or_default())
    }

    /// Lets the samples of a known publisher wait for those from `from` to `to`. Returns the
    /// query for them; none during the first one, whose end decides.
    fn wait(
        &mut self,
        now: Instant,
        source: Source,
        max: usize,
        from: i64,
        to: Option<i64>,
    ) -> Option<HistoryQuery> {
        let progress = self.sources.get_mut(&source)?;
        self.waits += usize::from(progress.waiting.is_none());
        progress.waiting = Some(Waiting {
            samples: BTreeMap::new(),
            max,
            query: None,
            missing: None,
            is_answered: false,
            progressed_at: now,
        });
        if self.starting.is_some() {
            return None;
        }
        self.ask(source, from, to)
    }

    /// The query by which a publisher's samples wait from now on.
    fn ask(&mut self, source: Source, from: i64, to: Option<i64>) -> Option<HistoryQuery> {
        let waiting = self.sources.get_mut(&source)?.waiting.as_mut()?;
        self.last_query += 1;
        waiting.query = Some(self.last_query);
        waiting.missing = to.map(|to| (from, to));
        Some(HistoryQuery {
            source,
            id: self.last_query,
            from,
            to,
            max: waiting.max,
        })
    }

    /// Drops the publisher that was removed first, or else one that was never announced,
    /// among those whose samples do not wait. Returns false if there is none.
    fn make_space(&mut self) -> bool {
        let has_ended = |source| self.waiting(source).is_none();
        if let Some(at) = self.gone.iter().position(|source| has_ended(*source)) {
            let oldest = self.gone.remove(at);
            return oldest.is_some_and(|source| self.sources.remove(&source).is_some());
        }
        let mut others = self.sources.iter();
        let unannounced = others.find(|(_, of)| !of.is_announced && of.waiting.is_none());
        let unannounced = unannounced.map(|(source, _)| *source);
        unannounced.is_some_and(|source| self.sources.remove(&source).is_some())
    }

    /// Notes that a publisher was removed. Replies of its session may still arrive, so
    /// its live samples wait until the query ends.
    pub fn note_gone(&mut self, source: Source) {
        if let Some(progress) = self.sources.get_mut(&source) {
            progress.is_announced = false;
            if !self.gone.contains(&source) {
                self.gone.push_back(source);
            }
        }
    }

    /// Notes that a publisher is announced, possibly again. Returns the query for its
    /// history, or for what was published since its last sample. It does not wait for the
    /// end of the first query, which may not have reached the publisher.
    pub fn note_there(
        &mut self,
        now: Instant,
        source: Source,
        is_filtered: bool,
    ) -> Option<HistoryQuery> {
        self.gone.retain(|gone| *gone != source);
        let max = self.max(is_filtered);
        let progress = self.progress(source)?;
        progress.is_announced = true;
        let from = progress.delivered.next();
        match &progress.waiting {
            None => {
                let query = self.wait(now, source, max, from, None);
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
        now: Instant,
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
        self.wait(now, source, max, from, Some(number))
    }

    /// Handles a reply to a query. When full, the oldest sample is dropped. `is_own`: it comes
    /// from the publisher's session. Returns the samples to deliver.
    pub fn take_history(
        &mut self,
        now: Instant,
        source: Source,
        number: i64,
        reply: HistoryReply<T>,
        passes: Passes<'_, T>,
    ) -> Vec<T> {
        let HistoryReply { sample, is_own } = reply;
        let (is_starting, max) = (self.starting.is_some(), self.max(passes.is_some()));
        let Some(progress) = self.progress(source) else {
            return Vec::new();
        };
        let is_new = progress.delivered.next() == 0;
        if progress.delivered.contains(number) {
            return Vec::new();
        }
        if progress.waiting.is_none() {
            if !is_new || !is_starting {
                // Its wait has ended before its reply did.
                let is_late = number >= progress.delivered.next();
                self.note_delivered(source, number);
                return is_late.then_some(sample).into_iter().collect();
            }
            self.wait(now, source, max, 0, None);
        }
        let waiting = self.sources.get_mut(&source);
        let Some(waiting) = waiting.and_then(|of| of.waiting.as_mut()) else {
            return Vec::new();
        };
        waiting.is_answered = true;
        if waiting.samples.contains_key(&number) {
            return Vec::new();
        }
        let has_space = waiting.samples.len() < waiting.max;
        if is_own && has_space {
            waiting.progressed_at = now;
        } else if !has_space && let Some((_, dropped)) = waiting.samples.pop_first() {
            self.bytes = self.bytes.saturating_sub((self.size_of)(&dropped));
        }
        self.keep(source, number, sample);
        let is_complete = self.waiting(source).is_some_and(Waiting::is_complete);
        if is_complete || self.bytes > WAITING_BYTES_MAX {
            return self.deliver_waiting(source, passes);
        }
        Vec::new()
    }

    /// When to call [`HistoryOrder::expire`].
    pub fn next_expiry(&self) -> Option<Instant> {
        if self.waits == 0 && self.starting.is_none() {
            return None;
        }
        let waiting = self.sources.values().filter_map(|of| of.waiting.as_ref());
        let progressed = waiting.map(|waiting| waiting.progressed_at);
        let first = progressed.chain(self.starting).min();
        first.map(|at| at.after(STALL_MAX))
    }

    /// Ends the waits without progress, and that for the first query after the same time.
    /// Returns as [`HistoryOrder::end_start`].
    pub fn expire(&mut self, now: Instant, passes: Passes<'_, T>) -> (Vec<T>, Vec<HistoryQuery>) {
        let has_stalled = |at: Instant| now >= at.after(STALL_MAX);
        let mut queries = Vec::new();
        if self.starting.is_some_and(has_stalled) {
            self.starting = None;
            queries = self.ask_unanswered();
        }
        let mut deliver = Vec::new();
        let waits = |of: &Progress<T>| {
            let waiting = of.waiting.as_ref();
            waiting.is_some_and(|waiting| has_stalled(waiting.progressed_at))
        };
        for source in self.sources_that(waits) {
            deliver.extend(self.deliver_waiting(source, passes));
        }
        (deliver, queries)
    }

    /// Handles the end of the first query, to all publishers. Returns the samples to
    /// deliver, and the queries to publishers that it may not have reached.
    pub fn end_start(&mut self, passes: Passes<'_, T>) -> (Vec<T>, Vec<HistoryQuery>) {
        if self.starting.take().is_none() {
            return (Vec::new(), Vec::new());
        }
        let is_answered = |of: &Progress<T>| {
            let waiting = of.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.query.is_none() && waiting.is_answered)
        };
        let mut deliver = Vec::new();
        for source in self.sources_that(is_answered) {
            deliver.extend(self.deliver_waiting(source, passes));
        }
        (deliver, self.ask_unanswered())
    }

    /// The queries to publishers that the first query may not have reached.
    fn ask_unanswered(&mut self) -> Vec<HistoryQuery> {
        let is_unanswered = |of: &Progress<T>| {
            let waiting = of.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.query.is_none() && !waiting.is_answered)
        };
        let sources = self.sources_that(is_unanswered).into_iter();
        sources
            .filter_map(|source| self.ask(source, 0, None))
            .collect()
    }

    fn sources_that(&self, are_wanted: impl Fn(&Progress<T>) -> bool) -> Vec<Source> {
        let wanted = self.sources.iter().filter(|(_, of)| are_wanted(of));
        wanted.map(|(source, _)| *source).collect()
    }

    /// Handles the end of a query. Returns the waiting samples, see
    /// [`HistoryOrder::deliver_waiting`].
    pub fn end(&mut self, source: Source, query: u64, passes: Passes<'_, T>) -> Vec<T> {
        let waiting = self.waiting(source);
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
        self.waits -= 1;
        let bytes: usize = samples.values().map(self.size_of).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
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

    const NOW: Instant = Instant::ZERO;
    const ONE: Source = ([1; 16], Some(7));
    const OTHER: Source = ([1; 16], Some(8));
    /// A publisher whose samples have no numbers.
    const BY_TIME: Source = ([1; 16], None);

    /// Publishers of four sessions.
    fn new(entity: u32) -> Source {
        let session = 2 + u8::try_from(entity % 4).unwrap();
        ([session; 16], Some(entity))
    }

    fn own(number: i64) -> HistoryReply<i64> {
        HistoryReply {
            sample: number,
            is_own: true,
        }
    }

    /// A reliable subscription whose first query has ended.
    fn started(depth: usize) -> HistoryOrder<i64> {
        let mut order = HistoryOrder::new(NOW, depth, true, |_| 8);
        assert_eq!(order.end_start(None), (Vec::new(), Vec::new()));
        order
    }

    impl HistoryOrder<i64> {
        /// Takes a sample that is its own number, and expects no query.
        #[track_caller]
        fn takes(&mut self, source: Source, number: i64) -> Vec<i64> {
            let taken = self.take(NOW, source, number, number, None);
            assert_eq!(taken.query, None, "{number}");
            taken.deliver
        }

        /// Takes a sample that waits, and returns the query: its id, numbers and maximum.
        #[track_caller]
        fn asks(&mut self, source: Source, number: i64) -> (u64, i64, Option<i64>, usize) {
            let taken = self.take(NOW, source, number, number, None);
            assert!(taken.deliver.is_empty(), "{number}");
            parts(taken.query)
        }

        fn answer(&mut self, source: Source, numbers: impl IntoIterator<Item = i64>) -> Vec<i64> {
            let numbers = numbers.into_iter();
            numbers
                .flat_map(|number| self.replied(source, number))
                .collect()
        }

        /// Announces a publisher that publishes its first sample.
        fn begins(&mut self, source: Source) {
            let (query, ..) = parts(self.note_there(NOW, source, false));
            assert_eq!(self.ends(source, query), NOTHING);
            assert_eq!(self.takes(source, 0), [0]);
        }

        /// A reply of the publisher's session. Returns what it delivers.
        fn replied(&mut self, source: Source, number: i64) -> Vec<i64> {
            self.take_history(NOW, source, number, own(number), None)
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
        assert_eq!(order.answer(ONE, [2, 1, 3]), NOTHING);
        // Another publisher does not wait for it.
        assert_eq!(order.takes(OTHER, 0), [0]);
        assert_eq!(order.ends(ONE, 1), [1, 2, 3, 4]);
        assert_eq!(order.takes(ONE, 4), [4], "the reader drops it");
        assert_eq!(order.takes(ONE, 5), [5]);
        // A second end, as after a reconnection, changes nothing.
        assert_eq!(order.ends(ONE, 1), NOTHING);
        assert_eq!(order.answer(ONE, [1]), NOTHING);
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
        assert_eq!(order.answer(ONE, 0..9), [7, 8, 9]);
        assert_eq!(order.ends(ONE, query), NOTHING);
        for entity in 0..2 * SOURCES_MAX as u32 {
            order.take(NOW, new(entity), 5, 5, None);
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
        assert_eq!(order.answer(ONE, 2..5), [3, 4, 5]);
        assert_eq!(order.ends(ONE, query), NOTHING);
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
            let query = parts(order.take(NOW, ONE, 5, 5, passes).query);
            assert_eq!(query, (1, 0, Some(4), HISTORY_MAX));
            for number in [6, 7] {
                let taken = order.take(NOW, ONE, number, number, passes);
                assert!(taken.deliver.is_empty());
            }
            for number in 1..5 {
                order.take_history(NOW, ONE, number, own(number), passes);
            }
            let waited = order.end(ONE, 1, passes);
            assert!(waited.starts_with(&expected), "{depth}: {waited:?}");
            assert_eq!(waited.last(), Some(&7));
            assert_eq!(order.take(NOW, ONE, 8, 8, passes).deliver, [8]);
        }
    }

    #[test]
    fn a_publisher_that_is_gone_gives_way_to_a_new_one() {
        let mut order = started(10);
        for number in 0..SOURCES_MAX as u32 {
            order.begins(new(number));
        }
        assert_eq!(order.takes(ONE, 5), [5], "no space");
        order.note_gone(new(3));
        order.note_gone(new(4));
        order.note_gone(new(3));
        let of_three = parts(order.note_there(NOW, new(3), false));
        let (query, ..) = order.asks(ONE, 5);
        assert_eq!(order.ends(ONE, query), [5], "in the place of number 4");
        assert!(order.note_there(NOW, ONE, false).is_some());
        assert_eq!(order.takes(OTHER, 5), [5], "no space");
        // Number 3 is back, and its repeated samples are known.
        assert_eq!(order.answer(new(3), [0]), NOTHING);
        assert_eq!(order.takes(new(3), 1), NOTHING, "it waits");
        let (query, ..) = of_three;
        assert_eq!(order.ends(new(3), query), [1]);
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
            order.begins(new(number));
        }
        // It is not replaced before.
        assert_eq!(order.takes(OTHER, 5), [5], "no space");
        assert_eq!(order.answer(ONE, [1]), NOTHING);
        assert_eq!(order.ends(ONE, query), [1, 2]);
        order.asks(OTHER, 6);
    }

    #[test]
    fn the_first_query_brings_the_history_and_those_that_it_did_not_reach_are_queried() {
        let mut order = HistoryOrder::new(NOW, 10, true, |_| 8);
        assert_eq!(order.answer(ONE, [1, 2]), NOTHING);
        assert_eq!(order.note_there(NOW, ONE, false), None, "it has answered");
        assert_eq!(order.takes(ONE, 3), NOTHING);
        let (of_other, ..) = parts(order.note_there(NOW, OTHER, false));
        assert_eq!(order.note_there(NOW, OTHER, false), None, "once");
        assert_eq!(order.takes(new(0), 0), [0]);
        assert_eq!(order.takes(BY_TIME, 900), NOTHING);
        let (deliver, queries) = order.end_start(None);
        assert_eq!(deliver, [1, 2, 3]);
        let asked: Vec<Source> = queries.iter().map(|query| query.source).collect();
        assert_eq!(asked, [BY_TIME]);
        assert_eq!(order.answer(BY_TIME, [700, 900, 800]), NOTHING);
        assert_eq!(order.ends(BY_TIME, queries[0].id), [700, 800, 900]);
        assert_eq!(order.takes(BY_TIME, 950), [950]);
        assert_eq!(order.takes(OTHER, 4), NOTHING, "it waits");
        assert_eq!(order.answer(OTHER, [3]), NOTHING);
        assert_eq!(order.ends(OTHER, of_other), [3, 4]);
    }

    #[test]
    fn missing_samples_are_queried_by_a_gap_a_heartbeat_and_the_publishers_return() {
        let mut order = started(10);
        assert_eq!(order.takes(ONE, 0), [0]);
        let (query, from, to, _) = order.asks(ONE, 3);
        assert_eq!((from, to), (1, Some(2)));
        assert_eq!(order.takes(ONE, 4), NOTHING);
        // All of them are there: no need to wait for the end of the query.
        assert_eq!(order.answer(ONE, [2, 1]), [1, 2, 3, 4]);
        assert_eq!(order.ends(ONE, query), NOTHING);
        assert_eq!(order.note_heartbeat(NOW, ONE, 4, false), None);
        let (query, from, to, _) = parts(order.note_heartbeat(NOW, ONE, 6, false));
        assert_eq!((from, to), (5, Some(6)));
        assert_eq!(order.note_heartbeat(NOW, ONE, 6, false), None, "once");
        assert_eq!(order.answer(ONE, [6]), NOTHING);
        assert_eq!(order.ends(ONE, query - 1), NOTHING, "of an older query");
        assert_eq!(order.answer(ONE, [5]), [5, 6]);
        assert_eq!(order.ends(ONE, query), NOTHING);
        order.note_gone(ONE);
        let (query, from, to, _) = parts(order.note_there(NOW, ONE, false));
        assert_eq!((from, to), (7, None));
        assert_eq!(order.answer(ONE, [6, 7]), NOTHING);
        assert_eq!(order.ends(ONE, query), [7]);
        // A best-effort subscription misses them.
        let mut order = HistoryOrder::new(NOW, 10, false, |_| 8);
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
                    let taken = order.take(NOW, source, number, number, None);
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
        assert_eq!(order.answer(ONE, [1, 3, 4]), [3, 4, 5]);
        assert_eq!(order.ends(ONE, query), NOTHING);
        let (_, from, to, _) = parts(order.note_heartbeat(NOW, ONE, 7, false));
        assert_eq!((from, to), (6, Some(7)));
    }

    fn at(millis: i64) -> Instant {
        NOW.after(Duration::from_millis(millis))
    }

    /// Regression: a queryable that matches every history and never ends its reply delayed all
    /// publishers by up to ten minutes.
    #[test]
    fn a_query_that_never_ends_delays_a_publisher_by_two_seconds() {
        for numbers_its_samples in [true, false] {
            let [one, other] = if numbers_its_samples {
                [ONE, OTHER]
            } else {
                [BY_TIME, ([9; 16], None)]
            };
            let mut order = HistoryOrder::new(NOW, 10, true, |_| 8);
            let reply = |order: &mut HistoryOrder<i64>, millis, source, number| {
                order.take_history(at(millis), source, number, own(number), None)
            };
            order.note_there(at(100), one, false);
            assert_eq!(reply(&mut order, 200, one, 3), NOTHING);
            assert_eq!(reply(&mut order, 1_900, one, 4), NOTHING, "it goes on");
            assert_eq!(order.next_expiry(), Some(at(2_000)));
            // The first query is given up, and the other publisher is asked for itself.
            assert_eq!(order.take(at(1_000), other, 7, 7, None).deliver, NOTHING);
            let (deliver, queries) = order.expire(at(2_000), None);
            assert_eq!((deliver, queries.len()), (vec![], 1));
            assert_eq!(order.expire(at(3_000), None).0, [7]);
            assert_eq!(order.expire(at(3_899), None).0, NOTHING);
            assert_eq!(order.expire(at(3_900), None).0, [3, 4]);
            assert_eq!(order.next_expiry(), None);
            // The rest of the history is late, and comes as it comes.
            assert_eq!(reply(&mut order, 4_000, one, 5), [5]);
            assert_eq!(reply(&mut order, 4_000, one, 2), NOTHING, "older");
            assert_eq!(reply(&mut order, 4_000, one, 5), NOTHING, "again");
            assert_eq!(order.takes(one, 6), [6]);
        }
    }

    #[test]
    fn replies_of_a_stranger_are_no_progress_and_take_no_space() {
        let mut order = started(10);
        order.note_there(NOW, ONE, false);
        for number in 0..40 {
            let forged = HistoryReply {
                sample: number,
                is_own: false,
            };
            order.take_history(at(100 * number), ONE, number, forged, None);
        }
        assert_eq!(order.next_expiry(), Some(at(2_000)));
        assert_eq!(order.expire(at(2_000), None).0.len(), 10);
        // In the names of publishers that do not exist.
        let mut order = started(10);
        for entity in 0..3 * SOURCES_MAX as u32 {
            let number = i64::from(entity);
            let session = [u8::try_from(entity % 7).unwrap(); 16];
            order.take_history(NOW, (session, Some(entity)), number, own(number), None);
        }
        assert_eq!(order.sources.len(), SOURCES_MAX);
        let honest = ([0xee; 16], Some(1));
        assert!(order.note_there(NOW, honest, false).is_some());
        assert_eq!(order.replied(honest, 3), NOTHING);
        assert_eq!(order.expire(at(2_000), None).0, [3]);
    }

    #[test]
    fn waiting_samples_have_a_limit_of_bytes() {
        let mut order = HistoryOrder::new(NOW, 1_000, true, |_| WAITING_BYTES_MAX / 4);
        order.end_start(None);
        order.asks(ONE, 900);
        assert_eq!(order.answer(ONE, 0..2), NOTHING);
        order.asks(OTHER, 900);
        assert_eq!(order.answer(ONE, 2..7), [0, 1, 2, 900, 3, 4, 5, 6]);
        assert_eq!(order.bytes, WAITING_BYTES_MAX / 4);
        assert_eq!(order.answer(OTHER, 0..2), NOTHING);
        assert_eq!(order.expire(at(2_000), None).0, [0, 1, 900]);
        assert_eq!(order.bytes, 0);
    }

    /// Regression: a sample with a time of the far future made all times before it known.
    #[test]
    fn a_forged_time_hides_no_history() {
        let second = |n: i64| n << 32;
        for forged in [second(7_200), second(1 << 28), i64::MAX, 0] {
            let mut order = started(10);
            order.note_there(NOW, BY_TIME, false);
            assert_eq!(order.ends(BY_TIME, 1), NOTHING);
            let (query, ..) = order.asks(BY_TIME, second(3_600));
            assert_eq!(order.ends(BY_TIME, query), [second(3_600)]);
            assert_eq!(order.takes(BY_TIME, forged), [forged]);
            assert_eq!(order.takes(BY_TIME, second(3_601)), [second(3_601)]);
            // It returns after an outage.
            order.note_gone(BY_TIME);
            let (query, ..) = parts(order.note_there(NOW, BY_TIME, false));
            let missed = [3_600, 3_601, 3_602, 3_603].map(second);
            assert_eq!(order.answer(BY_TIME, missed), NOTHING);
            assert_eq!(order.ends(BY_TIME, query), [second(3_602), second(3_603)]);
        }
    }

    #[test]
    fn a_forged_heartbeat_changes_nothing() {
        let mut order = started(10);
        for number in 0..5 {
            assert_eq!(order.takes(ONE, number), [number]);
        }
        let (query, ..) = parts(order.note_heartbeat(NOW, ONE, i64::from(u32::MAX), false));
        assert_eq!(order.takes(ONE, 5), NOTHING);
        assert_eq!(order.ends(ONE, query), [5]);
        assert_eq!(order.takes(ONE, 6), [6]);
    }
}

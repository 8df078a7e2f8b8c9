//! What a reader knows of one writer (RTPS 2.5 §8.4.10.4, WriterProxy): which
//! numbers have come, which never will, which are missing.
//!
//! `next` is the lowest number not yet handed on. Above it, `known` holds the
//! numbers that are settled: received (the sample waits in `reorder`) or
//! irrelevant. Everything else up to `announced` is missing, and as long as
//! something is missing a NACK is scheduled.

use alloc::collections::VecDeque;

use super::config::{ReaderConfig, WriterProxyConfig};
use super::round_trip::RoundTrip;
use crate::counts::Counts;
use crate::defrag::Defragmenter;
use crate::history::CacheChange;
use crate::id::{Guid, VendorId};
use crate::interval::IntervalSet;
use crate::locator::Route;
use crate::pace::Pace;
use crate::qos::{Durability, History, Liveliness, Reliability};
use crate::reorder::{Kept, ReorderBuffer};
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::{Duration, Instant};

/// A writer behind a link is told this often ...
const TELL_PERIOD: Duration = Duration::from_millis(5);
/// ... or after so many bytes: it needs their memory again.
const TELL_BYTES: usize = 64 << 10;

/// Where a reliable reader begins when it first hears what a writer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Start {
    /// With all that the writer has for us; it sends GAPs for the rest.
    Everything,
    /// With the last so many: a late joiner of limited depth.
    Last(u32),
    /// After what was written already. For a volatile reader of a
    /// transient-local writer of another stack, which may send its history to
    /// anybody who asks (Cyclone DDS does).
    News,
}

impl Start {
    fn of(config: &ReaderConfig, writer: &WriterProxyConfig) -> Self {
        let reader = &config.qos;
        let filtered = config.content_filter.is_some();
        let writer_keeps = writer.qos.durability >= Durability::TransientLocal;
        let reader_wants = reader.durability >= Durability::TransientLocal;
        // Ends of sets have numbers too: those of the last samples are not known.
        let keyed = writer.guid.entity.is_keyed() || writer.qos.presentation.coherent;
        match (writer_keeps, reader_wants, reader.history) {
            // The last so many that pass may be anywhere.
            (true, true, _) if filtered => Self::Everything,
            (true, true, History::KeepLast(depth)) if !keyed => Self::Last(depth.max(1)),
            (true, false, _) if writer.vendor != VendorId::PTEROS => Self::News,
            _ => Self::Everything,
        }
    }
}

/// When to ask again for what is missing.
#[derive(Debug)]
pub(super) struct Nack {
    /// When the timer fires; far future when nothing is missing.
    pub at: Instant,
    /// The pauses after the next requests.
    pub pace: Pace,
    /// How long answers take.
    pub round_trip: RoundTrip,
    /// The highest number asked for so far.
    pub requested: i64,
    /// When the last request was sent.
    pub sent_at: Instant,
    /// The next request leaves out what the last one asked for.
    pub only_news: bool,
    /// How many requests in a row brought nothing.
    pub fruitless: u32,
    /// [`WriterProxy::arrivals`] when the last request was sent.
    pub arrivals_seen: u64,
}

/// A link loses nothing unsaid, so a writer behind one need not ask: it is told
/// when something has come, at its leisure.
#[derive(Debug)]
pub(super) struct Told {
    /// All below was acknowledged by the last ACKNACK.
    base: i64,
    /// When that was.
    at: Instant,
    /// Bytes that have come since.
    pub untold_bytes: usize,
    /// The ACKNACK that is owed was not asked for.
    pub unasked: bool,
}

impl Told {
    const NOTHING: Self = Self {
        base: 1,
        at: Instant::ZERO,
        untold_bytes: 0,
        unasked: false,
    };

    /// Whether it is time to tell that all below `base` has come.
    pub fn is_due(&self, now: Instant, base: i64) -> bool {
        let is_old = now.since(self.at) >= TELL_PERIOD;
        base > self.base && (is_old || self.untold_bytes >= TELL_BYTES)
    }

    pub fn note(&mut self, now: Instant, base: i64) {
        *self = Self {
            base,
            at: now,
            ..Self::NOTHING
        };
    }
}

/// The queue of samples ready for the application, with its limit.
#[derive(Debug)]
pub(super) struct Ready {
    pub changes: VecDeque<CacheChange>,
    pub samples_max: usize,
    /// Beyond that, for what waited for the missing samples of writers that
    /// left.
    pub left_max: usize,
    /// Some writer has samples that found no room here.
    pub stalled: bool,
}

impl Ready {
    pub fn has_room(&self) -> bool {
        let early = !self.changes.is_empty() && fault!("ready-queue-full-early");
        self.changes.len() < self.samples_max && !early
    }

    /// Hands on what a writer that left had sent; false when even that is too
    /// much, since many left at once.
    fn push_left(&mut self, change: CacheChange) -> bool {
        let has_room = self.changes.len() < self.samples_max.saturating_add(self.left_max);
        if has_room {
            self.changes.push_back(change);
        }
        has_room
    }
}

/// What became of a sample.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Handed on.
    Delivered,
    /// Kept until an earlier one comes.
    Waiting,
    /// Had it, or moved past it.
    Duplicate,
    /// No room; it stays missing.
    NoRoom,
}

#[derive(Debug)]
pub(super) struct WriterProxy {
    pub guid: Guid,
    /// Whether losses are repaired: both sides are reliable.
    pub reliable: bool,
    pub route: Route,
    pub lifespan: Duration,
    pub liveliness: Liveliness,
    pub lease: Duration,
    pub alive: bool,
    pub lease_until: Instant,

    start: Start,
    /// Lower numbers were dealt with in an earlier match.
    pub resume_at: i64,
    /// It was matched before, and may not have heard of that match's end and of
    /// this one yet.
    pub is_back: bool,
    /// A heartbeat has told what the writer has. For best effort: some sample
    /// has come.
    pub synced: bool,
    next: i64,
    known: IntervalSet,
    /// What the writer had before it told us is history: not getting it is no
    /// loss. Numbers from here on count.
    news: i64,
    /// The highest number that is known to exist.
    pub announced: i64,
    /// The highest number that a heartbeat has named: sent completely.
    pub complete: i64,
    reorder: ReorderBuffer,
    pub defrag: Defragmenter,

    /// Of its heartbeats.
    pub counts: Counts,
    /// Both sides are transient-local: heartbeats name all there is.
    pub is_told_all: bool,
    pub acknack_count: u32,
    pub nack_frag_count: u32,
    /// Samples, fragments and gaps that told something new.
    pub arrivals: u64,
    /// An ACKNACK is owed now.
    pub respond: bool,
    /// What a writer behind a link was told, without being asked.
    pub told: Told,
    pub nack: Nack,
    /// Fast DDS answers an ACKNACK that comes before its first heartbeat only
    /// if the base is 0, as its own are; another base puts its next heartbeat
    /// off, for 3 s by default.
    pub introduces_with_zero: bool,
    /// A heartbeat follows each sample soon, as this stack's writers send it.
    tells_when_sent: bool,
    /// How many more times we introduce ourselves to a silent writer.
    pub introductions_left: u32,
    /// It stands in the reader's list of those with something to send.
    pub queued: bool,
    /// Where its publisher is once all up to a number is handed on.
    place: Option<(SequenceNumber, SequenceNumber)>,
    /// It filters for us and, being another stack's, sends best-effort readers
    /// no GAP for what it keeps back: missing numbers say nothing then.
    pub keeps_back: bool,
    is_foreign: bool,
}

impl WriterProxy {
    pub fn new(now: Instant, reader: &ReaderConfig, writer: WriterProxyConfig) -> Self {
        let reliable = reader.qos.reliability == Reliability::Reliable
            && writer.qos.reliability == Reliability::Reliable;
        let limits = &match fault!("little-memory-for-a-writer") {
            true => reader.limits.little(),
            false => reader.limits,
        };
        Self {
            start: Start::of(reader, &writer),
            resume_at: 1,
            is_back: false,
            guid: writer.guid,
            reliable,
            lifespan: writer.qos.lifespan,
            liveliness: writer.qos.liveliness,
            lease: writer.qos.lease_duration,
            alive: true,
            lease_until: now.after(writer.qos.lease_duration),
            route: writer.route,
            synced: false,
            next: 1,
            known: IntervalSet::new(limits.intervals_max),
            news: 1,
            announced: 0,
            complete: 0,
            reorder: ReorderBuffer::new(limits.reorder_samples_max, limits.reorder_bytes_max),
            defrag: Defragmenter::new(limits.defrag, reliable),
            counts: Counts::default(),
            is_told_all: reader.qos.durability >= Durability::TransientLocal
                && writer.qos.durability >= Durability::TransientLocal,
            acknack_count: 0,
            nack_frag_count: 0,
            arrivals: 0,
            respond: reliable,
            told: Told::NOTHING,
            nack: Nack {
                at: Instant::FAR_FUTURE,
                // An introduction that is not heard is repeated ever later.
                pace: Pace::new(reader.nack.first.times(2), 0),
                round_trip: RoundTrip::new(),
                requested: 0,
                sent_at: Instant::ZERO,
                only_news: false,
                fruitless: 0,
                arrivals_seen: 0,
            },
            introduces_with_zero: writer.vendor == VendorId::FAST_DDS,
            tells_when_sent: writer.vendor == VendorId::PTEROS,
            introductions_left: if reliable {
                reader.nack.introductions
            } else {
                0
            },
            queued: false,
            keeps_back: false,
            is_foreign: writer.vendor != VendorId::PTEROS,
            place: None,
        }
    }

    /// The writer says where its publisher is after this number.
    pub fn note_place(&mut self, last: SequenceNumber, current: SequenceNumber) {
        self.place = Some((last, current));
    }

    /// Hands that on, in order with the samples.
    pub fn tell_place(&mut self, ready: &mut Ready) {
        let Some((last, current)) = self.place.filter(|(last, _)| last.0 < self.next) else {
            return;
        };
        // Without room it waits for the next sign of the writer.
        if ready.has_room() {
            self.place = None;
            ready
                .changes
                .push_back(CacheChange::settled(self.guid, last, current));
        }
    }

    /// Bytes of its samples that wait or are in pieces.
    pub fn held_bytes(&self) -> usize {
        let pieces = self.defrag.held_bytes();
        self.reorder.bytes().saturating_add(pieces)
    }

    /// Its queues, each with what is in it and its limit.
    pub fn held(&self) -> [(&'static str, usize, usize); 3] {
        let runs = self.known.runs().len();
        [
            // One more for what must never be refused.
            (
                "runs of numbers",
                runs,
                self.known.runs_max().saturating_add(1),
            ),
            (
                "samples to reorder",
                self.reorder.len(),
                self.reorder.samples_max(),
            ),
            (
                "samples in pieces",
                self.defrag.len(),
                self.defrag.samples_max(),
            ),
        ]
    }

    /// The writer said what our filter says, so it applies it.
    pub fn note_filters(&mut self) {
        self.keeps_back = self.is_foreign;
    }

    /// Our filter is another one now.
    pub fn forget_filters(&mut self) {
        self.keeps_back = false;
    }

    /// The lowest number that is neither received nor irrelevant.
    pub fn first_missing(&self) -> i64 {
        self.known.first_missing(self.next)
    }

    /// Whether some announced number is missing.
    pub fn is_missing_something(&self) -> bool {
        let first = self.first_missing();
        self.reliable && first <= self.announced && !self.is_coming(SequenceNumber(first))
    }

    /// Whether the sample is in pieces without a hole, and the rest may not have
    /// been sent yet.
    fn is_coming(&self, sequence: SequenceNumber) -> bool {
        let sent = self.last_fragment_sent(sequence);
        sent.is_some() && self.defrag.missing(sequence, sent).next().is_none()
    }

    /// The last fragment that can be missed of the writer's newest sample.
    /// Of other samples, and of writers that may not say so by a heartbeat for
    /// seconds (Fast DDS), every fragment counts as sent: `None`.
    pub fn last_fragment_sent(&self, sequence: SequenceNumber) -> Option<u32> {
        let is_open = sequence.0 > self.complete && sequence.0 >= self.announced;
        match self.tells_when_sent && is_open {
            true => self.defrag.last_received(sequence),
            false => None,
        }
    }

    /// Whether `sequence` was received, is irrelevant or was moved past.
    pub fn is_settled(&self, sequence: SequenceNumber) -> bool {
        let runs_back = !self.reliable && fault!("best-effort-runs-back");
        (sequence.0 < self.next && !runs_back)
            || (self.known.contains(sequence.0) && !fault!("waiting-sample-taken-twice"))
    }

    /// The lowest missing number from `number` on.
    pub fn first_missing_from(&self, number: i64) -> i64 {
        self.known.first_missing(number.max(self.next))
    }

    /// Numbers from `first` to `last` of which nothing has come.
    pub fn missing(&self, first: i64, last: i64) -> impl Iterator<Item = i64> + '_ {
        self.known
            .missing(first.max(self.next), last)
            .flat_map(|run| run.first..=run.last)
            .inspect(|_| crate::fault::step())
            .filter(|number| !self.defrag.contains(SequenceNumber(*number)))
    }

    /// Takes a whole sample of a reliable writer.
    pub fn take_reliable(&mut self, change: CacheChange, ready: &mut Ready) -> Taken {
        let number = change.sequence.0;
        if self.is_settled(change.sequence) {
            return Taken::Duplicate;
        }
        // It may have come whole by a link after its first pieces by sockets.
        self.defrag.remove(change.sequence, change.sequence);
        self.announced = self.announced.max(number);
        let in_order = number == self.next && (self.synced || number == 1);
        if in_order && ready.has_room() {
            // Not by way of `known`, which may be full of what came too early.
            ready.changes.push_back(change);
            self.next = number.saturating_add(1);
            self.arrivals.tally();
            self.drain(ready);
            return Taken::Delivered;
        }
        if fault!("no-room-for-numbers") || !self.known.insert(number, number) {
            return Taken::NoRoom;
        }
        match self.reorder.insert(change) {
            Kept::Yes => {}
            Kept::Instead(_) if fault!("dropped-sample-stays-known") => {}
            Kept::Instead(dropped) => self.known.remove(dropped.0),
            Kept::No => {
                self.known.remove(number);
                return Taken::NoRoom;
            }
        }
        self.arrivals.tally();
        self.drain(ready);
        if number < self.next {
            Taken::Delivered
        } else {
            Taken::Waiting
        }
    }

    /// Takes a whole sample of a best-effort writer; how many were lost before
    /// it, or `None` when it is late.
    pub fn take_best_effort(&mut self, sequence: SequenceNumber) -> Option<u64> {
        let number = sequence.0;
        if number < self.next && !fault!("best-effort-runs-back") {
            return None;
        }
        let lost = if self.synced && !self.keeps_back {
            self.known
                .count_missing(self.next, number.saturating_sub(1))
        } else {
            0
        };
        self.synced = true;
        self.next = number.saturating_add(1);
        self.known.remove_below(self.next);
        self.defrag.remove_below(SequenceNumber(self.next));
        if fault!("best-effort-loss-not-told") {
            return Some(0);
        }
        Some(lost)
    }

    /// Hands on what is in order.
    pub fn drain(&mut self, ready: &mut Ready) {
        if !self.synced && self.reliable {
            // Where to begin is not known yet, so nothing is in order.
            return;
        }
        let skipped = i64::from(fault!("hole-skipped"));
        let limit = self.known.first_missing(self.next.saturating_add(skipped));
        while ready.has_room() {
            crate::fault::step();
            let Some(change) = self.reorder.pop_below(SequenceNumber(limit)) else {
                self.next = limit;
                self.known.remove_below(limit);
                return;
            };
            self.next = change.sequence.next().0;
            ready.changes.push_back(change);
        }
        match self.reorder.first().filter(|first| first.0 < limit) {
            Some(first) => {
                self.next = first.0;
                ready.stalled = true;
            }
            None => self.next = limit,
        }
        self.known.remove_below(self.next);
    }

    /// The writer has `first..=last` and nothing else (HEARTBEAT). Returns how
    /// many numbers are lost for good.
    pub fn announce(&mut self, first: i64, last: i64, ready: &mut Ready) -> u64 {
        let mut lost = 0;
        if self.synced {
            let unnamed = self.announced.saturating_add(1);
            if self.is_back && first > unnamed {
                // What it leaves out without ever having named it was written
                // while it took this reader for gone.
                self.is_back = false;
                lost = self.give_up_below(unnamed);
                self.news = self.news.max(first);
            }
            lost = lost.saturating_add(self.give_up_below(first));
        } else {
            self.begin(first, last);
        }
        self.announced = self.announced.max(last);
        self.complete = self.complete.max(last);
        self.drain(ready);
        lost
    }

    /// The first heartbeat: decides where to begin. Samples that came before
    /// it are kept.
    fn begin(&mut self, first: i64, last: i64) {
        self.synced = true;
        let begin = match self.start {
            Start::Everything => first,
            Start::Last(depth) => {
                let begin = last
                    .saturating_add(1)
                    .saturating_sub(depth.into())
                    .max(first);
                while self.reorder.pop_below(SequenceNumber(begin)).is_some() {}
                begin
            }
            Start::News => self
                .reorder
                .first()
                .map_or(i64::MAX, |kept| kept.0)
                .min(last.saturating_add(1)),
        };
        // A writer that has not come as far began anew.
        let resumes = self.resume_at > begin && self.resume_at <= last.saturating_add(1);
        let begin = if resumes { self.resume_at } else { begin };
        if resumes {
            while self.reorder.pop_below(SequenceNumber(begin)).is_some() {}
        }
        // An earlier heartbeat that came late names less than was had: none of
        // that is lost.
        self.news = last.saturating_add(1).max(self.resume_at);
        self.give_up_below(begin);
    }

    /// Numbers below `begin` will not come any more. Returns how many of them
    /// were missing.
    fn give_up_below(&mut self, begin: i64) -> u64 {
        if begin <= self.next {
            return 0;
        }
        let lost = self.known.count_missing(
            match fault!("history-counts-as-lost") {
                true => self.next,
                false => self.next.max(self.news),
            },
            begin.saturating_sub(1),
        );
        self.known.insert_lowest(self.next, begin.saturating_sub(1));
        self.defrag.remove_below(SequenceNumber(begin));
        lost
    }

    /// `first..=last` is irrelevant (GAP). False when it can't be noted now.
    pub fn skip(&mut self, first: i64, last: i64, ready: &mut Ready) -> bool {
        let first = first.max(self.next);
        if first > last {
            return true;
        }
        if !self.reliable {
            if first == self.next {
                self.next = last.saturating_add(1);
                self.known.remove_below(self.next);
            } else if self.synced {
                // So that what is missing before it can be told from it.
                self.known.insert(first, last);
            }
            return true;
        }
        if fault!("gap-walked-number-by-number") {
            (first..=last).for_each(|_| crate::fault::step());
        }
        self.announced = self.announced.max(last);
        self.defrag
            .remove(SequenceNumber(first), SequenceNumber(last));
        let noted = if first == self.next {
            self.known.insert_lowest(first, last);
            true
        } else {
            self.known.insert(first, last)
        };
        self.arrivals.tally_by(u64::from(noted));
        self.drain(ready);
        noted
    }

    /// The writer is gone: hands on what waits, in order, as far as there is
    /// room, and returns how many announced numbers are lost.
    pub fn finish(&mut self, ready: &mut Ready) -> u64 {
        if !self.reliable {
            return 0;
        }
        let mut lost = if self.synced {
            self.known
                .count_missing(self.next.max(self.news), self.announced)
        } else {
            0
        };
        while let Some(change) = self.reorder.pop_below(SequenceNumber(i64::MAX)) {
            let is_sample = change.is_sample();
            let is_lost = !ready.push_left(change) && is_sample;
            lost = lost.saturating_add(u64::from(is_lost));
        }
        lost
    }
}

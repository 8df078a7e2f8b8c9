//! Writer proxy (RTPS 2.5 §8.4.10.4, WriterProxy): which sequence numbers of one
//! matched writer are received, irrelevant or missing.
//!
//! `next` is the lowest number not yet delivered. Above it, `known` holds the
//! numbers that are received (the sample waits in the reorder buffer) or
//! irrelevant. Everything else up to `announced` is missing. While a number is
//! missing, a NACK is scheduled.

use alloc::collections::VecDeque;

use super::ack_state::AckState;
use super::config::{ReaderConfig, WriterProxyConfig};
use super::match_start::{HistoryStart, MATCH_UNNAMED_MAX, MatchStart, ResumePoint};
use super::plausibility::Plausibility;
use super::writer_habits::WriterHabits;
use super::writer_lease::WriterLease;
use crate::change::CacheChange;
use crate::defrag::Defragmenter;
use crate::heartbeat_counts::HeartbeatCounts;
use crate::id::Guid;
use crate::interval::IntervalSet;
use crate::locator::Route;
use crate::memory_budget::MemoryCharger;
use crate::qos::Reliability;
use crate::reorder::{ReorderBuffer, ReorderOutcome};
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::{Duration, Instant};

/// Receive queue: samples ready for the application, with its limit.
#[derive(Debug)]
pub(super) struct ReadyQueue {
    pub changes: VecDeque<CacheChange>,
    pub samples_max: usize,
    /// Additional space for reordered samples of unmatched writers.
    pub unmatched_max: usize,
    /// Some writer has samples that found the queue full.
    pub stalled: bool,
}

impl ReadyQueue {
    pub fn has_space(&self) -> bool {
        self.changes.len() < self.samples_max
    }

    /// Delivers a sample of an unmatched writer. False when even the additional
    /// space is full, because many writers were unmatched at once.
    fn push_unmatched(&mut self, change: CacheChange) -> bool {
        let has_space = self.changes.len() < self.samples_max.saturating_add(self.unmatched_max);
        if has_space {
            self.changes.push_back(change);
        }
        has_space
    }
}

/// The outcome of a received sample.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReceiveOutcome {
    /// Delivered to the queue.
    Delivered,
    /// Kept in the reorder buffer until an earlier one comes.
    Reordered,
    /// Received before, or below what best effort has moved past.
    Duplicate,
    /// The buffers are full; it stays missing.
    BufferFull,
}

/// A group sequence number that is delivered after the samples up to `last`.
#[derive(Clone, Copy, Debug)]
struct PendingGroupSequence {
    last: SequenceNumber,
    current: SequenceNumber,
}

#[derive(Debug)]
pub(super) struct WriterProxy {
    pub guid: Guid,
    /// Whether losses are repaired by retransmission: both sides are reliable.
    pub reliable: bool,
    pub route: Route,
    pub lifespan: Duration,
    pub lease: WriterLease,

    /// Where it begins, and what an earlier match left.
    pub begin: MatchStart,
    /// A heartbeat has named the available numbers. For best effort: a sample has
    /// come.
    pub synced: bool,
    next: i64,
    known: IntervalSet,
    /// Numbers from here on count as lost when missing. Lower ones are history.
    losses_from: i64,
    /// The highest number known to exist.
    pub announced: i64,
    /// The highest number named by a heartbeat: sent completely. Of a history that is read
    /// again, by a heartbeat since then.
    pub sent_through: i64,
    reorder: ReorderBuffer,
    pub defrag: Defragmenter,
    /// Refusals of memory in the context at the last look for old partial samples.
    memory_refusals_seen: u64,

    pub heartbeat_counts: HeartbeatCounts,
    /// Messages that contradict the numbers above.
    pub plausibility: Plausibility,
    pub acks: AckState,
    pub habits: WriterHabits,
    /// The group sequence number of its publisher that is still to be delivered.
    pending_group_sequence: Option<PendingGroupSequence>,
}

impl WriterProxy {
    pub fn new(now: Instant, reader: &ReaderConfig, writer: WriterProxyConfig) -> Self {
        let reliable = reader.qos.reliability == Reliability::Reliable
            && writer.qos.reliability == Reliability::Reliable;
        let limits = &reader.limits;
        Self {
            begin: MatchStart::of(reader, &writer),
            guid: writer.guid,
            reliable,
            lifespan: writer.qos.lifespan,
            lease: WriterLease::new(now, writer.qos.liveliness, writer.qos.lease_duration),
            habits: WriterHabits::of(reader, &writer),
            route: writer.route,
            synced: false,
            next: 1,
            known: IntervalSet::new(limits.intervals_max),
            losses_from: 1,
            announced: 0,
            sent_through: 0,
            reorder: ReorderBuffer::new(limits.reorder_samples_max, limits.reorder_bytes_max),
            defrag: Defragmenter::new(limits.defrag, reliable),
            memory_refusals_seen: 0,
            heartbeat_counts: HeartbeatCounts::default(),
            plausibility: Plausibility::NONE,
            acks: AckState::new(reader, reliable),
            pending_group_sequence: None,
        }
    }

    /// Continues an earlier match.
    pub fn resume(&mut self, point: &ResumePoint) {
        self.begin.was_matched_before = true;
        self.begin.resume_at = point.next;
        // A writer that filters or addresses others leaves numbers out without loss.
        self.begin.is_interrupted = point.is_interrupted && !self.habits.filters_silently;
    }

    /// Marks `first..=last` of a GAP as irrelevant. False when the set of numbers is full.
    /// Adds to `lost` those that were published during an interruption, and are noted now.
    pub fn mark_gap(
        &mut self,
        first: i64,
        last: i64,
        lost: &mut u64,
        ready: &mut ReadyQueue,
    ) -> bool {
        let missing = self.count_interrupted(first, last);
        let noted = self.mark_irrelevant(first, last, ready);
        let still_missing = self.count_interrupted(first, last);
        lost.tally_by(missing.saturating_sub(still_missing));
        noted
    }

    /// How many of these numbers were published during an interruption and are missing.
    fn count_interrupted(&self, first: i64, last: i64) -> u64 {
        let first = first.max(self.begin.resume_at).max(self.next);
        let last = last.min(self.begin.interrupted_below.saturating_sub(1));
        if first > last {
            return 0;
        }
        self.known.count_missing(first, last)
    }

    /// Notes the group sequence number `current`, to deliver after sequence number
    /// `last`.
    pub fn note_group_sequence(&mut self, last: SequenceNumber, current: SequenceNumber) {
        self.pending_group_sequence = Some(PendingGroupSequence { last, current });
    }

    /// Delivers that number, in order with the samples.
    pub fn deliver_group_sequence(&mut self, ready: &mut ReadyQueue) {
        let Some(PendingGroupSequence { last, current }) = self
            .pending_group_sequence
            .filter(|pending| pending.last.0 < self.next)
        else {
            return;
        };
        // With a full queue it waits for the next message of the writer.
        if ready.has_space() {
            self.pending_group_sequence = None;
            ready
                .changes
                .push_back(CacheChange::group_heartbeat(self.guid, last, current));
        }
    }

    /// Charges this account of its participant from now on.
    pub fn set_charger(&mut self, charger: MemoryCharger) {
        self.reorder.set_charger(charger.of_same_writer());
        self.defrag.set_charger(charger);
    }

    /// Frees memory for a sample, in place of a reordered one with a higher number.
    /// False when there is none.
    pub fn free_reordered_above(&mut self, sequence: SequenceNumber) -> bool {
        let dropped = self.reorder.drop_above(sequence);
        if let Some(dropped) = dropped {
            self.known.remove(dropped.0);
        }
        dropped.is_some()
    }

    /// Drops partial samples that were given up `age` after their last fragment.
    pub fn drop_old_partials(&mut self, now: Instant, age: Duration) {
        let refused = self.defrag.charger().refused();
        let is_scarce = refused != core::mem::replace(&mut self.memory_refusals_seen, refused);
        if !self.reliable || is_scarce {
            self.defrag.remove_older(now, age);
        } else {
            self.defrag.remove_hopeless(now, age);
        }
    }

    /// Bytes in the reorder buffer and in fragment reassembly.
    pub fn buffered_bytes(&self) -> usize {
        let partial_bytes = self.defrag.buffered_bytes();
        self.reorder.bytes().saturating_add(partial_bytes)
    }

    /// Its buffers: name, count and limit.
    pub fn queue_limits(&self) -> [(&'static str, usize, usize); 3] {
        let runs = self.known.runs().len();
        [
            // One more for a run that must never be refused.
            (
                "runs of known numbers",
                runs,
                self.known.runs_max().saturating_add(1),
            ),
            (
                "reordered samples",
                self.reorder.len(),
                self.reorder.samples_max(),
            ),
            (
                "partial samples",
                self.defrag.len(),
                self.defrag.samples_max(),
            ),
        ]
    }

    /// The lowest number that is neither received nor irrelevant.
    pub fn first_missing(&self) -> i64 {
        self.known.first_missing(self.next)
    }

    /// Whether some announced number is missing.
    pub fn is_missing_something(&self) -> bool {
        let first = self.first_missing();
        self.reliable && first <= self.announced && !self.is_in_transit(SequenceNumber(first))
    }

    /// Whether the sample is partial without a hole, so that the rest may be
    /// unsent.
    fn is_in_transit(&self, sequence: SequenceNumber) -> bool {
        let sent = self.last_fragment_sent(sequence);
        sent.is_some() && self.defrag.missing(sequence, sent).next().is_none()
    }

    /// The last fragment of the writer's newest sample that can be missing.
    ///
    /// `None`: every fragment counts as sent. So for other samples, and for writers
    /// whose heartbeat may come seconds later (Fast DDS).
    pub fn last_fragment_sent(&self, sequence: SequenceNumber) -> Option<u32> {
        let is_open = sequence.0 > self.sent_through && sequence.0 >= self.announced;
        if self.habits.heartbeat_follows_sample && is_open {
            self.defrag.last_received(sequence)
        } else {
            None
        }
    }

    /// Whether `sequence` was received, is irrelevant or was skipped.
    pub fn is_known(&self, sequence: SequenceNumber) -> bool {
        sequence.0 < self.next || self.known.contains(sequence.0)
    }

    /// The lowest missing number from `number` on.
    pub fn first_missing_from(&self, number: i64) -> i64 {
        self.known.first_missing(number.max(self.next))
    }

    /// Notes that a sample or a fragment was refused for lack of space.
    pub fn note_refused(&mut self) {
        let held = self.reorder.len().saturating_add(self.defrag.len());
        self.acks.nack.window.note_refused(held);
    }

    /// Numbers from `first` to `last` without a received part.
    pub fn missing(&self, first: i64, last: i64) -> impl Iterator<Item = i64> + '_ {
        self.known
            .missing(first.max(self.next), last)
            .flat_map(|run| run.first..=run.last)
            .filter(|number| !self.defrag.contains(SequenceNumber(*number)))
    }

    /// Handles a complete sample of a reliable writer.
    pub fn receive_reliable(
        &mut self,
        change: CacheChange,
        ready: &mut ReadyQueue,
    ) -> ReceiveOutcome {
        let number = change.sequence.0;
        if self.is_known(change.sequence) {
            return ReceiveOutcome::Duplicate;
        }
        // It may come whole by shared memory after its first fragments by UDP.
        self.defrag.remove(change.sequence, change.sequence);
        self.announced = self.announced.max(number);
        let in_order = number == self.next && (self.synced || number == 1);
        if in_order && ready.has_space() {
            // Not through `known`, which may be full of later numbers.
            ready.changes.push_back(change);
            self.next = number.saturating_add(1);
            self.plausibility.note_delivered(number);
            self.acks.progress_count.tally();
            self.deliver_in_order(ready);
            return ReceiveOutcome::Delivered;
        }
        if !self.known.insert(number, number) {
            return ReceiveOutcome::BufferFull;
        }
        match self.reorder.insert(change) {
            ReorderOutcome::Stored => {}
            ReorderOutcome::Replaced(dropped) => self.known.remove(dropped.0),
            ReorderOutcome::Full => {
                self.known.remove(number);
                return ReceiveOutcome::BufferFull;
            }
            ReorderOutcome::Refused(dropped) => {
                self.known.remove(number);
                if let Some(dropped) = dropped {
                    self.known.remove(dropped.0);
                }
                return ReceiveOutcome::BufferFull;
            }
        }
        self.acks.progress_count.tally();
        self.deliver_in_order(ready);
        if number < self.next {
            ReceiveOutcome::Delivered
        } else {
            ReceiveOutcome::Reordered
        }
    }

    /// Handles a complete sample of a best-effort writer. Returns how many were
    /// lost before it, or `None` when it is late.
    pub fn receive_best_effort(&mut self, sequence: SequenceNumber) -> Option<u64> {
        let number = sequence.0;
        if number < self.next {
            return None;
        }
        let lost = if self.synced && !self.habits.filters_silently {
            self.known
                .count_missing(self.next, number.saturating_sub(1))
        } else {
            0
        };
        self.synced = true;
        self.next = number.saturating_add(1);
        self.known.remove_below(self.next);
        self.defrag.remove_below(SequenceNumber(self.next));
        Some(lost)
    }

    /// The lowest number not yet delivered.
    pub fn next_number(&self) -> i64 {
        self.next
    }

    /// Continues at `next`, of a writer that has numbers up to `last`. Samples
    /// received above are forgotten, since they may be forged.
    pub fn restart_at(&mut self, next: i64, last: i64) {
        self.next = next;
        self.announced = last;
        self.sent_through = last;
        self.losses_from = next;
        self.begin.unnamed_until = Instant::ZERO;
        self.known.clear();
        while self.reorder.pop_below(SequenceNumber(i64::MAX)).is_some() {}
        self.defrag
            .remove(SequenceNumber(i64::MIN), SequenceNumber(i64::MAX));
        self.pending_group_sequence = None;
    }

    /// Delivers what came before the first HEARTBEAT, `first..=last`, and drops other
    /// numbers. It may be forged, so all of it is requested again after that HEARTBEAT.
    /// For a built-in topic, whose samples may come twice.
    pub fn deliver_early(&mut self, (first, last): (i64, i64), ready: &mut ReadyQueue) {
        while ready.has_space()
            && let Some(change) = self.reorder.pop_below(SequenceNumber(i64::MAX))
        {
            if (first..=last).contains(&change.sequence.0) {
                ready.changes.push_back(change);
            }
        }
        self.restart_at(self.next, 0);
    }

    /// Notes that all numbers below `sequence` are received or irrelevant.
    pub fn skip_to(&mut self, sequence: SequenceNumber) {
        self.synced = true;
        self.next = self.next.max(sequence.0);
    }

    /// Delivers samples that are in order.
    pub fn deliver_in_order(&mut self, ready: &mut ReadyQueue) {
        if !self.synced && self.reliable {
            // The first number is not known yet, so nothing is in order.
            return;
        }
        let limit = self.known.first_missing(self.next);
        while ready.has_space() {
            let Some(change) = self.reorder.pop_below(SequenceNumber(limit)) else {
                self.next = limit;
                self.known.remove_below(limit);
                return;
            };
            self.next = change.sequence.next().0;
            self.plausibility.note_delivered(change.sequence.0);
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

    /// Handles the range of a HEARTBEAT: the writer has `first..=last` and nothing
    /// else. Returns how many numbers are lost. `is_for_us`: no other reader is addressed.
    pub fn note_available(
        &mut self,
        now: Instant,
        (first, last): (i64, i64),
        is_for_us: bool,
        ready: &mut ReadyQueue,
    ) -> u64 {
        let mut lost = 0;
        if self.synced {
            self.losses_from =
                self.begin
                    .losses_from(now, self.losses_from, (first, last), is_for_us);
            let unnamed = self.announced.saturating_add(1);
            if self.begin.was_matched_before && !self.begin.is_interrupted && first > unnamed {
                // Omitted and never named: written while the writer did not match
                // this reader.
                self.begin.was_matched_before = false;
                lost = self.mark_lost_below(unnamed);
                self.losses_from = self.losses_from.max(first);
            }
            lost = lost.saturating_add(self.mark_lost_below(first));
        } else {
            lost = self.choose_start(now, first, last, is_for_us);
        }
        self.announced = self.announced.max(last);
        self.sent_through = self.sent_through.max(last);
        self.deliver_in_order(ready);
        lost
    }

    /// Decides at the first heartbeat where to begin. Earlier samples are kept.
    /// Returns how many numbers an interruption of the match has lost.
    fn choose_start(&mut self, now: Instant, first: i64, last: i64, is_for_us: bool) -> u64 {
        self.synced = true;
        let begin = match self.begin.start {
            HistoryStart::All => first,
            HistoryStart::Last(depth) => {
                let begin = last
                    .saturating_add(1)
                    .saturating_sub(depth.into())
                    .max(first);
                while self.reorder.pop_below(SequenceNumber(begin)).is_some() {}
                begin
            }
            HistoryStart::NewOnly => self
                .reorder
                .first()
                .map_or(i64::MAX, |kept| kept.0)
                .min(last.saturating_add(1)),
        };
        // A writer below the resume point has restarted.
        let resumes =
            self.begin.resume_at > begin && self.begin.resume_at <= last.saturating_add(1);
        let begin = if resumes { self.begin.resume_at } else { begin };
        if resumes {
            while self.reorder.pop_below(SequenceNumber(begin)).is_some() {}
        }
        // A delayed earlier heartbeat names less than was received: none of that is
        // lost. The first number of Pteros is that of the match, for one reader alone.
        let is_of_match = is_for_us && self.habits.begins_at_match;
        if !is_for_us && self.habits.begins_at_match {
            self.begin.unnamed_until = now + MATCH_UNNAMED_MAX;
        }
        let losses_from = if is_of_match {
            first
        } else {
            last.saturating_add(1)
        };
        self.losses_from = losses_from.max(self.begin.resume_at);
        // A writer that names less than before was reset.
        if self.begin.is_interrupted && last >= self.begin.resume_at {
            self.losses_from = self.begin.resume_at;
            self.begin.interrupted_below = last.saturating_add(1);
            self.begin.unnamed_until = Instant::ZERO;
        }
        self.mark_lost_below(begin)
    }

    /// Marks numbers below `begin` as unavailable. Returns how many of them were
    /// missing.
    fn mark_lost_below(&mut self, begin: i64) -> u64 {
        if begin <= self.next {
            return 0;
        }
        let lost = self
            .known
            .count_missing(self.next.max(self.losses_from), begin.saturating_sub(1));
        self.known.insert_lowest(self.next, begin.saturating_sub(1));
        self.defrag.remove_below(SequenceNumber(begin));
        lost
    }

    /// Marks `first..=last` as irrelevant (GAP). False when the set of numbers is
    /// full.
    pub fn mark_irrelevant(&mut self, first: i64, last: i64, ready: &mut ReadyQueue) -> bool {
        let first = first.max(self.next);
        if first > last {
            return true;
        }
        if !self.reliable {
            if first == self.next {
                self.next = last.saturating_add(1);
                self.known.remove_below(self.next);
            } else if self.synced {
                // To distinguish it from missing numbers before it.
                self.known.insert(first, last);
            }
            return true;
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
        self.acks.progress_count.tally_by(u64::from(noted));
        self.deliver_in_order(ready);
        noted
    }

    /// Delivers the reordered samples of an unmatched writer, as far as there is
    /// space. Returns how many announced numbers are lost.
    pub fn drain_on_unmatch(&mut self, ready: &mut ReadyQueue) -> u64 {
        if !self.reliable {
            return 0;
        }
        let mut lost = if self.synced {
            self.known
                .count_missing(self.next.max(self.losses_from), self.announced)
        } else {
            0
        };
        while let Some(change) = self.reorder.pop_below(SequenceNumber(i64::MAX)) {
            let is_sample = change.is_sample();
            let is_lost = !ready.push_unmatched(change) && is_sample;
            lost = lost.saturating_add(u64::from(is_lost));
        }
        lost
    }
}

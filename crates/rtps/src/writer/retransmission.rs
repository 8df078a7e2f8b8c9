//! Retransmission to single readers: the samples and fragments that they requested
//! (RTPS 2.5 §8.4.9.2.12), and once the history for a best-effort late joiner.
//! `writer/retransmission_credit.rs` limits how much a destination is sent again.

use super::Writer;
use super::data_encoder::{BurstBudget, DataEncoder};
use super::proxy::ReaderProxy;
use super::requested_changes::PartlySentSample;
use crate::interval::NumberRun;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::wire::{FragmentSet, Gap, SequenceSet};

impl Writer {
    /// Retransmits what one reader requested, lowest number first.
    pub(super) fn retransmit(
        &mut self,
        at: usize,
        now: Instant,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        let Some(reader) = self.readers.get(at) else {
            return true;
        };
        if !reader.requests.is_pending() || reader.requests.retransmit_at > now {
            return true;
        }
        if budget.is_exhausted(out) {
            return false;
        }
        let Some(destination) = self.destinations.get(reader.destination) else {
            return true;
        };
        let is_limited = !destination.route.is_shared_memory();
        let crossing = destination
            .round_trip
            .crossing_time(self.config.nack_suppression);
        let mut left = if is_limited {
            destination.credit.available(now)
        } else {
            usize::MAX
        };
        if left == 0 && !reader.requests.continues_first_transmission() {
            let again = destination.credit.next_at(now);
            self.stats.requests_limited.tally();
            self.schedule_retransmission(at, again);
            return true;
        }
        let is_probe = is_limited && !destination.credit.has_credit();
        let destination = reader.destination;
        // Once per request: a slow retransmission takes many bursts.
        if !reader.requests.irrelevant_declared {
            self.declare_irrelevant(at, out, budget);
        }
        while let Some(sequence) = self
            .readers
            .get(at)
            .and_then(|of| of.requests.next_request())
        {
            let has_credit = left > 0 && !is_probe;
            let is_first = self
                .readers
                .get(at)
                .is_some_and(|reader| reader.requests.is_first_transmission(sequence, has_credit));
            let limit = if is_first { usize::MAX } else { left };
            if limit == 0 {
                break;
            }
            budget.begin_limit(limit);
            let is_served = self.serve(at, now, crossing, sequence, out, budget);
            let bytes = budget.end_limit();
            if is_limited && let Some(destination) = self.destinations.get_mut(destination) {
                left = left.saturating_sub(bytes);
                destination.credit.spend(now, bytes);
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.proof.note_sent(bytes);
                if reader.requests.partly_sent.sequence == sequence {
                    reader.requests.partly_sent.is_first = is_first;
                }
            }
            if !is_served && left > 0 {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at).filter(|_| is_served) {
                reader.requests.note_served(sequence);
            } else if budget.is_exhausted(out) {
                return false;
            } else {
                break;
            }
        }
        let mut again = now.after(self.config.nack_suppression);
        if is_limited && let Some(destination) = self.destinations.get(destination) {
            again = again.max(destination.credit.next_at(now));
        }
        self.schedule_retransmission(at, again);
        if let Some(reader) = self.readers.get_mut(at) {
            reader.requests.round_served_below = SequenceNumber::FIRST;
            reader.requests.last_retransmission = now;
            // Its answer shows at once whether the retransmission arrived.
            reader.heartbeat_due = true;
        }
        true
    }

    /// Serves the remaining requests of a reader at `again`.
    fn schedule_retransmission(&mut self, at: usize, again: Instant) {
        if let Some(reader) = self.readers.get_mut(at) {
            reader.requests.retransmit_at = if reader.requests.is_pending() {
                again
            } else {
                Instant::FAR_FUTURE
            };
            self.timers
                .set_no_later(super::TIMER_RETRANSMISSION, reader.requests.retransmit_at);
        }
    }

    /// Retransmits the requested parts of one sample to one reader. False when the
    /// burst ended before that was complete.
    fn serve(
        &mut self,
        at: usize,
        now: Instant,
        crossing: Duration,
        sequence: SequenceNumber,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        let is_whole = |reader: &ReaderProxy| reader.requests.samples.contains(sequence);
        if self.readers.get(at).is_some_and(is_whole) {
            if !self.retransmit_sample(at, sequence, None, out, budget) {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.requests.samples.remove(sequence);
                reader.requests.served_whole_through =
                    reader.requests.served_whole_through.max(sequence);
                reader
                    .requests
                    .recently_served
                    .note_sample(now, crossing, sequence);
            }
        }
        self.retransmit_fragments(at, now, sequence, out, budget)
    }

    /// Declares the irrelevant ones of a reader's requested numbers by one GAP, and
    /// keeps the others.
    fn declare_irrelevant(&mut self, at: usize, out: &mut Outbox, budget: &mut BurstBudget) {
        let Some(reader) = self.readers.get(at) else {
            return;
        };
        let mut wanted = SequenceSet::empty(reader.requests.samples.base());
        let mut gap: Option<Gap> = None;
        for sequence in reader.requests.samples.iter() {
            let number = sequence.0;
            if number >= self.cursor.number {
                // Not sent yet.
                break;
            }
            let next = self.history.from(sequence);
            if next.is_some_and(|change| change.sequence == sequence && reader.is_relevant(change))
            {
                wanted.insert(sequence);
                continue;
            }
            if number <= self.retention.lost_through && number >= reader.start {
                // The heartbeat's first number declares it lost.
                continue;
            }
            match &mut gap {
                Some(gap) => {
                    gap.list.insert(sequence);
                }
                None => {
                    let end = match next {
                        Some(change) if change.sequence == sequence => number.saturating_add(1),
                        Some(change) => change.sequence.0.min(self.cursor.number),
                        None => self.cursor.number,
                    };
                    // Nothing below its start is relevant, in the history or not.
                    let end = if number < reader.start {
                        end.max(reader.start.min(self.cursor.number))
                    } else {
                        end
                    };
                    gap = Some(Gap::range(
                        reader.guid.entity,
                        self.config.guid.entity,
                        sequence,
                        SequenceNumber(end).previous(),
                    ));
                }
            }
        }
        if let Some(gap) = gap
            && let Some(destination) = self.destinations.get(reader.destination)
        {
            let mut message = out.begin(
                self.config.guid.prefix,
                &destination.route.locators,
                self.config.datagram_bytes_max,
            );
            message.info_destination(destination.prefix);
            message.gap(&gap);
            budget.finish(message, &mut self.stats);
            self.stats.gaps.tally();
        }
        if let Some(reader) = self.readers.get_mut(at) {
            reader.requests.samples = wanted;
            reader.requests.irrelevant_declared = true;
        }
    }

    /// Retransmits one change to one reader. False when the burst is over.
    fn retransmit_sample(
        &mut self,
        at: usize,
        sequence: SequenceNumber,
        gap: Option<NumberRun>,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        self.fix_fragment_size(sequence);
        let change = self.history.find(sequence);
        let reader = self.readers.get_mut(at);
        let destination = reader
            .as_ref()
            .and_then(|reader| self.destinations.get(reader.destination));
        let (Some(change), Some(reader), Some(destination)) = (change, reader, destination) else {
            return true;
        };
        if budget.is_exhausted(out) {
            return false;
        }
        let encoder = DataEncoder {
            writer: self.config.guid,
            destination,
            reader: reader.guid.entity,
            leading_heartbeat: None,
            gap,
            heartbeat: None,
            may_omit_info_dst: false,
            converted: destination.converted(change),
        };
        let partly_sent = reader.requests.partly_sent;
        let from = if partly_sent.sequence == sequence {
            partly_sent.next_fragment
        } else {
            0
        };
        let next = encoder.send(change, from, out, budget, &mut self.stats);
        reader.requests.partly_sent = match next {
            Some(next_fragment) => PartlySentSample {
                sequence,
                next_fragment,
                is_first: false,
            },
            None => PartlySentSample::NONE,
        };
        if next.is_none() {
            self.stats.samples_retransmitted.tally();
        }
        next.is_none()
    }

    /// Retransmits the requested fragments of one sample to one reader.
    fn retransmit_fragments(
        &mut self,
        at: usize,
        now: Instant,
        sequence: SequenceNumber,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        let Some(reader) = self.readers.get_mut(at) else {
            return true;
        };
        let Some(destination) = self.destinations.get(reader.destination) else {
            return true;
        };
        let change = self
            .history
            .find(sequence)
            .filter(|change| change.fragment_size > 0 && reader.is_relevant(change));
        let Some(change) = change else { return true };
        let encoder = DataEncoder {
            writer: self.config.guid,
            destination,
            reader: reader.guid.entity,
            leading_heartbeat: None,
            gap: None,
            heartbeat: None,
            may_omit_info_dst: false,
            converted: destination.converted(change),
        };
        if reader.requests.fragments.first_mut(sequence).is_none() {
            return true;
        }
        if destination.route.is_shared_memory() {
            if budget.is_exhausted(out) {
                return false;
            }
            // Requested before the shared-memory connection existed: the sample
            // goes whole.
            encoder.send(change, 0, out, budget, &mut self.stats);
            self.stats.samples_retransmitted.tally();
            return true;
        }
        let total = encoder.fragments_total(change);
        while let Some(set) = reader.requests.fragments.first_mut(sequence) {
            let mut rest = set.iter().filter(|number| (1..=total).contains(&number.0));
            while let Some(number) = rest.next() {
                if budget.is_exhausted(out) {
                    let open = core::iter::once(number).chain(rest);
                    *set = FragmentSet::from_numbers(number, open);
                    return false;
                }
                let index = number.0.saturating_sub(1);
                encoder.send_fragment(change, index, false, out, budget, &mut self.stats);
                self.stats.fragments_retransmitted.tally();
            }
            let served = *set;
            reader
                .requests
                .recently_served
                .note_fragments(now, sequence, served);
            reader.requests.fragments.remove_first(sequence);
        }
        true
    }

    /// Sends the history to a best-effort late joiner, once.
    pub(super) fn replay(
        &mut self,
        at: usize,
        now: Instant,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        while let Some((run, reader)) = self.readers.get(at).and_then(|r| Some((r.replay?, r))) {
            let kept = self.history.iter_from(SequenceNumber(run.first));
            let number = kept
                .take_while(|change| change.sequence.0 <= run.last)
                .find(|change| reader.is_relevant(change) && change.expires_at > now)
                .map(|change| change.sequence.0);
            // Samples rejected by its filter are irrelevant, not lost.
            let end = number.unwrap_or(run.last.saturating_add(1));
            let gap = (reader.filter.is_some() && run.first < end).then(|| NumberRun {
                first: run.first,
                last: end.saturating_sub(1),
            });
            let is_complete = match number {
                Some(number) => {
                    self.retransmit_sample(at, SequenceNumber(number), gap, out, budget)
                }
                None => self.send_gap(at, gap, out, budget),
            };
            if !is_complete {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.replay =
                    number
                        .filter(|number| *number < run.last)
                        .map(|number| NumberRun {
                            first: number.saturating_add(1),
                            last: run.last,
                        });
            }
        }
        true
    }

    /// Declares the pending GAP to one reader. False when the burst is over.
    pub(super) fn send_pending_gap(
        &mut self,
        at: usize,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        let pending_gap = self.readers.get(at).and_then(|reader| reader.pending_gap);
        if !self.send_gap(at, pending_gap, out, budget) {
            return false;
        }
        if let Some(reader) = self.readers.get_mut(at) {
            reader.pending_gap = None;
        }
        true
    }

    /// Declares numbers irrelevant to one reader. False when the burst is over.
    fn send_gap(
        &mut self,
        at: usize,
        gap: Option<NumberRun>,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        let Some((reader, run)) = self.readers.get(at).zip(gap) else {
            return true;
        };
        if budget.is_exhausted(out) {
            return false;
        }
        if let Some(destination) = self.destinations.get(reader.destination) {
            let mut message = out.begin(
                self.config.guid.prefix,
                &destination.route.locators,
                self.config.datagram_bytes_max,
            );
            message.info_destination(destination.prefix);
            message.gap(&Gap::range(
                reader.guid.entity,
                self.config.guid.entity,
                SequenceNumber(run.first),
                SequenceNumber(run.last),
            ));
            budget.finish(message, &mut self.stats);
            self.stats.gaps.tally();
        }
        true
    }
}

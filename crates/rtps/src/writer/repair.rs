//! What single readers are sent besides new changes: what they asked for
//! (RTPS 2.5 §8.4.9.2.12), and once what was kept for a best-effort late joiner.

use super::Writer;
use super::parcel::{Left, Parcel, fragments_total};
use super::proxy::ReaderProxy;
use crate::interval::Run;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::{FragmentSet, Gap, SequenceSet};

impl Writer {
    /// Sends again what one reader asked for, lowest number first.
    pub(super) fn repair(
        &mut self,
        at: usize,
        now: Instant,
        out: &mut Outbox,
        left: &mut Left,
    ) -> bool {
        let Some(reader) = self.readers.get(at) else {
            return true;
        };
        if !reader.has_requests() || reader.repair_at > now {
            return true;
        }
        if left.is_over(out) {
            return false;
        }
        // Once per request: a slow repair takes many bursts.
        if !reader.is_sifted {
            self.declare_irrelevant(at, out, left);
        }
        while let Some(sequence) = self.readers.get(at).and_then(ReaderProxy::next_request) {
            crate::fault::step();
            if !self.serve(at, sequence, out, left) {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.note_served(sequence);
            }
        }
        let again = now.after(self.config.nack_suppression);
        if let Some(reader) = self.readers.get_mut(at) {
            reader.done_below = SequenceNumber::FIRST;
            reader.served_at = now;
            reader.repair_at = match reader.has_requests() {
                true => again,
                false => Instant::FAR_FUTURE,
            };
            self.timers
                .set_no_later(super::TIMER_REPAIR, reader.repair_at);
            // Its answer tells at once whether the repair arrived.
            reader.heartbeat_due = true;
        }
        true
    }

    /// Sends again what one reader asked for of one sample. False when the burst
    /// ended before that was done.
    fn serve(
        &mut self,
        at: usize,
        sequence: SequenceNumber,
        out: &mut Outbox,
        left: &mut Left,
    ) -> bool {
        if fault!("repair-not-sent") {
            return true;
        }
        let is_whole = |reader: &ReaderProxy| reader.requested.contains(sequence);
        if self.readers.get(at).is_some_and(is_whole) {
            if !self.resend(at, sequence, None, out, left) {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.requested.remove(sequence);
            }
        }
        self.resend_fragments(at, sequence, out, left)
    }

    /// Of what one reader asked for, declares irrelevant by one GAP what it
    /// will not get; what it will remains.
    fn declare_irrelevant(&mut self, at: usize, out: &mut Outbox, left: &mut Left) {
        let Some(reader) = self.readers.get(at) else {
            return;
        };
        let mut wanted = SequenceSet::empty(reader.requested.base());
        let mut gap: Option<Gap> = None;
        for sequence in reader.requested.iter() {
            crate::fault::step();
            let number = sequence.0;
            if number >= self.cursor.number {
                // On its way already.
                break;
            }
            let next = self.history.from(sequence);
            if next.is_some_and(|change| change.sequence == sequence && reader.wants(change)) {
                wanted.insert(sequence);
                continue;
            }
            if number <= self.lost_through && number >= reader.start {
                // The heartbeat's first number tells.
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
                    // Below its start nothing is relevant, kept or not.
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
        if let Some(gap) = gap.filter(|_| !fault!("final-gap-dropped"))
            && let Some(group) = self.groups.get(reader.group)
        {
            let mut message = out.begin(
                self.config.guid.prefix,
                &group.route.locators,
                self.config.datagram_bytes_max,
            );
            message.info_destination(group.prefix);
            message.gap(&gap);
            left.finish(message, &mut self.stats);
            self.stats.gaps.tally();
        }
        if let Some(reader) = self.readers.get_mut(at) {
            reader.requested = wanted;
            reader.is_sifted = true;
        }
    }

    /// Sends one change again to one reader. False when the burst is over.
    fn resend(
        &mut self,
        at: usize,
        sequence: SequenceNumber,
        gap: Option<Run>,
        out: &mut Outbox,
        left: &mut Left,
    ) -> bool {
        self.fix_fragment_size(sequence);
        let Some(reader) = self.readers.get_mut(at) else {
            return true;
        };
        let (Some(change), Some(group)) =
            (self.history.find(sequence), self.groups.get(reader.group))
        else {
            return true;
        };
        if left.is_over(out) {
            return false;
        }
        let parcel = Parcel {
            writer: self.config.guid,
            to: group,
            reader: reader.guid.entity,
            prelude: None,
            gap,
            heartbeat: None,
            is_for_all: false,
        };
        let (begun, fragment) = reader.resume;
        let from = if begun == sequence { fragment } else { 0 };
        let next = parcel.send(change, from, out, left, &mut self.stats);
        reader.resume = match next.filter(|_| !fault!("resend-begins-anew")) {
            Some(fragment) => (sequence, fragment),
            None => (SequenceNumber::ZERO, 0),
        };
        if next.is_none() {
            self.stats.samples_resent.tally();
        }
        next.is_none()
    }

    /// Sends again the fragments of one sample that one reader asked for.
    fn resend_fragments(
        &mut self,
        at: usize,
        sequence: SequenceNumber,
        out: &mut Outbox,
        left: &mut Left,
    ) -> bool {
        let Some(reader) = self.readers.get_mut(at) else {
            return true;
        };
        let Some(group) = self.groups.get(reader.group) else {
            return true;
        };
        let parcel = Parcel {
            writer: self.config.guid,
            to: group,
            reader: reader.guid.entity,
            prelude: None,
            gap: None,
            heartbeat: None,
            is_for_all: false,
        };
        let change = self
            .history
            .find(sequence)
            .filter(|change| change.fragment_size > 0 && reader.wants(change));
        let Some(change) = change else { return true };
        let is_it = |(s, _): &&mut (SequenceNumber, FragmentSet)| *s == sequence;
        let Some((_, set)) = reader.fragments.iter_mut().find(is_it) else {
            return true;
        };
        if group.route.is_shared_memory() {
            if left.is_over(out) {
                return false;
            }
            // It asked before it was reached this way: the rest comes whole.
            parcel.send(change, 0, out, left, &mut self.stats);
            self.stats.samples_resent.tally();
            return true;
        }
        let total = fragments_total(change);
        let mut rest = set.iter().filter(|number| (1..=total).contains(&number.0));
        while let Some(number) = rest.next() {
            if left.is_over(out) {
                let open = core::iter::once(number).chain(rest);
                *set = FragmentSet::from_numbers(number, open);
                return false;
            }
            crate::fault::step();
            let index = number
                .0
                .saturating_sub(u32::from(!fault!("wrong-piece-repaired")));
            parcel.send_fragment(change, index, false, out, left, &mut self.stats);
            self.stats.fragments_resent.tally();
        }
        true
    }

    /// Sends kept samples to a best-effort late joiner, once.
    pub(super) fn replay(
        &mut self,
        at: usize,
        now: Instant,
        out: &mut Outbox,
        left: &mut Left,
    ) -> bool {
        while let Some((run, reader)) = self.readers.get(at).and_then(|r| Some((r.replay?, r))) {
            let kept = self.history.iter_from(SequenceNumber(run.first));
            let number = kept
                .take_while(|change| change.sequence.0 <= run.last)
                .find(|change| reader.wants(change) && change.expires_at > now)
                .map(|change| change.sequence.0);
            // What its filter leaves out on the way is irrelevant, not lost.
            let end = number.unwrap_or(run.last.saturating_add(1));
            let gap = (reader.filter.is_some() && run.first < end).then(|| Run {
                first: run.first,
                last: end.saturating_sub(1),
            });
            let is_through = match number {
                Some(number) => self.resend(at, SequenceNumber(number), gap, out, left),
                None => self.send_gap(at, gap, out, left),
            };
            if !is_through {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.replay = number
                    .filter(|number| *number < run.last)
                    .map(|number| Run {
                        first: number.saturating_add(1),
                        last: run.last,
                    });
            }
        }
        true
    }

    /// Tells one reader what was not meant for its group. False when the burst
    /// is over.
    pub(super) fn send_skipped(&mut self, at: usize, out: &mut Outbox, left: &mut Left) -> bool {
        let skipped = self.readers.get(at).and_then(|reader| reader.skipped);
        if !self.send_gap(at, skipped, out, left) {
            return false;
        }
        if let Some(reader) = self.readers.get_mut(at) {
            reader.skipped = None;
        }
        true
    }

    /// Declares numbers irrelevant to one reader. False when the burst is over.
    fn send_gap(&mut self, at: usize, gap: Option<Run>, out: &mut Outbox, left: &mut Left) -> bool {
        let Some((reader, run)) = self.readers.get(at).zip(gap) else {
            return true;
        };
        if left.is_over(out) {
            return false;
        }
        if let Some(group) = self.groups.get(reader.group) {
            let mut message = out.begin(
                self.config.guid.prefix,
                &group.route.locators,
                self.config.datagram_bytes_max,
            );
            message.info_destination(group.prefix);
            message.gap(&Gap::range(
                reader.guid.entity,
                self.config.guid.entity,
                SequenceNumber(run.first),
                SequenceNumber(run.last),
            ));
            left.finish(message, &mut self.stats);
            self.stats.gaps.tally();
        }
        true
    }
}

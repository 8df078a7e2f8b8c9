//! What readers answer: acknowledgements free samples, requests become debts
//! (RTPS 2.5 §8.4.9.2).

use super::lapse::{Lapse, Suspicion};
use super::{TIMER_REPAIR, Writer, WriterEvent};
use crate::id::GuidPrefix;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::{AckNack, NackFrag};

impl Writer {
    /// Takes an ACKNACK of a reader of participant `from`.
    pub fn handle_acknack(&mut self, now: Instant, from: GuidPrefix, acknack: &AckNack) {
        self.clock = now;
        let guid = from.with(acknack.reader);
        let end = self.cursor.number;
        let suppression = self.config.nack_suppression;
        let Some(reader) = self
            .readers
            .iter_mut()
            .find(|reader| reader.guid == guid && reader.reliable)
        else {
            self.stats.unknown_readers.tally();
            return;
        };
        let went_back = reader.went_back(acknack.count);
        if !reader.accepts_acknack(now, acknack.count) {
            self.stats.duplicates.tally();
            return;
        }
        self.stats.acknacks.tally();
        if self.config.doubts_readers {
            let lacks = acknack.state.base().0 < reader.acked;
            match Lapse::judge(&mut reader.lapse, now, lacks, went_back) {
                Suspicion::None => {}
                Suspicion::Doubt { ask } => {
                    reader.heartbeat_due |= ask;
                    self.has_debts |= ask;
                    return;
                }
                Suspicion::Certain => {
                    let event = WriterEvent::ReaderBeganAnew { reader: guid };
                    self.events.push_or_drop_oldest(event);
                    return;
                }
            }
        }
        let is_first = reader.note_answer(acknack);
        let group = reader.group;
        let was_silent = self
            .groups
            .get_mut(group)
            .is_some_and(|group| group.asking.note_answer(&self.config.heartbeat));
        if is_first && acknack.state.base() <= self.last {
            // Now it may be told of what has been written meanwhile. (One that only knows
            // our announcement gets a heartbeat below, though the match has just sent one:
            // that may have come before it knew us.)
            reader.heartbeat_due = true;
            self.has_debts = true;
        }
        // Nobody can have what was not sent.
        let base = acknack.state.base().0.min(end);
        let progress = base > reader.acked;
        reader.begin_round_if_idle();
        reader.acked = reader.acked.max(base);
        // What was asked for and not sent yet is still wanted (RTPS 2.5
        // §8.4.9.2.9): a reader need not repeat itself.
        let mut requested = acknack.state;
        for pending in reader.requested.iter() {
            if pending >= requested.base() {
                requested.insert(pending);
            }
        }
        reader.requested = requested;
        reader.is_sifted = false;
        if !acknack.is_final {
            reader.heartbeat_due = true;
            self.has_debts = true;
        }
        reader.fragments.retain(|(sequence, _)| sequence.0 >= base);
        if reader.has_requests() {
            reader.repair_at = now.max(reader.served_at.after(suppression));
            if reader.repair_at > now {
                self.stats.suppressed.tally();
            }
            self.timers.set_no_later(TIMER_REPAIR, reader.repair_at);
            self.has_debts = true;
        }
        if is_first {
            self.recount();
        }
        if was_silent {
            // It is back.
            self.ask_group(group, now.after(self.config.heartbeat.first));
        }
        if progress {
            self.note_news_of(group);
            self.prune();
        }
    }

    /// Takes a NACK_FRAG of a reader of participant `from`.
    pub fn handle_nack_frag(&mut self, now: Instant, from: GuidPrefix, nack: &NackFrag) {
        self.clock = now;
        let guid = from.with(nack.reader);
        let suppression = self.config.nack_suppression;
        let end = self.cursor.number;
        let Some(reader) = self
            .readers
            .iter_mut()
            .find(|reader| reader.guid == guid && reader.reliable)
        else {
            self.stats.unknown_readers.tally();
            return;
        };
        if !reader.accepts_nack_frag(now, nack.count) {
            self.stats.duplicates.tally();
            return;
        }
        self.stats.nack_frags.tally();
        if nack.sequence.0 >= end || nack.state.is_empty() || fault!("nack-frag-ignored") {
            return;
        }
        reader.begin_round_if_idle();
        let change = self.history.find(nack.sequence);
        let noted = match change.is_some_and(|change| reader.wants(change)) {
            true => reader.request_fragments(nack.sequence, nack.state),
            // Gone meanwhile (its lifespan, say): a GAP says so, or the reader
            // would ask for ever.
            false => reader.request_sample(nack.sequence),
        };
        if noted {
            reader.repair_at = now.max(reader.served_at.after(suppression));
            self.timers.set_no_later(TIMER_REPAIR, reader.repair_at);
            self.has_debts = true;
        }
    }
}

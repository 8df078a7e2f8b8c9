//! ACKNACK and NACK_FRAG handling of a writer (RTPS 2.5 §8.4.9.2).
//!
//! An acknowledgement frees samples. A request schedules a retransmission at once:
//! the NACK response delay (nackResponseDelay) is zero. The NACK suppression delay
//! (nackSuppressionDuration) postpones it if the same samples were just
//! retransmitted.

use super::reader_reset::{ReaderResetDetector, ReaderResetStatus};
use super::{TIMER_RETRANSMISSION, Writer, WriterEvent};
use crate::id::GuidPrefix;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::{AckNack, NackFrag};

impl Writer {
    /// Handles an ACKNACK from a reader of participant `from`.
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
        let count_went_back = reader.count_went_back(acknack.count);
        if !reader.accepts_acknack(now, acknack.count) {
            self.stats.duplicates.tally();
            return;
        }
        self.stats.acknacks.tally();
        if self.config.detects_reader_reset {
            let requests_acked = acknack.state.base().0 < reader.acked;
            match ReaderResetDetector::observe(
                &mut reader.reset_detector,
                now,
                requests_acked,
                count_went_back,
            ) {
                ReaderResetStatus::None => {}
                ReaderResetStatus::Suspected { probe } => {
                    reader.heartbeat_due |= probe;
                    self.pending.any |= probe;
                    return;
                }
                ReaderResetStatus::Confirmed => {
                    let event = WriterEvent::ReaderReset { reader: guid };
                    self.events.push_or_drop_oldest(event);
                    return;
                }
            }
        }
        let is_first = reader.note_acknack(acknack);
        let destination = reader.destination;
        let was_silent = self
            .destinations
            .get_mut(destination)
            .is_some_and(|destination| {
                destination
                    .heartbeat_schedule
                    .note_acknack(&self.config.heartbeat)
            });
        if is_first && acknack.state.base() <= self.last {
            // A heartbeat may now name what was written meanwhile. (A reader that
            // only knows our announcement gets a heartbeat below, although the
            // match sent one: that may have come before it knew us.)
            reader.heartbeat_due = true;
            self.pending.any = true;
        }
        // No reader can have unsent changes.
        let base = acknack.state.base().0.min(end);
        let progress = base > reader.acked;
        reader.begin_round_if_idle();
        reader.acked = reader.acked.max(base);
        // Earlier requests stay pending until served (RTPS 2.5 §8.4.9.2.9): a
        // reader need not repeat them.
        let mut requested = acknack.state;
        for pending in reader.requested.iter() {
            if pending >= requested.base() {
                requested.insert(pending);
            }
        }
        reader.requested = requested;
        reader.irrelevant_declared = false;
        if !acknack.is_final {
            reader.heartbeat_due = true;
            self.pending.any = true;
        }
        reader.fragments.retain(|(sequence, _)| sequence.0 >= base);
        if reader.has_requests() {
            reader.retransmit_at = now.max(reader.last_retransmission.after(suppression));
            if reader.retransmit_at > now {
                self.stats.requests_suppressed.tally();
            }
            self.timers
                .set_no_later(TIMER_RETRANSMISSION, reader.retransmit_at);
            self.pending.any = true;
        }
        if is_first {
            self.update_destinations();
        }
        if was_silent {
            // The reader is back.
            self.schedule_heartbeat_to(destination, now.after(self.config.heartbeat.period));
        }
        if progress {
            self.reset_heartbeat_backoff(destination);
            self.prune();
        }
    }

    /// Handles a NACK_FRAG from a reader of participant `from`.
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
        let noted = if change.is_some_and(|change| reader.is_relevant(change)) {
            reader.request_fragments(nack.sequence, nack.state)
        } else {
            // Removed meanwhile (its lifespan, say): a GAP declares that, or the
            // reader would request it for ever.
            reader.request_sample(nack.sequence)
        };
        if noted {
            reader.retransmit_at = now.max(reader.last_retransmission.after(suppression));
            self.timers
                .set_no_later(TIMER_RETRANSMISSION, reader.retransmit_at);
            self.pending.any = true;
        }
    }
}

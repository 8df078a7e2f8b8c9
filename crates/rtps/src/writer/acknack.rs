//! ACKNACK and NACK_FRAG handling of a writer (RTPS 2.5 §8.4.9.2).
//!
//! An acknowledgement frees samples. A request schedules a retransmission at once:
//! the NACK response delay (nackResponseDelay) is zero. The NACK suppression delay
//! (nackSuppressionDuration) postpones it if the same samples were just
//! retransmitted. An acknowledgement also proves bytes: they are the credit for
//! retransmissions (`writer/retransmission_credit.rs`).

use super::Writer;
use super::ack_withdrawal::WithdrawalStatus;
use super::event::{Events, WriterEvent};
use super::matched_readers::MatchedReaders;
use super::pending_sends::PendingSends;
use super::proxy::ReaderProxy;
use super::reader_reset::{ReaderResetDetector, ReaderResetStatus};
use super::retransmission_credit::ChangeSizes;
use super::timers::{TIMER_ANSWER, TIMER_RESET_PROBE, TIMER_RETRANSMISSION, WriterTimers};
use crate::id::GuidPrefix;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::{AckNack, NackFrag};

impl Writer {
    /// Handles an ACKNACK from a reader of participant `from`.
    pub fn handle_acknack(&mut self, now: Instant, from: GuidPrefix, acknack: &AckNack) {
        self.clock = now;
        let guid = from.with(acknack.reader);
        let end = self.transmission.cursor.number;
        let suppression = self.config.nack_suppression;
        let reader = self.matched.proxies.find_mut(guid);
        let Some(reader) = reader.filter(|reader| reader.reliable) else {
            self.stats.unknown_readers.tally();
            return;
        };
        let claimed = acknack.state.base().0;
        reader.note_ack_base(claimed, end);
        if reader.counts.is_acknack_unconfirmed(now, acknack, end) {
            self.stats.unconfirmed_acks.tally();
            if needs_heartbeat(acknack, end) {
                answer(
                    reader,
                    now,
                    &mut self.transmission.pending,
                    &mut self.timers,
                );
            }
            return;
        }
        if reader.counts.forgets_forged_acknack(acknack.count) {
            reader.reset_detector = None;
        }
        let count_went_back = reader.counts.count_went_back(acknack.count);
        if !reader.counts.accepts_acknack(now, acknack.count) {
            self.stats.duplicates.tally();
            return;
        }
        self.stats.acknacks.tally();
        if self.config.detects_reader_reset {
            let requests_acked = acknack.state.base().0 < reader.acked;
            let observed = (requests_acked, count_went_back);
            let (timers, events) = (&mut self.timers, &mut self.events);
            if is_of_reset_reader(reader, now, observed, timers, events) {
                return;
            }
        }
        if reader.observe_withdrawal(now, claimed) == WithdrawalStatus::Ask {
            reader.heartbeat_due = true;
            self.transmission.pending.any = true;
        }
        let is_first = reader.counts.note_acknack(acknack);
        let destination = reader.destination;
        let mut crossing = suppression;
        let was_silent =
            self.matched
                .destinations
                .get_mut(destination)
                .is_some_and(|destination| {
                    destination.note_round_trip(now, &acknack.state, &mut reader.requests);
                    crossing = destination.round_trip.crossing_time(suppression);
                    destination
                        .heartbeat_schedule
                        .note_acknack(&self.config.heartbeat)
                });
        if is_first && acknack.state.base() <= self.cache.last {
            // A heartbeat may now name what was written meanwhile. (A reader that
            // only knows our announcement gets a heartbeat below, although the
            // match sent one: that may have come before it knew us.)
            reader.heartbeat_due = true;
            self.transmission.pending.any = true;
        }
        // No reader can have unsent changes.
        let base = acknack.state.base().0.min(end);
        let progress = base > reader.acked;
        reader.progress.end_stall(progress, guid, &mut self.events);
        reader.requests.begin_round_if_idle();
        if let Some(destination) = self.matched.destinations.get_mut(destination) {
            let sizes = ChangeSizes::new(&self.cache.history, self.cache.sample_bytes_mean);
            let ahead = reader.proof.note_request(&acknack.state, end, sizes);
            let fragment = usize::from(self.config.fragment_size.network);
            destination.note_progress(reader, (base, ahead), sizes, fragment);
        }
        let window = (crossing > suppression).then_some(crossing);
        reader.requests.note_acknack(now, acknack.state, window);
        if !acknack.is_final {
            answer(
                reader,
                now,
                &mut self.transmission.pending,
                &mut self.timers,
            );
        }
        reader.requests.fragments.remove_below(SequenceNumber(base));
        if reader.requests.is_pending() {
            reader.requests.retransmit_at =
                now.max(reader.requests.last_retransmission.after(suppression));
            if reader.requests.retransmit_at > now {
                self.stats.requests_suppressed.tally();
            }
            self.timers
                .set_no_later(TIMER_RETRANSMISSION, reader.requests.retransmit_at);
            self.transmission.pending.any = true;
        }
        if is_first {
            self.update_destinations();
        }
        if was_silent {
            // The reader is back.
            let config = &self.config.heartbeat;
            let at = now.after(config.period);
            self.matched
                .schedule_heartbeat_to(destination, at, config, &mut self.timers);
        }
        if progress {
            if let Some(destination) = self.matched.destinations.get_mut(destination) {
                destination.reset_heartbeat_backoff(&self.config.heartbeat);
            }
            self.prune();
        }
    }

    /// Handles a NACK_FRAG from a reader of participant `from`.
    pub fn handle_nack_frag(&mut self, now: Instant, from: GuidPrefix, nack: &NackFrag) {
        self.clock = now;
        let guid = from.with(nack.reader);
        let suppression = self.config.nack_suppression;
        let end = self.transmission.cursor.number;
        let reader = self.matched.proxies.find_mut(guid);
        let Some(reader) = reader.filter(|reader| reader.reliable) else {
            self.stats.unknown_readers.tally();
            return;
        };
        if reader.counts.is_nack_frag_unconfirmed(now, nack.count) {
            self.stats.unconfirmed_acks.tally();
            return;
        }
        if !reader.counts.accepts_nack_frag(now, nack.count) {
            self.stats.duplicates.tally();
            return;
        }
        self.stats.nack_frags.tally();
        if nack.sequence.0 >= end || nack.state.is_empty() {
            return;
        }
        reader.requests.begin_round_if_idle();
        let change = self.cache.history.find(nack.sequence);
        let relevant = change.filter(|change| reader.is_relevant(change));
        let noted = if let Some(change) = relevant {
            let mut set = nack.state;
            // All of an acknowledged sample was proved already.
            let more = if reader.is_earned(nack.sequence.0) {
                0
            } else {
                reader.requests.note_proved_fragments(nack.sequence, nack)
            };
            // Fragments of later samples are no progress: the reader delivers none of them
            // before the first that it lacks.
            if more > 0 && nack.sequence.0 <= reader.acked {
                reader.progress.note_received(now);
            }
            if let Some(destination) = self.matched.destinations.get_mut(reader.destination) {
                let bytes = usize::from(change.fragment_size)
                    .saturating_mul(usize::try_from(more).unwrap_or(0));
                let bytes = bytes.min(change.payload.len());
                let own = reader.proof.note_fragments(bytes);
                // Of a sample that was acknowledged before, only what was sent since.
                let bytes = if nack.sequence.0 < reader.acked {
                    own
                } else {
                    bytes
                };
                destination.credit.earn(bytes, self.cache.sample_bytes_mean);
                let crossing = destination.round_trip.crossing_time(suppression);
                if crossing > suppression {
                    let recent = &reader.requests.recently_served;
                    set = recent.without_fragments(now, crossing, nack.sequence, set);
                }
            }
            if set.is_empty() {
                return;
            }
            reader.requests.request_fragments(nack.sequence, set)
        } else {
            // Removed meanwhile (its lifespan, say): a GAP declares that, or the
            // reader would request it for ever.
            reader.requests.request_sample(nack.sequence)
        };
        if noted {
            reader.requests.retransmit_at =
                now.max(reader.requests.last_retransmission.after(suppression));
            self.timers
                .set_no_later(TIMER_RETRANSMISSION, reader.requests.retransmit_at);
            self.transmission.pending.any = true;
        }
    }
}

impl MatchedReaders {
    /// Answers the ACKNACKs that came soon after another. O(readers).
    pub(super) fn send_deferred_answers(
        &mut self,
        now: Instant,
        pending: &mut PendingSends,
        timers: &mut WriterTimers,
    ) {
        let mut next = Instant::FAR_FUTURE;
        for reader in self.proxies.iter_mut() {
            let Some(due) = reader.ack_answer.deferred_until() else {
                continue;
            };
            if due <= now && reader.ack_answer.ask(now).is_none() {
                reader.heartbeat_due = true;
                pending.any = true;
            } else {
                next = next.min(due);
            }
        }
        timers.set(TIMER_ANSWER, next);
    }
}

/// Whether an ACKNACK is not served, because its reader may have lost its state.
fn is_of_reset_reader(
    reader: &mut ReaderProxy,
    now: Instant,
    (requests_acked, count_went_back): (bool, bool),
    timers: &mut WriterTimers,
    events: &mut Events,
) -> bool {
    let detector = &mut reader.reset_detector;
    match ReaderResetDetector::observe(detector, now, requests_acked, count_went_back) {
        ReaderResetStatus::None => return false,
        ReaderResetStatus::Suspected { probe_at } => {
            timers.set_no_later(TIMER_RESET_PROBE, probe_at);
        }
        ReaderResetStatus::Confirmed => {
            let reader = reader.guid;
            events.push_or_drop_oldest(WriterEvent::ReaderReset { reader });
        }
    }
    true
}

/// Answers an ACKNACK with a heartbeat, now or when its reader may be answered again.
fn answer(
    reader: &mut ReaderProxy,
    now: Instant,
    pending: &mut PendingSends,
    timers: &mut WriterTimers,
) {
    if reader.heartbeat_due {
        return;
    }
    match reader.ack_answer.ask(now) {
        None => {
            reader.heartbeat_due = true;
            pending.any = true;
        }
        Some(later) => timers.set_no_later(TIMER_ANSWER, later),
    }
}

/// Whether an ACKNACK that is not believed is answered. A reader that believed a forged
/// HEARTBEAT learns the truth at once: it requests what does not exist, and would else
/// wait for the confirmation.
fn needs_heartbeat(acknack: &AckNack, end: i64) -> bool {
    let is_unsent = acknack.state.base().0 > end;
    is_unsent || !acknack.is_final
}

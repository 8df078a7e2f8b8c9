//! Batching for LATENCY_BUDGET (DDS 1.4 §2.2.3.8): several small samples in one
//! datagram.
//!
//! A writer with a budget holds small samples. It sends them together when the
//! budget of the first one ends, when they fill a datagram, or when a further
//! sample would replace or refuse one of them. A large sample, the end of a
//! coherent set and [`Writer::flush`] also send them. Until then no heartbeat names
//! them. A writer without a budget has no [`Batch`]; testing for it is its only
//! cost.

use super::batch::{FRAME_BYTES, datagram_share, is_small};
use super::data_encoder::{BurstBudget, add_data};
use super::transmit::is_due;
use super::{TIMER_BATCH, Writer};
use crate::change::WriterChange;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::wire::Gap;

impl Writer {
    /// Releases the samples held for LATENCY_BUDGET; poll transmissions afterwards.
    pub fn flush(&mut self) {
        let Some(batch) = &mut self.batch else { return };
        batch.release(self.last.0);
        self.timers.stop(TIMER_BATCH);
    }

    /// The last number that may be sent.
    pub(super) fn released(&self) -> i64 {
        match &self.batch {
            Some(batch) => batch.released.min(self.last.0),
            None => self.last.0,
        }
    }

    /// Decides whether the newest sample is held.
    pub(super) fn hold_for_batch(&mut self, now: Instant) {
        if self.batch.is_none() {
            return;
        }
        let space = self.batch_bytes_max();
        let samples_max = self.retention.samples_max_of(false);
        let (Some(batch), Some(newest)) = (&mut self.batch, self.history.iter().next_back()) else {
            return;
        };
        let bytes = datagram_share(newest);
        if batch.samples == 0 {
            self.timers.set(TIMER_BATCH, now.after(batch.budget));
        }
        let is_full = batch.hold(bytes, space);
        if newest.is_set_end()
            || batch.budget == Duration::ZERO
            || !is_small(newest)
            || self.readers.is_empty()
            || batch.samples >= samples_max
            || is_full
        {
            self.flush();
        }
    }

    /// Sends the released samples from `number` on that fit one datagram to every
    /// destination. `None`: there are fewer than two; false: the burst is over.
    pub(super) fn push_batch(
        &mut self,
        number: i64,
        now: Instant,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> Option<bool> {
        self.batch.as_ref()?;
        if self.destinations.iter().any(|of| of.payload_form.is_some()) {
            return None;
        }
        if self.cursor.batch == 0 {
            self.cursor.batch = self.end_of_batch(number)?;
            let all = number..=self.cursor.batch;
            let requests_acks = all.filter(|number| self.decide_ack_request(now, *number));
            self.cursor.requests_ack = Some(requests_acks.count() > 0);
        }
        while self.cursor.destinations_done < self.destinations.len() {
            if budget.is_exhausted(out) {
                return Some(false);
            }
            self.push_batch_to(number, now, out, budget);
            self.cursor.destinations_done.tally();
        }
        self.note_pushed(number, self.cursor.batch);
        Some(true)
    }

    /// The last of the consecutive small samples that fit a datagram.
    fn end_of_batch(&self, number: i64) -> Option<i64> {
        let mut space = self.batch_bytes_max();
        let mut end = number;
        let released = self.released();
        for (expected, change) in
            (number..=released).zip(self.history.iter_from(SequenceNumber(number)))
        {
            let follows = is_small(change) && change.sequence.0 == expected;
            let Some(rest) = space
                .checked_sub(datagram_share(change))
                .filter(|_| follows)
            else {
                break;
            };
            space = rest;
            end = expected;
        }
        (end > number).then_some(end)
    }

    fn batch_bytes_max(&self) -> usize {
        let datagram = if self.is_same_host_only() {
            usize::from(self.config.fragment_size.same_host)
        } else {
            self.config.datagram_bytes_max
        };
        datagram.saturating_sub(FRAME_BYTES)
    }

    /// Writes one datagram for the cursor's destination.
    fn push_batch_to(
        &mut self,
        number: i64,
        now: Instant,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) {
        let (at, end) = (self.cursor.destinations_done, self.cursor.batch);
        let requests_ack = self.cursor.requests_ack == Some(true);
        let leading_heartbeat = self.leading_heartbeat(at, number);
        let heartbeat = (requests_ack || end == self.released())
            .then(|| self.heartbeat(at, !requests_ack, end))
            .filter(|_| leading_heartbeat.is_none());
        let writer = self.config.guid;
        let (history, readers, stats) = (&self.history, &self.readers, &mut self.stats);
        let Some(destination) = self
            .destinations
            .get_mut(at)
            .filter(|destination| destination.readers > 0)
        else {
            return;
        };
        let mut message = out.begin(
            writer.prefix,
            &destination.route.locators,
            usize::from(u16::MAX),
        );
        message.info_destination(destination.prefix);
        if let Some(heartbeat) = &leading_heartbeat {
            stats
                .heartbeats
                .tally_by(u64::from(message.heartbeat(heartbeat)));
        }
        let mut sent = 0;
        for number in number..=end {
            let change = history.find(SequenceNumber(number));
            let due = |change: &&WriterChange| is_due(change, destination, at, readers, now);
            let Some(change) = change.filter(due) else {
                destination.add_to_gap(number);
                continue;
            };
            let reader = change
                .directed_to
                .map_or(destination.sole_reader, |only| only.entity);
            if let Some(run) = destination.pending_gap.take() {
                let (first, last) = (SequenceNumber(run.first), SequenceNumber(run.last));
                message.gap(&Gap::range(reader, writer.entity, first, last));
                stats.gaps.tally();
            }
            message.info_timestamp(change.source_timestamp);
            add_data(&mut message, writer.entity, reader, change);
            sent.tally();
        }
        if sent == 0 {
            return;
        }
        stats.samples_sent.tally_by(sent);
        let heartbeat = heartbeat.filter(|_| destination.reliable > 0);
        if let Some(heartbeat) = &heartbeat {
            stats
                .heartbeats
                .tally_by(u64::from(message.heartbeat(heartbeat)));
        }
        budget.finish(message, stats);
        if requests_ack && heartbeat.is_some() {
            self.note_ack_requested(now, at, end);
        }
    }
}

//! Batching for LATENCY_BUDGET (DDS 1.4 §2.2.3.8): several small samples in one
//! datagram.
//!
//! A writer with a budget holds small samples. It sends them together when the
//! budget of the first one ends, when they fill a datagram, or when a further
//! sample would replace or refuse one of them. A large sample, the end of a
//! coherent set and [`Writer::flush`] also send them. Until then no heartbeat names
//! them. A writer without a budget has no [`Batch`](super::batch::Batch); testing for it is its only
//! cost.

use super::Writer;
use super::burst_writer::BurstBudget;
use super::data_encoder::add_data;
use super::heartbeats::HeartbeatSource;
use super::transmit::is_due;
use crate::change::WriterChange;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::Gap;

impl Writer {
    /// Releases the samples held for LATENCY_BUDGET; poll transmissions afterwards.
    pub fn flush(&mut self) {
        self.transmission.flush(self.cache.last, &mut self.timers);
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
        if !self.transmission.has_batch()
            || self
                .matched
                .destinations
                .iter()
                .any(|of| of.payload_form.is_some())
        {
            return None;
        }
        if self.transmission.cursor.batch == 0 {
            let is_same_host_only = self.matched.is_same_host_only();
            let space = self.config.batch_bytes_max(is_same_host_only);
            let transmission = &mut self.transmission;
            transmission.cursor.batch = transmission.end_of_batch(number, &self.cache, space)?;
            let all = number..=transmission.cursor.batch;
            let (heartbeats, timers) = (&mut self.heartbeats, &mut self.timers);
            let (config, counts, cache) = (&self.config, &self.matched.counts, &self.cache);
            let requests_acks = all.filter(|number| {
                heartbeats.decide_ack_request(now, *number, config, counts, cache, timers)
            });
            self.transmission.cursor.requests_ack = Some(requests_acks.count() > 0);
        }
        while self.transmission.cursor.destinations_done < self.matched.destinations.len() {
            if budget.is_exhausted(out) {
                return Some(false);
            }
            self.push_batch_to(number, now, out, budget);
            self.transmission.cursor.destinations_done.tally();
        }
        self.note_pushed(number, self.transmission.cursor.batch);
        Some(true)
    }

    /// Writes one datagram for the cursor's destination.
    fn push_batch_to(
        &mut self,
        number: i64,
        now: Instant,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) {
        let (at, end) = (
            self.transmission.cursor.destinations_done,
            self.transmission.cursor.batch,
        );
        let requests_ack = self.transmission.cursor.requests_ack == Some(true);
        let destination = self.matched.destinations.get(at);
        let cursor = &self.transmission.cursor;
        let source = HeartbeatSource::new(&self.config, &self.cache, cursor);
        let heartbeats = &mut self.heartbeats;
        let leading_heartbeat = heartbeats.leading_heartbeat(destination, number, source);
        let heartbeat = (requests_ack || end == self.transmission.released(self.cache.last))
            .then(|| heartbeats.heartbeat(destination, !requests_ack, end, source))
            .filter(|_| leading_heartbeat.is_none());
        let writer = self.config.guid;
        let (history, readers, stats) =
            (&self.cache.history, &self.matched.proxies, &mut self.stats);
        let Some(destination) = self
            .matched
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
            let (config, timers) = (&self.config.heartbeat, &mut self.timers);
            heartbeats.note_ack_requested(now, config, destination, end, timers);
        }
    }
}

//! RTPS writer (StatefulWriter, RTPS 2.5 §8.4.7–9) as a state machine: changes,
//! ACKNACKs and time in; datagrams and events out.
//!
//! The writer sends each change once to each destination. Readers of one
//! participant share a destination. A heartbeat goes in the same datagram.
//! Requested samples are retransmitted.
//!
//! KEEP_ALL gives back-pressure: a write is refused while a reliable reader lags
//! behind. Timers expire changes (lifespan), check the offered deadline (deadline
//! monitor) and the liveliness lease.
//!
//! Drain order: after `write`, after any `handle_*` call and whenever
//! [`Writer::next_timeout`] has come, poll transmissions and events until empty. A
//! late or repeated poll is safe. Payloads are shared, never copied. In steady
//! state nothing is allocated.
//!
//! The parts own their state: `writer_cache` the changes, `matched_readers` the
//! reader proxies and destinations, `transmission` what was sent, `heartbeats` the
//! requests for acknowledgement. `Writer` owns the parts and the timers, and passes each
//! write, submessage and timeout to them.

mod ack_answer;
mod ack_plausibility;
mod ack_progress;
mod ack_requests;
mod ack_withdrawal;
mod acknack;
mod acknack_counts;
mod batch;
mod batching;
mod burst_writer;
mod changeable;
mod config;
mod data_encoder;
mod event;
mod filter;
mod flow_controlled;
mod fragment_requests;
mod group_info;
mod group_sequence_info;
mod heartbeat_schedule;
mod heartbeats;
mod matched;
mod matched_readers;
mod memory;
mod offered_statuses;
mod pending_sends;
mod proxy;
mod reader_counts;
mod reader_proxies;
mod reader_reset;
mod requested_changes;
mod retention;
mod retransmission;
mod retransmission_credit;
mod send_cursor;
mod shared_memory;
mod stall_checks;
mod timers;
mod transmission;
mod transmit;
mod write_error;
mod writer_cache;

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;

pub use config::{
    Burst, FragmentSize, HeartbeatConfig, NewChange, PayloadForm, ReaderProxyConfig,
    RestoredSample, WriterConfig, WriterLimits,
};
pub use event::WriterEvent;
pub use matched_readers::MatchedReaders;
pub use write_error::WriteError;

use crate::change::WriterChange;
use crate::content_filter::FilterOutcome;
use crate::id::Guid;
use crate::qos::{EndpointQos, Liveliness};
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::stats::WriterStats;
use crate::time::Instant;
use event::Events;
use heartbeats::Heartbeats;
use offered_statuses::OfferedStatuses;
use send_cursor::SendCursor;
use stall_checks::schedule_stall_check;
use timers::{
    TIMER_ANSWER, TIMER_BATCH, TIMER_DEADLINE, TIMER_GROUP_INFO, TIMER_HEARTBEAT, TIMER_LIFESPAN,
    TIMER_LIVELINESS, TIMER_RESET_PROBE, TIMER_RETRANSMISSION, TIMER_STALL, WriterTimers,
};
use transmission::Transmission;
use writer_cache::{ChangeNeeds, WriterCache};

/// One RTPS writer. Not thread-safe; its owner locks.
///
/// KEEP_LAST never refuses a write. It replaces the oldest sample, acknowledged or
/// not. If a reader may still have needed that sample, [`WriterStats::overwritten`]
/// counts it. KEEP_ALL refuses a write while a reliable reader has not acknowledged
/// the oldest sample. If samples are kept only for late joiners, the oldest are
/// dropped when it is full.
#[derive(Debug)]
pub struct Writer {
    config: WriterConfig,
    cache: WriterCache,
    matched: MatchedReaders,
    transmission: Transmission,
    heartbeats: Heartbeats,
    timers: WriterTimers,
    statuses: OfferedStatuses,
    events: Events,
    stats: WriterStats,
    /// The last `now` passed in.
    clock: Instant,
}

impl Writer {
    /// A writer without changes and readers.
    pub fn new(mut config: WriterConfig) -> Self {
        let clamp = |size: u16| size.clamp(64, FRAGMENT_BYTES_MAX);
        config.fragment_size.same_host = clamp(config.fragment_size.same_host);
        config.fragment_size.network = clamp(config.fragment_size.network);
        Self {
            cache: WriterCache::new(&config),
            matched: MatchedReaders::new(),
            transmission: Transmission::new(config.qos.latency_budget),
            heartbeats: Heartbeats::NONE,
            config,
            timers: WriterTimers::new(),
            statuses: OfferedStatuses::default(),
            events: Events::default(),
            stats: WriterStats::default(),
            clock: Instant::ZERO,
        }
    }

    /// Its GUID.
    pub fn guid(&self) -> Guid {
        self.config.guid
    }

    /// Its QoS policies.
    pub fn qos(&self) -> &EndpointQos {
        &self.config.qos
    }

    /// Its counters.
    pub fn stats(&self) -> &WriterStats {
        &self.stats
    }

    /// The sequence number of the next change.
    pub fn next_sequence(&self) -> SequenceNumber {
        self.cache.last.next()
    }

    /// The number of samples in the history.
    pub fn cached_samples(&self) -> usize {
        self.cache.history.samples()
    }

    /// The payload of a change in the history, unless it is deferred.
    pub fn cached_payload(&self, sequence: SequenceNumber) -> Option<&Bytes> {
        let change = self.cache.history.find(sequence)?;
        (change.deferred_bytes == 0).then_some(&change.payload)
    }

    /// Fills in every deferred payload. Call it before a reader is matched.
    ///
    /// A change for which `payload_of` returns `None` becomes irrelevant.
    pub fn provide_deferred_payloads(
        &mut self,
        mut payload_of: impl FnMut(SequenceNumber) -> Option<Bytes>,
    ) {
        let is_deferred = |change: &&WriterChange| change.deferred_bytes > 0;
        let deferred = self.cache.history.iter().filter(is_deferred);
        for sequence in deferred.map(|change| change.sequence).collect::<Vec<_>>() {
            match payload_of(sequence) {
                Some(payload) => self.cache.history.set_payload(sequence, payload),
                None => drop(self.cache.history.remove(sequence)),
            }
        }
    }

    /// Frees space for a change while no reader has a content filter.
    ///
    /// [`Self::write`] then certainly accepts the change, if no other call comes
    /// first. The payload is not read and may be deferred.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn reserve_space(&mut self, now: Instant, change: &NewChange) -> Result<(), WriteError> {
        debug_assert!(
            !self.matched.has_filters(),
            "content filters read the payload"
        );
        self.clock = now;
        self.check_size(change)?;
        if !self.config.keeps_for_late_joiners() && self.matched.is_empty() {
            return Ok(());
        }
        self.free_space(now, change)
    }

    /// The largest amount of memory its samples may take, bytes.
    pub fn worst_case_bytes(&self) -> usize {
        self.config
            .limits
            .history_bytes_max
            .max(self.config.limits.sample_bytes_max)
    }

    /// Assigns a sequence number without sending anything, for a sample that all
    /// readers received by another path.
    ///
    /// It counts as a write for deadline and liveliness. A writer that has neither
    /// may be given any earlier time.
    pub fn skip_sequence_number(&mut self, now: Instant) -> SequenceNumber {
        self.note_write(now);
        self.cache.last = self.cache.last.next();
        let number = self.cache.last.0;
        if self.transmission.cursor.number == number {
            for destination in &mut self.matched.destinations {
                destination.add_to_gap(number);
            }
            self.transmission.cursor = SendCursor::at(number.saturating_add(1));
        }
        self.cache.last
    }

    /// Accepts a change; [`Self::poll_transmit`] sends it.
    ///
    /// Without matched readers a volatile writer only counts it. A restored change
    /// does not assert liveliness.
    pub fn write(&mut self, now: Instant, change: NewChange) -> Result<SequenceNumber, WriteError> {
        self.clock = now;
        self.check_size(&change)?;
        debug_assert!(
            change.deferred_bytes == 0 || self.matched.is_empty(),
            "a payload may be deferred only while no reader is matched"
        );
        let filter_outcome = self.matched.apply_filters(&change);
        let rejections = filter_outcome.as_ref().map_or(0, |of| of.rejected_by.len());
        self.stats.filtered.tally_by(rejections as u64);
        let rejected_by_all = filter_outcome.is_some() && rejections == self.matched.len();
        // No late joiner can get it either.
        if rejected_by_all && !self.config.keeps_for_late_joiners() {
            self.stats.written.tally();
            return Ok(self.skip_sequence_number(now));
        }
        let keeps = self.config.keeps_for_late_joiners() || !self.matched.is_empty();
        if keeps {
            self.free_space(now, &change)?;
        }
        if change.is_set_end() {
            self.renew_liveliness(now);
        } else {
            if change.restored.is_none() {
                self.note_write(now);
            }
            self.stats.written.tally();
        }
        self.cache.last = self.cache.last.next();
        let sequence = self.cache.last;
        if keeps {
            self.store(now, sequence, change, filter_outcome);
            if self.transmission.has_batch() {
                let is_same_host_only = self.matched.is_same_host_only();
                let space = self.config.batch_bytes_max(is_same_host_only);
                let is_read = !self.matched.is_empty();
                let timers = &mut self.timers;
                self.transmission
                    .hold_for_batch(now, &self.cache, space, is_read, timers);
            }
        }
        if self.matched.is_empty() {
            self.transmission.cursor = SendCursor::at(sequence.next().0);
            // A set end without readers is not kept.
            self.prune();
        }
        Ok(sequence)
    }

    fn check_size(&mut self, change: &NewChange) -> Result<(), WriteError> {
        let checked = self.config.check_size(change);
        self.stats.writes_refused.tally_by(checked.is_err().into());
        checked
    }

    fn store(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        change: NewChange,
        filter_outcome: Option<Box<FilterOutcome>>,
    ) {
        match change.directed_to {
            None => {
                self.matched.last_undirected = sequence.0;
                self.matched
                    .note_relevant_readers(sequence, filter_outcome.as_deref());
            }
            Some(only) => {
                if let Some(reader) = self.matched.proxies.find_mut(only) {
                    reader.last_directed = sequence.0;
                }
            }
        }
        let restored = change.restored;
        let expires_at = restored.map_or_else(
            || now.after(self.config.qos.lifespan),
            |restored| restored.expires_at,
        );
        if self.matched.counts.reliable > 0 {
            self.matched.all_acked = false;
            schedule_stall_check(now, &mut self.timers);
            let pause = self.config.heartbeat.idle_min();
            self.heartbeats.ack_requests.note_write(now, pause);
            let at = now.after(self.heartbeat_period());
            match change
                .directed_to
                .and_then(|only| self.matched.proxies.find_mut(only))
            {
                Some(reader) => {
                    let destination = reader.destination;
                    let config = &self.config.heartbeat;
                    self.matched
                        .schedule_heartbeat_to(destination, at, config, &mut self.timers);
                }
                None => self.heartbeats.schedule_for_new_data(at, &mut self.timers),
            }
        }
        let bytes = change.payload_bytes();
        let change = WriterChange {
            sequence,
            kind: change.kind,
            payload: change.payload,
            deferred_bytes: change.deferred_bytes,
            source_timestamp: change.source_timestamp,
            related_sample_identity: change.related_sample_identity,
            key_hash: change.key_hash,
            original_writer_info: restored.map(|restored| restored.original_writer_info),
            directed_to: change.directed_to,
            expires_at,
            coherent_mark: change.coherent_mark,
            filter_outcome,
            fragment_size: 0,
        };
        self.cache.push(change, bytes, &mut self.timers);
    }

    /// Frees space for `change` in the history, or returns why it cannot.
    fn free_space(&mut self, now: Instant, change: &NewChange) -> Result<(), WriteError> {
        let was_blocked = self.cache.retention.blocked;
        let needs = ChangeNeeds {
            config: &self.config,
            matched: &self.matched,
            transmission: &self.transmission,
        };
        let freed = self.cache.free_space(change, needs, &mut self.stats);
        if freed.is_err() && !was_blocked {
            // Request acknowledgements now, but not again with every attempt.
            self.request_acks_by(now);
        }
        freed
    }

    /// Drops what was kept beyond the history depth while `sent` was partly sent.
    fn drop_surplus(&mut self, sent: SequenceNumber) {
        let needs = ChangeNeeds {
            config: &self.config,
            matched: &self.matched,
            transmission: &self.transmission,
        };
        self.cache.drop_surplus(sent, needs, &mut self.stats);
    }

    /// Keeps dispose and unregister changes for readers that may return with stale
    /// state. Discovery requests it after a peer's participant lease expired.
    pub(crate) fn retain_disposed(&mut self, hold: bool) {
        if self.cache.retention.retains_disposed != hold {
            self.cache.retention.retains_disposed = hold;
            self.prune();
        }
    }

    /// Removes changes that no reader needs any more, and reports what that ends.
    fn prune(&mut self) {
        let needs = ChangeNeeds {
            config: &self.config,
            matched: &self.matched,
            transmission: &self.transmission,
        };
        if self.cache.prune(needs) {
            self.events.push_or_drop_oldest(WriterEvent::SpaceFreed);
        }
        if !self.matched.all_acked && self.matched.is_acked_by_all() {
            self.matched.all_acked = true;
            // Nothing was lost on a shared-memory connection.
            self.matched.counts.send_refused = false;
            if self.matched.counts.only_shared_memory {
                self.heartbeats.ack_requests.restart();
            }
            self.heartbeats.stop(&mut self.matched, &mut self.timers);
            self.events
                .push_or_drop_oldest(WriterEvent::AllAcknowledged);
        }
    }

    /// Requests acknowledgements at `at`, or earlier: the application waits for
    /// them.
    pub fn request_acks_by(&mut self, at: Instant) {
        self.heartbeats
            .request_acks_by(at, &mut self.matched, &mut self.timers);
    }

    /// Asserts liveliness. MANUAL_BY_TOPIC sends a heartbeat with the liveliness
    /// flag to the readers. For MANUAL_BY_PARTICIPANT the participant sends the
    /// assertion.
    pub fn assert_liveliness(&mut self, now: Instant) {
        self.renew_liveliness(now);
        if self.config.qos.liveliness == Liveliness::ManualByTopic {
            for destination in &mut self.matched.destinations {
                destination.assertion_due = destination.readers > 0;
            }
            self.transmission.pending.any = true;
        }
    }

    /// Renews deadline and liveliness after a write.
    fn note_write(&mut self, now: Instant) {
        self.renew_liveliness(now);
        let due = now.after(self.config.qos.deadline);
        self.timers.set(TIMER_DEADLINE, due);
    }

    fn renew_liveliness(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        self.statuses.assert_liveliness();
        let manual = self.config.qos.liveliness != Liveliness::Automatic;
        if manual {
            let due = now.after(self.config.qos.lease_duration);
            self.timers.set(TIMER_LIVELINESS, due);
        }
    }

    /// When to call [`Self::handle_timeout`] next. It lies in the past when there
    /// is something to send already and the writer is not flow-controlled.
    pub fn next_timeout(&self) -> Option<Instant> {
        if !self.config.flow_controlled && self.has_output() {
            return Some(self.clock);
        }
        self.timers.next()
    }

    /// As [`Self::next_timeout`], but unsent data does not count: for an owner that
    /// sends later or is sending now.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Handles all timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock = now;
        if self.timers.take_due(TIMER_DEADLINE, now) {
            let event = self.statuses.miss_deadline();
            self.events.push_or_drop_oldest(event);
            let again = now.after(self.config.qos.deadline);
            self.timers.set(TIMER_DEADLINE, again);
        }
        if self.timers.take_due(TIMER_LIVELINESS, now)
            && let Some(event) = self.statuses.lose_liveliness()
        {
            self.events.push_or_drop_oldest(event);
        }
        if self.timers.take_due(TIMER_BATCH, now) {
            self.flush();
        }
        if self.timers.take_due(TIMER_LIFESPAN, now) {
            self.cache.expire(now, &mut self.stats, &mut self.timers);
            self.prune();
        }
        if self.timers.take_due(TIMER_GROUP_INFO, now) {
            let (matched, timers) = (&mut self.matched, &mut self.timers);
            self.transmission.pending.any |=
                self.heartbeats.repeat_group_info(now, matched, timers);
        }
        if self.timers.take_due(TIMER_STALL, now) {
            self.check_stalls(now);
        }
        if self.timers.take_due(TIMER_RESET_PROBE, now) {
            let pending = &mut self.transmission.pending;
            self.matched
                .probe_suspected_resets(now, pending, &mut self.timers);
        }
        if self.timers.take_due(TIMER_ANSWER, now) {
            let pending = &mut self.transmission.pending;
            self.matched
                .send_deferred_answers(now, pending, &mut self.timers);
        }
        if self.timers.take_due(TIMER_HEARTBEAT, now) {
            self.check_stalls(now);
            let progress = (self.transmission.sent(), self.cache.retention.blocked);
            self.transmission.pending.any |= self.heartbeats.schedule_due(
                now,
                &self.config.heartbeat,
                progress,
                &mut self.matched,
                &mut self.timers,
            );
        }
        if self.timers.take_due(TIMER_RETRANSMISSION, now) {
            self.transmission.pending.any = true;
        }
    }

    /// Reports the readers that acknowledge nothing new.
    fn check_stalls(&mut self, now: Instant) {
        let sent = self.transmission.sent();
        let (timers, events) = (&mut self.timers, &mut self.events);
        self.matched.check_stalls(now, sent, timers, events);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<WriterEvent> {
        self.events.pop()
    }
}

/// Leaves space for every header in a UDP datagram of 65,507 bytes.
const FRAGMENT_BYTES_MAX: u16 = 64_000;

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
//! `Writer` stays one type: a write, an ACKNACK and a timer each change
//! history, proxies and timers together. There is a file per subject in this folder,
//! each with its own part of the state.

mod ack_answer;
mod ack_plausibility;
mod ack_progress;
mod ack_requests;
mod acknack;
mod acknack_counts;
mod batch;
mod batching;
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
mod transmit;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;

pub use config::{
    Burst, FragmentSize, HeartbeatConfig, NewChange, PayloadForm, ReaderProxyConfig,
    RestoredSample, WriterConfig, WriterLimits,
};
pub use event::WriterEvent;

use crate::change::WriterChange;
use crate::content_filter::FilterOutcome;
use crate::history::HistoryCache;
use crate::id::Guid;
use crate::qos::{self, Durability, EndpointQos, Liveliness};
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::stats::WriterStats;
use crate::time::Instant;
use crate::timer::Timers;
use ack_requests::AckRequests;
use batch::Batch;
use event::Events;
use group_info::GroupInfo;
use offered_statuses::OfferedStatuses;
use pending_sends::PendingSends;
use proxy::{Destination, ReaderProxy};
use reader_counts::ReaderCounts;
use reader_proxies::ReaderProxies;
use retention::Retention;
use retransmission_credit::{FormerCredits, SAMPLE_HEAD_BYTES};
use send_cursor::SendCursor;

/// Ends of coherent sets kept beside the samples. Beyond this the oldest is
/// dropped; the next change then ends its set.
const SET_ENDS_MAX: usize = 1_024;

/// Sends a heartbeat that requests missing acknowledgements.
const TIMER_HEARTBEAT: usize = 0;
/// Serves requests that the NACK suppression duration delayed.
const TIMER_RETRANSMISSION: usize = 1;
/// Deadline monitor: nothing was written within the offered deadline.
const TIMER_DEADLINE: usize = 2;
/// The application did not assert liveliness within the lease.
const TIMER_LIVELINESS: usize = 3;
/// The lifespan of the oldest change ends.
const TIMER_LIFESPAN: usize = 4;
/// Sends the samples held for LATENCY_BUDGET.
const TIMER_BATCH: usize = 5;
/// Sends the group sequence number of the publisher.
const TIMER_GROUP_INFO: usize = 6;
/// Looks whether reliable readers acknowledge what was sent.
const TIMER_STALL: usize = 7;
/// Sends heartbeats to readers that may have lost their state.
const TIMER_RESET_PROBE: usize = 8;
/// Sends the heartbeats that answer ACKNACKs which came soon after another.
const TIMER_ANSWER: usize = 9;
/// How many timers a writer has.
const TIMERS: usize = 10;

/// Why the writer refused a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WriteError {
    /// KEEP_ALL, and the history is full of samples that some reliable reader has
    /// not acknowledged (back-pressure). Wait for [`WriterEvent::SpaceFreed`], at
    /// most `max_blocking_time`, and try again.
    WouldBlock {
        /// Samples in the history.
        samples: usize,
        /// The limit on samples.
        samples_max: usize,
        /// Bytes in the history.
        bytes: usize,
        /// The limit on bytes.
        bytes_max: usize,
    },
    /// The sample is larger than the writer's limit.
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}

pteros_msg::debug_as_display!(WriteError);

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldBlock {
                samples,
                samples_max,
                bytes,
                bytes_max,
            } => write!(
                f,
                "the history holds {samples} of {samples_max} samples and {bytes} of {bytes_max} \
                 bytes that a reader has not acknowledged; wait, or raise its resource limits"
            ),
            Self::TooLarge { bytes, bytes_max } => write!(
                f,
                "the sample has {bytes} bytes, the limit of the writer is {bytes_max}; raise its \
                 sample_bytes_max"
            ),
        }
    }
}

impl core::error::Error for WriteError {}

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
    retention: Retention,
    history: HistoryCache,
    /// The last sequence number assigned.
    last: SequenceNumber,
    /// The last sequence number addressed to every reader.
    last_undirected: i64,
    readers: ReaderProxies,
    destinations: Vec<Destination>,
    counts: ReaderCounts,
    cursor: SendCursor,
    /// Samples held for LATENCY_BUDGET, if there is one.
    batch: Option<Batch>,
    ack_requests: AckRequests,
    pending: PendingSends,
    all_acked: bool,
    /// The mean size of the last few samples on the wire, bytes.
    sample_bytes_mean: usize,
    former_credits: FormerCredits,
    group_info: GroupInfo,
    timers: Timers<TIMERS>,
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
        let retention = Retention::of(&config);
        let batch = Batch::new(config.qos.latency_budget, 0);
        Self {
            config,
            retention,
            history: HistoryCache::default(),
            last: SequenceNumber::ZERO,
            last_undirected: 0,
            readers: ReaderProxies::default(),
            destinations: Vec::new(),
            counts: ReaderCounts::default(),
            cursor: SendCursor::at(1),
            batch,
            ack_requests: AckRequests::NONE,
            pending: PendingSends::default(),
            all_acked: true,
            sample_bytes_mean: 0,
            former_credits: FormerCredits::default(),
            group_info: GroupInfo::NONE,
            timers: Timers::new(),
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
        self.last.next()
    }

    /// The number of matched readers.
    pub fn matched_count(&self) -> usize {
        self.readers.len()
    }

    /// The matched readers.
    pub fn matched(&self) -> impl Iterator<Item = Guid> + '_ {
        self.readers.iter().map(|reader| reader.guid)
    }

    /// Whether this reader is matched.
    pub fn is_matched_with(&self, reader: Guid) -> bool {
        self.readers.find(reader).is_some()
    }

    /// The number of matched readers reached by a shared-memory connection.
    pub fn shared_memory_readers(&self) -> usize {
        self.counts.shared_memory
    }

    /// The number of samples in the history.
    pub fn cached_samples(&self) -> usize {
        self.history.samples()
    }

    /// The payload of a change in the history, unless it is deferred.
    pub fn cached_payload(&self, sequence: SequenceNumber) -> Option<&Bytes> {
        let change = self.history.find(sequence)?;
        (change.deferred_bytes == 0).then_some(&change.payload)
    }

    /// Whether a reader is matched, so that payloads are needed.
    pub fn has_readers(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Fills in every deferred payload. Call it before a reader is matched.
    ///
    /// A change for which `payload_of` returns `None` becomes irrelevant.
    pub fn provide_deferred_payloads(
        &mut self,
        mut payload_of: impl FnMut(SequenceNumber) -> Option<Bytes>,
    ) {
        let is_deferred = |change: &&WriterChange| change.deferred_bytes > 0;
        let deferred = self.history.iter().filter(is_deferred);
        for sequence in deferred.map(|change| change.sequence).collect::<Vec<_>>() {
            match payload_of(sequence) {
                Some(payload) => self.history.set_payload(sequence, payload),
                None => drop(self.history.remove(sequence)),
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
        debug_assert!(!self.has_filters(), "content filters read the payload");
        self.clock = now;
        self.check_size(change)?;
        if !self.keeps_for_late_joiners() && self.readers.is_empty() {
            return Ok(());
        }
        self.free_space(now, change)
    }

    /// Whether some matched reader has a content filter.
    pub fn has_filters(&self) -> bool {
        self.counts.filtered > 0
    }

    /// The largest amount of memory its samples may take, bytes.
    pub fn worst_case_bytes(&self) -> usize {
        self.config
            .limits
            .history_bytes_max
            .max(self.config.limits.sample_bytes_max)
    }

    /// Whether every reliable reader has acknowledged every change addressed to it.
    pub fn is_acked_by_all(&self) -> bool {
        let owes = |reader: &ReaderProxy| reader.has_unacked(self.last_undirected);
        !self.readers.iter().any(owes)
    }

    /// Whether this reader has acknowledged everything that was sent to it. True of a
    /// reader that is not matched.
    pub fn is_acked_by(&self, reader: Guid) -> bool {
        let reader = self.readers.find(reader);
        !reader.is_some_and(|reader| reader.has_unacked(self.last_undirected))
    }

    /// The lowest number that this reader has not acknowledged, for diagnostics. `None`
    /// of a reader that is not matched or has acknowledged nothing since its match.
    pub fn first_unacked(&self, reader: Guid) -> Option<SequenceNumber> {
        let reader = self.readers.find(reader)?;
        let has_acknowledged = reader.reliable && reader.acked > reader.start;
        has_acknowledged.then_some(SequenceNumber(reader.acked))
    }

    /// Whether this reader has acknowledged a change that was sent to it.
    pub(crate) fn has_acknowledged_a_change(&self, reader: Guid) -> bool {
        let reader = self.readers.find(reader);
        reader.is_some_and(|reader| reader.acked > reader.start)
    }

    /// The readers that were reported as stalled and have not gone on.
    pub fn stalled_readers(&self) -> impl Iterator<Item = Guid> {
        let stalled = self.readers.iter().filter(|of| of.progress.is_stalled());
        stalled.map(|reader| reader.guid)
    }

    fn keeps_for_late_joiners(&self) -> bool {
        self.config.qos.durability >= Durability::TransientLocal
    }

    fn is_keep_all(&self) -> bool {
        self.config.qos.history == qos::History::KeepAll
    }

    /// Assigns a sequence number without sending anything, for a sample that all
    /// readers received by another path.
    ///
    /// It counts as a write for deadline and liveliness. A writer that has neither
    /// may be given any earlier time.
    pub fn skip_sequence_number(&mut self, now: Instant) -> SequenceNumber {
        self.note_write(now);
        self.last = self.last.next();
        let number = self.last.0;
        if self.cursor.number == number {
            for destination in &mut self.destinations {
                destination.add_to_gap(number);
            }
            self.cursor = SendCursor::at(number.saturating_add(1));
        }
        self.last
    }

    /// Accepts a change; [`Self::poll_transmit`] sends it.
    ///
    /// Without matched readers a volatile writer only counts it. A restored change
    /// does not assert liveliness.
    pub fn write(&mut self, now: Instant, change: NewChange) -> Result<SequenceNumber, WriteError> {
        self.clock = now;
        self.check_size(&change)?;
        debug_assert!(
            change.deferred_bytes == 0 || self.readers.is_empty(),
            "a payload may be deferred only while no reader is matched"
        );
        let filter_outcome = self.apply_filters(&change);
        if self.is_irrelevant_to_all(filter_outcome.as_deref()) {
            self.stats.written.tally();
            return Ok(self.skip_sequence_number(now));
        }
        let keeps = self.keeps_for_late_joiners() || !self.readers.is_empty();
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
        self.last = self.last.next();
        let sequence = self.last;
        if keeps {
            self.store(now, sequence, change, filter_outcome);
            self.hold_for_batch(now);
        }
        if self.readers.is_empty() {
            self.cursor = SendCursor::at(sequence.next().0);
            // A set end without readers is not kept.
            self.prune();
        }
        Ok(sequence)
    }

    fn check_size(&mut self, change: &NewChange) -> Result<(), WriteError> {
        let bytes = change.payload_bytes();
        let bytes_max = self.config.limits.sample_bytes_max;
        if bytes > bytes_max || u32::try_from(bytes).is_err() {
            self.stats.writes_refused.tally();
            return Err(WriteError::TooLarge { bytes, bytes_max });
        }
        Ok(())
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
                self.last_undirected = sequence.0;
                self.note_relevant_readers(sequence, filter_outcome.as_deref());
            }
            Some(only) => {
                if let Some(reader) = self.reader_mut(only) {
                    reader.last_directed = sequence.0;
                }
            }
        }
        let restored = change.restored;
        let expires_at = restored.map_or_else(
            || now.after(self.config.qos.lifespan),
            |restored| restored.expires_at,
        );
        if expires_at != Instant::FAR_FUTURE {
            self.timers.set_no_later(TIMER_LIFESPAN, expires_at);
        }
        if self.counts.reliable > 0 {
            self.all_acked = false;
            self.schedule_stall_check(now);
            let pause = self.config.heartbeat.idle_min();
            self.ack_requests.note_write(now, pause);
            let pause = self.heartbeat_delay();
            match change.directed_to.and_then(|only| self.reader_mut(only)) {
                Some(reader) => {
                    let destination = reader.destination;
                    self.schedule_heartbeat_to(destination, now.after(pause));
                }
                None => self.schedule_new_data_heartbeat(now.after(pause)),
            }
        }
        let bytes = change.payload_bytes().saturating_add(SAMPLE_HEAD_BYTES);
        let old = match self.sample_bytes_mean {
            0 => bytes,
            mean => mean,
        };
        self.sample_bytes_mean = old.saturating_sub(old / 4).saturating_add(bytes / 4);
        self.history.push(WriterChange {
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
        });
    }

    /// Frees space for `change` in the history, or returns why it cannot.
    fn free_space(&mut self, now: Instant, change: &NewChange) -> Result<(), WriteError> {
        if change.is_set_end() {
            if let Some(oldest) = self.history.excess_set_end(SET_ENDS_MAX) {
                self.history.remove(oldest);
            }
            return Ok(());
        }
        let bytes_max = self.config.limits.history_bytes_max;
        let size_bytes = change
            .payload_bytes()
            .saturating_add(WriterChange::OVERHEAD_BYTES);
        if let Some(key) = &change.key_hash {
            while let Some((oldest, samples)) =
                self.history.instance(key).filter(|(oldest, count)| {
                    *count
                        >= self
                            .retention
                            .depth
                            .saturating_add(self.is_partly_sent(*oldest).into())
                })
            {
                self.check_blocked(now, oldest, samples, self.retention.depth)?;
                let oldest = if self.is_partly_sent(oldest) {
                    self.history.next_of_instance(key, oldest)
                } else {
                    Some(oldest)
                };
                let Some(oldest) = oldest else { break };
                // Superseded, so irrelevant rather than lost: earlier changes of
                // other instances are still available.
                self.note_unsent(oldest);
                self.history.remove(oldest);
            }
        }
        let samples_max = self.retention.samples_max_of(change.key_hash.is_some());
        while let Some(first) = self.history.first()
            && (self.history.samples()
                >= samples_max.saturating_add(self.is_partly_sent(first.sequence).into())
                || self.history.bytes().saturating_add(size_bytes) > bytes_max)
        {
            let sequence = first.sequence;
            self.check_blocked(now, sequence, self.history.samples(), samples_max)?;
            let victim = if self.is_partly_sent(sequence) {
                self.history.from(sequence.next()).map(|next| next.sequence)
            } else {
                Some(sequence)
            };
            let Some(victim) = victim else { break };
            self.overwrite(victim);
        }
        Ok(())
    }

    /// KEEP_ALL back-pressure: refuses while some reliable reader still needs a
    /// change, or a flow-controlled writer has not sent it.
    fn check_blocked(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        samples: usize,
        samples_max: usize,
    ) -> Result<(), WriteError> {
        let needed = self.history.find(sequence);
        if !self.is_keep_all()
            || (self.counts.reliable == 0 && !self.is_unsent(sequence))
            || needed.is_none_or(|change| self.is_fully_acked(change))
        {
            return Ok(());
        }
        if !self.retention.blocked {
            // Request acknowledgements now, but not again with every attempt.
            self.request_acks_by(now);
        }
        self.retention.blocked = true;
        self.stats.writes_refused.tally();
        Err(WriteError::WouldBlock {
            samples,
            samples_max,
            bytes: self.history.bytes(),
            bytes_max: self.config.limits.history_bytes_max,
        })
    }

    /// Removes a change to free space.
    fn overwrite(&mut self, sequence: SequenceNumber) {
        let settled = self
            .history
            .find(sequence)
            .is_none_or(|change| self.is_fully_acked(change));
        if !settled {
            self.stats.overwritten.tally();
            if !self.note_unsent(sequence) {
                self.retention.lost_through = self.retention.lost_through.max(sequence.0);
            }
        }
        self.history.remove(sequence);
    }

    /// Keeps dispose and unregister changes for readers that may return with stale
    /// state. Discovery requests it after a peer's participant lease expired.
    pub(crate) fn retain_disposed(&mut self, hold: bool) {
        if self.retention.retains_disposed != hold {
            self.retention.retains_disposed = hold;
            self.prune();
        }
    }

    /// Whether no matched reader needs the change any more: it was sent, and every
    /// reliable reader it is relevant to has acknowledged it.
    fn is_fully_acked(&self, change: &WriterChange) -> bool {
        let number = change.sequence.0;
        number < self.cursor.number
            && !self
                .readers
                .iter()
                .any(|reader| reader.is_unacked(number) && reader.is_relevant(change))
            || self.readers.is_empty()
    }

    /// Removes changes that no reader needs any more.
    fn prune(&mut self) {
        if !self.keeps_for_late_joiners() {
            while let Some(first) = self.history.first()
                && self.is_fully_acked(first)
            {
                self.history.pop_first();
            }
        } else if self.history.has_unregistrations() && !self.retention.retains_disposed {
            // A late joiner does not need unregistered instances, but it needs
            // disposed ones.
            let left: Vec<_> = self
                .history
                .iter()
                .filter(|change| change.kind.is_unregistered() && self.is_fully_acked(change))
                .map(|change| (change.sequence, change.key_hash))
                .collect();
            for (sequence, key) in left {
                match key {
                    Some(key) => self.history.remove_instance(&key, sequence),
                    None => drop(self.history.remove(sequence)),
                }
            }
        }
        let freed = match self.history.first() {
            None => true,
            Some(first) => {
                (self.history.samples() < self.retention.samples_max
                    && self.history.bytes() < self.config.limits.history_bytes_max)
                    || self.is_fully_acked(first)
            }
        };
        if self.retention.blocked && freed {
            self.retention.blocked = false;
            self.events.push_or_drop_oldest(WriterEvent::SpaceFreed);
        }
        if !self.all_acked && self.is_acked_by_all() {
            self.all_acked = true;
            self.note_shared_memory_acked();
            self.stop_heartbeats();
            self.events
                .push_or_drop_oldest(WriterEvent::AllAcknowledged);
        }
    }

    /// Asserts liveliness. MANUAL_BY_TOPIC sends a heartbeat with the liveliness
    /// flag to the readers. For MANUAL_BY_PARTICIPANT the participant sends the
    /// assertion.
    pub fn assert_liveliness(&mut self, now: Instant) {
        self.renew_liveliness(now);
        if self.config.qos.liveliness == Liveliness::ManualByTopic {
            for destination in &mut self.destinations {
                destination.assertion_due = destination.readers > 0;
            }
            self.pending.any = true;
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
            self.expire(now);
        }
        if self.timers.take_due(TIMER_GROUP_INFO, now) {
            self.repeat_group_info(now);
        }
        if self.timers.take_due(TIMER_STALL, now) {
            self.check_stalls(now);
        }
        if self.timers.take_due(TIMER_RESET_PROBE, now) {
            self.probe_suspected_resets(now);
        }
        if self.timers.take_due(TIMER_ANSWER, now) {
            self.send_deferred_answers(now);
        }
        if self.timers.take_due(TIMER_HEARTBEAT, now) {
            self.schedule_heartbeats(now);
        }
        if self.timers.take_due(TIMER_RETRANSMISSION, now) {
            self.pending.any = true;
        }
    }

    fn expire(&mut self, now: Instant) {
        if self.retention.lifespans_differ {
            let expired = |change: &&WriterChange| change.expires_at <= now;
            let expired = self.history.iter().filter(expired);
            let expired: Vec<_> = expired.map(|change| change.sequence).collect();
            for sequence in expired {
                self.history.remove(sequence);
                self.stats.expired.tally();
            }
            let next = self.history.iter().map(|change| change.expires_at).min();
            self.timers
                .set(TIMER_LIFESPAN, next.unwrap_or(Instant::FAR_FUTURE));
            self.prune();
            return;
        }
        while let Some(first) = self.history.first() {
            if first.expires_at > now {
                self.timers.set(TIMER_LIFESPAN, first.expires_at);
                break;
            }
            self.history.pop_first();
            self.stats.expired.tally();
        }
        self.prune();
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<WriterEvent> {
        self.events.pop()
    }
}

/// Leaves space for every header in a UDP datagram of 65,507 bytes.
const FRAGMENT_BYTES_MAX: u16 = 64_000;

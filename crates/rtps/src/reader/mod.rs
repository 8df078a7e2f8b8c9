//! RTPS reader (StatefulReader, RTPS 2.5 §8.4.10–12) as a state machine:
//! submessages of matched writers and time in; ordered samples, ACKNACKs and events
//! out.
//!
//! One writer proxy per matched writer holds all sequence state. Drain order: after
//! any `handle_*` call and whenever [`Reader::next_timeout`] has come, poll
//! transmissions, samples and events until empty. A late or repeated poll is safe.
//! In steady state nothing is allocated but the payload of a sample.
//!
//! `Reader` has a method per submessage, per output and per question of the runtime.
//! The state of one writer is in its proxy.

mod ack_state;
mod acknack;
mod changeable;
mod config;
mod event;
mod filter;
mod match_start;
mod memory;
mod other_transports;
mod plausibility;
mod proxy;
mod ready;
mod request_window;
mod resynchronise;
mod round_trip;
mod writer_habits;
mod writer_lease;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

pub use config::{NackConfig, ReaderConfig, ReaderLimits, WriterProxyConfig};
pub use event::ReaderEvent;

use crate::change::{CacheChange, Carrier, ChangeKind};
use crate::coherent_mark::CoherentMarkKind;
use crate::defrag::{CONTRADICTED_AGE, Fragments, ReassemblyOutcome, SampleHead};
use crate::id::{Guid, GuidPrefix};
use crate::locator::Route;
use crate::memory_budget::{MemoryAccount, MemoryCharger, SampleCharge};
use crate::qos::{Durability, EndpointQos, Liveliness, Ownership};
use crate::receiver::Source;
use crate::seq::SequenceNumber;
use crate::stats::ReaderStats;
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::timer::Timers;
use crate::wire::{Data, DataFrag, Gap, Heartbeat, HeartbeatFrag, InlineQos};
use event::Events;
use match_start::ResumePoints;
use plausibility::HeartbeatJudgement;
use proxy::{ReadyQueue, ReceiveOutcome, WriterProxy};

/// Checks the timers of the writer proxies: liveliness leases, repeated requests.
const TIMER_WRITERS: usize = 0;
/// Deadline monitor: no sample came within the requested deadline.
const TIMER_DEADLINE: usize = 1;
/// Drops partial samples that were given up.
const TIMER_PARTIAL_SAMPLES: usize = 2;
/// A partial sample is given up this long after its last fragment: of best effort in
/// any case, else when memory is scarce.
const PARTIAL_SAMPLE_AGE: Duration = Duration::from_millis(1_250);
/// How often that is looked for. A forged sample gives way within 1.5 s. Each further one
/// in a row waits twice as long, 40 s at most.
const PARTIAL_SAMPLE_CHECK: Duration = Duration::from_millis(250);

/// One RTPS reader. Not thread-safe; its owner locks.
#[derive(Debug)]
pub struct Reader {
    config: ReaderConfig,
    /// Boxed: a map node has space for eleven, and most readers have one writer.
    writers: BTreeMap<Guid, Box<WriterProxy>>,
    ready: ReadyQueue,
    /// Writers with a due ACKNACK.
    writers_to_answer: Vec<Guid>,
    /// The last writer whose sample took a place that became free.
    resumed: Guid,
    events: Events,
    timers: Timers<3>,
    deadlines_missed: u64,
    stats: ReaderStats,
    /// The last `now` passed in.
    clock: Instant,
    /// The highest ACKNACK or NACK_FRAG count sent to an unmatched writer.
    last_count: u32,
    resume_points: ResumePoints,
}

impl Reader {
    /// A reader without writers.
    pub fn new(config: ReaderConfig) -> Self {
        Self {
            last_count: 0,
            resume_points: ResumePoints::default(),
            ready: ReadyQueue {
                changes: VecDeque::new(),
                samples_max: config.limits.ready_samples_max.max(1),
                unmatched_max: config.limits.reorder_samples_max,
                stalled: false,
            },
            config,
            writers: BTreeMap::new(),
            writers_to_answer: Vec::new(),
            resumed: Guid::UNKNOWN,
            events: Events::default(),
            timers: Timers::new(),
            deadlines_missed: 0,
            stats: ReaderStats::default(),
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
    pub fn stats(&self) -> &ReaderStats {
        &self.stats
    }

    /// The number of matched writers.
    pub fn matched_count(&self) -> usize {
        self.writers.len()
    }

    /// The matched writers.
    pub fn matched(&self) -> impl Iterator<Item = Guid> + '_ {
        self.writers.keys().copied()
    }

    /// The lowest number of a matched writer that is neither received nor irrelevant:
    /// the reader may acknowledge all below (RTPS 2.5 §8.3.8.1.4, readerSNState.base).
    pub fn first_missing(&self, writer: Guid) -> Option<SequenceNumber> {
        let known = self.writers.get(&writer)?;
        Some(SequenceNumber(known.first_missing()))
    }

    /// The largest amount of payload memory with the present matches, bytes.
    pub fn worst_case_bytes(&self) -> usize {
        let limits = &self.config.limits;
        // A queue of samples, each as large as allowed, is bounded by count alone;
        // fragment reassembly and reordering are bounded by bytes.
        let ready = limits
            .ready_samples_max
            .saturating_mul(limits.defrag.sample_bytes_max);
        let per_writer = limits
            .reorder_bytes_max
            .saturating_add(limits.defrag.bytes_max);
        ready.saturating_add(per_writer.saturating_mul(self.writers.len()))
    }

    /// Matches a writer, or updates the route of a matched one. False when the
    /// limit of writers is reached.
    pub fn match_writer(&mut self, now: Instant, writer: WriterProxyConfig) -> bool {
        self.clock = now;
        if let Some(known) = self.writers.get_mut(&writer.guid) {
            known.route = writer.route;
            return true;
        }
        if self.writers.len() >= self.config.limits.writers_max {
            return false;
        }
        let guid = writer.guid;
        let mut proxy = WriterProxy::new(now, &self.config, writer);
        // A writer that kept its state ignores counts that start again.
        proxy.acks.acknack_count = self.last_count;
        proxy.acks.nack_frag_count = self.last_count;
        if let Some(resume_point) = self.resume_points.remove(guid) {
            proxy.resume(&resume_point);
        }
        if proxy.lease.until != Instant::FAR_FUTURE {
            self.timers.set_no_later(TIMER_WRITERS, proxy.lease.until);
        }
        self.writers.insert(guid, Box::new(proxy));
        self.events
            .liveliness(guid, 1, 0, self.config.limits.events_max);
        self.schedule_response(guid);
        true
    }

    /// Charges the samples of a matched writer to its participant's account from now
    /// on. Call it right after [`Self::match_writer`].
    pub fn limit_memory(&mut self, writer: Guid, account: Arc<MemoryAccount>) {
        if let Some(proxy) = self.writers.get_mut(&writer) {
            proxy.set_charger(MemoryCharger::new(account));
        }
    }

    /// As [`Self::limit_memory`], for a built-in writer.
    pub(crate) fn limit_discovery_memory(&mut self, writer: Guid, account: Arc<MemoryAccount>) {
        if let Some(proxy) = self.writers.get_mut(&writer) {
            proxy.set_charger(MemoryCharger::of_discovery(account));
        }
    }

    /// Suppresses the preemptive ACKNACK to a writer just matched, which already
    /// knows this reader and sends a heartbeat by itself.
    pub fn suppress_preemptive_acknack(&mut self, guid: Guid) {
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.acks.due = false;
            proxy.acks.preemptive_left = 0;
        }
    }

    /// Unmatches a writer. Samples that wait for a missing one are delivered;
    /// missing ones are reported as lost.
    pub fn unmatch_writer(&mut self, guid: Guid) {
        let Some(mut proxy) = self.writers.remove(&guid) else {
            return;
        };
        let counts = proxy.acks.acknack_count.max(proxy.acks.nack_frag_count);
        self.last_count = self.last_count.max(counts);
        let lost = proxy.drain_on_unmatch(&mut self.ready);
        if proxy.reliable && self.config.qos.durability == Durability::Volatile {
            let next = proxy.announced.saturating_add(1).max(proxy.begin.resume_at);
            self.resume_points.insert(guid, next);
        }
        self.events
            .note_lost(guid, lost, &mut self.stats, self.config.limits.events_max);
        let (alive, not_alive) = if proxy.lease.alive { (-1, 0) } else { (0, -1) };
        self.events
            .liveliness(guid, alive, not_alive, self.config.limits.events_max);
    }

    /// Drops the resume points of a participant's writers, after it restarted.
    pub fn forget_resume_points(&mut self, prefix: GuidPrefix) {
        self.resume_points.forget(prefix);
    }

    /// Notes that the matches with a participant's writers ended without anyone's
    /// will: it was not heard for its lease. If they return, samples that were
    /// published meanwhile and are gone count as lost.
    pub fn note_interruption(&mut self, prefix: GuidPrefix) {
        // A writer leaves numbers out that our filter rejects.
        let is_filtered = self.config.content_filter.is_some();
        self.resume_points.set_interrupted(prefix, !is_filtered);
    }

    /// Changes the route for acknowledgements to a writer.
    pub fn update_route(&mut self, guid: Guid, route: Route) {
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.route = route;
        }
    }

    /// Handles a DATA submessage.
    pub fn handle_data(&mut self, now: Instant, source: &Source, data: &Data<'_>) {
        self.handle_data_shared(now, source, data, None);
    }

    /// As [`Self::handle_data`]. If the payload is all of `shared`, that is kept
    /// without a copy.
    pub fn handle_data_shared(
        &mut self,
        now: Instant,
        source: &Source,
        data: &Data<'_>,
        shared: Option<&Bytes>,
    ) {
        let guid = source.prefix.with(data.writer);
        if !self.begin_submessage(now, guid, true) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if let Some(next) = proxy.returns_with(now, data.sequence) {
            proxy.restart_at(next, data.sequence.0);
        }
        if proxy.is_jump(data.sequence.0) {
            self.refuse_jump(guid);
            return;
        }
        if proxy.is_known(data.sequence) && !self.follows_late_samples(guid, data.sequence) {
            self.stats.duplicates.tally();
            return;
        }
        if self.config.rereads_history
            && let Some(proxy) = self.writers.get_mut(&guid)
        {
            proxy.expect_heartbeat(now, data.sequence);
        }
        let mut head = sample_head(data.sequence, source, &data.inline_qos, data.key_only);
        let is_nothing =
            (data.payload.is_empty() || data.key_only) && head.kind == ChangeKind::Alive;
        if self.config.qos.presentation.holds_samples() {
            head.coherent_mark = data.inline_qos.coherent_mark(is_nothing).map(Box::new);
        }
        let has_content = !is_nothing || head.coherent_mark.is_some();
        if is_nothing && self.config.is_filtered_by_writer(&data.inline_qos) {
            self.stats.filtered.tally();
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if !has_content || data.inline_qos.unknown_must_understand().is_some() {
            // Neither data nor dispose (the form in which filtered samples and
            // registrations are announced), or an unknown must-understand
            // parameter.
            proxy.mark_irrelevant(data.sequence.0, data.sequence.0, &mut self.ready);
        } else if data.inline_qos.is_directed_to_others(self.config.guid) {
            self.drop_filtered(guid, head);
        } else {
            let payload = if is_nothing { &[] } else { data.payload };
            self.note_filter_result(guid, &mut head, &data.inline_qos);
            if payload.len() > self.config.limits.defrag.sample_bytes_max {
                self.drop_oversized(guid, data.sequence);
            } else if self.config.passes(&head, payload) {
                let shared = shared.filter(|shared| is_same_slice(shared, payload));
                // The peer's pool bounds what lies in its memory.
                let charge = match shared {
                    Some(_) => Some(SampleCharge::default()),
                    None => self.charge_sample(guid, data.sequence, payload.len()),
                };
                if let Some(charge) = charge {
                    let copy = || Bytes::copy_from_slice(payload);
                    let payload = shared.cloned().unwrap_or_else(copy);
                    self.accept_sample(guid, head, payload, charge);
                }
            } else {
                self.drop_filtered(guid, head);
            }
        }
        self.schedule_response(guid);
    }

    /// Drops a sample above the size limit. Waiting for it would stop the writer.
    fn drop_oversized(&mut self, guid: Guid, sequence: SequenceNumber) {
        self.stats.too_large.tally();
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.mark_irrelevant(sequence.0, sequence.0, &mut self.ready);
        }
        self.events
            .note_lost(guid, 1, &mut self.stats, self.config.limits.events_max);
    }

    /// Handles fragments of a sample (DATA_FRAG).
    pub fn handle_data_frag(&mut self, now: Instant, source: &Source, data: &DataFrag<'_>) {
        let guid = source.prefix.with(data.writer);
        if !self.begin_submessage(now, guid, true) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if proxy.is_jump(data.sequence.0) {
            self.refuse_jump(guid);
            return;
        }
        if proxy.is_known(data.sequence) && !self.follows_late_samples(guid, data.sequence) {
            self.stats.duplicate_fragments.tally();
            return;
        }
        if self.config.rereads_history
            && let Some(proxy) = self.writers.get_mut(&guid)
        {
            proxy.expect_heartbeat(now, data.sequence);
        }
        let mut head = sample_head(data.sequence, source, &data.inline_qos, data.key_only);
        if self.config.qos.presentation.holds_samples() {
            head.coherent_mark = data.inline_qos.coherent_mark(false).map(Box::new);
        }
        if data.inline_qos.unknown_must_understand().is_some() {
            if let Some(proxy) = self.writers.get_mut(&guid) {
                proxy.mark_irrelevant(data.sequence.0, data.sequence.0, &mut self.ready);
            }
            self.schedule_response(guid);
            return;
        }
        self.note_filter_result(guid, &mut head, &data.inline_qos);
        if head.filter_result == Some(false)
            || data.inline_qos.is_directed_to_others(self.config.guid)
        {
            self.drop_filtered(guid, head);
            self.schedule_response(guid);
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        let fragments = Fragments {
            first: data.first_fragment.0,
            count: data.fragment_count,
            fragment_size: data.fragment_size,
            sample_size: data.sample_size,
            payload: data.payload,
        };
        let first_missing = proxy.first_missing();
        let mut outcome = proxy.defrag.handle(now, head, &fragments);
        while let ReassemblyOutcome::NoMemory(head) = outcome {
            if !proxy.free_reordered_above(data.sequence) {
                outcome = ReassemblyOutcome::NoMemory(head);
                break;
            }
            outcome = proxy.defrag.handle(now, *head, &fragments);
        }
        match outcome {
            ReassemblyOutcome::Complete(head, payload, charge) => {
                self.stats.fragments.tally();
                if head.key_only && head.kind == ChangeKind::Alive {
                    // A registration: no sample.
                    proxy.mark_irrelevant(data.sequence.0, data.sequence.0, &mut self.ready);
                } else if self.config.passes(&head, &payload) {
                    self.accept_sample(guid, head, payload, charge);
                } else {
                    self.drop_filtered(guid, head);
                }
            }
            ReassemblyOutcome::Incomplete => {
                self.stats.fragments.tally();
                proxy.acks.progress_count.tally();
                self.timers
                    .set_no_later(TIMER_PARTIAL_SAMPLES, now.after(PARTIAL_SAMPLE_AGE));
                if proxy.reliable {
                    proxy.announced = proxy.announced.max(data.sequence.0);
                    if data.sequence.0 == first_missing {
                        // The other fragments are probably in transit.
                        proxy.acks.nack.backoff = proxy.initial_backoff(&self.config.nack);
                        proxy.acks.nack.at = now.after(proxy.acks.nack.backoff.delay());
                    }
                }
            }
            ReassemblyOutcome::Duplicate => self.stats.duplicate_fragments.tally(),
            ReassemblyOutcome::Invalid => {
                self.stats.invalid_fragments.tally();
                self.timers
                    .set_no_later(TIMER_PARTIAL_SAMPLES, now.after(CONTRADICTED_AGE));
            }
            ReassemblyOutcome::BufferFull => {
                self.stats.buffer_full.tally();
                proxy.note_refused();
            }
            ReassemblyOutcome::NoMemory(_) => {
                self.stats.memory_refused.tally();
                proxy.note_refused();
                let bytes = usize::try_from(fragments.sample_size).unwrap_or(usize::MAX);
                self.note_memory_refused(guid, bytes);
            }
            ReassemblyOutcome::TooLarge => self.drop_oversized(guid, data.sequence),
        }
        self.schedule_response(guid);
    }

    /// Passes a complete sample to its writer proxy.
    fn accept_sample(
        &mut self,
        guid: Guid,
        head: SampleHead,
        payload: Bytes,
        charge: SampleCharge,
    ) {
        let is_sample = head
            .coherent_mark
            .as_ref()
            .is_none_or(|m| m.kind == CoherentMarkKind::CacheChange);
        if self.config.qos.ownership == Ownership::Shared && is_sample {
            self.renew_deadline(self.clock);
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        let change = CacheChange {
            kind: head.kind,
            writer: guid,
            sequence: head.sequence,
            source_timestamp: head.source_timestamp,
            carrier: head.carrier,
            payload,
            key_only: head.key_only,
            key_hash: head.key_hash,
            related_sample_identity: head.related_sample_identity,
            original_writer_info: head.original_writer_info,
            expires_at: self.clock.after(proxy.lifespan),
            coherent_mark: head.coherent_mark,
            charge,
        };
        if proxy.reliable {
            let bytes = change.payload.len();
            proxy.acks.unsolicited.unacked_bytes =
                proxy.acks.unsolicited.unacked_bytes.saturating_add(bytes);
            match proxy.receive_reliable(change, &mut self.ready) {
                ReceiveOutcome::Delivered => {}
                ReceiveOutcome::Reordered => self.stats.reordered.tally(),
                ReceiveOutcome::Duplicate => self.stats.duplicates.tally(),
                ReceiveOutcome::BufferFull => {
                    self.stats.buffer_full.tally();
                    proxy.note_refused();
                }
            }
            return;
        }
        let Some(lost) = proxy.receive_best_effort(change.sequence) else {
            self.stats.duplicates.tally();
            return;
        };
        proxy.note_in_order(self.clock);
        let has_space = self.ready.has_space();
        let dropped = (!has_space).then(|| self.ready.changes.pop_front());
        self.ready.changes.push_back(change);
        self.events
            .note_lost(guid, lost, &mut self.stats, self.config.limits.events_max);
        if let Some(dropped) = dropped.flatten() {
            self.stats.overflowed.tally();
            self.events.note_lost(
                dropped.writer,
                u64::from(dropped.is_sample()),
                &mut self.stats,
                self.config.limits.events_max,
            );
        }
    }

    /// Handles a GAP: irrelevant numbers.
    pub fn handle_gap(&mut self, now: Instant, source: &Source, gap: &Gap) {
        let guid = source.prefix.with(gap.writer);
        if !self.begin_submessage(now, guid, false) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        let base = gap.list.base();
        let last = gap.list.iter().last().unwrap_or(base.previous());
        if proxy.is_jump(last.0) {
            self.refuse_jump(guid);
            return;
        }
        proxy.note_unannounced_gap(now, last.0);
        let mut noted = true;
        let mut lost = 0_u64;
        if gap.start < base {
            let last = base.0.saturating_sub(1);
            noted &= proxy.mark_gap(gap.start.0, last, &mut lost, &mut self.ready);
        }
        for number in gap.list.iter() {
            noted &= proxy.mark_gap(number.0, number.0, &mut lost, &mut self.ready);
        }
        if !noted {
            self.stats.buffer_full.tally();
        }
        self.events
            .note_lost(guid, lost, &mut self.stats, self.config.limits.events_max);
        self.schedule_response(guid);
    }

    /// Handles a HEARTBEAT: the available numbers of the writer.
    pub fn handle_heartbeat(&mut self, now: Instant, source: &Source, heartbeat: &Heartbeat) {
        let guid = source.prefix.with(heartbeat.writer);
        if !self.begin_submessage(now, guid, heartbeat.liveliness) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if !proxy.reliable {
            return;
        }
        if proxy.judge_heartbeat(now, heartbeat) == HeartbeatJudgement::Unconfirmed {
            self.stats.unconfirmed_jumps.tally();
            self.schedule_response(guid);
            return;
        }
        let (first, last) = (heartbeat.first.0, heartbeat.last.0);
        let rereads = self.config.rereads_history;
        if !proxy.accepts_heartbeat(now, heartbeat) {
            self.stats.duplicate_heartbeats.tally();
            if rereads {
                proxy.note_refused_heartbeat(now, first);
                self.schedule_response(guid);
            }
            return;
        }
        proxy.defrag.note_heartbeat(now);
        // A writer of endpoints that counts again has restarted: then its participant
        // is lost, see below.
        let restarts = rereads && proxy.heartbeat_counts.counts_went_back();
        if proxy.note_contradiction(now, (first, last), rereads) && !restarts {
            self.resynchronise(guid, (first, last));
            return;
        }
        if let Some(next) = proxy.returns_to(now, first, last) {
            proxy.restart_at(next, last);
        }
        let is_for_us = heartbeat.reader == self.config.guid.entity;
        let has_early = rereads && !proxy.synced && proxy.announced > 0;
        if has_early {
            proxy.deliver_early((first, last), &mut self.ready);
        }
        let lost = proxy.note_available(now, (first, last), is_for_us, &mut self.ready);
        if has_early {
            proxy.begin_reread(now, first, last);
        }
        if let Some(group) = &heartbeat.group_info
            && self.config.qos.presentation.holds_samples()
        {
            proxy.note_group_sequence(heartbeat.last, group.current);
        }
        proxy.schedule_acknack(now, heartbeat.is_final, &self.config.nack);
        if proxy.heartbeat_counts.is_reset() && !self.config.rereads_history {
            // Its numbers agree, so a count was forged.
            proxy.heartbeat_counts.forget_suspicion();
        } else if proxy.heartbeat_counts.is_reset() {
            let event = ReaderEvent::WriterReset { writer: guid };
            self.events
                .push_or_drop_oldest(event, self.config.limits.events_max);
        }
        self.events
            .note_lost(guid, lost, &mut self.stats, self.config.limits.events_max);
        if has_early {
            // What came early, and the writer does not have, is to be forgotten.
            let events_max = self.config.limits.events_max;
            self.events
                .resynchronised(guid, &mut self.stats, events_max);
        }
        self.schedule_response(guid);
    }

    /// Handles a HEARTBEAT_FRAG: the fragments of one sample sent so far.
    pub fn handle_heartbeat_frag(
        &mut self,
        now: Instant,
        source: &Source,
        heartbeat: &HeartbeatFrag,
    ) {
        let guid = source.prefix.with(heartbeat.writer);
        if !self.begin_submessage(now, guid, false) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if !proxy.reliable || proxy.is_known(heartbeat.sequence) {
            return;
        }
        if proxy.is_jump(heartbeat.sequence.0) {
            self.refuse_jump(guid);
            return;
        }
        proxy.announced = proxy.announced.max(heartbeat.sequence.0);
        let last = heartbeat.last_fragment.0;
        let lacks = proxy
            .defrag
            .missing(heartbeat.sequence, Some(last))
            .next()
            .is_some();
        let answerable = proxy
            .acks
            .nack
            .sent_at
            .after(proxy.suppression(&self.config.nack));
        if lacks && now >= answerable {
            proxy.sent_through = proxy.sent_through.max(heartbeat.sequence.previous().0);
            proxy.acks.due = true;
        }
        self.schedule_response(guid);
    }

    /// Handles a liveliness assertion of a participant for its writers of this kind
    /// (WLP).
    pub fn handle_liveliness_assertion(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        kind: Liveliness,
    ) {
        self.clock = now;
        for (guid, proxy) in self.writers.range_mut(prefix.with(Default::default())..) {
            if guid.prefix != prefix {
                break;
            }
            if proxy.lease.kind == kind {
                assert_alive(now, proxy, &mut self.events, &mut self.timers, &self.config);
            }
        }
    }

    /// Renews the DEADLINE after a sample. With exclusive ownership only the
    /// owner's samples count, so the layer that decides ownership calls this.
    pub fn renew_deadline(&mut self, now: Instant) {
        let due = now.after(self.config.qos.deadline);
        self.timers.set(TIMER_DEADLINE, due);
    }

    /// Whether a writer is matched and its liveliness lease has not expired.
    pub fn is_alive(&self, now: Instant, writer: Guid) -> bool {
        let proxy = self.writers.get(&writer);
        proxy.is_some_and(|proxy| proxy.lease.alive && proxy.lease.until > now)
    }

    /// Begins to handle a submessage; false when its writer is not matched.
    ///
    /// `proves_life`: a sample, or a heartbeat that asserts liveliness. It renews
    /// any kind of liveliness. Any submessage renews the automatic kind.
    fn begin_submessage(&mut self, now: Instant, guid: Guid, proves_life: bool) -> bool {
        self.clock = now;
        let Some(proxy) = self.writers.get_mut(&guid) else {
            self.stats.unknown_writers.tally();
            return false;
        };
        if proves_life || proxy.lease.kind == Liveliness::Automatic {
            assert_alive(now, proxy, &mut self.events, &mut self.timers, &self.config);
        }
        true
    }

    /// Schedules the ACKNACK and the timer of a writer proxy. Call it after any
    /// change of one.
    fn schedule_response(&mut self, guid: Guid) {
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        proxy.deliver_group_sequence(&mut self.ready);
        proxy.schedule_nack(self.clock, &self.config.nack);
        if proxy.has_response_due(self.clock) {
            if proxy.acks.enqueue() {
                self.writers_to_answer.push(guid);
            }
        } else if proxy.next_timeout() != Instant::FAR_FUTURE {
            self.timers
                .set_no_later(TIMER_WRITERS, proxy.next_timeout());
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ReaderEvent> {
        self.events.pop()
    }

    /// When to call [`Self::handle_timeout`] next. It lies in the past when there
    /// is something to send already.
    pub fn next_timeout(&self) -> Option<Instant> {
        if !self.writers_to_answer.is_empty() {
            return Some(self.clock);
        }
        self.timers.next()
    }

    /// Handles all timers that are due at `now`: repeated requests, missed
    /// deadlines, expired leases. Costs O(writers), but only when something may be
    /// due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock = now;
        if self.timers.take_due(TIMER_PARTIAL_SAMPLES, now) {
            let mut is_left = false;
            for proxy in self.writers.values_mut() {
                proxy.drop_old_partials(now, PARTIAL_SAMPLE_AGE);
                is_left |= proxy.defrag.len() > 0;
            }
            if is_left {
                let at = now.after(PARTIAL_SAMPLE_CHECK);
                self.timers.set_no_later(TIMER_PARTIAL_SAMPLES, at);
            }
        }
        if self.timers.take_due(TIMER_DEADLINE, now) {
            self.deadlines_missed.tally();
            let event = ReaderEvent::DeadlineMissed {
                total: self.deadlines_missed,
            };
            self.events
                .push_or_drop_oldest(event, self.config.limits.events_max);
            let again = now.after(self.config.qos.deadline);
            self.timers.set(TIMER_DEADLINE, again);
        }
        if !self.timers.take_due(TIMER_WRITERS, now) {
            return;
        }
        let mut wake = Instant::FAR_FUTURE;
        for (guid, proxy) in &mut self.writers {
            if proxy.lease.end_if_due(now) {
                self.events
                    .liveliness(*guid, -1, 1, self.config.limits.events_max);
            }
            if proxy.lease.alive {
                wake = wake.min(proxy.lease.until);
            }
            if proxy.has_response_due(now) {
                if proxy.acks.enqueue() {
                    self.writers_to_answer.push(*guid);
                }
            } else {
                wake = wake.min(proxy.next_timeout());
            }
        }
        self.timers.set(TIMER_WRITERS, wake);
    }
}

/// Whether both are the same memory.
fn is_same_slice(shared: &Bytes, payload: &[u8]) -> bool {
    core::ptr::eq(shared.as_ref(), payload)
}

/// The properties of a sample besides its payload.
fn sample_head(
    sequence: SequenceNumber,
    source: &Source,
    inline_qos: &InlineQos<'_>,
    key_only: bool,
) -> SampleHead {
    SampleHead {
        sequence,
        kind: inline_qos.change_kind(),
        source_timestamp: source.timestamp,
        carrier: if source.via_shared_memory {
            Carrier::SharedMemory
        } else {
            Carrier::Datagrams
        },
        key_only,
        key_hash: inline_qos.key_hash(),
        related_sample_identity: inline_qos.related_sample_identity(),
        coherent_mark: None,
        original_writer_info: inline_qos.original_writer_info(),
        filter_result: None,
    }
}

/// Renews the liveliness lease of one writer.
fn assert_alive(
    now: Instant,
    proxy: &mut WriterProxy,
    events: &mut Events,
    timers: &mut Timers<3>,
    config: &ReaderConfig,
) {
    if proxy.lease.duration.is_infinite() {
        return;
    }
    if proxy.lease.renew(now) {
        // While it was not alive, its lease was not monitored.
        timers.set_no_later(TIMER_WRITERS, proxy.lease.until);
        events.liveliness(proxy.guid, 1, -1, config.limits.events_max);
    }
}

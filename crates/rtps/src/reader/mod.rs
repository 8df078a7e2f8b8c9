//! The reader (RTPS 2.5 §8.4.10–12): submessages of matched writers in;
//! samples in order, acknowledgements and events out.
//!
//! One proxy per matched writer holds all sequence state. After any
//! `handle_*` call and whenever [`Reader::next_timeout`] has come, poll
//! transmissions, samples and events until empty; doing so late or twice is
//! safe. In steady state nothing is allocated but the payload of a sample.

mod acknack;
mod changeable;
mod config;
mod event;
mod filter;
mod memory;
mod proxy;
mod round_trip;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;

pub use config::{NackConfig, ReaderConfig, ReaderLimits, WriterProxyConfig};
pub use event::ReaderEvent;

use crate::defrag::{Assembly, Fragments, SampleHead};
use crate::history::{CacheChange, ChangeKind};
use crate::id::{Guid, GuidPrefix};
use crate::locator::Route;
use crate::mark::{Mark, MarkKind};
use crate::qos::{Durability, EndpointQos, Liveliness, Ownership};
use crate::receiver::Source;
use crate::seq::SequenceNumber;
use crate::stats::ReaderStats;
use crate::stats::Tally;
use crate::time::Instant;
use crate::timer::Timers;
use crate::wire::{Data, DataFrag, Gap, Heartbeat, HeartbeatFrag, InlineQos};
use event::Events;
use proxy::{Ready, Taken, WriterProxy};

/// When to check the writers' own timers: leases, repeated requests.
const TIMER_WRITERS: usize = 0;
/// When to find that no sample came within the deadline.
const TIMER_DEADLINE: usize = 1;

/// Writers remembered after their match ended; beyond that all are forgotten.
const LEFT_OFF_MAX: usize = 256;

/// One RTPS reader. Not thread-safe; its owner locks.
#[derive(Debug)]
pub struct Reader {
    config: ReaderConfig,
    /// Boxed: a map has room for eleven at once, and most readers have one.
    writers: BTreeMap<Guid, Box<WriterProxy>>,
    ready: Ready,
    /// Writers with something to send to.
    outgoing: Vec<Guid>,
    events: Events,
    timers: Timers<2>,
    deadlines_missed: u64,
    stats: ReaderStats,
    /// The last `now` seen.
    clock: Instant,
    /// The highest ACKNACK or NACK_FRAG count that an unmatched writer heard.
    counts_used: u32,
    /// Where each writer stood when its match ended, for volatile readers:
    /// what they had is no news when the match comes back, though the writer
    /// may never have noticed that it was gone.
    left_off: BTreeMap<Guid, i64>,
}

impl Reader {
    /// A reader without writers.
    pub fn new(config: ReaderConfig) -> Self {
        Self {
            counts_used: 0,
            left_off: BTreeMap::new(),
            ready: Ready {
                changes: VecDeque::new(),
                samples_max: config.limits.ready_samples_max.max(1),
                left_max: config.limits.reorder_samples_max,
                stalled: false,
            },
            config,
            writers: BTreeMap::new(),
            outgoing: Vec::new(),
            events: Events::default(),
            timers: Timers::new(),
            deadlines_missed: 0,
            stats: ReaderStats::default(),
            clock: Instant::ZERO,
        }
    }

    /// Its identity.
    pub fn guid(&self) -> Guid {
        self.config.guid
    }

    /// Its policies.
    pub fn qos(&self) -> &EndpointQos {
        &self.config.qos
    }

    /// What it counted.
    pub fn stats(&self) -> &ReaderStats {
        &self.stats
    }

    /// How many writers are matched.
    pub fn matched_count(&self) -> usize {
        self.writers.len()
    }

    /// The matched writers.
    pub fn matched(&self) -> impl Iterator<Item = Guid> + '_ {
        self.writers.keys().copied()
    }

    /// The most memory it may hold with the writers now matched, in bytes of
    /// payload.
    pub fn worst_case_bytes(&self) -> usize {
        let limits = &self.config.limits;
        // A queue of samples, each as large as allowed, is bounded by count
        // alone; what pieces and reordering may take is bounded by bytes.
        let ready = limits
            .ready_samples_max
            .saturating_mul(limits.defrag.sample_bytes_max);
        let per_writer = limits
            .reorder_bytes_max
            .saturating_add(limits.defrag.bytes_max);
        ready.saturating_add(per_writer.saturating_mul(self.writers.len()))
    }

    /// Begins to listen to a writer; again with one that is matched, only its
    /// route is taken over. False when the limit of writers is reached.
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
        // A writer that never forgot us ignores counts that begin anew.
        proxy.acknack_count = self.counts_used;
        proxy.nack_frag_count = self.counts_used;
        let left_off = self.left_off.remove(&guid);
        proxy.is_back = left_off.is_some();
        proxy.resume_at = left_off.unwrap_or(1);
        if proxy.lease_until != Instant::FAR_FUTURE {
            self.timers.set_no_later(TIMER_WRITERS, proxy.lease_until);
        }
        self.writers.insert(guid, Box::new(proxy));
        self.events
            .liveliness(guid, 1, 0, self.config.limits.events_max);
        self.settle(guid);
        true
    }

    /// A writer just matched knows of us before it sends anything, and tells what
    /// there is to tell: it is not asked for.
    pub fn meet_quietly(&mut self, guid: Guid) {
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.respond = false;
            proxy.introductions_left = 0;
        }
    }

    /// Forgets a writer. Samples that wait for a missing one are delivered;
    /// missing ones are reported as lost.
    pub fn unmatch_writer(&mut self, guid: Guid) {
        let Some(mut proxy) = self.writers.remove(&guid) else {
            return;
        };
        let counts = proxy.acknack_count.max(proxy.nack_frag_count);
        self.counts_used = self.counts_used.max(counts);
        let lost = proxy.finish(&mut self.ready);
        if proxy.reliable && self.config.qos.durability == Durability::Volatile {
            if self.left_off.len() >= LEFT_OFF_MAX {
                self.left_off.clear();
            }
            let next = proxy.announced.saturating_add(1);
            if !fault!("forgets-where-it-left-off") {
                self.left_off.insert(guid, next.max(proxy.resume_at));
            }
        }
        self.note_lost(guid, lost);
        let (alive, not_alive) = if proxy.alive { (-1, 0) } else { (0, -1) };
        self.events
            .liveliness(guid, alive, not_alive, self.config.limits.events_max);
    }

    /// What this participant's writers said in earlier matches no longer
    /// counts: it began anew.
    pub fn forget_participant(&mut self, prefix: GuidPrefix) {
        self.left_off.retain(|writer, _| writer.prefix != prefix);
    }

    /// Sends acknowledgements for a writer elsewhere from now on.
    pub fn update_route(&mut self, guid: Guid, route: Route) {
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.route = route;
        }
    }

    /// Takes a DATA submessage.
    pub fn handle_data(&mut self, now: Instant, source: &Source, data: &Data<'_>) {
        self.handle_shared_data(now, source, data, None);
    }

    /// As [`Self::handle_data`]. A payload that is all of `shared` is kept as
    /// that instead of copied.
    pub fn handle_shared_data(
        &mut self,
        now: Instant,
        source: &Source,
        data: &Data<'_>,
        shared: Option<&Bytes>,
    ) {
        let guid = source.prefix.with(data.writer);
        if !self.begin(now, guid, true) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if proxy.is_settled(data.sequence) {
            self.stats.duplicates.tally();
            return;
        }
        let mut head = head_of(data.sequence, source, &data.inline_qos, data.key_only);
        let is_nothing =
            (data.payload.is_empty() || data.key_only) && head.kind == ChangeKind::Alive;
        if self.config.qos.presentation.holds_samples() {
            head.mark = Mark::read(&data.inline_qos, is_nothing).map(Box::new);
        }
        let is_told = !is_nothing || head.mark.is_some();
        if is_nothing && self.is_told_filtered(&data.inline_qos) {
            self.stats.filtered.tally();
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if !is_told || data.inline_qos.not_understood().is_some() {
            // Neither data nor ending (the form in which filtered samples and
            // registrations are announced), or a parameter that forbids
            // guessing.
            proxy.skip(data.sequence.0, data.sequence.0, &mut self.ready);
        } else if data.inline_qos.is_directed_past(self.config.guid) {
            self.keep_out(guid, head);
        } else {
            let payload = if is_nothing { &[] } else { data.payload };
            self.note_told(guid, &mut head, &data.inline_qos);
            if payload.len() > self.config.limits.defrag.sample_bytes_max {
                self.give_up(guid, data.sequence);
            } else if self.passes(&head, payload) {
                let payload = match shared {
                    Some(shared) if is_same(shared, payload) => shared.clone(),
                    _ => Bytes::copy_from_slice(payload),
                };
                self.take(guid, head, payload);
            } else {
                self.keep_out(guid, head);
            }
        }
        self.settle(guid);
    }

    /// A sample is larger than allowed: it will never fit, and waiting for it
    /// would stop the writer.
    fn give_up(&mut self, guid: Guid, sequence: SequenceNumber) {
        self.stats.too_large.tally();
        if let Some(proxy) = self.writers.get_mut(&guid) {
            proxy.skip(sequence.0, sequence.0, &mut self.ready);
        }
        self.note_lost(guid, 1);
    }

    /// Takes fragments of a sample.
    pub fn handle_data_frag(&mut self, now: Instant, source: &Source, data: &DataFrag<'_>) {
        let guid = source.prefix.with(data.writer);
        if !self.begin(now, guid, true) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if proxy.is_settled(data.sequence) {
            self.stats.duplicate_fragments.tally();
            return;
        }
        let mut head = head_of(data.sequence, source, &data.inline_qos, data.key_only);
        if self.config.qos.presentation.holds_samples() {
            head.mark = Mark::read(&data.inline_qos, false).map(Box::new);
        }
        if data.inline_qos.not_understood().is_some() {
            proxy.skip(data.sequence.0, data.sequence.0, &mut self.ready);
            self.settle(guid);
            return;
        }
        self.note_told(guid, &mut head, &data.inline_qos);
        if head.passes == Some(false) || data.inline_qos.is_directed_past(self.config.guid) {
            self.keep_out(guid, head);
            self.settle(guid);
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
        match proxy.defrag.handle(head, &fragments) {
            Assembly::Whole(head, payload) => {
                self.stats.fragments.tally();
                if head.key_only && head.kind == ChangeKind::Alive {
                    // A registration: no sample.
                    proxy.skip(data.sequence.0, data.sequence.0, &mut self.ready);
                } else if self.passes(&head, &payload) {
                    self.take(guid, head, payload);
                } else {
                    self.keep_out(guid, head);
                }
            }
            Assembly::Kept => {
                self.stats.fragments.tally();
                proxy.arrivals.tally();
                if proxy.reliable {
                    proxy.announced = proxy.announced.max(data.sequence.0);
                    if data.sequence.0 == first_missing {
                        // The rest is probably on its way.
                        proxy.nack.pace = proxy.fresh_pace(&self.config.nack);
                        proxy.nack.at = now.after(proxy.nack.pace.pause());
                    }
                }
            }
            Assembly::Duplicate => self.stats.duplicate_fragments.tally(),
            Assembly::Invalid => self.stats.invalid_fragments.tally(),
            Assembly::NoRoom => self.stats.no_room.tally(),
            Assembly::TooLarge => self.give_up(guid, data.sequence),
        }
        self.settle(guid);
    }

    /// Hands a whole sample to its proxy.
    fn take(&mut self, guid: Guid, head: SampleHead, payload: Bytes) {
        let is_sample = head
            .mark
            .as_ref()
            .is_none_or(|m| m.kind == MarkKind::Change);
        if self.config.qos.ownership == Ownership::Shared && is_sample {
            self.note_update(self.clock);
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        let change = CacheChange {
            kind: head.kind,
            writer: guid,
            sequence: head.sequence,
            source_timestamp: head.source_timestamp,
            by_link: head.by_link,
            payload,
            key_only: head.key_only,
            key_hash: head.key_hash,
            related: head.related,
            original: head.original,
            expires_at: self.clock.after(proxy.lifespan),
            mark: head.mark,
        };
        if proxy.reliable {
            let bytes = change.payload.len();
            proxy.told.untold_bytes = proxy.told.untold_bytes.saturating_add(bytes);
            match proxy.take_reliable(change, &mut self.ready) {
                Taken::Delivered => {}
                Taken::Waiting => self.stats.reordered.tally(),
                Taken::Duplicate => self.stats.duplicates.tally(),
                Taken::NoRoom => self.stats.no_room.tally(),
            }
            return;
        }
        let Some(lost) = proxy.take_best_effort(change.sequence) else {
            self.stats.duplicates.tally();
            return;
        };
        let has_room = self.ready.has_room();
        let dropped = (!has_room).then(|| self.ready.changes.pop_front());
        self.ready.changes.push_back(change);
        self.note_lost(guid, lost);
        if let Some(dropped) = dropped.flatten() {
            self.stats.overflowed.tally();
            self.note_lost(dropped.writer, u64::from(dropped.is_sample()));
        }
    }

    /// Takes a GAP: numbers that will not come.
    pub fn handle_gap(&mut self, now: Instant, source: &Source, gap: &Gap) {
        let guid = source.prefix.with(gap.writer);
        if !self.begin(now, guid, false) || fault!("gap-ignored") {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        let mut noted = true;
        let base = gap.list.base();
        if gap.start < base {
            let last = base
                .0
                .saturating_sub(i64::from(!fault!("gap-one-too-long")));
            noted &= proxy.skip(gap.start.0, last, &mut self.ready);
        }
        for number in gap.list.iter() {
            crate::fault::step();
            noted &= proxy.skip(number.0, number.0, &mut self.ready);
        }
        if !noted {
            self.stats.no_room.tally();
        }
        self.settle(guid);
    }

    /// Takes a HEARTBEAT: what the writer has.
    pub fn handle_heartbeat(&mut self, now: Instant, source: &Source, heartbeat: &Heartbeat) {
        let guid = source.prefix.with(heartbeat.writer);
        if !self.begin(now, guid, heartbeat.liveliness) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if !proxy.reliable {
            return;
        }
        if !proxy.accepts_heartbeat(now, heartbeat) {
            self.stats.duplicate_heartbeats.tally();
            return;
        }
        let lost = proxy.announce(heartbeat.first.0, heartbeat.last.0, &mut self.ready);
        if let Some(group) = &heartbeat.group
            && self.config.qos.presentation.holds_samples()
        {
            proxy.note_place(heartbeat.last, group.current);
        }
        proxy.answer_heartbeat(now, heartbeat.is_final, &self.config.nack);
        if proxy.counts.began_anew(now) {
            let event = ReaderEvent::WriterBeganAnew { writer: guid };
            self.events
                .push_or_drop_oldest(event, self.config.limits.events_max);
        }
        self.note_lost(guid, lost);
        self.settle(guid);
    }

    /// Takes a HEARTBEAT_FRAG: fragments sent so far of one sample.
    pub fn handle_heartbeat_frag(
        &mut self,
        now: Instant,
        source: &Source,
        heartbeat: &HeartbeatFrag,
    ) {
        let guid = source.prefix.with(heartbeat.writer);
        if !self.begin(now, guid, false) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if !proxy.reliable || proxy.is_settled(heartbeat.sequence) {
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
            .nack
            .sent_at
            .after(proxy.suppression(&self.config.nack));
        if lacks && now >= answerable {
            proxy.complete = proxy.complete.max(heartbeat.sequence.previous().0);
            proxy.respond = true;
        }
        self.settle(guid);
    }

    /// A participant proved to be alive for writers of this kind (WLP).
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
            if proxy.liveliness == kind {
                assert_alive(now, proxy, &mut self.events, &mut self.timers, &self.config);
            }
        }
    }

    /// A matched writer's sample reached the application by a path of the
    /// runtime's own, or with `is_sample` false, its writer proved itself alive
    /// there. Counts for deadline and liveliness as a submessage would.
    pub fn note_elsewhere(&mut self, now: Instant, writer: Guid, is_sample: bool) {
        let counts = self.begin(now, writer, true) && is_sample;
        if counts && self.config.qos.ownership == Ownership::Shared {
            self.note_update(now);
        }
    }

    /// A sample counts for the DEADLINE. Where ownership is exclusive only the
    /// owner's do, and whoever knows the owner calls this.
    pub fn note_update(&mut self, now: Instant) {
        let due = now.after(self.config.qos.deadline);
        self.timers.set(TIMER_DEADLINE, due);
    }

    /// Whether a writer is matched and keeps its LIVELINESS contract.
    pub fn is_alive(&self, now: Instant, writer: Guid) -> bool {
        let proxy = self.writers.get(&writer);
        proxy.is_some_and(|proxy| proxy.alive && proxy.lease_until > now)
    }

    /// Begins to handle a submessage; false when its writer is not matched.
    /// `proves_life`: a sample or an asserting heartbeat, which count as proof
    /// for every kind of liveliness; anything at all does for the automatic
    /// kind.
    fn begin(&mut self, now: Instant, guid: Guid, proves_life: bool) -> bool {
        self.clock = now;
        let Some(proxy) = self.writers.get_mut(&guid) else {
            self.stats.unknown_writers.tally();
            return false;
        };
        if proves_life || proxy.liveliness == Liveliness::Automatic {
            assert_alive(now, proxy, &mut self.events, &mut self.timers, &self.config);
        }
        true
    }

    /// After any change of a proxy: what it owes and when it wakes.
    fn settle(&mut self, guid: Guid) {
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        proxy.tell_place(&mut self.ready);
        proxy.schedule(self.clock, &self.config.nack);
        if proxy.owes_now(self.clock) {
            if !proxy.queued {
                proxy.queued = true;
                self.outgoing.push(guid);
            }
        } else if proxy.wakes_at() != Instant::FAR_FUTURE {
            self.timers.set_no_later(TIMER_WRITERS, proxy.wakes_at());
        }
    }

    fn note_lost(&mut self, writer: Guid, count: u64) {
        if count > 0 && !fault!("loss-not-told") {
            self.stats.lost = self.stats.lost.saturating_add(count);
            self.events
                .lost(writer, count, self.config.limits.events_max);
        }
    }

    /// The next sample: in order for each reliable writer.
    pub fn poll_sample(&mut self) -> Option<CacheChange> {
        loop {
            let change = self.ready.changes.pop_front()?;
            if self.ready.stalled {
                self.unstall();
            }
            if change.expires_at <= self.clock {
                self.stats.expired.tally();
                continue;
            }
            self.stats.delivered.tally_by(u64::from(change.is_sample()));
            return Some(change);
        }
    }

    /// Moves samples that found the queue full, and asks writers for more.
    fn unstall(&mut self) {
        self.ready.stalled = false;
        for (guid, proxy) in &mut self.writers {
            if !fault!("stalled-for-ever") {
                proxy.drain(&mut self.ready);
            }
            if proxy.is_missing_something() && !proxy.queued {
                proxy.respond = true;
                proxy.queued = true;
                self.outgoing.push(*guid);
            }
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ReaderEvent> {
        self.events.pop()
    }

    /// When to call [`Self::handle_timeout`] next; in the past when there is
    /// something to send already.
    pub fn next_timeout(&self) -> Option<Instant> {
        if !self.outgoing.is_empty() {
            return Some(self.clock);
        }
        self.timers.next()
    }

    /// Does what is due at `now`: requests again, finds missed deadlines and
    /// ended leases. Costs O(writers), but only when something may be due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock = now;
        if self.timers.take_due(TIMER_DEADLINE, now) {
            self.deadlines_missed.tally();
            let event = ReaderEvent::DeadlineMissed {
                total: self.deadlines_missed,
            };
            self.events
                .push_or_drop_oldest(event, self.config.limits.events_max);
            let again = now.after(self.config.qos.deadline);
            if !fault!("reader-deadline-missed-once") {
                self.timers.set(TIMER_DEADLINE, again);
            }
        }
        if !self.timers.take_due(TIMER_WRITERS, now) {
            return;
        }
        let mut wake = Instant::FAR_FUTURE;
        for (guid, proxy) in &mut self.writers {
            if proxy.alive && proxy.lease_until <= now {
                proxy.alive = false;
                if !fault!("writer-dies-unnoticed") {
                    self.events
                        .liveliness(*guid, -1, 1, self.config.limits.events_max);
                }
            }
            if proxy.alive {
                wake = wake.min(proxy.lease_until);
            }
            if proxy.owes_now(now) {
                if !proxy.queued {
                    proxy.queued = true;
                    self.outgoing.push(*guid);
                }
            } else {
                wake = wake.min(proxy.wakes_at());
            }
        }
        self.timers.set(TIMER_WRITERS, wake);
    }
}

/// Whether these are the very same bytes.
fn is_same(shared: &Bytes, payload: &[u8]) -> bool {
    core::ptr::eq(shared.as_ref(), payload)
}

/// What a submessage says about its sample besides the payload.
fn head_of(
    sequence: SequenceNumber,
    source: &Source,
    inline_qos: &InlineQos<'_>,
    key_only: bool,
) -> SampleHead {
    SampleHead {
        sequence,
        kind: inline_qos.change_kind(),
        source_timestamp: source.timestamp,
        by_link: source.by_link,
        key_only,
        key_hash: inline_qos.key_hash(),
        related: inline_qos.related_sample_identity(),
        mark: None,
        original: inline_qos.original_writer_info(),
        passes: None,
    }
}

/// Notes a sign of life of one writer.
fn assert_alive(
    now: Instant,
    proxy: &mut WriterProxy,
    events: &mut Events,
    timers: &mut Timers<2>,
    config: &ReaderConfig,
) {
    if proxy.lease.is_infinite() {
        return;
    }
    proxy.lease_until = now.after(proxy.lease);
    if !proxy.alive {
        proxy.alive = true;
        // While it was silent nobody watched its lease.
        if !fault!("liveliness-watched-once") {
            timers.set_no_later(TIMER_WRITERS, proxy.lease_until);
        }
        events.liveliness(proxy.guid, 1, -1, config.limits.events_max);
    }
}

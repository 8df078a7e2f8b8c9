//! The writer (RTPS 2.5 §8.4.7–9): changes and readers' answers in; datagrams
//! and events out.
//!
//! Changes are pushed once to each destination (the readers of one participant
//! share theirs) with a heartbeat in the same datagram, and sent again to who
//! asks. After `write`, any `handle_*` call and whenever
//! [`Writer::next_timeout`] has come, poll transmissions and events until
//! empty; doing so late or twice is safe. Payloads are shared, never copied;
//! in steady state nothing is allocated.

mod answer;
mod ask;
mod batch;
mod changeable;
mod config;
mod event;
mod filter;
mod lapse;
mod linked;
mod matched;
mod memory;
mod pace;
mod parcel;
mod place;
mod proxy;
mod repair;
mod transmit;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;

pub use config::{
    Burst, FragmentSize, HeartbeatConfig, NewChange, ReaderProxyConfig, Restored, WriterConfig,
    WriterLimits,
};
pub use event::WriterEvent;

use crate::content_filter::Filtering;
use crate::history::{Change, History};
use crate::id::Guid;
use crate::qos::{self, Durability, EndpointQos, Liveliness};
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::stats::WriterStats;
use crate::time::{Duration, Instant};
use crate::timer::Timers;
use batch::Batch;
use event::Events;
use proxy::{Group, ReaderProxy};
use transmit::Cursor;

/// Ends of coherent sets kept beside the samples. The oldest goes when there are
/// more: its set is then ended by what follows.
const SET_ENDS_MAX: usize = 1_024;

/// When to ask for acknowledgements that have not come.
const TIMER_HEARTBEAT: usize = 0;
/// When requests that came too soon after their answer are served.
const TIMER_REPAIR: usize = 1;
/// When to find that nothing was written within the deadline.
const TIMER_DEADLINE: usize = 2;
/// When to find that the application did not prove itself alive.
const TIMER_LIVELINESS: usize = 3;
/// When the oldest change's lifespan ends.
const TIMER_LIFESPAN: usize = 4;
/// When samples held back for LATENCY_BUDGET are sent.
const TIMER_BATCH: usize = 5;
/// When to tell where the publisher is.
const TIMER_PLACE: usize = 6;

/// Pause before a silent writer tells where its publisher is; four times as long
/// before each repeat, for nobody acknowledges it.
const PLACE_PAUSE: Duration = Duration::from_millis(1);
/// How often it is told.
const PLACE_TELLINGS: u8 = 6;

/// Why a write was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// KEEP_ALL, and the history is full of samples that some reliable reader
    /// has not acknowledged. Wait for [`WriterEvent::SpaceFreed`], at most
    /// `max_blocking_time`, and try again.
    WouldBlock {
        /// Samples kept.
        samples: usize,
        /// The limit on samples.
        samples_max: usize,
        /// Bytes kept.
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
                "the writer keeps {samples} of {samples_max} samples and {bytes} of {bytes_max} \
                 bytes that a reader has not acknowledged; wait, or raise its resource limits"
            ),
            Self::TooLarge { bytes, bytes_max } => write!(
                f,
                "the sample has {bytes} bytes, the writer takes {bytes_max}; raise its \
                 sample_bytes_max"
            ),
        }
    }
}

impl core::error::Error for WriteError {}

/// One RTPS writer. Not thread-safe; its owner locks.
///
/// KEEP_LAST never refuses: it replaces the oldest sample, acknowledged or
/// not, and counts it in [`WriterStats::overwritten`] if some reader may still
/// have needed it. KEEP_ALL refuses instead, as long as a reliable reader
/// holds it up; kept for late joiners alone, the oldest go when it is full.
#[derive(Debug)]
pub struct Writer {
    config: WriterConfig,
    /// How many samples are kept, of each instance if keyed.
    depth: usize,
    samples_max: usize,
    history: History,
    /// The last number given.
    last: SequenceNumber,
    /// The last number meant for every reader.
    last_shared: i64,
    /// All numbers up to here that are not in the history are lost to readers
    /// that did not get them; others not in the history are irrelevant.
    lost_through: i64,
    readers: Vec<ReaderProxy>,
    groups: Vec<Group>,
    reliable_readers: usize,
    /// Readers with a content filter.
    filtered_readers: usize,
    /// Readers reached by a link of shared memory.
    linked_readers: usize,
    /// All reliable readers are, and have answered.
    is_linked: bool,
    /// A link has refused something since all was acknowledged.
    refused: bool,
    cursor: Cursor,
    /// What LATENCY_BUDGET holds back, if there is one.
    batch: Option<Batch>,
    heartbeat_count: u32,
    /// When what was written last is asked for.
    news_at: Instant,
    /// Samples and bytes pushed since acknowledgements were last asked for.
    unasked_samples: u32,
    unasked_bytes: usize,
    /// When something was written last, and whether that was after a pause.
    wrote_at: Instant,
    is_after_pause: bool,
    /// Some reader waits for a repair, a replay or a heartbeat of its own.
    has_debts: bool,
    /// Whose turn it is among the readers; past the last, the heartbeats'.
    creditor: usize,
    /// Paced: after a burst of debts one of new changes is due.
    news_due: bool,
    /// A write was refused and no room has been found since.
    blocked: bool,
    /// Endings of instances are kept although every matched reader has them.
    holds_endings: bool,
    /// What was written later may expire earlier.
    lifespans_differ: bool,
    all_acked: bool,
    /// Where the publisher is, if its writers are presented as one: its last
    /// number, and which writers it has.
    place: Option<(i64, [u8; 4])>,
    /// How often that is still told, and the pause until then.
    tellings: (u8, Duration),
    timers: Timers<7>,
    lease_lost: bool,
    deadlines_missed: u64,
    leases_lost: u64,
    events: Events,
    stats: WriterStats,
    /// The last `now` seen.
    clock: Instant,
}

impl Writer {
    /// A writer that has written nothing and has no readers.
    pub fn new(mut config: WriterConfig) -> Self {
        let clamp = |size: u16| size.clamp(64, FRAGMENT_BYTES_MAX);
        config.fragment_size.same_host = clamp(config.fragment_size.same_host);
        config.fragment_size.network = clamp(config.fragment_size.network);
        let limits = &config.qos.resource_limits;
        let limit = |n: Option<u32>| n.map(|n| usize::try_from(n.max(1)).unwrap_or(usize::MAX));
        let (depth, samples_max) = match config.qos.history {
            qos::History::KeepLast(depth) => {
                let depth = limit(Some(depth)).unwrap_or(1);
                let per_instance = limit(limits.max_samples_per_instance).unwrap_or(depth);
                let all = limit(limits.max_samples).unwrap_or(usize::MAX);
                (depth.min(per_instance).min(all), all)
            }
            qos::History::KeepAll => {
                // Without keys there is one instance: the tighter bound holds.
                let all = limit(limits.max_samples).unwrap_or(config.limits.samples_max.max(1));
                let per_instance = limit(limits.max_samples_per_instance).unwrap_or(usize::MAX);
                (per_instance, all)
            }
        };
        let batch = Batch::new(config.qos.latency_budget, 0);
        Self {
            config,
            depth,
            samples_max,
            history: History::default(),
            last: SequenceNumber::ZERO,
            last_shared: 0,
            lost_through: 0,
            readers: Vec::new(),
            groups: Vec::new(),
            reliable_readers: 0,
            filtered_readers: 0,
            linked_readers: 0,
            is_linked: false,
            refused: false,
            cursor: Cursor::at(1),
            batch,
            heartbeat_count: 0,
            news_at: Instant::FAR_FUTURE,
            unasked_samples: 0,
            unasked_bytes: 0,
            wrote_at: Instant::ZERO,
            is_after_pause: false,
            has_debts: false,
            creditor: 0,
            news_due: false,
            blocked: false,
            holds_endings: false,
            lifespans_differ: false,
            all_acked: true,
            place: None,
            tellings: (0, PLACE_PAUSE),
            timers: Timers::new(),
            lease_lost: false,
            deadlines_missed: 0,
            leases_lost: 0,
            events: Events::default(),
            stats: WriterStats::default(),
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
    pub fn stats(&self) -> &WriterStats {
        &self.stats
    }

    /// The number the next change will get.
    pub fn next_sequence(&self) -> SequenceNumber {
        self.last.next()
    }

    /// How many readers are matched.
    pub fn matched_count(&self) -> usize {
        self.readers.len()
    }

    /// The matched readers.
    pub fn matched(&self) -> impl Iterator<Item = Guid> + '_ {
        self.readers.iter().map(|reader| reader.guid)
    }

    /// How many of them are reached by a link of shared memory.
    pub fn linked_count(&self) -> usize {
        self.linked_readers
    }

    /// Samples kept now.
    pub fn kept_count(&self) -> usize {
        self.history.samples()
    }

    /// The payload of a change that is still kept, unless it is deferred.
    pub fn kept(&self, sequence: SequenceNumber) -> Option<&Bytes> {
        let change = self.history.find(sequence)?;
        (change.deferred_bytes == 0).then_some(&change.payload)
    }

    /// Whether somebody reads payloads: a matched reader, or a filter of one.
    pub fn is_read(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Fills in every payload that was deferred: to be called before a reader is
    /// matched. A change for which `payload_of` has none is irrelevant from now
    /// on.
    pub fn supply(&mut self, mut payload_of: impl FnMut(SequenceNumber) -> Option<Bytes>) {
        let is_deferred = |change: &&Change| change.deferred_bytes > 0;
        let deferred = self.history.iter().filter(is_deferred);
        for sequence in deferred.map(|change| change.sequence).collect::<Vec<_>>() {
            match payload_of(sequence) {
                Some(payload) => self.history.supply(sequence, payload),
                None => drop(self.history.remove(sequence)),
            }
        }
    }

    /// Makes room for a change while no reader filters; [`Self::write`] then
    /// accepts it for sure if it comes before any other call. Its payload is
    /// not looked at and may be deferred.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn reserve(&mut self, now: Instant, change: &NewChange) -> Result<(), WriteError> {
        debug_assert!(!self.has_filters(), "filters read the payload");
        self.clock = now;
        self.check_size(change)?;
        if !self.keeps_for_late_joiners() && self.readers.is_empty() {
            return Ok(());
        }
        let first = self.history.first().map(|first| first.sequence);
        // Here alone, for what was granted is not refused by the write.
        if let Some(first) = first.filter(|_| fault!("writer-full-early")) {
            self.wait_for(now, first, (self.history.samples(), self.samples_max))?;
        }
        self.make_room(now, change)
    }

    /// Whether some matched reader has a content filter.
    pub fn has_filters(&self) -> bool {
        self.filtered_readers > 0
    }

    /// The most memory its samples may take, bytes.
    pub fn worst_case_bytes(&self) -> usize {
        self.config
            .limits
            .history_bytes_max
            .max(self.config.limits.sample_bytes_max)
    }

    /// Whether every reliable reader has everything that was written for it.
    pub fn is_acked_by_all(&self) -> bool {
        let owes = |reader: &ReaderProxy| reader.owes_ack(self.last_shared);
        !self.readers.iter().any(owes)
    }

    fn keeps_for_late_joiners(&self) -> bool {
        self.config.qos.durability >= Durability::TransientLocal
    }

    fn is_keep_all(&self) -> bool {
        self.config.qos.history == qos::History::KeepAll
    }

    /// Takes a number without sending anything: for a sample that all readers
    /// got by another way. Counts as a write for deadline and liveliness; a
    /// writer that has neither may be told any earlier time.
    pub fn skip(&mut self, now: Instant) -> SequenceNumber {
        self.note_life(now);
        self.last = self.last.next();
        let number = self.last.0;
        if self.cursor.number == number {
            for group in &mut self.groups {
                group.skip(number);
            }
            self.cursor = Cursor::at(number.saturating_add(1));
        }
        self.last
    }

    /// Accepts a change; it is sent by [`Self::poll_transmit`]. Without
    /// matched readers a volatile writer only counts it. A restored change is
    /// no sign of life.
    pub fn write(&mut self, now: Instant, change: NewChange) -> Result<SequenceNumber, WriteError> {
        self.clock = now;
        self.check_size(&change)?;
        debug_assert!(
            change.deferred_bytes == 0 || self.readers.is_empty(),
            "a payload is deferred until somebody reads"
        );
        let filtering = self.judge(&change);
        if self.is_for_nobody(filtering.as_deref()) {
            self.stats.written.tally();
            return Ok(self.skip(now));
        }
        let keeps = self.keeps_for_late_joiners() || !self.readers.is_empty();
        if keeps {
            self.make_room(now, &change)?;
        }
        if change.is_end() {
            self.note_alive(now);
        } else {
            if change.restored.is_none() {
                self.note_life(now);
            }
            self.stats.written.tally();
        }
        self.last = self.last.next();
        let sequence = self.last;
        if keeps {
            self.keep(now, sequence, change, filtering);
            self.hold(now);
        }
        if self.readers.is_empty() {
            self.cursor = Cursor::at(sequence.next().0);
            // An ending that nobody has to hear is not kept.
            self.prune();
        }
        Ok(sequence)
    }

    fn check_size(&mut self, change: &NewChange) -> Result<(), WriteError> {
        let bytes = change.bytes();
        let bytes_max = self.config.limits.sample_bytes_max;
        if bytes > bytes_max || u32::try_from(bytes).is_err() {
            self.stats.blocked.tally();
            return Err(WriteError::TooLarge { bytes, bytes_max });
        }
        Ok(())
    }

    fn keep(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        change: NewChange,
        filtering: Option<Box<Filtering>>,
    ) {
        match change.only_for {
            None => {
                self.last_shared = sequence.0;
                self.note_wanted(sequence, filtering.as_deref());
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
        if self.reliable_readers > 0 {
            self.all_acked = false;
            let pause = self.config.heartbeat.pause_of_stream();
            self.is_after_pause =
                self.wrote_at == Instant::ZERO || now.since(self.wrote_at) >= pause;
            self.wrote_at = now;
            let pause = self.pause_after_write();
            match change.only_for.and_then(|only| self.reader_mut(only)) {
                Some(reader) => {
                    let group = reader.group;
                    self.ask_group(group, now.after(pause));
                }
                None => self.ask_for_news(now.after(pause)),
            }
        }
        self.history.push(Change {
            sequence,
            kind: change.kind,
            payload: change.payload,
            deferred_bytes: change.deferred_bytes,
            source_timestamp: change.source_timestamp,
            related: change.related,
            key_hash: change.key_hash,
            original: restored.map(|restored| restored.original),
            only_for: change.only_for,
            expires_at,
            mark: change.mark,
            filtering,
            fragment_size: 0,
        });
    }

    /// Frees a place for `change`, or says why there is none.
    fn make_room(&mut self, now: Instant, change: &NewChange) -> Result<(), WriteError> {
        if change.is_end() {
            if let Some(oldest) = self.history.excess_end(SET_ENDS_MAX) {
                self.history.remove(oldest);
            }
            return Ok(());
        }
        let bytes_max = self.config.limits.history_bytes_max;
        let weight = change.bytes().saturating_add(Change::OVERHEAD_BYTES);
        if let Some(key) = &change.key_hash {
            while let Some((oldest, samples)) =
                self.history.instance(key).filter(|(oldest, count)| {
                    *count >= self.depth.saturating_add(self.is_begun(*oldest).into())
                })
            {
                self.wait_for(now, oldest, (samples, self.depth))?;
                let oldest = match self.is_begun(oldest) {
                    true => self.history.next_of_instance(key, oldest),
                    false => Some(oldest),
                };
                let Some(oldest) = oldest else { break };
                // Superseded, so irrelevant rather than lost: earlier changes
                // of other instances are still to be had.
                self.note_unsent(oldest);
                self.history.remove(oldest);
            }
        }
        let samples_max = match change.key_hash {
            Some(_) => self.samples_max,
            None => self.depth.min(self.samples_max),
        };
        while let Some(first) = self.history.first()
            && (self.history.samples()
                >= samples_max.saturating_add(self.is_begun(first.sequence).into())
                || self.history.bytes().saturating_add(weight) > bytes_max)
        {
            let sequence = first.sequence;
            self.wait_for(now, sequence, (self.history.samples(), samples_max))?;
            let victim = match self.is_begun(sequence) {
                true => self.history.from(sequence.next()).map(|next| next.sequence),
                false => Some(sequence),
            };
            let Some(victim) = victim else { break };
            self.overwrite(victim);
        }
        Ok(())
    }

    /// KEEP_ALL: refuses while some reliable reader still needs a change, or a
    /// paced writer has not sent it.
    fn wait_for(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        (samples, samples_max): (usize, usize),
    ) -> Result<(), WriteError> {
        let needed = self.history.find(sequence);
        if !self.is_keep_all()
            || fault!("keep-all-overwrites")
            || (self.reliable_readers == 0 && !self.is_unsent(sequence))
            || needed.is_none_or(|change| self.is_settled(change))
        {
            return Ok(());
        }
        if !self.blocked {
            // Ask now, but not again with every attempt.
            self.hurry(now);
        }
        self.blocked = true;
        self.stats.blocked.tally();
        Err(WriteError::WouldBlock {
            samples,
            samples_max,
            bytes: self.history.bytes(),
            bytes_max: self.config.limits.history_bytes_max,
        })
    }

    /// Removes a change to make room.
    fn overwrite(&mut self, sequence: SequenceNumber) {
        let settled = self
            .history
            .find(sequence)
            .is_none_or(|change| self.is_settled(change));
        if !settled {
            self.stats.overwritten.tally();
            if !self.note_unsent(sequence) && !fault!("overwritten-not-told") {
                self.lost_through = self.lost_through.max(sequence.0);
            }
        }
        self.history.remove(sequence);
    }

    /// Keeps endings of instances for readers that may come back with what they
    /// knew before: discovery asks for it after losing a peer by its lease.
    pub(crate) fn hold_endings(&mut self, hold: bool) {
        if self.holds_endings != hold {
            self.holds_endings = hold;
            self.prune();
        }
    }

    /// Whether nobody matched needs the change any more: it was pushed, and
    /// every reliable reader it is meant for has acknowledged it.
    fn is_settled(&self, change: &Change) -> bool {
        let number = change.sequence.0;
        number < self.cursor.number
            && !self
                .readers
                .iter()
                .any(|reader| reader.needs(number) && reader.wants(change))
            || self.readers.is_empty()
    }

    /// Removes what nobody needs any more.
    fn prune(&mut self) {
        if !self.keeps_for_late_joiners() {
            while let Some(first) = self.history.first()
                && self.is_settled(first)
            {
                self.history.pop_first();
            }
        } else if self.history.has_unregistrations() && !self.holds_endings {
            // An instance that its writer has left concerns no late joiner,
            // one that it disposed of does.
            let left: Vec<_> = self
                .history
                .iter()
                .filter(|change| change.kind.is_unregistered() && self.is_settled(change))
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
                (self.history.samples() < self.samples_max
                    && self.history.bytes() < self.config.limits.history_bytes_max)
                    || self.is_settled(first)
            }
        };
        if self.blocked && freed {
            self.blocked = false;
            self.events.push_or_drop_oldest(WriterEvent::SpaceFreed);
        }
        if !self.all_acked && self.is_acked_by_all() {
            self.all_acked = true;
            self.note_linked_acked();
            self.ask_nobody();
            self.events
                .push_or_drop_oldest(WriterEvent::AllAcknowledged);
        }
    }

    /// Proves the application alive (MANUAL_BY_TOPIC tells the readers so;
    /// for the participant-wide kind that is the participant's task).
    pub fn assert_liveliness(&mut self, now: Instant) {
        self.note_alive(now);
        if self.config.qos.liveliness == Liveliness::ManualByTopic {
            for group in &mut self.groups {
                group.assertion_due = group.readers > 0;
            }
            self.has_debts = true;
        }
    }

    /// A write also meets the deadline.
    fn note_life(&mut self, now: Instant) {
        self.note_alive(now);
        let due = now.after(self.config.qos.deadline);
        self.timers.set(TIMER_DEADLINE, due);
    }

    fn note_alive(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        self.lease_lost = false;
        let manual = self.config.qos.liveliness != Liveliness::Automatic;
        if manual && !fault!("own-silence-unnoticed") {
            let due = now.after(self.config.qos.lease_duration);
            self.timers.set(TIMER_LIVELINESS, due);
        }
    }

    /// When to call [`Self::handle_timeout`] next; in the past when there is
    /// something to send already and the writer is not paced.
    pub fn next_timeout(&self) -> Option<Instant> {
        if !self.config.paced && self.has_output() {
            return Some(self.clock);
        }
        self.timers.next()
    }

    /// As [`Self::next_timeout`], for an owner who will send later or is at it: what
    /// there is to send does not count.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.clock = now;
        if self.timers.take_due(TIMER_DEADLINE, now) {
            self.deadlines_missed.tally();
            let total = self.deadlines_missed;
            self.events
                .push_or_drop_oldest(WriterEvent::DeadlineMissed { total });
            let again = now.after(self.config.qos.deadline);
            if !fault!("writer-deadline-missed-once") {
                self.timers.set(TIMER_DEADLINE, again);
            }
        }
        if self.timers.take_due(TIMER_LIVELINESS, now) && !self.lease_lost {
            self.lease_lost = true;
            self.leases_lost.tally();
            let total = self.leases_lost;
            self.events
                .push_or_drop_oldest(WriterEvent::LivelinessLost { total });
        }
        if self.timers.take_due(TIMER_BATCH, now) && !fault!("held-back-for-a-batch-for-ever") {
            self.flush();
        }
        if self.timers.take_due(TIMER_LIFESPAN, now) && !fault!("lifespan-never-ends") {
            self.expire(now);
        }
        if self.timers.take_due(TIMER_PLACE, now) {
            self.tell_place(now);
        }
        if self.timers.take_due(TIMER_HEARTBEAT, now) {
            self.ask_for_acks(now);
        }
        if self.timers.take_due(TIMER_REPAIR, now) {
            self.has_debts = true;
        }
    }

    fn expire(&mut self, now: Instant) {
        if self.lifespans_differ {
            let expired = |change: &&Change| change.expires_at <= now;
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

/// Leaves room for every header in a UDP datagram of 65,507 bytes.
const FRAGMENT_BYTES_MAX: u16 = 64_000;

//! History cache of a keyed subscription: samples that were not taken, by instance.
//!
//! HISTORY, RESOURCE_LIMITS, OWNERSHIP, DEADLINE, TIME_BASED_FILTER and
//! DESTINATION_ORDER apply per instance. The end of an instance (dispose /
//! unregister) waits among the samples, in order; of several ends of one instance
//! the last is kept. An ended instance is forgotten as soon as nothing of it waits
//! and nobody writes it, or when another instance needs its place.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::memory_budget::SampleCharge;
use pteros_rtps::qos::{DestinationOrder, EndpointQos};
use pteros_rtps::time::{Duration, Instant};

use super::keyed_ready_queue::KeyedReadyQueue;
use super::reader_instance::{QueuePosition, ReaderInstance};
use super::timers::{InstanceTimer, InstanceTimers};
use crate::filter::ownership::Owners;
use crate::filter::time_based_filter::TimeBasedFilter;
use crate::qos::DataLifecycle;
use crate::sample::instance_info::{InstanceState, SampleInstance, ViewState};
use crate::sample::outcome::{InsertOutcome, PoppedSample};
use crate::sample::queued_sample::{DeliveryPath, QueuedSample, SampleBody, SampleMeta};
use crate::sample::sample_limits::{INSTANCES_MAX_DEFAULT, SampleLimits};

/// The shortest wait for space of a sample released by the time-based filter.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// Everything that a keyed subscription holds.
pub struct InstanceCache {
    reader: Arc<dyn KeyReader>,
    qos: EndpointQos,
    lifecycle: DataLifecycle,
    /// The maximum number of instances.
    instances_max: usize,
    instances: BTreeMap<KeyHash, ReaderInstance>,
    /// Ended and empty instances that are still registered by a writer. They are
    /// forgotten first.
    dormant: BTreeSet<KeyHash>,
    queue: KeyedReadyQueue,
    arrivals: u64,
    timers: InstanceTimers,
    /// A sample whose instance is full. It blocks the samples behind it.
    blocked: Option<QueuedSample>,
    /// Writers that are gone while samples of theirs are held back.
    departed_writers: Vec<(Guid, SampleMeta)>,
    held_back: bool,
    /// See [`InstanceCache::note_received`].
    notes_before_offer: bool,
    /// Whether something was purged since the last [`InstanceCache::take_resume`].
    has_purged: bool,
    /// Samples that were not delivered, by reason.
    pub totals: DropTotals,
}

/// How many samples were not delivered, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropTotals {
    /// Replaced by newer ones (KEEP_LAST).
    pub overwritten: u64,
    /// Their LIFESPAN ended before they were taken.
    pub expired: u64,
    /// Dropped by the time-based filter.
    pub filtered: u64,
    /// Older than one already taken (DESTINATION_ORDER by source).
    pub late: u64,
    /// Purged with their instance (READER_DATA_LIFECYCLE).
    pub purged: u64,
    /// Beyond the instance limit, or of no known instance.
    pub rejected: u64,
    /// Not samples, but missed deadlines of instances.
    pub deadlines_missed: u64,
}

impl InstanceCache {
    /// A cache for a topic whose key `reader` reads.
    pub fn new(reader: Arc<dyn KeyReader>, qos: &EndpointQos, lifecycle: DataLifecycle) -> Self {
        let instances_max = qos.resource_limits.max_instances;
        Self {
            reader,
            qos: qos.clone(),
            lifecycle,
            instances_max: instances_max.map_or(INSTANCES_MAX_DEFAULT, |n| n.max(1) as usize),
            instances: BTreeMap::new(),
            dormant: BTreeSet::new(),
            queue: KeyedReadyQueue::new(qos),
            arrivals: 0,
            timers: InstanceTimers::default(),
            blocked: None,
            departed_writers: Vec::new(),
            held_back: false,
            notes_before_offer: false,
            has_purged: false,
            totals: DropTotals::default(),
        }
    }

    /// Applies the changeable policies to all instances. Deadlines and purge delays
    /// count from now.
    pub fn set_qos(&mut self, now: Instant, qos: &EndpointQos, lifecycle: DataLifecycle) {
        let deadline = (self.qos.deadline != qos.deadline).then_some(qos.deadline);
        let purges = self.lifecycle != lifecycle;
        self.lifecycle = lifecycle;
        self.qos.deadline = qos.deadline;
        self.qos.time_based_filter = qos.time_based_filter;
        for (key, record) in &mut self.instances {
            let lives = record.info.state == InstanceState::Alive;
            if let Some(deadline) = deadline.filter(|_| lives) {
                self.timers
                    .set(*key, InstanceTimer::Deadline, now.after(deadline));
            }
            if purges && !lives {
                let delay = lifecycle.purge_delay(record.info.state);
                self.timers
                    .set(*key, InstanceTimer::Purge, now.after(delay));
            }
            TimeBasedFilter::update(&mut record.time_filter, qos);
            let held = record
                .time_filter
                .as_ref()
                .and_then(TimeBasedFilter::release_at);
            if let Some(at) = held {
                self.timers.set(*key, InstanceTimer::Release, at);
            }
        }
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Number of waiting samples.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// The maximum number of waiting samples.
    pub fn sample_limits(&self) -> SampleLimits {
        self.queue.sample_limits()
    }

    /// Whether no sample of any instance has space.
    pub fn is_full(&self) -> bool {
        self.queue.is_full() || self.blocked.is_some()
    }

    /// Whether a sample of that instance has no space.
    pub fn is_full_for(&self, key: &KeyHash) -> bool {
        self.is_full() || {
            let record = self.instances.get(key);
            record.is_some_and(|record| self.queue.is_instance_full(record))
        }
    }

    /// Notes that samples were left behind for lack of space.
    pub fn hold_back(&mut self) {
        self.held_back = true;
    }

    /// Inserts a change; KEEP_LAST makes space for it. `alive` is called only for
    /// owners.
    pub fn offer(
        &mut self,
        now: Instant,
        item: QueuedSample,
        owners: Option<&mut Owners>,
        alive: impl Fn(Guid) -> bool,
    ) -> InsertOutcome {
        let Some(keyed) = item.instance.as_deref() else {
            self.totals.rejected += 1;
            return InsertOutcome::Rejected;
        };
        let (key, kind, writer) = (keyed.info.key, keyed.kind, item.meta.publisher);
        if !self.instances.contains_key(&key) {
            // The end of an unknown instance is delivered only if its key is known.
            if kind == ChangeKind::Unregistered
                || (kind != ChangeKind::Alive && keyed.key.is_empty())
            {
                return InsertOutcome::Withheld;
            }
            if self.instances.len() >= self.instances_max && !self.forget_dormant() {
                self.totals.rejected += 1;
                return InsertOutcome::Rejected;
            }
            let serialized = self.serialized_key(&item);
            let record = ReaderInstance::new(key, serialized, &self.qos);
            self.instances.insert(key, record);
        }
        let Some(record) = self.instances.get_mut(&key) else {
            return InsertOutcome::Withheld;
        };
        if kind == ChangeKind::Unregistered {
            return end_outcome(self.unregister(now, key, writer, item.meta));
        }
        record.writers.insert(writer);
        if let Some(owners) = owners
            && !owners.admits_instance(&mut record.owner, now, writer, alive)
        {
            if kind.is_unregistered() {
                self.unregister(now, key, writer, item.meta);
            }
            return InsertOutcome::Outranked;
        }
        if kind == ChangeKind::Alive {
            return self.add_sample(now, key, item);
        }
        let newest = record.newest;
        let reported = record.info.state != InstanceState::Disposed;
        let reported = reported && Some(self.next_position(&item.meta)) > newest;
        if reported {
            self.end_instance(now, key, InstanceState::Disposed, item.meta);
        }
        if kind.is_unregistered() {
            self.unregister(now, key, writer, item.meta);
        }
        end_outcome(reported)
    }

    /// Records a change for the DEADLINE before it is offered, because it waits for
    /// others first.
    pub fn note_received(&mut self, now: Instant, item: &QueuedSample) {
        self.notes_before_offer = true;
        let Some(keyed) = &item.instance else {
            return;
        };
        let key = keyed.info.key;
        let record = self.instances.get(&key);
        let owner = record.and_then(|record| record.owner.as_ref());
        if owner.is_some_and(|owner| owner.guid != item.meta.publisher) {
            return;
        }
        match keyed.kind {
            ChangeKind::Alive if record.is_some() || self.timers.len() < self.instances_max => {
                let due = now.after(self.qos.deadline);
                self.timers.set(key, InstanceTimer::Deadline, due);
            }
            ChangeKind::Disposed | ChangeKind::DisposedUnregistered => {
                self.timers.stop(key, InstanceTimer::Deadline);
            }
            // Others may still write it.
            ChangeKind::Alive | ChangeKind::Unregistered => {}
        }
    }

    fn serialized_key(&self, item: &QueuedSample) -> Bytes {
        match (item.instance.as_deref(), &item.body) {
            (Some(keyed), _) if !keyed.key.is_empty() => keyed.key.clone(),
            (_, SampleBody::Serialized(payload)) => {
                self.reader.key_of(payload).unwrap_or_default().into()
            }
            _ => Bytes::new(),
        }
    }

    /// Inserts a sample and sets its instance to ALIVE.
    fn add_sample(&mut self, now: Instant, key: KeyHash, mut item: QueuedSample) -> InsertOutcome {
        let position = self.next_position(&item.meta);
        let Some(record) = self.instances.get_mut(&key) else {
            return InsertOutcome::Withheld;
        };
        if record.newest < Some(position) {
            record.newest = Some(position);
            record.set_alive();
        }
        self.dormant.remove(&key);
        if let Some(keyed) = &mut item.instance {
            keyed.info = record.info;
        }
        self.timers.stop(key, InstanceTimer::Purge);
        if !self.notes_before_offer {
            let due = now.after(self.qos.deadline);
            self.timers.set(key, InstanceTimer::Deadline, due);
        }
        let passed = match &mut record.time_filter {
            None => Some(item),
            Some(separation) => {
                let before = separation.weight();
                let passed = separation.offer(now, item);
                self.queue.note_filter_bytes(before, separation.weight());
                self.totals.filtered += core::mem::take(&mut separation.filtered);
                let release = separation.release_at().unwrap_or(Instant::FAR_FUTURE);
                self.timers.set(key, InstanceTimer::Release, release);
                passed
            }
        };
        match passed {
            Some(item) => self.push(key, item),
            None => {
                self.make_space(key);
                InsertOutcome::Withheld
            }
        }
    }

    /// Queues a sample.
    fn push(&mut self, key: KeyHash, item: QueuedSample) -> InsertOutcome {
        let position = self.next_position(&item.meta);
        let Some(record) = self.instances.get_mut(&key) else {
            return InsertOutcome::Withheld;
        };
        let full = self.queue.is_instance_full(record);
        // Writers of this process have waited for space, or were refused.
        if full && item.meta.path != DeliveryPath::IntraProcess && self.blocked.is_none() {
            self.blocked = Some(item);
            return InsertOutcome::Queued;
        }
        if record.last_taken.is_some_and(|left| position < left) {
            self.totals.late += 1;
            return InsertOutcome::Withheld;
        }
        record.queued.insert(position);
        let is_crowded = item.charge.is_crowded();
        self.queue.put(position, item);
        self.make_space(key);
        if is_crowded {
            self.make_memory(position);
        }
        InsertOutcome::Queued
    }

    /// Under KEEP_LAST drops older samples of the writer of a new one, until the next
    /// one finds memory.
    fn make_memory(&mut self, newest: QueuePosition) {
        while let Some(oldest) = self.queue.crowded_by(newest) {
            self.remove(oldest);
            self.totals.overwritten += 1;
        }
    }

    /// Makes space under KEEP_LAST: drops older samples for one of this instance.
    /// If there are none, drops the sample of its time-based filter.
    fn make_space(&mut self, key: KeyHash) {
        let excess = |me: &Self| me.queue.sample_to_drop(me.instances.get(&key)?);
        while let Some(oldest) = excess(self) {
            self.remove(oldest);
            self.totals.overwritten += 1;
        }
        if self.queue.exceeds_bytes()
            && let Some(record) = self.instances.get_mut(&key)
            && let Some(separation) = &mut record.time_filter
        {
            self.queue.note_filter_bytes(separation.weight(), 0);
            separation.drop_held();
            self.totals.filtered += core::mem::take(&mut separation.filtered);
        }
    }

    fn next_position(&mut self, meta: &SampleMeta) -> QueuePosition {
        self.arrivals += 1;
        match self.qos.destination_order {
            DestinationOrder::BySource => {
                let stamp = meta.source.unwrap_or(meta.reception);
                QueuePosition {
                    source_timestamp: stamp,
                    publisher: meta.publisher,
                    sequence: meta.sequence,
                    arrival: self.arrivals,
                }
            }
            DestinationOrder::ByReception => QueuePosition::by_reception(self.arrivals),
        }
    }

    /// Removes the entry at a position.
    fn remove(&mut self, position: QueuePosition) -> Option<QueuedSample> {
        let item = self.queue.remove(position)?;
        if let Some(record) = self.instances.get_mut(&item.instance.as_ref()?.info.key) {
            if record.end == Some(position) {
                record.end = None;
            } else if record.queued.remove(&position) {
                record.last_taken = record.last_taken.max(Some(position));
            }
        }
        Some(item)
    }

    /// Ends an instance and queues the end among the samples.
    fn end_instance(&mut self, now: Instant, key: KeyHash, state: InstanceState, meta: SampleMeta) {
        let held = self.instances.get_mut(&key).and_then(|record| {
            record.info.state = state;
            let separation = record.time_filter.as_mut()?;
            separation.release(Instant::FAR_FUTURE)
        });
        if let Some(item) = held {
            self.queue.note_filter_bytes(item.weight(), 0);
            self.push(key, item);
        }
        let position = self.next_position(&meta);
        let Some(record) = self.instances.get_mut(&key) else {
            return;
        };
        let kind = match state {
            InstanceState::NoWriters => ChangeKind::Unregistered,
            _ => ChangeKind::Disposed,
        };
        let reported = QueuedSample {
            body: SampleBody::Serialized(record.key.clone()),
            meta,
            expires_at: Instant::FAR_FUTURE,
            instance: Some(Box::new(SampleInstance {
                info: record.info,
                kind,
                key: record.key.clone(),
            })),
            mark: None,
            related_identity: None,
            charge: SampleCharge::default(),
        };
        if let Some(older) = record.end.replace(position) {
            self.queue.remove(older);
        }
        record.newest = record.newest.max(Some(position));
        self.queue.put(position, reported);
        self.dormant.remove(&key);
        // A newer sample may have been received since it was disposed of.
        if !self.notes_before_offer || state != InstanceState::Disposed {
            self.timers.stop(key, InstanceTimer::Deadline);
        }
        self.timers.stop(key, InstanceTimer::Release);
        let delay = self.lifecycle.purge_delay(state);
        self.timers.set(key, InstanceTimer::Purge, now.after(delay));
    }

    /// Removes a writer from an instance. Returns whether that ends the instance.
    fn unregister(&mut self, now: Instant, key: KeyHash, writer: Guid, meta: SampleMeta) -> bool {
        let Some(record) = self.instances.get_mut(&key) else {
            return false;
        };
        record.writers.remove(&writer);
        record.owner.take_if(|owner| owner.guid == writer);
        let ends = record.writers.is_empty() && record.info.state == InstanceState::Alive;
        if ends {
            self.end_instance(now, key, InstanceState::NoWriters, meta);
        }
        self.forget_if_finished(key);
        ends
    }

    /// Adds a matched writer.
    pub fn note_writer(&mut self, writer: Guid) {
        self.departed_writers.retain(|(gone, _)| *gone != writer);
    }

    /// Removes a writer that is gone or not alive, after its samples that are held
    /// back. Returns whether some instance ends now.
    pub fn forget_writer(&mut self, now: Instant, writer: Guid, meta: SampleMeta) -> bool {
        if self.held_back {
            // Once, however often it loses liveliness meanwhile.
            self.note_writer(writer);
            self.departed_writers.push((writer, meta));
            return false;
        }
        let written = self.instances.iter();
        let written = written.filter(|(_, record)| record.writers.contains(&writer));
        let written: Vec<KeyHash> = written.map(|(key, _)| *key).collect();
        let mut ends = false;
        for key in written {
            ends |= self.unregister(now, key, writer, meta);
        }
        ends
    }

    /// Nothing is held back any more. Returns whether some instance ends now.
    pub fn handle_caught_up(&mut self, now: Instant) -> bool {
        let mut ends = false;
        if !self.held_back {
            for (writer, meta) in core::mem::take(&mut self.departed_writers) {
                ends |= self.forget_writer(now, writer, meta);
            }
        }
        ends
    }

    /// Takes the oldest sample or end of an instance. Expired samples are skipped.
    pub fn pop(&mut self, now: impl FnOnce() -> Instant) -> PoppedSample {
        let now = if self.next_may_expire() {
            now()
        } else {
            Instant::ZERO
        };
        let (mut found, mut left) = (None, false);
        while let Some((position, _)) = self.queue.first() {
            let Some(mut item) = self.remove(position) else {
                break;
            };
            left = true;
            let key = item.instance.as_ref().map(|keyed| keyed.info.key);
            if item.expires_at <= now {
                self.totals.expired += 1;
            } else {
                self.mark_taken(&mut item);
                found = Some(item);
            }
            if let Some(key) = key {
                self.forget_if_finished(key);
            }
            if found.is_some() {
                break;
            }
        }
        let queued_blocked = self.queue_blocked();
        let resume = self.held_back
            && self.blocked.is_none()
            && (queued_blocked || self.queue.is_half_empty());
        self.held_back &= !resume;
        PoppedSample {
            item: found,
            // A writer may wait for space in this one instance.
            freed_space: left && self.queue.keeps_all(),
            resume,
        }
    }

    fn next_may_expire(&self) -> bool {
        let next = self.queue.first();
        next.is_some_and(|(_, item)| item.expires_at != Instant::FAR_FUTURE)
    }

    /// Updates the instance state and view state that come with a taken sample.
    fn mark_taken(&mut self, item: &mut QueuedSample) {
        let is_end = item.is_end();
        if let Some(keyed) = &mut item.instance
            && let Some(record) = self.instances.get_mut(&keyed.info.key)
        {
            keyed.info.view = core::mem::replace(&mut record.info.view, ViewState::NotNew);
            if !is_end {
                keyed.info.state = record.info.state;
            }
        }
    }

    /// Queues the blocked sample if its instance has space now.
    fn queue_blocked(&mut self) -> bool {
        let key = self
            .blocked
            .as_ref()
            .and_then(|item| item.instance.as_ref());
        let Some(key) = key.map(|keyed| keyed.info.key) else {
            return false;
        };
        let record = self.instances.get(&key);
        if record.is_some_and(|record| self.queue.is_instance_full(record)) {
            return false;
        }
        if let Some(item) = self.blocked.take() {
            self.push(key, item);
        }
        true
    }

    /// Whether held-back samples have space because something was purged.
    pub fn take_resume(&mut self) -> bool {
        let purged = core::mem::take(&mut self.has_purged);
        let has_space = !self.is_full() && self.queue.is_half_empty();
        let resumes = purged && has_space && self.held_back;
        self.held_back &= !resumes;
        resumes
    }

    /// When [`InstanceCache::handle_timeout`] has work.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Handles due timers. Returns how many samples were queued.
    pub fn handle_timeout(&mut self, now: Instant) -> u64 {
        let mut released = 0;
        while let Some((key, timer)) = self.timers.pop_due(now) {
            match timer {
                InstanceTimer::Deadline => {
                    self.totals.deadlines_missed += 1;
                    // Samples of a set may never be released; one report is enough.
                    if self.instances.contains_key(&key) {
                        self.timers.set(key, timer, now.after(self.qos.deadline));
                    }
                }
                InstanceTimer::Release => released += u64::from(self.release(now, key)),
                InstanceTimer::Purge => self.purge(key),
            }
        }
        released
    }

    fn release(&mut self, now: Instant, key: KeyHash) -> bool {
        if self.is_full_for(&key) {
            let pause = self.qos.time_based_filter.max(FULL_PAUSE);
            let again = now.after(pause);
            self.timers.set(key, InstanceTimer::Release, again);
            return false;
        }
        let record = self.instances.get_mut(&key);
        let held = record.and_then(|record| record.time_filter.as_mut()?.release(now));
        held.is_some_and(|item| {
            self.queue.note_filter_bytes(item.weight(), 0);
            self.push(key, item) == InsertOutcome::Queued
        })
    }

    /// Purges the rest of an ended instance.
    fn purge(&mut self, key: KeyHash) {
        let Some(record) = self.instances.get(&key) else {
            return;
        };
        let left: Vec<QueuePosition> = record.queued.iter().chain(&record.end).copied().collect();
        for position in left {
            if self.remove(position).is_some_and(|item| !item.is_end()) {
                self.totals.purged += 1;
            }
        }
        // The blocked sample came before the end.
        let is_of_it = |item: &mut QueuedSample| {
            let keyed = item.instance.as_ref();
            keyed.is_some_and(|keyed| keyed.info.key == key)
        };
        if self.blocked.take_if(is_of_it).is_some() {
            self.totals.purged += 1;
        }
        self.has_purged = true;
        self.forget_if_finished(key);
    }

    fn forget_if_finished(&mut self, key: KeyHash) {
        let Some(record) = self
            .instances
            .get(&key)
            .filter(|record| record.is_finished())
        else {
            return;
        };
        if !record.writers.is_empty() {
            self.dormant.insert(key);
            return;
        }
        self.instances.remove(&key);
        self.dormant.remove(&key);
        self.timers.forget(key);
    }

    /// The first limit that is exceeded: what, how much is held, the limit.
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let (held, max) = (self.instances.len(), self.instances_max);
        let too_many = (held > max).then_some(("instances", held, max));
        too_many.or_else(|| self.queue.exceeded_limit(self.instances.values()))
    }

    /// Number of known instances.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.instances.len()
    }

    /// Number of departed writers that are not removed yet.
    #[cfg(test)]
    pub(crate) fn departed_writer_count(&self) -> usize {
        self.departed_writers.len()
    }

    fn forget_dormant(&mut self) -> bool {
        let Some(key) = self.dormant.pop_first() else {
            return false;
        };
        self.instances.remove(&key);
        self.timers.forget(key);
        true
    }
}

fn end_outcome(reported: bool) -> InsertOutcome {
    if reported {
        InsertOutcome::InstanceEndQueued
    } else {
        InsertOutcome::Withheld
    }
}

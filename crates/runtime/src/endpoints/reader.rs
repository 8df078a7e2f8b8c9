//! A subscription's endpoint: protocol machine, reader history cache and listeners.
//!
//! Neither `machine` nor `cache` is held while user code runs.
//!
//! The methods of `ReaderEndpoint` join machine, cache and events under the order of
//! their locks. Each of the three is a type of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use pteros_dcps::sample::DeliveryForm;
use pteros_msg::cdr::DecodeError;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::{CacheChange, ChangeKind};
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::qos::{Durability, EndpointQos, Reliability};
use pteros_rtps::reader::{Reader, ReaderEvent};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Instant, Timestamp};

use crate::endpoints::content_filter::IntraProcessFilter;
use crate::endpoints::event::{EndpointEvent, EndpointEvents};
use crate::endpoints::loss_report::ReceptionLosses;
use crate::endpoints::subscription_group::{GroupMembership, SubscriptionGroup};
use crate::instance::{InstanceCache, KeyHash, KeyReader, TopicKey, identify};
use crate::lock::{Mutex, MutexGuard, rank};
use crate::names::ros_topic;
use crate::qos::DataLifecycle;
use crate::sample::{
    ArrivalSummary, DeliveryPath, PoppedSample, QueuedSample, RelatedIdentity, SampleBody,
    SampleMeta,
};
use crate::scheduler::Scheduler;
use crate::scheduler::ready_queue::ReadySlot;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::trace::Tracer;
use crate::transport::holds::TransportHolds;
use pteros_dcps::cache::FullQueuePolicy;
use pteros_dcps::cache::ReaderCache;
use pteros_dcps::coherent::SOLE_READER;

/// Counters of a subscription since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderCounts {
    /// Samples put into the queue. In coherent sets and groups this includes
    /// samples that a filter, ownership or a limit rejects later, when they are
    /// taken.
    pub received: u64,
    /// Samples replaced by newer ones before they were taken (KEEP_LAST).
    pub overwritten: u64,
    /// Samples that never arrived, or that the queue refused.
    pub lost: u64,
    /// Samples whose LIFESPAN ended before they were taken.
    pub expired: u64,
    /// Samples that the time-based filter dropped.
    pub filtered: u64,
    /// Samples that the content filter rejected. Samples that a remote publisher
    /// filters never arrive and do not count.
    pub content_filtered: u64,
    /// Samples of publishers that did not own the topic (OWNERSHIP EXCLUSIVE).
    pub not_owner: u64,
    /// Samples older than one already taken (DESTINATION_ORDER by source), or than
    /// one already released (ordered access).
    pub late: u64,
    /// Samples of keyed topics whose instance exceeded the limit or could not be
    /// identified.
    pub rejected: u64,
    /// Samples purged with their instance (READER_DATA_LIFECYCLE).
    pub purged: u64,
    /// How often the state of a publisher was reset, because messages in its name
    /// contradicted each other. Most such messages are forged.
    pub resynchronised: u64,
    /// Coherent sets dropped as a whole: a sample never arrived, or the set was
    /// larger than the queue. Received samples of such sets count as lost.
    pub incomplete_sets: u64,
    /// Duplicates: samples that a durable publisher sent again after a restart.
    pub duplicates: u64,
    /// Taken samples that were not of the subscription's type, and were dropped. They
    /// count as received, too.
    pub undecodable: u64,
}

/// Receives samples as they arrive, on the thread that delivers them, under
/// internal locks. It must store what it needs and return. An error means that the
/// sample is not of the type.
pub type InlineListener = Box<dyn Fn(&QueuedSample) -> Result<(), DecodeError> + Send + Sync>;

/// A reader as the runtime knows it.
pub struct ReaderEndpoint {
    /// The data it was created with: names and immutable policies. See
    /// [`ReaderEndpoint::announced`] for the changeable ones.
    pub data: Arc<EndpointData>,
    pub(crate) announced: Mutex<Arc<EndpointData>, rank::AnnouncedData>,
    /// The form that its callback needs.
    pub delivery_form: DeliveryForm,
    /// Whether samples of the same node or context are ignored.
    pub ignore_local: bool,
    pub(crate) machine: Mutex<Reader, rank::ReaderMachine>,
    /// Its content filter, for publishers of this process.
    pub(crate) filter: IntraProcessFilter,
    cache: Mutex<ReaderCache, rank::ReaderCache>,
    needs_filtering: AtomicBool,
    /// Reads keys, if the topic has one.
    key: Option<Arc<dyn KeyReader>>,
    /// Its status events.
    pub events: Arc<EndpointEvents>,
    /// Where user code waits for samples.
    pub slot: ReadySlot,
    /// Publishers without liveliness whose instances are not updated yet.
    not_alive_writers: Mutex<Vec<Guid>, rank::NotAliveWriters>,
    pub(crate) received: AtomicU64,
    pub(crate) losses: ReceptionLosses,
    graph: AtomicBool,
    /// Receives its samples in place of a queue.
    pub(crate) listener: Option<InlineListener>,
    /// Held writers on further transports.
    pub(crate) transport_holds: TransportHolds,
    /// Its membership in a subscription group.
    pub(crate) group: Option<GroupMembership>,
    /// The tracer, in a traced context.
    pub(crate) tracer: Option<Arc<Tracer>>,
}

impl ReaderEndpoint {
    pub(crate) fn new(
        data: Arc<EndpointData>,
        delivery_form: DeliveryForm,
        ignore_local: bool,
        machine: Reader,
        filter: IntraProcessFilter,
        topic_key: &TopicKey,
        lifecycle: DataLifecycle,
    ) -> Self {
        let key = topic_key.reader().cloned();
        let cache = match &key {
            None => ReaderCache::new(&data.qos),
            Some(key) => {
                let instances = InstanceCache::new(key.clone(), &data.qos, lifecycle);
                ReaderCache::with_key(&data.qos, instances)
            }
        };
        Self {
            cache: Mutex::new(cache),
            needs_filtering: AtomicBool::new(
                key.is_some() || ReaderCache::needs_filtering(&data.qos),
            ),
            key,
            announced: Mutex::new(match filter.get() {
                None => data.clone(),
                Some(filter) => Arc::new(EndpointData {
                    content_filter: Some(filter.property().clone()),
                    ..(*data).clone()
                }),
            }),
            data,
            delivery_form,
            ignore_local,
            machine: Mutex::new(machine),
            filter,
            events: Arc::default(),
            slot: ReadySlot::default(),
            not_alive_writers: Mutex::default(),
            received: AtomicU64::new(0),
            losses: ReceptionLosses::default(),
            graph: AtomicBool::new(false),
            listener: None,
            transport_holds: TransportHolds::default(),
            group: None,
            tracer: None,
        }
    }

    /// The data that discovery announces now, with changed policies and content
    /// filter.
    pub fn announced(&self) -> Arc<EndpointData> {
        self.announced.lock().clone()
    }

    /// Makes it a member of a group, which holds coherent sets for it.
    pub(crate) fn in_group(mut self, group: &Arc<SubscriptionGroup>) -> Self {
        let limits = self.cache.get_mut().take_sets_limits();
        self.group = Some(group.add_reader(self.data.guid, &self.data.qos, limits));
        *self.needs_filtering.get_mut() = true;
        self
    }

    /// Whether its topic has a key.
    pub(crate) fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// Marks the reader of the ROS graph, which user code does not read.
    pub(crate) fn mark_as_graph_reader(&self) {
        self.graph.store(true, Ordering::Release);
    }

    pub(crate) fn is_graph(&self) -> bool {
        self.graph.load(Ordering::Acquire)
    }

    /// Takes the oldest sample of a reader outside of groups. The caller acts on
    /// [`PoppedSample`], see [`TakePath::take`](crate::TakePath::take).
    pub(crate) fn pop(&self, now: impl Fn() -> Instant) -> PoppedSample {
        if self.holds_samples() {
            return self.pop_of_sets(now);
        }
        self.cache.lock().pop(now)
    }

    /// Whether a sample can be taken.
    pub fn has_samples(&self) -> bool {
        let in_group = self
            .group
            .as_ref()
            .is_some_and(|m| m.group.has_takeable(m.index));
        in_group || !self.cache.lock().has_no_samples()
    }

    /// Whether another datagram fits without replacing a queued sample. A datagram may
    /// contain several samples, so half of the history must be free. With keys or sets,
    /// all of it.
    pub(crate) fn has_space(&self) -> bool {
        if self.is_keyed() || self.holds_samples() {
            return !self.has_samples();
        }
        let (held, max) = self.cache.lock().queue.held_and_limit();
        held <= max.saturating_sub(1) / 2
    }

    /// The queue that exceeds its limit, if any.
    pub(crate) fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let (held, max) = self.cache.lock().queue.held_and_limit();
        if held > max {
            return Some(("samples to take", held, max));
        }
        let of_instances = |cache: &ReaderCache| {
            let instances = cache.instances.as_ref()?;
            instances.exceeded_limit()
        };
        let exceeded = of_instances(&self.cache.lock());
        let index = self.member_index();
        let of_sets = || self.with_sets(|sets| sets.exceeded_limit(index)).flatten();
        exceeded.or_else(of_sets)
    }

    /// Number of matched publishers, local ones included.
    pub fn matched_count(&self) -> usize {
        self.events.matched_count()
    }

    /// The matched publishers, local ones included.
    pub fn matched(&self) -> Vec<Guid> {
        self.machine.lock().matched().collect()
    }

    /// Lowest sequence number of a remote publisher that is neither received nor
    /// irrelevant. `None` if it is not matched.
    pub fn first_missing(&self, writer: Guid) -> Option<SequenceNumber> {
        self.machine.lock().first_missing(writer)
    }

    /// Samples of other processes that waited for an earlier sample or for space.
    pub fn delayed_count(&self) -> u64 {
        let machine = self.machine.lock();
        let stats = machine.stats();
        stats.reordered.saturating_add(stats.buffer_full)
    }

    /// The counters.
    pub fn counts(&self) -> ReaderCounts {
        let stats = *self.machine.lock().stats();
        let unwanted = stats.filtered + self.filter.rejected_count();
        let of_group = self.group.as_ref().map(|m| m.group.totals(m.index));
        let cache = self.cache.lock();
        let totals = cache.totals();
        let of_sets = cache.sets.as_ref().map(|sets| sets.totals(SOLE_READER));
        let sets = of_group.or(of_sets).unwrap_or_default();
        ReaderCounts {
            received: self.received.load(Ordering::Relaxed) + cache.received,
            overwritten: totals.overwritten + sets.overwritten,
            lost: self.losses.lost(),
            expired: totals.expired + sets.expired,
            filtered: totals.filtered,
            content_filtered: unwanted,
            not_owner: cache.not_owner_count(),
            late: totals.late + sets.late,
            rejected: totals.rejected + stats.samples_rejected,
            resynchronised: stats.resynchronised,
            purged: totals.purged,
            incomplete_sets: sets.incomplete,
            duplicates: cache.duplicate_count(),
            undecodable: self.losses.undecodable.total(),
        }
    }

    /// Whether samples must pass [`Self::deliver_filtered`].
    pub(crate) fn needs_filtering(&self) -> bool {
        self.needs_filtering.load(Ordering::Relaxed)
    }

    /// Filters samples from now on. The filters remain active, because samples that they
    /// hold must be released.
    pub(crate) fn require_filtering(&self) {
        self.needs_filtering.store(true, Ordering::Relaxed);
    }

    /// Delivers a sample of a publisher of this process.
    pub(crate) fn deliver_local(&self, item: QueuedSample, when_full: FullQueuePolicy) {
        let mut cache = self.cache.lock();
        let item = match cache.enqueue_or_drop(item, when_full) {
            Ok(item) => item,
            Err(lost) => {
                drop(cache);
                return self.note_lost(lost);
            }
        };
        let queued = cache.queue.push_or_drop_oldest(item);
        cache.received += u64::from(queued);
        drop(cache);
        if queued {
            self.slot.mark_ready();
        }
    }

    /// As [`Self::deliver_local`], where a policy or an instance filters each
    /// sample.
    pub(crate) fn deliver_filtered(
        &self,
        now: Instant,
        machine: &mut Reader,
        item: QueuedSample,
        when_full: FullQueuePolicy,
    ) {
        if self.holds_samples() {
            let may_refuse = when_full != FullQueuePolicy::WriterWaited;
            self.offer_or_refuse(now, machine, item, may_refuse);
            return;
        }
        if item.is_end() && self.key.is_none() {
            return;
        }
        let mut cache = self.cache.lock();
        let item = match cache.enqueue_or_drop(item, when_full) {
            Ok(item) => item,
            Err(lost) => {
                drop(cache);
                return self.note_lost(lost);
            }
        };
        if cache.is_duplicate_sample(&item) {
            return;
        }
        let mut arrived = ArrivalSummary::default();
        arrived.add(cache.insert(now, machine, item));
        drop(cache);
        self.notify_arrival(&arrived);
    }

    /// Notifies user code about arrived samples.
    pub(crate) fn notify_arrival(&self, arrived: &ArrivalSummary) {
        if arrived.rejected {
            self.note_rejected();
        }
        if let Some(total) = arrived.deadlines_missed {
            self.events.push(EndpointEvent::DeadlineMissed { total });
        }
        self.note_received(arrived.samples);
        if arrived.has_instance_end {
            self.slot.mark_ready();
        }
    }

    /// Reports samples that were rejected: beyond the instance limit, without a
    /// readable key, or for lack of receive memory.
    fn note_rejected(&self) {
        let by_cache = self.cache.lock().totals().rejected;
        let total = self.losses.add_rejected(by_cache, !self.is_graph());
        self.events.push(EndpointEvent::SampleRejected { total });
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, ReaderCache, rank::ReaderCache> {
        self.cache.lock()
    }

    pub(crate) fn note_received(&self, count: u64) {
        if count > 0 {
            self.received.fetch_add(count, Ordering::Relaxed);
            self.slot.mark_ready();
        }
    }

    /// Notifies user code that samples can be taken.
    pub(crate) fn notify_ready(&self, samples: u64) {
        self.note_received(samples);
        if samples == 0 {
            self.slot.mark_ready();
        }
    }

    /// Adds a matched publisher, or updates its ownership strength.
    pub(crate) fn note_writer(&self, writer: Guid, strength: i32) {
        let mut cache = self.cache.lock();
        if let Some(owners) = &mut cache.owners {
            owners.note_strength(writer, strength);
        }
        if let Some(instances) = &mut cache.instances {
            instances.note_writer(writer);
        }
    }

    /// Adds a matched publisher. If it is durable, it may replay samples received
    /// before. Returns whether duplicates are filtered.
    pub(crate) fn note_durable(&self, writer: Guid, qos: &EndpointQos) -> bool {
        let looked_at = qos.durability >= Durability::Transient
            && self.data.qos.durability != Durability::Volatile;
        if looked_at {
            let mut cache = self.cache.lock();
            cache
                .duplicate_filter
                .get_or_insert_default()
                .note_durable(writer);
        }
        looked_at
    }

    /// Handles the end of a participant. `restarted`: another one has its GUID prefix.
    pub(crate) fn forget_participant(&self, prefix: GuidPrefix, restarted: bool) {
        if self.holds_samples() {
            self.with_sets(|sets| sets.forget_participant(prefix));
        }
        if !restarted {
            return;
        }
        self.machine.lock().forget_resume_points(prefix);
        if let Some(originals) = &mut self.cache.lock().duplicate_filter {
            originals.forget_participant(prefix);
        }
    }

    /// Notes that a publisher was removed, before its last samples are delivered.
    pub(crate) fn note_gone(&self, writer: Guid) {
        if let Some(originals) = &mut self.cache.lock().duplicate_filter {
            originals.note_gone(writer);
        }
    }

    /// Removes a publisher. All its samples were delivered or are held back.
    pub(crate) fn forget_writer(&self, now: Instant, writer: Guid, wall: Timestamp) {
        let mut cache = self.cache.lock();
        if let Some(owners) = &mut cache.owners {
            owners.forget(writer);
        }
        let lost = cache.remove_blocked_of(writer);
        self.losses.undecodable.forget_writer(writer);
        let ends = self.end_writer_instances(&mut cache, now, writer, wall);
        drop(cache);
        if lost > 0 {
            self.note_lost(lost);
        }
        if ends {
            self.slot.mark_ready();
        }
    }

    /// Removes a publisher from its instances, because it was removed or is not alive.
    fn end_writer_instances(
        &self,
        cache: &mut ReaderCache,
        now: Instant,
        writer: Guid,
        wall: Timestamp,
    ) -> bool {
        let Some(instances) = &mut cache.instances else {
            return false;
        };
        let meta = SampleMeta {
            source: None,
            reception: wall,
            sequence: 0,
            publisher: writer,
            path: if writer.prefix == self.data.guid.prefix {
                DeliveryPath::IntraProcess
            } else {
                DeliveryPath::Network
            },
        };
        instances.forget_writer(now, writer, meta)
    }

    /// Schedules the next timeout of the machine, of held samples and of reports. Call
    /// under the machine's lock: a later timeout must not be overwritten.
    pub(crate) fn schedule(&self, scheduler: &Scheduler, machine: &Reader) {
        let held = if self.needs_filtering() {
            self.cache.lock().next_timeout()
        } else {
            None
        };
        let group = self.group.as_ref().and_then(|m| m.group.wakes_at());
        let times = [machine.next_timeout(), held, group, self.losses.due_at()];
        let next = times.into_iter().flatten().min();
        scheduler.schedule(TimeoutOwner::Reader(self.data.guid.entity), next);
    }

    /// Whether a local KEEP_ALL delivery must wait; `key` identifies the instance.
    pub(crate) fn is_full_for(&self, key: Option<&KeyHash>) -> bool {
        if let Some(member) = &self.group {
            return member.group.is_full(member.index);
        }
        self.cache.lock().is_full_for_local(key)
    }

    /// Moves the output of the machine to the history cache and notifies user code.
    pub(crate) fn collect(&self, now: Instant, machine: &mut Reader, wall: Timestamp) {
        // Repeats while due timeouts make space.
        while self.collect_once(now, machine, wall) {}
        self.collect_events(machine);
        self.losses.log_due(now, &self.data);
        self.end_not_alive_writers(now, wall);
    }

    fn collect_once(&self, now: Instant, machine: &mut Reader, wall: Timestamp) -> bool {
        let mut arrived = ArrivalSummary::default();
        let mut cache = if self.holds_samples() {
            self.collect_to_sets(now, machine, wall);
            self.cache.lock()
        } else {
            let mut cache = self.cache.lock();
            self.collect_changes(now, &mut cache, machine, wall, &mut arrived);
            cache
        };
        let before = cache.totals().deadlines_missed;
        arrived.samples += cache.handle_timeout(now);
        let mut resumes = false;
        if let Some(instances) = &mut cache.instances {
            resumes = instances.take_resume();
            if !resumes {
                arrived.has_instance_end |= instances.handle_caught_up(now);
            }
            let missed = instances.totals.deadlines_missed;
            arrived.deadlines_missed = (missed > before).then_some(missed);
        }
        drop(cache);
        self.notify_arrival(&arrived);
        resumes
    }

    /// Inserts changes of the machine while there is space.
    fn collect_changes(
        &self,
        now: Instant,
        cache: &mut ReaderCache,
        machine: &mut Reader,
        wall: Timestamp,
        arrived: &mut ArrivalSummary,
    ) {
        cache.deliver_unblocked(now, machine, arrived);
        loop {
            // Reliable writers keep the remaining samples; `TakePath::take` fetches them.
            if cache.holds_back_when_full(machine) {
                break;
            }
            let Some(change) = machine.poll_sample() else {
                break;
            };
            self.insert_change(now, cache, machine, change, wall, arrived);
        }
    }

    /// Inserts one change received from the network.
    fn insert_change(
        &self,
        now: Instant,
        cache: &mut ReaderCache,
        machine: &mut Reader,
        change: CacheChange,
        wall: Timestamp,
        arrived: &mut ArrivalSummary,
    ) {
        let original = change.original_writer_info;
        if cache.is_duplicate(change.writer, change.sequence.0, original) {
            return;
        }
        for item in self
            .queued_samples_of(change, wall, arrived)
            .into_iter()
            .flatten()
        {
            arrived.add(cache.insert(now, machine, item));
        }
    }

    /// Converts a received change into samples: data, the end of an instance, both or
    /// none.
    pub(crate) fn queued_samples_of(
        &self,
        change: CacheChange,
        wall: Timestamp,
        arrived: &mut ArrivalSummary,
    ) -> [Option<QueuedSample>; 2] {
        let meta = SampleMeta {
            source: change.source_timestamp,
            reception: wall,
            sequence: change.sequence.0,
            publisher: change.writer,
            path: change.carrier.into(),
        };
        if let Some(tracer) = &self.tracer {
            tracer.note_arrived(self.data.guid.entity, &meta, change.payload.len());
        }
        let mut instance = None;
        match &self.key {
            None if change.kind != ChangeKind::Alive => return [None, None],
            None => {}
            Some(key) => match identify(&**key, &change) {
                Some(keyed) => instance = Some(Box::new(keyed)),
                None => {
                    arrived.rejected = true;
                    return [None, None];
                }
            },
        }
        let mut item = QueuedSample {
            body: SampleBody::Serialized(change.payload),
            meta,
            expires_at: change.expires_at,
            instance,
            mark: change.coherent_mark,
            related_identity: RelatedIdentity::new(
                change.original_writer_info,
                change.related_sample_identity,
            ),
            charge: change.charge,
        };
        if item.is_end() && !change.key_only && !item.body_is_empty() {
            // Written and disposed of in one change: a sample, then the end of its
            // instance.
            let mut sample = item.clone();
            if let Some(keyed) = &mut sample.instance {
                keyed.kind = ChangeKind::Alive;
            }
            item.expires_at = Instant::FAR_FUTURE;
            return [Some(sample), Some(item)];
        }
        [Some(item), None]
    }

    /// Moves events of the machine to the event queue and notifies user code.
    pub(crate) fn collect_events(&self, machine: &mut Reader) {
        while let Some(event) = machine.poll_event() {
            self.handle_machine_event(event);
        }
        let rejected = machine.stats().samples_rejected;
        if self.losses.set_rejected_by_machine(rejected) {
            self.note_rejected();
        }
    }

    fn handle_machine_event(&self, event: ReaderEvent) {
        match event {
            ReaderEvent::SampleLost { count, .. } => self.note_lost(count),
            ReaderEvent::MemoryFull {
                writer,
                sample_bytes,
                fill,
            } => tracing::warn!(
                endpoint = %self.data.guid,
                "topic \"{}\": a sample of {sample_bytes} bytes from {writer} was refused: \
                 the receive memory is full. Its participant occupies {} of {} bytes, all \
                 participants {} of {}. A reliable publisher sends it again. Take samples \
                 sooner, or raise limits.participant_memory_bytes or \
                 limits.receive_memory_bytes of the context if such samples are expected",
                ros_topic(&self.data.topic),
                fill.participant,
                fill.participant_max,
                fill.context,
                fill.context_max
            ),
            // Discovery detects it as well and ends the match.
            ReaderEvent::WriterReset { .. } => {}
            ReaderEvent::Resynchronised { writer } => {
                self.losses.log_resynchronisation(&self.data, writer);
            }
            ReaderEvent::DeadlineMissed { total, .. } => {
                self.events.push(EndpointEvent::DeadlineMissed { total });
            }
            ReaderEvent::LivelinessChanged {
                alive_count,
                not_alive_count,
                not_alive_change,
                writer,
                ..
            } => {
                if self.key.is_some() && not_alive_change > 0 {
                    self.not_alive_writers.lock().push(writer);
                }
                self.events.push(EndpointEvent::LivelinessChanged {
                    alive: alive_count as usize,
                    not_alive: not_alive_count as usize,
                    writer,
                });
            }
        }
    }

    /// Sets instances to NOT_ALIVE_NO_WRITERS if all publishers that wrote them are not
    /// alive.
    fn end_not_alive_writers(&self, now: Instant, wall: Timestamp) {
        if self.key.is_none() {
            return;
        }
        let silent = std::mem::take(&mut *self.not_alive_writers.lock());
        let mut ends = false;
        for writer in silent {
            ends |= self.end_writer_instances(&mut self.cache.lock(), now, writer, wall);
        }
        if ends {
            self.slot.mark_ready();
        }
    }

    /// Whether losses are logged. Best effort promises no delivery, and users do not read
    /// the graph's topic.
    fn tells_losses(&self) -> bool {
        self.data.qos.reliability == Reliability::Reliable && !self.is_graph()
    }

    /// Samples lost so far to a reliable subscription, else 0.
    pub(crate) fn told_losses(&self) -> u64 {
        if self.tells_losses() {
            self.losses.lost()
        } else {
            0
        }
    }

    pub(crate) fn note_lost(&self, count: u64) {
        if count == 0 {
            return;
        }
        let total = self.losses.add_lost(count, self.tells_losses());
        self.events.push(EndpointEvent::SampleLost { total, count });
    }
}

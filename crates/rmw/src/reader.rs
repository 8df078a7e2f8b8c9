//! One subscription's endpoint: the protocol machine, the queue of samples
//! and the place where user code is told.
//!
//! Lock order within an endpoint: `machine`, then `intake`. Neither is held
//! while user code runs.

use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::{CacheChange, ChangeKind};
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::qos::{Durability, EndpointQos};
use pteros_rtps::reader::{Reader, ReaderEvent};
use pteros_rtps::time::{Instant, Timestamp};

use crate::backlog::WhenFull;
use crate::coherent::SOLE;
use crate::content_filter::LocalFilter;
use crate::event::{EndpointEvent, Events};
use crate::instance::{Instances, KeyHash, KeyReader, Keying, Lifecycle, identify};
use crate::intake::{Entered, Intake};
use crate::ready::Slot;
use crate::sample::{Body, Item, Kin, Path, Popped, SampleMeta};
use crate::subscription_group::{Membership, SubscriptionGroup};
use crate::trace::Tracer;

/// What a subscription's callback wants to be handed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wants {
    /// Shared values of one Rust type; serialized ones are decoded on take.
    Type(TypeId),
    /// Serialized bytes always (raw subscriptions).
    Bytes,
}

impl Wants {
    /// Whether a message is handed over in this form.
    pub(crate) fn takes(self, body: &Body) -> bool {
        match body.shared_type() {
            None => true,
            Some(ty) => self == Self::Type(ty),
        }
    }
}

/// The counters of a subscription. Totals since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderCounts {
    /// Samples put into the queue. Where they wait for others (coherent sets,
    /// groups), what a filter, an owner or a limit keeps back counts here as
    /// well: it is asked when they are taken.
    pub received: u64,
    /// Samples that made room for newer ones before being taken.
    pub overwritten: u64,
    /// Samples that never came, or came when the queue refused them.
    pub lost: u64,
    /// Samples whose lifespan ended before they were taken.
    pub expired: u64,
    /// Samples that came too soon after another for the time based filter.
    pub filtered: u64,
    /// Samples that the content filter did not let pass. Those that a publisher
    /// of another process kept back never arrive and do not count.
    pub unwanted: u64,
    /// Samples of publishers that did not own the topic (exclusive ownership).
    pub outranked: u64,
    /// Samples older than one already taken (destination order by source), or
    /// handed on (ordered access to a publisher).
    pub late: u64,
    /// Samples of keyed topics for whose instance there was no place, or whose
    /// instance could not be told.
    pub rejected: u64,
    /// Samples thrown away with their instance (READER_DATA_LIFECYCLE).
    pub purged: u64,
    /// Coherent sets dropped whole: a sample of them never came, or they were
    /// larger than the queue. Their samples that did come count as lost.
    pub incomplete_sets: u64,
    /// Samples of a durable publisher's earlier life that had come before.
    pub repeated: u64,
}

/// Looks at samples as they come, on whichever thread brings them, under locks of
/// ours: it notes what they say and returns.
pub type Attendant = Box<dyn Fn(&Item) + Send + Sync>;

/// A reader as the runtime knows it.
pub struct ReaderEndpoint {
    /// What it was made with: names and the policies that never change. The
    /// others are as they are in [`ReaderEndpoint::announced`].
    pub data: Arc<EndpointData>,
    pub(crate) announced: Mutex<Arc<EndpointData>>,
    /// What local publishers must bring.
    pub wants: Wants,
    /// Whether samples of the same node or context are ignored.
    pub ignore_local: bool,
    pub(crate) machine: Mutex<Reader>,
    /// The machine's content filter, for publishers of this process.
    pub(crate) filter: LocalFilter,
    intake: Mutex<Intake>,
    judges: AtomicBool,
    /// Reads keys, where instances are told apart.
    key: Option<Arc<dyn KeyReader>>,
    /// What happens to it besides samples.
    pub events: Arc<Events>,
    /// Where user code waits for samples.
    pub slot: Slot,
    /// Publishers that fell silent, until their instances are looked after.
    silent: Mutex<Vec<Guid>>,
    pub(crate) received: AtomicU64,
    lost: AtomicU64,
    graph: AtomicBool,
    /// Who takes its samples in place of user code.
    pub(crate) attendant: Option<Attendant>,
    /// Whoever it is presented with.
    pub(crate) group: Option<Membership>,
    /// What notes its samples, in a context that is traced.
    pub(crate) tracer: Option<Arc<Tracer>>,
}

impl ReaderEndpoint {
    pub(crate) fn new(
        data: Arc<EndpointData>,
        wants: Wants,
        ignore_local: bool,
        (machine, filter): (Reader, LocalFilter),
        keying: (&Keying, Lifecycle),
    ) -> Self {
        let key = keying.0.reader().cloned();
        let intake = match &key {
            None => Intake::new(&data.qos),
            Some(key) => {
                let instances = Instances::new(key.clone(), &data.qos, keying.1);
                Intake::keyed(&data.qos, instances)
            }
        };
        Self {
            intake: Mutex::new(intake),
            judges: AtomicBool::new(key.is_some() || Intake::judges(&data.qos)),
            key,
            announced: Mutex::new(match filter.get() {
                None => data.clone(),
                Some(filter) => Arc::new(EndpointData {
                    content_filter: Some(filter.property().clone()),
                    ..(*data).clone()
                }),
            }),
            data,
            wants,
            ignore_local,
            machine: Mutex::new(machine),
            filter,
            events: Arc::default(),
            slot: Slot::default(),
            silent: Mutex::default(),
            received: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            graph: AtomicBool::new(false),
            attendant: None,
            group: None,
            tracer: None,
        }
    }

    /// As one of a group, which holds what waits for others.
    pub(crate) fn in_group(mut self, group: &Arc<SubscriptionGroup>) -> Self {
        let room = self.intake.get_mut().give_up_sets();
        self.group = Some(group.join(self.data.guid, &self.data.qos, room));
        *self.judges.get_mut() = true;
        self
    }

    /// Whether instances are told apart.
    pub(crate) fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// Marks the graph's own reader, which no user code empties.
    pub(crate) fn mark_graph(&self) {
        self.graph.store(true, Ordering::Release);
    }

    pub(crate) fn is_graph(&self) -> bool {
        self.graph.load(Ordering::Acquire)
    }

    /// Takes the oldest sample of a reader in no group; the caller does what
    /// [`Popped`] asks for, see
    /// [`Core::take`](crate::Core::take).
    pub(crate) fn pop(&self, now: impl Fn() -> Instant) -> Popped {
        if self.holds_samples() {
            return self.pop_of_sets(now);
        }
        self.intake.lock().pop(now)
    }

    /// Whether a sample waits.
    pub fn has_samples(&self) -> bool {
        let in_group = self.group.as_ref().is_some_and(|m| m.group.shows(m.place));
        in_group || !self.intake.lock().has_nothing()
    }

    /// The queue of samples, instances or sets, if one has outgrown its limit.
    pub(crate) fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let (held, max) = self.intake.lock().queue.held();
        if held > max {
            return Some(("samples to take", held, max));
        }
        let of_instances = |intake: &Intake| {
            let instances = intake.instances.as_ref()?;
            instances.exceeded_limit()
        };
        let exceeded = of_instances(&self.intake.lock());
        exceeded.or_else(|| self.exceeded_limit_of_sets())
    }

    /// Publishers matched now, local ones included.
    pub fn matched_count(&self) -> usize {
        self.events.matched_count()
    }

    /// The publishers matched now, local ones included.
    pub fn matched(&self) -> Vec<Guid> {
        self.machine.lock().matched().collect()
    }

    /// Samples of other processes that had to wait for an earlier one or for
    /// room; the rest were there when they came.
    pub fn held_up(&self) -> u64 {
        let machine = self.machine.lock();
        let stats = machine.stats();
        stats.reordered.saturating_add(stats.no_room)
    }

    /// The counters.
    pub fn counts(&self) -> ReaderCounts {
        let unwanted = self.machine.lock().stats().filtered + self.filter.kept_out();
        let of_group = self.group.as_ref().map(|m| m.group.totals(m.place));
        let intake = self.intake.lock();
        let totals = intake.totals();
        let of_sets = intake.sets.as_ref().map(|sets| sets.totals(SOLE));
        let sets = of_group.or(of_sets).unwrap_or_default();
        ReaderCounts {
            received: self.received.load(Ordering::Relaxed) + intake.received,
            overwritten: totals.overwritten + sets.overwritten,
            lost: self.lost.load(Ordering::Relaxed),
            expired: totals.expired + sets.expired,
            filtered: totals.filtered,
            unwanted,
            outranked: intake.outranked(),
            late: totals.late + sets.late,
            rejected: totals.rejected,
            purged: totals.purged,
            incomplete_sets: sets.incomplete,
            repeated: intake.repeated(),
        }
    }

    /// Whether samples must come by [`Self::deliver_judged`].
    pub(crate) fn judges(&self) -> bool {
        self.judges.load(Ordering::Relaxed)
    }

    /// Its policies ask for judges from now on. They stay when nobody asks any
    /// more: what they hold must be let go by them.
    pub(crate) fn call_judges(&self) {
        self.judges.store(true, Ordering::Relaxed);
    }

    /// Whether a sample ever came.
    pub(crate) fn has_received(&self) -> bool {
        self.received.load(Ordering::Relaxed) + self.intake.lock().received > 0
    }

    /// Hands over a sample of a publisher of this process.
    pub(crate) fn deliver_local(&self, item: Item, when_full: WhenFull) {
        let mut intake = self.intake.lock();
        let item = match intake.line_up(item, when_full) {
            Ok(item) => item,
            Err(lost) => {
                drop(intake);
                return self.note_lost(lost);
            }
        };
        let queued = intake.queue.push_or_drop_oldest(item);
        intake.received += u64::from(queued);
        drop(intake);
        if queued {
            self.slot.ready();
        }
    }

    /// As [`Self::deliver_local`], where a policy or an instance judges each
    /// sample.
    pub(crate) fn deliver_judged(
        &self,
        now: Instant,
        machine: &mut Reader,
        item: Item,
        when_full: WhenFull,
    ) {
        if self.holds_samples() {
            let may_refuse = when_full != WhenFull::Waited;
            self.offer_or_refuse(now, machine, item, may_refuse);
            return;
        }
        if item.is_end() && self.key.is_none() {
            return;
        }
        let mut intake = self.intake.lock();
        let item = match intake.line_up(item, when_full) {
            Ok(item) => item,
            Err(lost) => {
                drop(intake);
                return self.note_lost(lost);
            }
        };
        if intake.is_repeated_item(&item) {
            return;
        }
        let mut arrived = Arrived::default();
        arrived.note(enter(&mut intake, now, machine, item));
        drop(intake);
        self.note_arrived(&arrived);
    }

    /// Tells user code what came.
    pub(crate) fn note_arrived(&self, arrived: &Arrived) {
        if arrived.rejected {
            let total = self.intake.lock().totals().rejected;
            self.events.note(EndpointEvent::SampleRejected { total });
        }
        if let Some(total) = arrived.deadlines_missed {
            self.events.note(EndpointEvent::DeadlineMissed { total });
        }
        self.note_received(arrived.samples);
        if arrived.ends {
            self.slot.ready();
        }
    }

    pub(crate) fn intake(&self) -> MutexGuard<'_, Intake> {
        self.intake.lock()
    }

    pub(crate) fn note_received(&self, count: u64) {
        if count > 0 {
            self.received.fetch_add(count, Ordering::Relaxed);
            self.slot.ready();
        }
    }

    /// Something waits to be taken, of which so many are samples.
    pub(crate) fn note_ready(&self, samples: u64) {
        self.note_received(samples);
        if samples == 0 {
            self.slot.ready();
        }
    }

    /// A publisher matched, or announces another ownership strength.
    pub(crate) fn note_writer(&self, writer: Guid, strength: i32) {
        let mut intake = self.intake.lock();
        if let Some(owners) = &mut intake.owners {
            owners.note_strength(writer, strength);
        }
        if let Some(instances) = &mut intake.instances {
            instances.note_writer(writer);
        }
    }

    /// A publisher matched; what it brings from an earlier life may have been
    /// had. Returns whether that is looked at.
    pub(crate) fn note_durable(&self, writer: Guid, qos: &EndpointQos) -> bool {
        let looked_at = qos.durability >= Durability::Transient
            && self.data.qos.durability != Durability::Volatile;
        if looked_at {
            let mut intake = self.intake.lock();
            intake
                .originals
                .get_or_insert_default()
                .note_durable(writer);
        }
        looked_at
    }

    /// A participant began anew under its old name.
    pub(crate) fn forget_participant(&self, prefix: GuidPrefix) {
        if let Some(originals) = &mut self.intake.lock().originals {
            originals.forget_participant(prefix);
        }
    }

    /// A publisher is gone, and all it wrote has been handed over or is held
    /// back.
    pub(crate) fn forget_writer(&self, now: Instant, writer: Guid, wall: Timestamp) {
        let mut intake = self.intake.lock();
        if let Some(owners) = &mut intake.owners {
            owners.forget(writer);
        }
        if let Some(originals) = &mut intake.originals {
            originals.forget_durable(writer);
        }
        let lost = intake.forget_backlog_of(writer);
        let ends = self.end_writing(&mut intake, now, writer, wall);
        drop(intake);
        if lost > 0 {
            self.note_lost(lost);
        }
        if ends {
            self.slot.ready();
        }
    }

    /// A publisher writes no instance any more: it is gone or silent.
    fn end_writing(
        &self,
        intake: &mut Intake,
        now: Instant,
        writer: Guid,
        wall: Timestamp,
    ) -> bool {
        let Some(instances) = &mut intake.instances else {
            return false;
        };
        let meta = SampleMeta {
            source: None,
            reception: wall,
            sequence: 0,
            publisher: writer,
            path: match writer.prefix == self.data.guid.prefix {
                true => Path::IntraProcess,
                false => Path::Network,
            },
        };
        instances.forget_writer(now, writer, meta)
    }

    /// When the machine, or a sample held by the time filter, is due.
    pub(crate) fn next_timeout(&self, machine: &Reader) -> Option<Instant> {
        let next = machine.next_timeout();
        let held = match self.judges() {
            true => self.intake.lock().next_timeout(),
            false => None,
        };
        let group = self.group.as_ref().and_then(|m| m.group.wakes_at());
        [next, held, group].into_iter().flatten().min()
    }

    /// Whether a local KEEP_ALL delivery would have to wait; `key` is its
    /// instance's.
    pub(crate) fn is_full_for(&self, key: Option<&KeyHash>) -> bool {
        if let Some(member) = &self.group {
            return member.group.is_full(member.place);
        }
        self.intake.lock().is_full_for(key)
    }

    /// Moves what the machine has produced to the queue and tells user code.
    pub(crate) fn collect(&self, now: Instant, machine: &mut Reader, wall: Timestamp) {
        // Again where what is due makes room.
        while self.collect_once(now, machine, wall) {}
        self.collect_events(machine);
        self.end_silent(now, wall);
    }

    fn collect_once(&self, now: Instant, machine: &mut Reader, wall: Timestamp) -> bool {
        let mut arrived = Arrived::default();
        let mut intake = match self.holds_samples() {
            true => {
                self.collect_to_sets(now, machine, wall);
                self.intake.lock()
            }
            false => {
                let mut intake = self.intake.lock();
                self.collect_changes(now, &mut intake, machine, wall, &mut arrived);
                intake
            }
        };
        let before = intake.totals().deadlines_missed;
        arrived.samples += intake.handle_timeout(now);
        let mut resumes = false;
        if let Some(instances) = &mut intake.instances {
            resumes = instances.resumes();
            if !resumes {
                arrived.ends |= instances.caught_up(now);
            }
            let missed = instances.totals.deadlines_missed;
            arrived.deadlines_missed = (missed > before).then_some(missed);
        }
        drop(intake);
        self.note_arrived(&arrived);
        resumes
    }

    /// Lets in what the machine has produced, as far as there is room.
    fn collect_changes(
        &self,
        now: Instant,
        intake: &mut Intake,
        machine: &mut Reader,
        wall: Timestamp,
        arrived: &mut Arrived,
    ) {
        intake.work_off(now, machine, arrived);
        loop {
            if intake.is_full_for(None) {
                // Reliable writers keep the rest; `Core::take` comes for it.
                intake.hold_back();
                break;
            }
            let Some(change) = machine.poll_sample() else {
                break;
            };
            self.admit(now, intake, machine, change, wall, arrived);
        }
    }

    /// Lets one change of the network in.
    fn admit(
        &self,
        now: Instant,
        intake: &mut Intake,
        machine: &mut Reader,
        change: CacheChange,
        wall: Timestamp,
        arrived: &mut Arrived,
    ) {
        let original = change.original;
        if intake.is_repeated(change.writer, change.sequence.0, original) {
            return;
        }
        for item in self.items_of(change, wall, arrived).into_iter().flatten() {
            arrived.note(enter(intake, now, machine, item));
        }
    }

    /// Whether a change brings what was had in an earlier life of its writer.
    pub(crate) fn is_repeated(&self, change: &CacheChange) -> bool {
        let mut intake = self.intake.lock();
        intake.is_repeated(change.writer, change.sequence.0, change.original)
    }

    /// What a change of the network is to the application: a sample, the end of
    /// an instance, both or nothing.
    pub(crate) fn items_of(
        &self,
        change: CacheChange,
        wall: Timestamp,
        arrived: &mut Arrived,
    ) -> [Option<Item>; 2] {
        let meta = SampleMeta {
            source: change.source_timestamp,
            reception: wall,
            sequence: change.sequence.0,
            publisher: change.writer,
            path: match change.by_link {
                true => Path::SharedMemory,
                false => Path::Network,
            },
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
        let mut item = Item {
            body: Body::Serialized(change.payload),
            meta,
            expires_at: change.expires_at,
            instance,
            mark: change.mark,
            kin: Kin::new(change.original, change.related),
        };
        if item.is_end() && !change.key_only && !item.body_is_empty() {
            // Written and disposed of at once: a sample, then its end.
            let mut sample = item.clone();
            if let Some(keyed) = &mut sample.instance {
                keyed.kind = ChangeKind::Alive;
            }
            item.expires_at = Instant::FAR_FUTURE;
            return [Some(sample), Some(item)];
        }
        [Some(item), None]
    }

    /// Moves the machine's events to the queue and tells user code.
    pub(crate) fn collect_events(&self, machine: &mut Reader) {
        while let Some(event) = machine.poll_event() {
            self.note_machine_event(event);
        }
    }

    fn note_machine_event(&self, event: ReaderEvent) {
        match event {
            ReaderEvent::SampleLost { count, .. } => self.note_lost(count),
            // Discovery finds it out as well, and ends the match.
            ReaderEvent::WriterBeganAnew { .. } => {}
            ReaderEvent::DeadlineMissed { total, .. } => {
                self.events.note(EndpointEvent::DeadlineMissed { total });
            }
            ReaderEvent::LivelinessChanged {
                alive_count,
                not_alive_count,
                not_alive_change,
                writer,
                ..
            } => {
                if self.key.is_some() && not_alive_change > 0 {
                    self.silent.lock().push(writer);
                }
                self.events.note(EndpointEvent::LivelinessChanged {
                    alive: alive_count as usize,
                    not_alive: not_alive_count as usize,
                    writer,
                });
            }
        }
    }

    /// Instances that only silent publishers wrote have no writers.
    fn end_silent(&self, now: Instant, wall: Timestamp) {
        if self.key.is_none() {
            return;
        }
        let silent = std::mem::take(&mut *self.silent.lock());
        let mut ends = false;
        for writer in silent {
            ends |= self.end_writing(&mut self.intake.lock(), now, writer, wall);
        }
        if ends {
            self.slot.ready();
        }
    }

    pub(crate) fn note_lost(&self, count: u64) {
        if count == 0 {
            return;
        }
        let total = self.lost.fetch_add(count, Ordering::Relaxed) + count;
        self.events.note(EndpointEvent::SampleLost { total, count });
    }
}

/// What waits to be taken, and what does not, after samples came.
#[derive(Default)]
pub(crate) struct Arrived {
    samples: u64,
    ends: bool,
    pub rejected: bool,
    deadlines_missed: Option<u64>,
}

impl Arrived {
    pub(crate) fn note(&mut self, entered: Entered) {
        match entered {
            Entered::Queued => self.samples += 1,
            Entered::Noted => self.ends = true,
            Entered::Rejected => self.rejected = true,
            Entered::Heard | Entered::Outranked => {}
        }
    }
}

/// Lets a sample in.
pub(crate) fn enter(
    intake: &mut Intake,
    now: Instant,
    machine: &mut Reader,
    item: Item,
) -> Entered {
    let entered = intake.offer(now, item, |writer| machine.is_alive(now, writer));
    if entered != Entered::Outranked {
        machine.note_update(now);
    }
    entered
}

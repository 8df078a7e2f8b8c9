//! The samples of a keyed subscription that have not been taken, and the
//! instances they are of.
//!
//! HISTORY, RESOURCE_LIMITS, OWNERSHIP, DEADLINE, TIME_BASED_FILTER and
//! DESTINATION_ORDER hold for each instance by itself. The news that an
//! instance has ended waits among the samples, in order; of several ends of one
//! instance the last is kept. An instance that has ended is forgotten as soon
//! as nothing of it waits and nobody writes it, or when another needs its
//! place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{DestinationOrder, EndpointQos};
use pteros_rtps::time::{Duration, Instant, Timestamp};

use super::alarms::{Alarm, Alarms};
use super::identity::Lifecycle;
use super::record::{Place, Record};
use super::shelf::Shelf;
use super::{INSTANCES_MAX_DEFAULT, InstanceState, Keyed, ViewState};
use crate::intake::Entered;
use crate::ownership::Owners;
use crate::sample::{Body, Item, Path, Popped, SampleMeta};
use crate::separation::Separation;

/// At the least so long what the time filter held waits for room.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// Everything a keyed subscription holds.
pub(crate) struct Instances {
    reader: Arc<dyn KeyReader>,
    qos: EndpointQos,
    lifecycle: Lifecycle,
    /// How many there may be.
    instances_max: usize,
    records: BTreeMap<KeyHash, Record>,
    /// Ended and empty, but still written by somebody: first to be forgotten.
    dormant: BTreeSet<KeyHash>,
    shelf: Shelf,
    arrivals: u64,
    alarms: Alarms,
    /// Found its instance full, and holds up what comes behind it.
    parked: Option<Item>,
    /// Writers that are gone, while samples of theirs are held back.
    gone: Vec<(Guid, SampleMeta)>,
    held_back: bool,
    /// See [`Instances::note_heard`].
    hears_early: bool,
    /// Something was purged since [`Instances::resumes`] was asked.
    has_purged: bool,
    pub(crate) totals: Totals,
}

/// What became of samples that were not handed over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) overwritten: u64,
    pub(crate) expired: u64,
    pub(crate) filtered: u64,
    pub(crate) late: u64,
    pub(crate) purged: u64,
    pub(crate) rejected: u64,
    pub(crate) deadlines_missed: u64,
}

impl Instances {
    pub(crate) fn new(reader: Arc<dyn KeyReader>, qos: &EndpointQos, lifecycle: Lifecycle) -> Self {
        let instances_max = qos.resource_limits.max_instances;
        Self {
            reader,
            qos: qos.clone(),
            lifecycle,
            instances_max: instances_max.map_or(INSTANCES_MAX_DEFAULT, |n| n.max(1) as usize),
            records: BTreeMap::new(),
            dormant: BTreeSet::new(),
            shelf: Shelf::new(qos),
            arrivals: 0,
            alarms: Alarms::default(),
            parked: None,
            gone: Vec::new(),
            held_back: false,
            hears_early: false,
            has_purged: false,
            totals: Totals::default(),
        }
    }

    /// Takes over what may change of the reader's policies, for all instances:
    /// deadlines and the purging of what has ended count from now.
    pub(crate) fn set_qos(&mut self, now: Instant, qos: &EndpointQos, lifecycle: Lifecycle) {
        let deadline = (self.qos.deadline != qos.deadline).then_some(qos.deadline);
        let purges = self.lifecycle != lifecycle;
        self.lifecycle = lifecycle;
        self.qos.deadline = qos.deadline;
        self.qos.time_based_filter = qos.time_based_filter;
        for (key, record) in &mut self.records {
            let lives = record.info.state == InstanceState::Alive;
            if let Some(deadline) = deadline.filter(|_| lives) {
                self.alarms.set(*key, Alarm::Deadline, now.after(deadline));
            }
            if purges && !lives {
                let delay = lifecycle.purge_delay(record.info.state);
                self.alarms.set(*key, Alarm::Purge, now.after(delay));
            }
            Separation::change(&mut record.separation, qos);
            let held = record.separation.as_ref().and_then(Separation::release_at);
            if let Some(at) = held {
                self.alarms.set(*key, Alarm::Release, at);
            }
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.shelf.is_empty()
    }

    /// Samples that wait.
    pub(crate) fn len(&self) -> usize {
        self.shelf.len()
    }

    /// How many samples of one instance, and of all, may wait.
    pub(crate) fn room(&self) -> (usize, usize) {
        self.shelf.room()
    }

    /// Whether no sample of any instance has room.
    pub(crate) fn is_full(&self) -> bool {
        self.shelf.is_full() || self.parked.is_some()
    }

    /// Whether a sample of that instance has no room.
    pub(crate) fn is_full_for(&self, key: &KeyHash) -> bool {
        self.is_full() || {
            let record = self.records.get(key);
            record.is_some_and(|record| self.shelf.is_full_of(record))
        }
    }

    /// Notes that samples were left behind for lack of room.
    pub(crate) fn hold_back(&mut self) {
        self.held_back = true;
    }

    /// Takes in a change; KEEP_LAST makes room for it. `alive` is asked only
    /// about owners.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        item: Item,
        owners: Option<&mut Owners>,
        alive: impl Fn(Guid) -> bool,
    ) -> Entered {
        let Some(keyed) = item.instance.as_deref() else {
            self.totals.rejected += 1;
            return Entered::Rejected;
        };
        let (key, kind, writer) = (keyed.info.key, keyed.kind, item.meta.publisher);
        if !self.records.contains_key(&key) {
            // An end of what was never seen is news only if it can be named.
            if kind == ChangeKind::Unregistered
                || (kind != ChangeKind::Alive && keyed.key.is_empty())
            {
                return Entered::Heard;
            }
            if self.records.len() >= self.instances_max && !self.forget_a_dormant_one() {
                self.totals.rejected += 1;
                return Entered::Rejected;
            }
            let serialized = self.serialized_key(&item);
            let record = Record::new(key, serialized, &self.qos);
            self.records.insert(key, record);
        }
        let Some(record) = self.records.get_mut(&key) else {
            return Entered::Heard;
        };
        if kind == ChangeKind::Unregistered {
            return noted(self.unregister(now, key, writer, item.meta));
        }
        record.writers.insert(writer);
        if let Some(owners) = owners
            && !owners.judge(&mut record.owner, now, writer, alive)
        {
            if kind.is_unregistered() {
                self.unregister(now, key, writer, item.meta);
            }
            return Entered::Outranked;
        }
        if kind == ChangeKind::Alive {
            return self.take_in(now, key, item);
        }
        let newest = record.newest;
        let news = record.info.state != InstanceState::Disposed;
        let news = news && Some(self.place(&item.meta)) > newest;
        if news {
            self.end(now, key, InstanceState::Disposed, item.meta);
        }
        if kind.is_unregistered() {
            self.unregister(now, key, writer, item.meta);
        }
        noted(news)
    }

    /// Something came that waits for others before it is offered: it counts for
    /// the deadline now.
    pub(crate) fn note_heard(&mut self, now: Instant, item: &Item) {
        self.hears_early = true;
        let Some(keyed) = &item.instance else {
            return;
        };
        let key = keyed.info.key;
        let record = self.records.get(&key);
        let owner = record.and_then(|record| record.owner.as_ref());
        if owner.is_some_and(|owner| owner.guid != item.meta.publisher) {
            return;
        }
        match keyed.kind {
            ChangeKind::Alive if record.is_some() || self.alarms.len() < self.instances_max => {
                let due = now.after(self.qos.deadline);
                self.alarms.set(key, Alarm::Deadline, due);
            }
            ChangeKind::Disposed | ChangeKind::DisposedUnregistered => {
                self.alarms.stop(key, Alarm::Deadline);
            }
            // Others may still write it.
            ChangeKind::Alive | ChangeKind::Unregistered => {}
        }
    }

    fn serialized_key(&self, item: &Item) -> Bytes {
        match (item.instance.as_deref(), &item.body) {
            (Some(keyed), _) if !keyed.key.is_empty() => keyed.key.clone(),
            (_, Body::Serialized(payload)) => {
                self.reader.key_of(payload).unwrap_or_default().into()
            }
            _ => Bytes::new(),
        }
    }

    /// A sample: its instance lives.
    fn take_in(&mut self, now: Instant, key: KeyHash, mut item: Item) -> Entered {
        let place = self.place(&item.meta);
        let Some(record) = self.records.get_mut(&key) else {
            return Entered::Heard;
        };
        if record.newest < Some(place) {
            record.newest = Some(place);
            record.revive();
        }
        self.dormant.remove(&key);
        if let Some(keyed) = &mut item.instance {
            keyed.info = record.info;
        }
        self.alarms.stop(key, Alarm::Purge);
        if !self.hears_early {
            let due = now.after(self.qos.deadline);
            self.alarms.set(key, Alarm::Deadline, due);
        }
        let passed = match &mut record.separation {
            None => Some(item),
            Some(separation) => {
                let before = separation.weight();
                let passed = separation.offer(now, item);
                self.shelf.note_held(before, separation.weight());
                self.totals.filtered += std::mem::take(&mut separation.filtered);
                let release = separation.release_at().unwrap_or(Instant::FAR_FUTURE);
                self.alarms.set(key, Alarm::Release, release);
                passed
            }
        };
        match passed {
            Some(item) => self.push(key, item),
            None => {
                self.make_room(key);
                Entered::Heard
            }
        }
    }

    /// A sample joins those that wait.
    fn push(&mut self, key: KeyHash, item: Item) -> Entered {
        let place = self.place(&item.meta);
        let Some(record) = self.records.get_mut(&key) else {
            return Entered::Heard;
        };
        let full = self.shelf.is_full_of(record);
        // Writers of this process have waited for room, or were refused.
        if full && item.meta.path != Path::IntraProcess && self.parked.is_none() {
            self.parked = Some(item);
            return Entered::Queued;
        }
        if record.left.is_some_and(|left| place < left) {
            self.totals.late += 1;
            return Entered::Heard;
        }
        record.queued.insert(place);
        self.shelf.put(place, item);
        self.make_room(key);
        Entered::Queued
    }

    /// KEEP_LAST: older samples go for one of this instance; where there are
    /// none, what its time filter holds is too much.
    fn make_room(&mut self, key: KeyHash) {
        let excess = |me: &Self| me.shelf.excess(me.records.get(&key)?);
        while let Some(oldest) = excess(self) {
            self.remove(oldest);
            self.totals.overwritten += 1;
        }
        if self.shelf.is_too_large()
            && let Some(record) = self.records.get_mut(&key)
            && let Some(separation) = &mut record.separation
        {
            self.shelf.note_held(separation.weight(), 0);
            separation.drop_held();
            self.totals.filtered += std::mem::take(&mut separation.filtered);
        }
    }

    fn place(&mut self, meta: &SampleMeta) -> Place {
        self.arrivals += 1;
        match self.qos.destination_order {
            DestinationOrder::BySource => {
                let stamp = meta.source.unwrap_or(meta.reception);
                (stamp, meta.publisher, meta.sequence, self.arrivals)
            }
            DestinationOrder::ByReception => {
                (Timestamp::from_nanos(0), Guid::UNKNOWN, 0, self.arrivals)
            }
        }
    }

    /// What waits at a place leaves it.
    fn remove(&mut self, place: Place) -> Option<Item> {
        let item = self.shelf.remove(place)?;
        if let Some(record) = self.records.get_mut(&item.instance.as_ref()?.info.key) {
            if record.end == Some(place) {
                record.end = None;
            } else if record.queued.remove(&place) {
                record.left = record.left.max(Some(place));
            }
        }
        Some(item)
    }

    /// The instance ends; the news joins the samples that wait.
    fn end(&mut self, now: Instant, key: KeyHash, state: InstanceState, meta: SampleMeta) {
        let held = self.records.get_mut(&key).and_then(|record| {
            record.info.state = state;
            let separation = record.separation.as_mut()?;
            separation.release(Instant::FAR_FUTURE)
        });
        if let Some(item) = held {
            self.shelf.note_held(item.weight(), 0);
            self.push(key, item);
        }
        let place = self.place(&meta);
        let Some(record) = self.records.get_mut(&key) else {
            return;
        };
        let kind = match state {
            InstanceState::NoWriters => ChangeKind::Unregistered,
            _ => ChangeKind::Disposed,
        };
        let news = Item {
            body: Body::Serialized(record.key.clone()),
            meta,
            expires_at: Instant::FAR_FUTURE,
            instance: Some(Box::new(Keyed {
                info: record.info,
                kind,
                key: record.key.clone(),
            })),
            mark: None,
            kin: None,
        };
        if let Some(older) = record.end.replace(place) {
            self.shelf.remove(older);
        }
        record.newest = record.newest.max(Some(place));
        self.shelf.put(place, news);
        self.dormant.remove(&key);
        // A newer sample may have been heard since it was disposed of.
        if !self.hears_early || state != InstanceState::Disposed {
            self.alarms.stop(key, Alarm::Deadline);
        }
        self.alarms.stop(key, Alarm::Release);
        let delay = self.lifecycle.purge_delay(state);
        self.alarms.set(key, Alarm::Purge, now.after(delay));
    }

    /// A writer no longer writes an instance; whether that is its end.
    fn unregister(&mut self, now: Instant, key: KeyHash, writer: Guid, meta: SampleMeta) -> bool {
        let Some(record) = self.records.get_mut(&key) else {
            return false;
        };
        record.writers.remove(&writer);
        record.owner.take_if(|owner| owner.guid == writer);
        let ends = record.writers.is_empty() && record.info.state == InstanceState::Alive;
        if ends {
            self.end(now, key, InstanceState::NoWriters, meta);
        }
        self.forget_if_over(key);
        ends
    }

    /// A writer matched.
    pub(crate) fn note_writer(&mut self, writer: Guid) {
        self.gone.retain(|(gone, _)| *gone != writer);
    }

    /// A writer is gone or silent; what it wrote and is still held back comes
    /// first. Whether some instance ends with it, now.
    pub(crate) fn forget_writer(&mut self, now: Instant, writer: Guid, meta: SampleMeta) -> bool {
        if self.held_back {
            // Once, however often it falls silent meanwhile.
            self.note_writer(writer);
            self.gone.push((writer, meta));
            return false;
        }
        let written = self.records.iter();
        let written = written.filter(|(_, record)| record.writers.contains(&writer));
        let written: Vec<KeyHash> = written.map(|(key, _)| *key).collect();
        let mut ends = false;
        for key in written {
            ends |= self.unregister(now, key, writer, meta);
        }
        ends
    }

    /// Nothing is held back any more. Whether some instance ends now.
    pub(crate) fn caught_up(&mut self, now: Instant) -> bool {
        let mut ends = false;
        if !self.held_back {
            for (writer, meta) in std::mem::take(&mut self.gone) {
                ends |= self.forget_writer(now, writer, meta);
            }
        }
        ends
    }

    /// Takes the oldest sample or end of an instance; samples whose lifespan
    /// has ended are passed over.
    pub(crate) fn pop(&mut self, now: impl FnOnce() -> Instant) -> Popped {
        let now = match self.next_may_expire() {
            true => now(),
            false => Instant::ZERO,
        };
        let (mut found, mut left) = (None, false);
        while let Some((place, _)) = self.shelf.first() {
            let Some(mut item) = self.remove(place) else {
                break;
            };
            left = true;
            let key = item.instance.as_ref().map(|keyed| keyed.info.key);
            if item.expires_at <= now {
                self.totals.expired += 1;
            } else {
                self.look(&mut item);
                found = Some(item);
            }
            if let Some(key) = key {
                self.forget_if_over(key);
            }
            if found.is_some() {
                break;
            }
        }
        let unparked = self.unpark();
        let resume =
            self.held_back && self.parked.is_none() && (unparked || self.shelf.is_half_empty());
        self.held_back &= !resume;
        Popped {
            item: found,
            // Some writer may wait for room in this one instance.
            made_room: left && self.shelf.keeps_all(),
            resume,
        }
    }

    fn next_may_expire(&self) -> bool {
        let next = self.shelf.first();
        next.is_some_and(|(_, item)| item.expires_at != Instant::FAR_FUTURE)
    }

    /// What is told of an instance with something of it.
    fn look(&mut self, item: &mut Item) {
        let is_end = item.is_end();
        if let Some(keyed) = &mut item.instance
            && let Some(record) = self.records.get_mut(&keyed.info.key)
        {
            keyed.info.view = std::mem::replace(&mut record.info.view, ViewState::NotNew);
            if !is_end {
                keyed.info.state = record.info.state;
            }
        }
    }

    /// What found its instance full may have room now.
    fn unpark(&mut self) -> bool {
        let key = self.parked.as_ref().and_then(|item| item.instance.as_ref());
        let Some(key) = key.map(|keyed| keyed.info.key) else {
            return false;
        };
        let record = self.records.get(&key);
        if record.is_some_and(|record| self.shelf.is_full_of(record)) {
            return false;
        }
        if let Some(item) = self.parked.take() {
            self.push(key, item);
        }
        true
    }

    /// Whether what was held back has room, because something was purged.
    pub(crate) fn resumes(&mut self) -> bool {
        let purged = std::mem::take(&mut self.has_purged);
        let has_room = !self.is_full() && self.shelf.is_half_empty();
        let resumes = purged && has_room && self.held_back;
        self.held_back &= !resumes;
        resumes
    }

    /// When [`Instances::handle_timeout`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.alarms.next()
    }

    /// Does what is due. How many samples were handed over to wait.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> u64 {
        let mut released = 0;
        while let Some((key, alarm)) = self.alarms.pop_due(now) {
            match alarm {
                Alarm::Deadline => {
                    self.totals.deadlines_missed += 1;
                    // What waits in a set may never be known: once is enough.
                    if self.records.contains_key(&key) {
                        self.alarms.set(key, alarm, now.after(self.qos.deadline));
                    }
                }
                Alarm::Release => released += u64::from(self.release(now, key)),
                Alarm::Purge => self.purge(key),
            }
        }
        released
    }

    fn release(&mut self, now: Instant, key: KeyHash) -> bool {
        if self.is_full_for(&key) {
            let pause = self.qos.time_based_filter.max(FULL_PAUSE);
            let again = now.after(pause);
            self.alarms.set(key, Alarm::Release, again);
            return false;
        }
        let record = self.records.get_mut(&key);
        let held = record.and_then(|record| record.separation.as_mut()?.release(now));
        held.is_some_and(|item| {
            self.shelf.note_held(item.weight(), 0);
            self.push(key, item) == Entered::Queued
        })
    }

    /// Throws away what is left of an ended instance.
    fn purge(&mut self, key: KeyHash) {
        let Some(record) = self.records.get(&key) else {
            return;
        };
        let left: Vec<Place> = record.queued.iter().chain(&record.end).copied().collect();
        for place in left {
            if self.remove(place).is_some_and(|item| !item.is_end()) {
                self.totals.purged += 1;
            }
        }
        // What found no room came before the end.
        let is_of_it = |item: &mut Item| {
            let keyed = item.instance.as_ref();
            keyed.is_some_and(|keyed| keyed.info.key == key)
        };
        if self.parked.take_if(is_of_it).is_some() {
            self.totals.purged += 1;
        }
        self.has_purged = true;
        self.forget_if_over(key);
    }

    fn forget_if_over(&mut self, key: KeyHash) {
        let Some(record) = self.records.get(&key).filter(|record| record.is_over()) else {
            return;
        };
        if !record.writers.is_empty() {
            self.dormant.insert(key);
            return;
        }
        self.records.remove(&key);
        self.dormant.remove(&key);
        self.alarms.forget(key);
    }

    /// The first limit that is exceeded, with what is held and what may be.
    pub(crate) fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let (held, max) = (self.records.len(), self.instances_max);
        let too_many = (held > max).then_some(("instances", held, max));
        too_many.or_else(|| self.shelf.exceeded_limit(self.records.values()))
    }

    /// Instances known now.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.records.len()
    }

    /// Writers that are gone and not forgotten yet.
    #[cfg(test)]
    pub(crate) fn gone_count(&self) -> usize {
        self.gone.len()
    }

    fn forget_a_dormant_one(&mut self) -> bool {
        let Some(key) = self.dormant.pop_first() else {
            return false;
        };
        self.records.remove(&key);
        self.alarms.forget(key);
        true
    }
}

fn noted(news: bool) -> Entered {
    match news {
        true => Entered::Noted,
        false => Entered::Heard,
    }
}

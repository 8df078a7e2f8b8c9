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
use pteros_rtps::qos::{DestinationOrder, EndpointQos, History};
use pteros_rtps::time::{Instant, Timestamp};

use super::alarms::{Alarm, Alarms};
use super::identity::Lifecycle;
use super::record::{Place, Record};
use super::{INSTANCES_MAX_DEFAULT, InstanceState, Keyed, ViewState};
use crate::intake::Entered;
use crate::ownership::Owners;
use crate::sample::{Body, Item, KEEP_ALL_SAMPLES_DEFAULT, Path, Popped, SampleMeta};

/// Everything a keyed subscription holds.
pub(crate) struct Instances {
    reader: Arc<dyn KeyReader>,
    qos: EndpointQos,
    lifecycle: Lifecycle,
    bounds: Bounds,
    records: BTreeMap<KeyHash, Record>,
    /// Ended and empty, but still written by somebody: first to be forgotten.
    dormant: BTreeSet<KeyHash>,
    items: BTreeMap<Place, Item>,
    /// How many of the items are samples.
    samples: usize,
    arrivals: u64,
    alarms: Alarms,
    /// Found its instance full, and holds up what comes behind it.
    parked: Option<Item>,
    /// Writers that are gone, while samples of theirs are held back.
    gone: Vec<(Guid, SampleMeta)>,
    held_back: bool,
    pub(crate) totals: Totals,
}

struct Bounds {
    keep_all: bool,
    per_instance: usize,
    samples: usize,
    instances: usize,
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
        let limits = &qos.resource_limits;
        let limit = |n: Option<u32>| n.map_or(usize::MAX, |n| n.max(1) as usize);
        let (depth, keep_all) = match qos.history {
            History::KeepLast(depth) => (depth.max(1) as usize, false),
            History::KeepAll => (usize::MAX, true),
        };
        let samples_default = if keep_all {
            KEEP_ALL_SAMPLES_DEFAULT
        } else {
            usize::MAX
        };
        Self {
            reader,
            qos: qos.clone(),
            lifecycle,
            bounds: Bounds {
                keep_all,
                per_instance: depth.min(limit(limits.max_samples_per_instance)),
                samples: limits
                    .max_samples
                    .map_or(samples_default, |n| limit(Some(n))),
                instances: limit(limits.max_instances.or(Some(INSTANCES_MAX_DEFAULT as u32))),
            },
            records: BTreeMap::new(),
            dormant: BTreeSet::new(),
            items: BTreeMap::new(),
            samples: 0,
            arrivals: 0,
            alarms: Alarms::default(),
            parked: None,
            gone: Vec::new(),
            held_back: false,
            totals: Totals::default(),
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Samples that wait.
    pub(crate) fn len(&self) -> usize {
        self.samples
    }

    /// How many samples of one instance, and of all, may wait.
    pub(crate) fn room(&self) -> (usize, usize) {
        let all = self.bounds.samples.min(KEEP_ALL_SAMPLES_DEFAULT);
        (self.bounds.per_instance.min(all), all)
    }

    /// Whether no sample of any instance has room.
    pub(crate) fn is_full(&self) -> bool {
        let all = self.bounds.keep_all && self.samples >= self.bounds.samples;
        all || self.parked.is_some()
    }

    /// Whether a sample of that instance has no room.
    pub(crate) fn is_full_for(&self, key: &KeyHash) -> bool {
        self.is_full() || self.records.get(key).is_some_and(|r| self.has_no_room(r))
    }

    fn has_no_room(&self, record: &Record) -> bool {
        self.bounds.keep_all && record.queued.len() >= self.bounds.per_instance
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
            if self.records.len() >= self.bounds.instances && !self.forget_a_dormant_one() {
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
        let due = now.after(self.qos.deadline);
        self.alarms.set(key, Alarm::Deadline, due);
        let passed = match &mut record.separation {
            None => Some(item),
            Some(separation) => {
                let passed = separation.offer(now, item);
                self.totals.filtered += std::mem::take(&mut separation.filtered);
                let release = separation.release_at().unwrap_or(Instant::FAR_FUTURE);
                self.alarms.set(key, Alarm::Release, release);
                passed
            }
        };
        match passed {
            Some(item) => self.push(key, item),
            None => Entered::Heard,
        }
    }

    /// A sample joins those that wait.
    fn push(&mut self, key: KeyHash, item: Item) -> Entered {
        let place = self.place(&item.meta);
        let Some(record) = self.records.get_mut(&key) else {
            return Entered::Heard;
        };
        let full = self.bounds.keep_all && record.queued.len() >= self.bounds.per_instance;
        // Writers of this process have waited for room, or were refused.
        if full && item.meta.path == Path::Network && self.parked.is_none() {
            self.parked = Some(item);
            return Entered::Queued;
        }
        if record.left.is_some_and(|left| place < left) {
            self.totals.late += 1;
            return Entered::Heard;
        }
        record.queued.insert(place);
        self.items.insert(place, item);
        self.samples += 1;
        if !self.bounds.keep_all {
            if record.queued.len() > self.bounds.per_instance {
                let oldest = record.queued.first().copied();
                self.overwrite(oldest);
            }
            if self.samples > self.bounds.samples {
                let is_sample = |item: &Item| !item.is_end();
                let oldest = self.items.iter().find(|(_, item)| is_sample(item));
                let oldest = oldest.map(|(place, _)| *place);
                self.overwrite(oldest);
            }
        }
        Entered::Queued
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

    /// An older sample makes room for a newer one.
    fn overwrite(&mut self, place: Option<Place>) {
        if let Some(place) = place
            && self.remove(place).is_some()
        {
            self.totals.overwritten += 1;
        }
    }

    /// What waits at a place leaves it.
    fn remove(&mut self, place: Place) -> Option<Item> {
        let item = self.items.remove(&place)?;
        self.samples -= usize::from(!item.is_end());
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
        };
        if let Some(older) = record.end.replace(place) {
            self.items.remove(&older);
        }
        record.newest = record.newest.max(Some(place));
        self.items.insert(place, news);
        self.dormant.remove(&key);
        self.alarms.stop(key, Alarm::Deadline);
        self.alarms.stop(key, Alarm::Release);
        let delay = match state {
            InstanceState::NoWriters => self.lifecycle.autopurge_nowriter_samples_delay,
            _ => self.lifecycle.autopurge_disposed_samples_delay,
        };
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
        let mut found = None;
        while let Some((place, _)) = self.items.first_key_value() {
            let place = *place;
            let Some(mut item) = self.remove(place) else {
                break;
            };
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
        let half_empty = self.samples <= self.bounds.samples / 2;
        let resume = self.held_back && self.parked.is_none() && (unparked || half_empty);
        self.held_back &= !resume;
        Popped {
            item: found,
            // Some writer may wait for room in this one instance.
            made_room: self.bounds.keep_all,
            resume,
        }
    }

    fn next_may_expire(&self) -> bool {
        let next = self.items.values().next();
        next.is_some_and(|item| item.expires_at != Instant::FAR_FUTURE)
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
        if record.is_some_and(|record| self.has_no_room(record)) {
            return false;
        }
        if let Some(item) = self.parked.take() {
            self.push(key, item);
        }
        true
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
                    self.alarms.set(key, alarm, now.after(self.qos.deadline));
                }
                Alarm::Release => released += u64::from(self.release(now, key)),
                Alarm::Purge => self.purge(key),
            }
        }
        released
    }

    fn release(&mut self, now: Instant, key: KeyHash) -> bool {
        if self.is_full_for(&key) {
            let again = now.after(self.qos.time_based_filter);
            self.alarms.set(key, Alarm::Release, again);
            return false;
        }
        let record = self.records.get_mut(&key);
        let held = record.and_then(|record| record.separation.as_mut()?.release(now));
        held.is_some_and(|item| self.push(key, item) == Entered::Queued)
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

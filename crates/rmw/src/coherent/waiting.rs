//! Sets that are ready and have not been taken, whole ones side by side, and
//! what an access to them shows (DDS 1.4 §2.2.2.5.2.8).

use std::collections::{BTreeMap, VecDeque};

use pteros_rtps::qos::{DestinationOrder, EndpointQos, History};
use pteros_rtps::time::Instant;

use super::merge::SAMPLES_MAX;
use super::{Batch, Dropped};
use crate::instance::{INSTANCES_MAX_DEFAULT, KeyHash};
use crate::sample::Item;
use crate::source_order::{Place, place_of};

/// What is ready and has not been taken, set by set.
#[derive(Default)]
pub(crate) struct Waiting {
    batches: VecDeque<Batch>,
    /// What an access shows, while one is open: nothing comes or goes there but
    /// what is taken.
    shown: Option<VecDeque<Batch>>,
    shelves: Vec<Shelf>,
    /// By the source stamp of their first sample instead of arrival.
    by_source: bool,
    /// The place by source of the last sample taken.
    left: Option<Place>,
}

/// Ends of instances that wait for a reader, as many as it may know instances.
/// Beyond it KEEP_ALL is full, and KEEP_LAST lets the oldest batch go.
const ENDS_MAX: usize = INSTANCES_MAX_DEFAULT;

/// What one reader may keep, and keeps.
#[derive(Default)]
struct Shelf {
    /// Of one instance.
    each: usize,
    /// In all.
    all: usize,
    keep_all: bool,
    waiting: Load,
    /// Of an open access.
    shown: Load,
    /// Samples that made room for newer ones.
    overwritten: u64,
    /// Samples whose lifespan ended while their set waited.
    expired: u64,
}

/// How many samples a reader has somewhere; ends of instances take no room, but
/// there are at most [`ENDS_MAX`].
#[derive(Default)]
struct Load {
    samples: usize,
    of_instances: BTreeMap<Option<KeyHash>, usize>,
    /// The ends of instances included.
    items: usize,
}

impl Load {
    fn ends(&self) -> usize {
        self.items.saturating_sub(self.samples)
    }

    fn add(&mut self, item: &Item) {
        self.items += 1;
        if !item.is_end() {
            self.samples += 1;
            *self.of_instances.entry(instance_of(item)).or_default() += 1;
        }
    }

    fn remove(&mut self, item: &Item) {
        self.items = self.items.saturating_sub(1);
        if item.is_end() {
            return;
        }
        self.samples = self.samples.saturating_sub(1);
        let instance = instance_of(item);
        if let Some(count) = self.of_instances.get_mut(&instance) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_instances.remove(&instance);
            }
        }
    }
}

impl Shelf {
    fn exceeds(&self) -> bool {
        let of_instances = self.waiting.of_instances.values();
        self.waiting.samples > self.all
            || self.waiting.ends() > ENDS_MAX
            || of_instances.into_iter().any(|n| *n > self.each)
    }
}

impl Waiting {
    /// Puts a reader into a place, which is free: of one instance and in all it
    /// may keep so many. Who wants order by source puts all in it.
    pub fn put_reader(&mut self, reader: usize, qos: &EndpointQos, (each, all): (usize, usize)) {
        if self.shelves.len() <= reader {
            self.shelves.resize_with(reader + 1, Shelf::default);
        }
        if let Some(shelf) = self.shelves.get_mut(reader) {
            *shelf = Shelf {
                each,
                all,
                keep_all: qos.history == History::KeepAll,
                ..Shelf::default()
            };
        }
        self.by_source |= qos.destination_order == DestinationOrder::BySource;
    }

    /// A reader is gone, with what waited for it.
    pub fn remove_reader(&mut self, reader: usize) {
        for queue in [Some(&mut self.batches), self.shown.as_mut()] {
            let Some(queue) = queue else { continue };
            for batch in queue.iter_mut() {
                batch.items.retain(|(of, _)| *of != reader);
            }
            queue.retain(|batch| !batch.items.is_empty());
        }
        if let Some(shelf) = self.shelves.get_mut(reader) {
            *shelf = Shelf::default();
        }
    }

    /// Whether writers must wait for a reader, which has `taken` more samples.
    pub fn is_full(&self, reader: usize, taken: usize) -> bool {
        let shelf = self.shelves.get(reader).filter(|shelf| shelf.keep_all);
        shelf.is_some_and(|s| {
            s.waiting.samples + s.shown.samples + taken >= s.all
                || s.waiting.ends() + s.shown.ends() >= ENDS_MAX
        })
    }

    /// Whether a reader that was full has room enough to ask for more.
    pub fn is_half_empty(&self, reader: usize) -> bool {
        let shelf = self.shelves.get(reader);
        shelf.is_none_or(|s| s.waiting.samples + s.shown.samples <= s.all / 2)
    }

    /// The first limit that is exceeded for a reader, with what is held and what
    /// may be. KEEP_ALL holds writers back, but takes what was on its way: as
    /// much again, and what [`super::merge`] had.
    pub fn exceeded_limit(&self, reader: usize) -> Option<(&'static str, usize, usize)> {
        let shelf = self.shelves.get(reader)?;
        let max = |max: usize| match shelf.keep_all {
            true => max.saturating_mul(2).saturating_add(SAMPLES_MAX),
            false => max,
        };
        let of_load = |load: &Load| {
            let most = load.of_instances.values().max().copied();
            [
                ("samples in sets to take", load.samples, max(shelf.all)),
                (
                    "samples of one instance in sets",
                    most.unwrap_or(0),
                    max(shelf.each),
                ),
                ("ends of instances in sets", load.ends(), max(ENDS_MAX)),
            ]
        };
        let loads = [&shelf.waiting, &shelf.shown];
        let mut all = loads.into_iter().flat_map(of_load);
        all.find(|(_, held, max)| held > max)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether a reader could take something now.
    pub fn shows(&self, reader: usize) -> bool {
        let shelf = self.shelves.get(reader);
        shelf.is_some_and(|shelf| match self.shown {
            Some(_) => shelf.shown.items > 0,
            None => shelf.waiting.items > 0,
        })
    }

    /// Samples of a reader that made room for newer ones.
    pub fn overwritten(&self, reader: usize) -> u64 {
        self.shelves.get(reader).map_or(0, |s| s.overwritten)
    }

    /// Samples of a reader whose lifespan ended while their set waited.
    pub fn expired(&self, reader: usize) -> u64 {
        self.shelves.get(reader).map_or(0, |s| s.expired)
    }

    /// Adds what has become ready. KEEP_LAST makes room, whole sets at a time,
    /// the oldest first. False when a set is too large for a reader, or older
    /// by source than what was taken; then nobody gets it.
    pub fn push_or_drop_oldest(&mut self, batch: Batch, dropped: &mut Dropped) -> bool {
        let counts = Counts::of(&batch);
        if batch.is_set && !counts.fit_alone(&self.shelves) {
            for (reader, count) in counts.in_all {
                dropped.set(reader, count as u64);
            }
            return false;
        }
        let first = batch.items.front().map(|(_, item)| place_of(item));
        if self.by_source && first < self.left {
            for (reader, _) in &batch.items {
                dropped.late(*reader);
            }
            return false;
        }
        while !counts.fit_besides(&self.shelves) {
            if !self.drop_oldest() {
                break;
            }
        }
        self.load(&batch, Load::add);
        let mut at = self.batches.len();
        if self.by_source {
            let place = |batch: &Batch| batch.items.front().map(|(_, item)| place_of(item));
            let newer = self.batches.iter().rev();
            at -= newer.take_while(|batch| place(batch) > first).count();
        }
        self.batches.insert(at, batch);
        let too_many = |s: &Shelf| !s.keep_all && s.waiting.ends() > ENDS_MAX;
        while self.shelves.iter().any(too_many) {
            if !self.drop_oldest() {
                break;
            }
        }
        true
    }

    /// The oldest goes as a whole; false if there is none.
    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.pop() else {
            return false;
        };
        for (reader, item) in &oldest.items {
            if let Some(shelf) = self.shelves.get_mut(*reader) {
                shelf.overwritten += u64::from(!item.is_end());
            }
        }
        true
    }

    fn load(&mut self, batch: &Batch, note: fn(&mut Load, &Item)) {
        for (reader, item) in &batch.items {
            if let Some(shelf) = self.shelves.get_mut(*reader) {
                note(&mut shelf.waiting, item);
            }
        }
    }

    /// The oldest batch, out of any access.
    fn pop(&mut self) -> Option<Batch> {
        let batch = self.batches.pop_front()?;
        self.load(&batch, Load::remove);
        if self.by_source {
            let last = batch.items.iter().map(|(_, item)| place_of(item)).max();
            self.left = self.left.max(last);
        }
        Some(batch)
    }

    /// The oldest as it is to be taken: a set that has begun to be taken is
    /// taken whole, so its lifespan is looked at once, here.
    pub fn next(&mut self, now: impl Fn() -> Instant) -> Option<Batch> {
        loop {
            let mut batch = self.pop()?;
            if begin(&mut batch, &now) {
                return Some(batch);
            }
            self.note_expired(&batch);
        }
    }

    fn note_expired(&mut self, batch: &Batch) {
        for (reader, item) in &batch.items {
            if let Some(shelf) = self.shelves.get_mut(*reader) {
                shelf.expired += u64::from(!item.is_end());
            }
        }
    }

    // --- access to several readers ---

    /// Shows what is there, and nothing that comes later, until
    /// [`Waiting::end_access`].
    pub fn begin_access(&mut self, now: impl Fn() -> Instant) {
        let mut shown = VecDeque::new();
        for mut batch in std::mem::take(&mut self.batches) {
            match begin(&mut batch, &now) {
                true => shown.push_back(batch),
                false => {
                    self.load(&batch, Load::remove);
                    self.note_expired(&batch);
                }
            }
        }
        self.shown = Some(shown);
        for shelf in &mut self.shelves {
            shelf.shown = std::mem::take(&mut shelf.waiting);
        }
    }

    /// Ends the access: what was not taken waits on before what came
    /// meanwhile; KEEP_LAST gives up the oldest of both.
    pub fn end_access(&mut self) {
        for batch in self.shown.take().into_iter().flatten().rev() {
            self.load(&batch, Load::add);
            self.batches.push_front(batch);
        }
        for shelf in &mut self.shelves {
            shelf.shown = Load::default();
        }
        while self.shelves.iter().any(|s| !s.keep_all && s.exceeds()) {
            if !self.drop_oldest() {
                break;
            }
        }
    }

    /// The reader whose sample is the oldest that can be taken, of those that
    /// are asked for.
    pub fn next_reader(&self, among: impl Fn(usize) -> bool) -> Option<usize> {
        let queue = self.shown.as_ref().unwrap_or(&self.batches);
        let mut items = queue.iter().flat_map(|batch| &batch.items);
        items.find(|(of, _)| among(*of)).map(|(of, _)| *of)
    }

    /// A reader's oldest item that can be taken, and when it became ready.
    pub fn take_of(&mut self, reader: usize, now: impl Fn() -> Instant) -> Option<(Instant, Item)> {
        if !self.shows(reader) {
            return None;
        }
        let is_shown = self.shown.is_some();
        let mut index = 0;
        loop {
            let queue = self.shown.as_mut().unwrap_or(&mut self.batches);
            let batch = queue.get_mut(index)?;
            let Some(at) = batch.items.iter().position(|(of, _)| *of == reader) else {
                index += 1;
                continue;
            };
            if !begin(batch, &now) {
                if let Some(batch) = queue.remove(index) {
                    self.load(&batch, Load::remove);
                    self.note_expired(&batch);
                }
                continue;
            }
            let ready = batch.at;
            let (_, item) = batch.items.remove(at)?;
            if batch.items.is_empty() {
                queue.remove(index);
            }
            if let Some(shelf) = self.shelves.get_mut(reader) {
                match is_shown {
                    true => shelf.shown.remove(&item),
                    false => shelf.waiting.remove(&item),
                }
            }
            if self.by_source {
                self.left = self.left.max(Some(place_of(&item)));
            }
            return Some((ready, item));
        }
    }
}

/// Begins to take a batch: false when it is a set of which a sample's lifespan
/// has ended; otherwise none of it ends any more.
fn begin(batch: &mut Batch, now: impl Fn() -> Instant) -> bool {
    let may_end = |(_, item): &(usize, Item)| item.expires_at != Instant::FAR_FUTURE;
    if !batch.is_set || !batch.items.iter().any(may_end) {
        return true;
    }
    let now = now();
    if batch.items.iter().any(|(_, item)| item.expires_at <= now) {
        return false;
    }
    for (_, item) in &mut batch.items {
        item.expires_at = Instant::FAR_FUTURE;
    }
    true
}

fn instance_of(item: &Item) -> Option<KeyHash> {
    item.instance.as_deref().map(|keyed| keyed.info.key)
}

/// How many samples a batch has, by reader; ends of instances take no room.
#[derive(Default)]
struct Counts {
    of_instances: BTreeMap<(usize, Option<KeyHash>), usize>,
    in_all: BTreeMap<usize, usize>,
}

impl Counts {
    fn of(batch: &Batch) -> Self {
        let mut counts = Self::default();
        for (reader, item) in batch.items.iter().filter(|(_, item)| !item.is_end()) {
            let instance = instance_of(item);
            *counts.of_instances.entry((*reader, instance)).or_default() += 1;
            *counts.in_all.entry(*reader).or_default() += 1;
        }
        counts
    }

    /// Whether every reader has places enough when nothing waits.
    fn fit_alone(&self, shelves: &[Shelf]) -> bool {
        self.of_instances.iter().all(|((reader, _), count)| {
            let in_all = self.in_all.get(reader).copied().unwrap_or(0);
            let shelf = shelves.get(*reader);
            shelf.is_none_or(|shelf| *count <= shelf.each && in_all <= shelf.all)
        })
    }

    /// Whether every KEEP_LAST reader has places enough besides what waits.
    fn fit_besides(&self, shelves: &[Shelf]) -> bool {
        self.of_instances.iter().all(|((reader, instance), count)| {
            let in_all = self.in_all.get(reader).copied().unwrap_or(0);
            let Some(shelf) = shelves.get(*reader).filter(|shelf| !shelf.keep_all) else {
                return true;
            };
            let load = &shelf.waiting;
            let waiting = load.of_instances.get(instance).copied().unwrap_or(0);
            waiting + count <= shelf.each && load.samples + in_all <= shelf.all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::item;

    #[test]
    fn what_is_kept_beyond_the_limit_is_noticed() {
        for keep_all in [false, true] {
            let mut waiting = Waiting::default();
            let history = match keep_all {
                true => History::KeepAll,
                false => History::KeepLast(2),
            };
            let qos = EndpointQos {
                history,
                ..EndpointQos::default()
            };
            waiting.put_reader(0, &qos, (2, 2));
            let max = if keep_all { 4 + SAMPLES_MAX } else { 2 };
            for n in 0..=max {
                assert_eq!(waiting.exceeded_limit(0), None);
                let batch = Batch {
                    is_set: false,
                    at: Instant::ZERO,
                    items: [(0, item(n as i64))].into(),
                };
                waiting.load(&batch, Load::add);
                waiting.batches.push_back(batch);
            }
            let exceeded = ("samples in sets to take", max + 1, max);
            assert_eq!(waiting.exceeded_limit(0), Some(exceeded));
        }
    }
}

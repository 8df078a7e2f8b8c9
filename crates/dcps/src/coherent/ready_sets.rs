//! Ready coherent sets that were not taken yet, and what an access shows of them
//! (DDS 1.4 §2.2.2.5.2.8).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use pteros_msg::key::KeyHash;
use pteros_rtps::qos::{DestinationOrder, EndpointQos, History};
use pteros_rtps::time::Instant;

use super::batch::{DroppedByReader, ReadyBatch};
use super::group_merge::SAMPLES_MAX;
use crate::filter::destination_order::{SourceOrderKey, source_order_key};
use crate::sample::queued_sample::QueuedSample;
use crate::sample::sample_limits::{INSTANCES_MAX_DEFAULT, SampleLimits};

/// Ready batches that were not taken yet.
#[derive(Default)]
pub struct ReadySets {
    batches: VecDeque<ReadyBatch>,
    /// Samples that an open access shows. Nothing enters or leaves but samples that
    /// are taken.
    shown: Option<VecDeque<ReadyBatch>>,
    quotas: Vec<ReaderQuota>,
    /// Ordered by the source timestamp of the first sample instead of arrival.
    by_source_timestamp: bool,
    /// The order key of the last sample taken.
    last_taken: Option<SourceOrderKey>,
    /// When a sample of a busy reader was last taken.
    busy_at: Instant,
}

/// Ends of instances that may wait for a reader, as many as it may have instances.
/// Beyond it KEEP_ALL is full, and KEEP_LAST drops the oldest batch.
const ENDS_MAX: usize = INSTANCES_MAX_DEFAULT;

/// How much one reader may hold, and holds.
#[derive(Default)]
struct ReaderQuota {
    /// Limit per instance.
    per_instance: usize,
    /// Limit in all.
    total: usize,
    keep_all: bool,
    queued: QueueLoad,
    /// Samples that an open access shows.
    shown: QueueLoad,
    /// Samples replaced by newer ones.
    overwritten: u64,
    /// Samples whose LIFESPAN ended while their set waited.
    expired: u64,
}

/// How many samples a reader holds. Ends of instances take no space, but there are
/// at most [`ENDS_MAX`].
#[derive(Default)]
struct QueueLoad {
    samples: usize,
    of_instances: BTreeMap<Option<KeyHash>, usize>,
    /// Ends of instances included.
    items: usize,
}

impl QueueLoad {
    fn instance_ends(&self) -> usize {
        self.items.saturating_sub(self.samples)
    }

    fn add(&mut self, item: &QueuedSample) {
        self.items += 1;
        if !item.is_end() {
            self.samples += 1;
            *self.of_instances.entry(instance_of(item)).or_default() += 1;
        }
    }

    fn remove(&mut self, item: &QueuedSample) {
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

impl ReaderQuota {
    fn exceeds(&self) -> bool {
        let of_instances = self.queued.of_instances.values();
        self.queued.samples > self.total
            || self.queued.instance_ends() > ENDS_MAX
            || of_instances.into_iter().any(|n| *n > self.per_instance)
    }
}

impl ReadySets {
    /// Adds a reader at a free index, with its sample limits. A reader with order by
    /// source orders all of it.
    pub fn put_reader(&mut self, reader: usize, qos: &EndpointQos, limits: SampleLimits) {
        if self.quotas.len() <= reader {
            self.quotas.resize_with(reader + 1, ReaderQuota::default);
        }
        if let Some(quota) = self.quotas.get_mut(reader) {
            *quota = ReaderQuota {
                per_instance: limits.per_instance,
                total: limits.total,
                keep_all: qos.history == History::KeepAll,
                ..ReaderQuota::default()
            };
        }
        self.by_source_timestamp |= qos.destination_order == DestinationOrder::BySource;
    }

    /// Removes a reader with its samples.
    pub fn remove_reader(&mut self, reader: usize) {
        for queue in [Some(&mut self.batches), self.shown.as_mut()] {
            let Some(queue) = queue else { continue };
            for batch in queue.iter_mut() {
                batch.items.retain(|(of, _)| *of != reader);
            }
            queue.retain(|batch| !batch.items.is_empty());
        }
        if let Some(quota) = self.quotas.get_mut(reader) {
            *quota = ReaderQuota::default();
        }
    }

    /// Whether writers must wait for a reader that holds `taken` further samples.
    pub fn is_full(&self, reader: usize, taken: usize) -> bool {
        let quota = self.quotas.get(reader).filter(|quota| quota.keep_all);
        quota.is_some_and(|s| {
            s.queued.samples + s.shown.samples + taken >= s.total
                || s.queued.instance_ends() + s.shown.instance_ends() >= ENDS_MAX
        })
    }

    /// Whether a reader that was full has enough space to ask for more.
    pub fn is_half_empty(&self, reader: usize) -> bool {
        let quota = self.quotas.get(reader);
        quota.is_none_or(|s| s.queued.samples + s.shown.samples <= s.total / 2)
    }

    /// When a KEEP_ALL reader last was more than half full, so that it may have kept its
    /// writers waiting since it was full: `now`, or when its last such sample was taken.
    pub fn busy_at(&self, now: Instant) -> Instant {
        if self.is_busy() { now } else { self.busy_at }
    }

    fn is_busy(&self) -> bool {
        let mut all = self.quotas.iter().enumerate();
        all.any(|(reader, quota)| quota.keep_all && !self.is_half_empty(reader))
    }

    /// The first limit that is exceeded for a reader: what, how much it holds, the
    /// limit.
    ///
    /// KEEP_ALL blocks writers but accepts samples already on their way: as many
    /// again, and those of `group_merge`.
    pub fn exceeded_limit(&self, reader: usize) -> Option<(&'static str, usize, usize)> {
        let quota = self.quotas.get(reader)?;
        let max = |max: usize| {
            if quota.keep_all {
                max.saturating_mul(2).saturating_add(SAMPLES_MAX)
            } else {
                max
            }
        };
        let of_load = |load: &QueueLoad| {
            let most = load.of_instances.values().max().copied();
            [
                ("samples in sets to take", load.samples, max(quota.total)),
                (
                    "samples of one instance in sets",
                    most.unwrap_or(0),
                    max(quota.per_instance),
                ),
                (
                    "ends of instances in sets",
                    load.instance_ends(),
                    max(ENDS_MAX),
                ),
            ]
        };
        let loads = [&quota.queued, &quota.shown];
        let mut all = loads.into_iter().flat_map(of_load);
        all.find(|(_, held, max)| held > max)
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether a reader could take something now.
    pub fn has_takeable(&self, reader: usize) -> bool {
        let quota = self.quotas.get(reader);
        quota.is_some_and(|quota| match self.shown {
            Some(_) => quota.shown.items > 0,
            None => quota.queued.items > 0,
        })
    }

    /// Samples of a reader that were replaced by newer ones.
    pub fn overwritten(&self, reader: usize) -> u64 {
        self.quotas.get(reader).map_or(0, |s| s.overwritten)
    }

    /// Samples of a reader whose LIFESPAN ended while their set waited.
    pub fn expired(&self, reader: usize) -> u64 {
        self.quotas.get(reader).map_or(0, |s| s.expired)
    }

    /// Adds a ready batch. KEEP_LAST makes space by dropping whole sets, oldest
    /// first.
    ///
    /// Returns false if a set is too large for a reader, or older by source than a
    /// taken sample. Then no reader gets it.
    pub fn push_or_drop_oldest(
        &mut self,
        batch: ReadyBatch,
        dropped: &mut DroppedByReader,
    ) -> bool {
        let counts = BatchCounts::from_batch(&batch);
        if batch.is_set && !counts.fit_empty_queue(&self.quotas) {
            for (reader, count) in counts.in_all {
                dropped.add_set(reader, count as u64);
            }
            return false;
        }
        let first = batch.items.front().map(|(_, item)| source_order_key(item));
        if self.by_source_timestamp && first < self.last_taken {
            for (reader, _) in &batch.items {
                dropped.add_late(*reader);
            }
            return false;
        }
        while !counts.fit_besides(&self.quotas) {
            if !self.drop_oldest() {
                break;
            }
        }
        self.update_loads(&batch, QueueLoad::add);
        let mut at = self.batches.len();
        if self.by_source_timestamp {
            let source_key =
                |batch: &ReadyBatch| batch.items.front().map(|(_, item)| source_order_key(item));
            let newer = self.batches.iter().rev();
            at -= newer.take_while(|batch| source_key(batch) > first).count();
        }
        self.batches.insert(at, batch);
        let too_many = |s: &ReaderQuota| !s.keep_all && s.queued.instance_ends() > ENDS_MAX;
        while self.quotas.iter().any(too_many) {
            if !self.drop_oldest() {
                break;
            }
        }
        true
    }

    /// Drops the oldest batch as a whole; false if there is none.
    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.pop() else {
            return false;
        };
        for (reader, item) in &oldest.items {
            if let Some(quota) = self.quotas.get_mut(*reader) {
                quota.overwritten += u64::from(!item.is_end());
            }
        }
        true
    }

    fn update_loads(&mut self, batch: &ReadyBatch, note: fn(&mut QueueLoad, &QueuedSample)) {
        for (reader, item) in &batch.items {
            if let Some(quota) = self.quotas.get_mut(*reader) {
                note(&mut quota.queued, item);
            }
        }
    }

    /// Takes the oldest batch outside of any access.
    fn pop(&mut self) -> Option<ReadyBatch> {
        let batch = self.batches.pop_front()?;
        self.update_loads(&batch, QueueLoad::remove);
        if self.by_source_timestamp {
            let last = batch
                .items
                .iter()
                .map(|(_, item)| source_order_key(item))
                .max();
            self.last_taken = self.last_taken.max(last);
        }
        Some(batch)
    }

    /// Takes the oldest batch for reading. A set is taken as a whole once it was
    /// begun, so its LIFESPAN is checked here once.
    pub fn next(&mut self, now: impl Fn() -> Instant) -> Option<ReadyBatch> {
        if self.is_busy() {
            self.busy_at = now();
        }
        loop {
            let mut batch = self.pop()?;
            if begin_take(&mut batch, &now) {
                return Some(batch);
            }
            self.note_expired(&batch);
        }
    }

    fn note_expired(&mut self, batch: &ReadyBatch) {
        for (reader, item) in &batch.items {
            if let Some(quota) = self.quotas.get_mut(*reader) {
                quota.expired += u64::from(!item.is_end());
            }
        }
    }

    // --- access to several readers ---

    /// Shows the present samples and none that arrive later, until
    /// [`ReadySets::end_access`].
    pub fn begin_access(&mut self, now: impl Fn() -> Instant) {
        let mut shown = VecDeque::new();
        for mut batch in core::mem::take(&mut self.batches) {
            if begin_take(&mut batch, &now) {
                shown.push_back(batch)
            } else {
                self.update_loads(&batch, QueueLoad::remove);
                self.note_expired(&batch);
            }
        }
        self.shown = Some(shown);
        for quota in &mut self.quotas {
            quota.shown = core::mem::take(&mut quota.queued);
        }
    }

    /// Ends the access. Samples that were not taken wait before those that arrived
    /// meanwhile; KEEP_LAST drops the oldest of both.
    pub fn end_access(&mut self) {
        for batch in self.shown.take().into_iter().flatten().rev() {
            self.update_loads(&batch, QueueLoad::add);
            self.batches.push_front(batch);
        }
        for quota in &mut self.quotas {
            quota.shown = QueueLoad::default();
        }
        while self.quotas.iter().any(|s| !s.keep_all && s.exceeds()) {
            if !self.drop_oldest() {
                break;
            }
        }
    }

    /// The reader, among those asked for, whose sample is the oldest that can be
    /// taken.
    pub fn next_reader(&self, among: impl Fn(usize) -> bool) -> Option<usize> {
        let queue = self.shown.as_ref().unwrap_or(&self.batches);
        let mut items = queue.iter().flat_map(|batch| &batch.items);
        items.find(|(of, _)| among(*of)).map(|(of, _)| *of)
    }

    /// Takes a reader's oldest sample, with the time when it became ready.
    pub fn take_of(
        &mut self,
        reader: usize,
        now: impl Fn() -> Instant,
    ) -> Option<(Instant, QueuedSample)> {
        if !self.has_takeable(reader) {
            return None;
        }
        if self.is_busy() {
            self.busy_at = now();
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
            if !begin_take(batch, &now) {
                if let Some(batch) = queue.remove(index) {
                    self.update_loads(&batch, QueueLoad::remove);
                    self.note_expired(&batch);
                }
                continue;
            }
            let ready = batch.ready_at;
            let (_, item) = batch.items.remove(at)?;
            if batch.items.is_empty() {
                queue.remove(index);
            }
            if let Some(quota) = self.quotas.get_mut(reader) {
                if is_shown {
                    quota.shown.remove(&item)
                } else {
                    quota.queued.remove(&item)
                }
            }
            if self.by_source_timestamp {
                self.last_taken = self.last_taken.max(Some(source_order_key(&item)));
            }
            return Some((ready, item));
        }
    }
}

/// Begins to take a batch. Returns false for a set with an expired sample;
/// otherwise none of its samples expires any more.
fn begin_take(batch: &mut ReadyBatch, now: impl Fn() -> Instant) -> bool {
    let may_end = |(_, item): &(usize, QueuedSample)| item.expires_at != Instant::FAR_FUTURE;
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

fn instance_of(item: &QueuedSample) -> Option<KeyHash> {
    item.instance.as_deref().map(|keyed| keyed.info.key)
}

/// How many samples a batch has, by reader. Ends of instances take no space.
#[derive(Default)]
struct BatchCounts {
    of_instances: BTreeMap<(usize, Option<KeyHash>), usize>,
    in_all: BTreeMap<usize, usize>,
}

impl BatchCounts {
    fn from_batch(batch: &ReadyBatch) -> Self {
        let mut counts = Self::default();
        for (reader, item) in batch.items.iter().filter(|(_, item)| !item.is_end()) {
            let instance = instance_of(item);
            *counts.of_instances.entry((*reader, instance)).or_default() += 1;
            *counts.in_all.entry(*reader).or_default() += 1;
        }
        counts
    }

    /// Whether every reader has enough space when its queue is empty.
    fn fit_empty_queue(&self, quotas: &[ReaderQuota]) -> bool {
        self.of_instances.iter().all(|((reader, _), count)| {
            let in_all = self.in_all.get(reader).copied().unwrap_or(0);
            let quota = quotas.get(*reader);
            quota.is_none_or(|quota| *count <= quota.per_instance && in_all <= quota.total)
        })
    }

    /// Whether every KEEP_LAST reader has enough space beside the queued samples.
    fn fit_besides(&self, quotas: &[ReaderQuota]) -> bool {
        self.of_instances.iter().all(|((reader, instance), count)| {
            let in_all = self.in_all.get(reader).copied().unwrap_or(0);
            let Some(quota) = quotas.get(*reader).filter(|quota| !quota.keep_all) else {
                return true;
            };
            let load = &quota.queued;
            let waiting = load.of_instances.get(instance).copied().unwrap_or(0);
            waiting + count <= quota.per_instance && load.samples + in_all <= quota.total
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::queued_sample::tests::item;

    #[test]
    fn a_queue_beyond_its_limit_is_reported() {
        for keep_all in [false, true] {
            let mut waiting = ReadySets::default();
            let history = if keep_all {
                History::KeepAll
            } else {
                History::KeepLast(2)
            };
            let qos = EndpointQos {
                history,
                ..EndpointQos::default()
            };
            waiting.put_reader(0, &qos, SampleLimits::without_key(2));
            let max = if keep_all { 4 + SAMPLES_MAX } else { 2 };
            for n in 0..=max {
                assert_eq!(waiting.exceeded_limit(0), None);
                let batch = ReadyBatch {
                    is_set: false,
                    ready_at: Instant::ZERO,
                    items: [(0, item(n as i64))].into(),
                };
                waiting.update_loads(&batch, QueueLoad::add);
                waiting.batches.push_back(batch);
            }
            let exceeded = ("samples in sets to take", max + 1, max);
            assert_eq!(waiting.exceeded_limit(0), Some(exceeded));
        }
    }
}

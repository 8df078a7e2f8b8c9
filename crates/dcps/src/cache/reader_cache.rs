//! Reader history cache (RTPS 2.5 §8.2.9, DDS 1.4 §2.2.2.5).
//!
//! Samples from all transports pass, in this order: duplicate filter, ownership
//! (`ownership strength`), time-based filter, destination order and history depth
//! (keep last / keep all). On keyed topics all of that applies per instance, see
//! [`InstanceCache`].
//!
//! A policy that the subscription does not use costs one check of an empty option.

use alloc::boxed::Box;
use alloc::vec::Vec;

use pteros_msg::key::KeyHash;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{DestinationOrder, EndpointQos};
use pteros_rtps::reader::Reader;
use pteros_rtps::seq::SampleIdentity;
use pteros_rtps::time::Instant;

use super::blocked_writes::BlockedWrites;
use super::sample_queue::SampleQueue;
use crate::coherent::batch::{ReadyBatch, SOLE_READER};
use crate::coherent::sets::CoherentSets;
use crate::filter::duplicate_filter::DuplicateFilter;
use crate::filter::ownership::Owners;
use crate::filter::time_based_filter::TimeBasedFilter;
use crate::instance::cache::{DropTotals, InstanceCache};
use crate::qos::DataLifecycle;
use crate::sample::outcome::{InsertOutcome, PoppedSample};
use crate::sample::queued_sample::QueuedSample;
use crate::sample::sample_limits::SampleLimits;

/// The history cache of one subscription.
pub struct ReaderCache {
    /// Samples that wait, where the topic has no key.
    pub queue: SampleQueue,
    /// The owner of the topic and its contenders (OWNERSHIP EXCLUSIVE).
    pub owners: Option<Owners>,
    /// Replaces queue and time-based filter where the topic has a key.
    pub instances: Option<Box<InstanceCache>>,
    /// The duplicate filter, once a durable publisher has matched.
    pub duplicate_filter: Option<Box<DuplicateFilter>>,
    separation: Option<TimeBasedFilter>,
    /// Samples that passed all filters.
    pub received: u64,
    /// Coherent sets and ordered access.
    pub sets: Option<Box<CoherentSets>>,
    /// Writes of this process that wait for space.
    pub blocked_writes: Option<Box<BlockedWrites>>,
}

enum FilterDecision {
    Passed(QueuedSample),
    /// Filtered or held; it counts as received from its publisher.
    Withheld,
    /// Another publisher owns the topic.
    Outranked,
}

impl ReaderCache {
    /// A cache for a topic without key. Allocates nothing until a sample comes.
    pub fn new(qos: &EndpointQos) -> Self {
        let queue = SampleQueue::new(qos);
        let depth = queue.depth_limit().0;
        Self {
            queue,
            owners: Owners::new(qos),
            instances: None,
            duplicate_filter: None,
            separation: TimeBasedFilter::new(qos),
            received: 0,
            sets: None,
            blocked_writes: None,
        }
        .with_set_limits(qos, SampleLimits::without_key(depth))
    }

    /// A cache for a topic with a key.
    pub fn with_key(qos: &EndpointQos, instances: InstanceCache) -> Self {
        let limits = instances.sample_limits();
        Self {
            separation: None,
            instances: Some(Box::new(instances)),
            ..Self::new(qos)
        }
        .with_set_limits(qos, limits)
    }

    fn with_set_limits(mut self, qos: &EndpointQos, limits: SampleLimits) -> Self {
        if qos.presentation.holds_samples() {
            let mut sets = CoherentSets::new(qos.presentation);
            sets.put_reader(SOLE_READER, qos, limits);
            self.sets = Some(Box::new(sets));
            // Sets are ordered before they get there.
            self.queue = SampleQueue::new(&EndpointQos {
                destination_order: DestinationOrder::ByReception,
                ..qos.clone()
            });
        }
        self
    }

    /// Applies the changeable policies of the reader.
    pub fn set_qos(&mut self, now: Instant, qos: &EndpointQos, lifecycle: DataLifecycle) {
        if let Some(owners) = &mut self.owners {
            owners.set_deadline(qos.deadline);
        }
        match &mut self.instances {
            None => TimeBasedFilter::update(&mut self.separation, qos),
            Some(instances) => instances.set_qos(now, qos, lifecycle),
        }
    }

    /// Passes the coherent sets to a group. Returns how many samples may wait.
    pub fn take_sets_limits(&mut self) -> SampleLimits {
        self.sets = None;
        let depth = self.queue.depth_limit().0;
        let instances = self.instances.as_ref();
        instances.map_or(SampleLimits::without_key(depth), |instances| {
            instances.sample_limits()
        })
    }

    /// Whether another sample has no space, or blocked writes come first. `key`
    /// identifies the instance, if known.
    #[inline]
    pub fn is_full_for(&self, key: Option<&KeyHash>) -> bool {
        self.blocked_writes.is_some() || self.is_queue_full_for(key)
    }

    /// The same, without regard to blocked writes.
    #[inline]
    pub fn is_queue_full_for(&self, key: Option<&KeyHash>) -> bool {
        if let Some(sets) = &self.sets {
            return sets.ready.is_full(SOLE_READER, self.len());
        }
        match (&self.instances, key) {
            (None, _) => self.queue.is_full(),
            (Some(instances), None) => instances.is_full(),
            (Some(instances), Some(key)) => instances.is_full_for(key),
        }
    }

    /// As [`Self::is_full_for`], for a publisher of this process: it leaves places to
    /// samples that wait for space.
    #[inline]
    pub fn is_full_for_local(&self, key: Option<&KeyHash>) -> bool {
        self.is_full_for(key) || self.queue.is_full_for_local()
    }

    /// Whether there is no space for more samples of the machine, which keeps them then.
    #[inline]
    pub fn holds_back_when_full(&mut self, machine: &Reader) -> bool {
        let is_full = self.is_full_for(None);
        if is_full {
            self.hold_back(machine.has_samples());
        }
        is_full
    }

    /// Notes that there is no space for more. `others_wait`: samples were left behind.
    /// On a topic without a key, publishers of the process leave places to them.
    #[inline]
    pub(super) fn hold_back(&mut self, others_wait: bool) {
        match &mut self.instances {
            None => self.queue.hold_back(others_wait),
            Some(instances) => instances.hold_back(),
        }
    }

    /// Takes the oldest sample, or the end of an instance.
    pub fn pop(&mut self, now: impl FnOnce() -> Instant) -> PoppedSample {
        match &mut self.instances {
            None => self.queue.pop(now),
            Some(instances) => instances.pop(now),
        }
    }

    /// Number of samples that wait outside of sets.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.instances {
            None => self.queue.len(),
            Some(instances) => instances.len(),
        }
    }

    /// Whether no sample waits, in sets or outside.
    #[inline]
    pub fn has_no_samples(&self) -> bool {
        self.is_empty() && self.sets.as_ref().is_none_or(|sets| sets.ready.is_empty())
    }

    /// Whether no sample waits outside of sets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.instances {
            None => self.queue.is_empty(),
            Some(instances) => instances.is_empty(),
        }
    }

    /// Whether the reader's machine is needed for each sample.
    pub fn needs_filtering(qos: &EndpointQos) -> bool {
        Owners::new(qos).is_some()
            || TimeBasedFilter::new(qos).is_some()
            || qos.presentation.holds_samples()
    }

    /// Whether a sample was received before its publisher restarted. Records it if
    /// not.
    #[inline]
    pub fn is_duplicate(
        &mut self,
        writer: Guid,
        sequence: i64,
        original: Option<SampleIdentity>,
    ) -> bool {
        let originals = self.duplicate_filter.as_mut();
        originals.is_some_and(|originals| !originals.admits(writer, sequence, original))
    }

    /// As [`ReaderCache::is_duplicate`], for a sample of this process.
    #[inline]
    pub fn is_duplicate_sample(&mut self, item: &QueuedSample) -> bool {
        let (meta, original) = (&item.meta, item.original());
        self.is_duplicate(meta.publisher, meta.sequence, original)
    }

    /// Inserts a sample; KEEP_LAST makes space for it. `alive` is called only for
    /// owners.
    pub fn offer(
        &mut self,
        now: Instant,
        item: QueuedSample,
        alive: impl Fn(Guid) -> bool,
    ) -> InsertOutcome {
        if let Some(instances) = &mut self.instances {
            return instances.offer(now, item, self.owners.as_mut(), alive);
        }
        match self.filter(now, item, alive) {
            FilterDecision::Passed(item) => {
                if self.queue.push_or_drop_oldest(item) {
                    InsertOutcome::Queued
                } else {
                    InsertOutcome::Withheld
                }
            }
            FilterDecision::Withheld => InsertOutcome::Withheld,
            FilterDecision::Outranked => InsertOutcome::Outranked,
        }
    }

    /// As [`ReaderCache::offer`], with the liveliness and the DEADLINE of the reader's
    /// machine.
    #[inline]
    pub fn insert(
        &mut self,
        now: Instant,
        machine: &mut Reader,
        item: QueuedSample,
    ) -> InsertOutcome {
        let outcome = self.offer(now, item, |writer| machine.is_alive(now, writer));
        if outcome != InsertOutcome::Outranked {
            machine.renew_deadline(now);
        }
        outcome
    }

    /// Applies the filters, not the queue.
    fn filter(
        &mut self,
        now: Instant,
        item: QueuedSample,
        alive: impl Fn(Guid) -> bool,
    ) -> FilterDecision {
        if let Some(owners) = &mut self.owners
            && !owners.admits(now, item.meta.publisher, alive)
        {
            return FilterDecision::Outranked;
        }
        let passed = match &mut self.separation {
            None => Some(item),
            Some(separation) => separation.offer(now, item),
        };
        if passed.is_none() && self.queue.is_full() {
            // The reader that makes space asks for the held sample.
            self.queue.hold_back(false);
        }
        passed.map_or(FilterDecision::Withheld, FilterDecision::Passed)
    }

    /// Changes the coherent sets and filters what became ready.
    ///
    /// Returns how many samples can be taken because of it, if any. On keyed
    /// topics, the instance filters run when a set is taken.
    pub fn with_sets(
        &mut self,
        now: Instant,
        alive: impl Fn(Guid) -> bool,
        change: impl FnOnce(&mut CoherentSets) -> Vec<ReadyBatch>,
    ) -> Option<u64> {
        let mut sets = self.sets.take()?;
        let mut queued = None;
        for ReadyBatch {
            is_set,
            ready_at: at,
            mut items,
        } in change(&mut sets)
        {
            if self.instances.is_none() {
                let filtered_items = items.into_iter().filter_map(|(reader, item)| {
                    match self.filter(now, item, &alive) {
                        FilterDecision::Passed(item) => Some((reader, item)),
                        FilterDecision::Withheld | FilterDecision::Outranked => None,
                    }
                });
                items = filtered_items.collect();
            }
            let is_sample = |(_, item): &&(usize, QueuedSample)| !item.is_end();
            let samples = items.iter().filter(is_sample).count() as u64;
            if !items.is_empty()
                && sets.enqueue(ReadyBatch {
                    is_set,
                    ready_at: at,
                    items,
                })
            {
                *queued.get_or_insert(0) += samples;
            }
        }
        self.sets = Some(sets);
        queued
    }

    /// Handles due timeouts: releases the sample of the time-based filter, unless
    /// the queue is full, and updates instances. Returns how many samples can be
    /// taken because of it.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) -> u64 {
        match &mut self.instances {
            None => u64::from(self.release(now)),
            Some(instances) => instances.handle_timeout(now),
        }
    }

    fn release(&mut self, now: Instant) -> bool {
        let Some(separation) = &mut self.separation else {
            return false;
        };
        if separation.release_at().is_none_or(|at| at > now) {
            return false;
        }
        if self.queue.is_full() {
            self.queue.hold_back(false);
            return false;
        }
        let held = separation.release(now);
        held.is_some_and(|item| self.queue.push_or_drop_oldest(item))
    }

    /// When [`ReaderCache::handle_timeout`] has work; `None` while the queue is too
    /// full.
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        let sets = self.sets.as_ref().and_then(|sets| sets.wakes_at());
        let own = match &self.instances {
            Some(instances) => instances.next_timeout(),
            None => {
                let held = self
                    .separation
                    .as_ref()
                    .and_then(TimeBasedFilter::release_at);
                held.filter(|_| !self.queue.is_full())
            }
        };
        [own, sets].into_iter().flatten().min()
    }

    /// How many samples were not delivered, by reason.
    pub fn totals(&self) -> DropTotals {
        match &self.instances {
            Some(instances) => instances.totals,
            None => DropTotals {
                overwritten: self.queue.overwritten,
                expired: self.queue.expired,
                filtered: self.separation.as_ref().map_or(0, |s| s.filtered),
                late: self.queue.late(),
                ..DropTotals::default()
            },
        }
    }

    /// Samples that the duplicate filter dropped.
    pub fn duplicate_count(&self) -> u64 {
        self.duplicate_filter.as_ref().map_or(0, |o| o.repeated)
    }

    /// Samples of publishers that did not own the topic.
    pub fn not_owner_count(&self) -> u64 {
        self.owners.as_ref().map_or(0, |o| o.outranked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::queued_sample::tests::{item, item_of};
    use pteros_rtps::qos::{History, Ownership, ResourceLimits};
    use pteros_rtps::time::Duration;

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn filtered() -> EndpointQos {
        EndpointQos {
            time_based_filter: Duration::from_millis(100),
            ..EndpointQos::default()
        }
    }

    fn taken(cache: &mut ReaderCache) -> Option<i64> {
        let item = cache.queue.pop(|| Instant::ZERO).item?;
        Some(item.meta.sequence)
    }

    #[test]
    fn without_policies_there_are_no_filters() {
        assert!(!ReaderCache::needs_filtering(&EndpointQos::default()));
        assert!(ReaderCache::needs_filtering(&filtered()));
    }

    #[test]
    fn a_sample_of_a_non_owner_does_not_use_up_the_time_filter() {
        let mut cache = ReaderCache::new(&EndpointQos {
            ownership: Ownership::Exclusive,
            ..filtered()
        });
        let owners = cache.owners.as_mut().unwrap();
        for (n, strength) in [(1, 5), (2, 3)] {
            owners.note_strength(item_of(n, 0).meta.publisher, strength);
        }
        let mut offer = |ms, writer, n| cache.offer(at_ms(ms), item_of(writer, n), |_| true);
        assert_eq!(offer(0, 1, 10), InsertOutcome::Queued);
        assert_eq!(offer(150, 2, 20), InsertOutcome::Outranked);
        assert_eq!(offer(160, 1, 11), InsertOutcome::Queued);
        assert_eq!(offer(170, 1, 12), InsertOutcome::Withheld);
        assert_eq!((cache.not_owner_count(), cache.totals().filtered), (1, 0));
    }

    #[test]
    fn a_held_sample_waits_for_space_and_is_released_when_there_is_some() {
        let mut cache = ReaderCache::new(&EndpointQos {
            history: History::KeepAll,
            resource_limits: ResourceLimits {
                max_samples: Some(1),
                ..ResourceLimits::default()
            },
            ..filtered()
        });
        cache.offer(at_ms(0), item(1), |_| true);
        assert_eq!(
            cache.offer(at_ms(10), item(2), |_| true),
            InsertOutcome::Withheld
        );
        assert_eq!(cache.next_timeout(), None);
        assert!(cache.handle_timeout(at_ms(110)) == 0);
        let popped = cache.queue.pop(|| Instant::ZERO);
        assert!(popped.item.is_some() && popped.resume);
        assert_eq!(cache.next_timeout(), Some(at_ms(110)));
        assert!(cache.handle_timeout(at_ms(300)) == 1);
        assert_eq!(taken(&mut cache), Some(2));
    }
}

//! The queue of a keyless subscription (HISTORY, keep last / keep all).

use alloc::collections::VecDeque;

use pteros_rtps::qos::{EndpointQos, History};
use pteros_rtps::time::Instant;

use crate::filter::destination_order::SourceOrder;
use crate::sample::outcome::PoppedSample;
use crate::sample::queued_sample::QueuedSample;
use crate::sample::sample_limits::{KEEP_ALL_SAMPLES_DEFAULT, samples_max};

/// The queue of a keyless subscription: samples that were not taken.
///
/// KEEP_LAST drops the oldest and counts it. KEEP_ALL reports that it is full, so
/// that a reliable writer is blocked.
pub struct SampleQueue {
    items: VecDeque<QueuedSample>,
    depth: usize,
    keep_all: bool,
    /// Whether some sample has a LIFESPAN.
    has_lifespan: bool,
    /// How many samples were taken since others began to wait for space here, if some
    /// do.
    taken_since_held_back: Option<usize>,
    /// Whether some of them have arrived.
    others_wait: bool,
    /// The order by source timestamp, if not by arrival.
    order: Option<SourceOrder>,
    /// Samples replaced by newer ones.
    pub overwritten: u64,
    /// Samples whose LIFESPAN ended while they waited.
    pub expired: u64,
}

impl SampleQueue {
    /// Creates a queue with the depth of `qos`.
    pub fn new(qos: &EndpointQos) -> Self {
        let limit = samples_max(&qos.resource_limits);
        let (depth, keep_all) = match qos.history {
            History::KeepLast(depth) => (
                limit.unwrap_or(usize::MAX).min(depth.max(1) as usize),
                false,
            ),
            History::KeepAll => (limit.unwrap_or(KEEP_ALL_SAMPLES_DEFAULT), true),
        };
        Self {
            items: VecDeque::new(),
            depth,
            keep_all,
            has_lifespan: false,
            taken_since_held_back: None,
            others_wait: false,
            order: SourceOrder::new(qos),
            overwritten: 0,
            expired: 0,
        }
    }

    /// Whether another sample would be refused.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.keep_all && self.items.len() >= self.depth
    }

    /// Whether a sample of this process has no place. While samples of others wait,
    /// every second free place is theirs: publishers of this process see it first.
    #[inline]
    pub fn is_full_for_local(&self) -> bool {
        let taken = self.taken_since_held_back.filter(|_| self.others_wait);
        let reserved = taken.map_or(0, |taken| taken / 2);
        self.is_full() || self.keep_all && self.items.len().saturating_add(reserved) >= self.depth
    }

    /// Adds a sample; with KEEP_LAST the oldest is dropped.
    ///
    /// KEEP_ALL accepts it even when full: several threads may have checked before
    /// they push. Returns false if it is late for the order by source.
    #[inline]
    pub fn push_or_drop_oldest(&mut self, item: QueuedSample) -> bool {
        self.has_lifespan |= item.expires_at != Instant::FAR_FUTURE;
        let is_crowded = item.charge.is_crowded();
        match &mut self.order {
            None => self.items.push_back(item),
            Some(order) => {
                if !order.insert(&mut self.items, item) {
                    return false;
                }
            }
        }
        if !self.keep_all && self.items.len() > self.depth {
            self.take_front();
            self.overwritten += 1;
        }
        if is_crowded && !self.keep_all {
            self.make_memory();
        }
        true
    }

    /// Drops older samples of the writer of the newest one, until the next one finds
    /// receive memory. The newest stays.
    #[cold]
    fn make_memory(&mut self) {
        while let Some(newest) = self.items.back()
            && newest.charge.is_crowded()
        {
            let charge = &newest.charge;
            let is_of_it = |item: &QueuedSample| item.charge.is_of_same_writer(charge);
            let oldest = self.items.iter().position(is_of_it);
            let Some(at) = oldest.filter(|at| at + 1 < self.items.len()) else {
                return;
            };
            let dropped = self.items.remove(at);
            if let (Some(order), Some(dropped)) = (&mut self.order, &dropped) {
                order.note_taken(dropped);
            }
            self.overwritten += 1;
        }
    }

    /// Samples that were late for the order by source.
    #[inline]
    pub fn late(&self) -> u64 {
        self.order.as_ref().map_or(0, |order| order.late)
    }

    /// The sample that is taken next.
    #[inline]
    pub fn front(&self) -> Option<&QueuedSample> {
        self.items.front()
    }

    /// Removes the oldest sample and records its order by source.
    #[inline]
    fn take_front(&mut self) -> Option<QueuedSample> {
        let item = self.items.pop_front()?;
        if let Some(order) = &mut self.order {
            order.note_taken(&item);
        }
        Some(item)
    }

    /// Notes that there is no space for more. `others_wait`: samples were left behind.
    #[inline]
    pub fn hold_back(&mut self, others_wait: bool) {
        self.taken_since_held_back.get_or_insert(0);
        self.others_wait |= others_wait;
    }

    /// Takes the oldest sample that has not expired. `now` is called only if some
    /// sample has a LIFESPAN.
    pub fn pop(&mut self, now: impl FnOnce() -> Instant) -> PoppedSample {
        let (was_full, before) = (self.is_full_for_local(), self.items.len());
        let now = if self.has_lifespan {
            now()
        } else {
            Instant::ZERO
        };
        let mut item = self.take_front();
        while item.as_ref().is_some_and(|item| item.expires_at <= now) {
            self.expired += 1;
            item = self.take_front();
        }
        // Half the depth at once, so that a slow reader does not request each sample.
        let mut resume = false;
        if let Some(taken) = &mut self.taken_since_held_back {
            *taken = taken.saturating_add(before.saturating_sub(self.items.len()));
            let half = self.depth / 2;
            resume = self.items.len() <= half || *taken >= self.depth.saturating_sub(half);
        }
        if resume {
            self.taken_since_held_back = None;
            self.others_wait = false;
        }
        PoppedSample {
            item,
            freed_space: was_full && !self.is_full_for_local(),
            resume,
        }
    }

    /// Number of samples, and the limit. Several publishers that checked at once
    /// may each put one into a KEEP_ALL queue.
    #[inline]
    pub fn held_and_limit(&self) -> (usize, usize) {
        (self.items.len(), self.depth.max(1))
    }

    /// Whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Number of samples.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The limit, and whether it blocks writers.
    #[inline]
    pub fn depth_limit(&self) -> (usize, bool) {
        (self.depth, self.keep_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::queued_sample::tests::{item, item_of};
    use alloc::sync::Arc;
    use alloc::vec;
    use alloc::vec::Vec;
    use pteros_rtps::id::{EntityId, GuidPrefix, ProtocolVersion, VendorId};
    use pteros_rtps::locator::Route;
    use pteros_rtps::memory_budget::MemoryBudget;
    use pteros_rtps::qos::{DestinationOrder, Reliability, ResourceLimits};
    use pteros_rtps::reader::{Reader, ReaderConfig, WriterProxyConfig};
    use pteros_rtps::receiver::Source;
    use pteros_rtps::seq::SequenceNumber;
    use pteros_rtps::wire::{Data, InlineQos};

    use crate::sample::queued_sample::SampleBody;

    fn by_source(history: History) -> SampleQueue {
        SampleQueue::new(&EndpointQos {
            history,
            destination_order: DestinationOrder::BySource,
            ..EndpointQos::default()
        })
    }

    fn taken(queue: &mut SampleQueue) -> Option<(u8, i64)> {
        let meta = queue.pop(|| Instant::ZERO).item?.meta;
        Some((meta.publisher.prefix.0[0], meta.sequence))
    }

    fn all(queue: &mut SampleQueue) -> Vec<(u8, i64)> {
        core::iter::from_fn(|| taken(queue)).collect()
    }

    #[test]
    fn by_source_the_timestamp_decides_then_the_writer() {
        for order in [[1, 2], [2, 1]] {
            let mut queue = by_source(History::KeepLast(10));
            for writer in order {
                for n in [1, 3, 5] {
                    assert!(queue.push_or_drop_oldest(item_of(writer, n)));
                }
            }
            let expected = [(1, 1), (2, 1), (1, 3), (2, 3), (1, 5), (2, 5)];
            assert_eq!(all(&mut queue), expected);
        }
    }

    #[test]
    fn by_source_a_sample_older_than_the_last_taken_is_late() {
        let mut queue = by_source(History::KeepAll);
        queue.push_or_drop_oldest(item_of(2, 5));
        assert_eq!(taken(&mut queue), Some((2, 5)));
        assert!(!queue.push_or_drop_oldest(item_of(1, 4)));
        // The same timestamp, but before the one taken in every reader's order.
        assert!(!queue.push_or_drop_oldest(item_of(1, 5)));
        assert!(queue.push_or_drop_oldest(item_of(3, 5)));
        assert_eq!((all(&mut queue), queue.late()), (vec![(3, 5)], 2));
    }

    #[test]
    fn by_source_a_full_queue_keeps_the_newest_timestamps() {
        let mut queue = by_source(History::KeepLast(2));
        for n in [8, 9, 3, 10, 9] {
            queue.push_or_drop_oldest(item(n));
        }
        assert_eq!(all(&mut queue), [(1, 9), (1, 10)]);
        assert_eq!(queue.overwritten + queue.late(), 3);
    }

    #[test]
    fn by_reception_timestamps_do_not_matter() {
        let mut queue = SampleQueue::new(&EndpointQos::default());
        for n in [5, 3, 4] {
            assert!(queue.push_or_drop_oldest(item(n)));
        }
        assert_eq!(all(&mut queue), [(1, 5), (1, 3), (1, 4)]);
    }

    #[test]
    fn the_tighter_resource_limit_bounds_a_keep_all_queue() {
        let mut queue = SampleQueue::new(&EndpointQos {
            history: History::KeepAll,
            resource_limits: ResourceLimits {
                max_samples: Some(5),
                max_instances: None,
                max_samples_per_instance: Some(3),
            },
            ..EndpointQos::default()
        });
        for n in 0..3 {
            assert!(!queue.is_full());
            queue.push_or_drop_oldest(item(n));
        }
        assert!(queue.is_full());
    }

    /// A KEEP_ALL queue with eight places.
    fn of_eight() -> SampleQueue {
        SampleQueue::new(&EndpointQos {
            history: History::KeepAll,
            resource_limits: ResourceLimits {
                max_samples: Some(8),
                ..ResourceLimits::default()
            },
            ..EndpointQos::default()
        })
    }

    /// Found by the simulator (seed 5537): publishers of the process took each place that
    /// a slow application made free, and the samples of others waited for ever.
    #[test]
    fn samples_that_wait_for_space_get_half_of_the_places_that_become_free() {
        let mut queue = of_eight();
        const OURS: u8 = 1;
        const OTHERS: u8 = 2;
        let mut next = 0;
        let mut add = |queue: &mut SampleQueue, of: u8| {
            next += 1;
            queue.push_or_drop_oldest(item_of(of, next));
        };
        let mut taken_of = [0; 3];
        for _ in 0..200 {
            while !queue.is_full_for_local() {
                add(&mut queue, OURS);
            }
            queue.hold_back(true);
            let popped = queue.pop(|| Instant::ZERO);
            let publisher = popped.item.unwrap().meta.publisher;
            taken_of[usize::from(publisher.prefix.0[0])] += 1;
            if popped.resume {
                while !queue.is_full() {
                    add(&mut queue, OTHERS);
                }
            }
        }
        let [_, ours, others] = taken_of;
        assert!(ours >= 80 && others >= 80, "{taken_of:?}");
    }

    #[test]
    fn a_publisher_of_the_process_gets_every_place_while_nobody_waits() {
        let mut queue = of_eight();
        for n in 0..8 {
            queue.push_or_drop_oldest(item(n));
        }
        queue.hold_back(false);
        for n in 8..20 {
            queue.pop(|| Instant::ZERO);
            assert!(!queue.is_full_for_local());
            queue.push_or_drop_oldest(item(n));
        }
    }

    /// Samples as a reader of another participant's best-effort writer delivers them.
    fn received(budget: &Arc<MemoryBudget>, sizes: &[usize]) -> Vec<QueuedSample> {
        let qos = EndpointQos {
            reliability: Reliability::BestEffort,
            ..EndpointQos::default()
        };
        let writer = item(0).meta.publisher;
        let own = GuidPrefix([9; 12]).with(EntityId::new([0, 0, 1], EntityId::KIND_READER_NO_KEY));
        let mut reader = Reader::new(ReaderConfig::new(own, qos.clone()));
        let matched = WriterProxyConfig {
            guid: writer,
            qos: qos.into(),
            route: Route::by_socket(&[], false),
            vendor: VendorId::PTEROS,
        };
        reader.match_writer(Instant::ZERO, matched);
        reader.limit_memory(writer, budget.account());
        for (number, size) in (1..).zip(sizes) {
            let payload = vec![0; *size];
            let data = Data {
                reader: EntityId::UNKNOWN,
                writer: writer.entity,
                sequence: SequenceNumber(number),
                inline_qos: InlineQos::default(),
                payload: &payload,
                key_only: false,
                non_standard_payload: false,
            };
            let source = Source {
                prefix: writer.prefix,
                version: ProtocolVersion::OURS,
                vendor: VendorId::PTEROS,
                timestamp: None,
                destination: GuidPrefix::UNKNOWN,
                via_shared_memory: false,
                reply_unicast: None,
                reply_multicast: None,
            };
            reader.handle_data(Instant::ZERO, &source, &data);
        }
        let changes = core::iter::from_fn(|| reader.poll_sample());
        let queued = changes.map(|change| QueuedSample {
            body: SampleBody::Serialized(change.payload),
            charge: change.charge,
            ..item(change.sequence.0)
        });
        queued.collect()
    }

    #[test]
    fn keep_last_drops_older_samples_that_leave_no_memory_for_the_next() {
        let budget = MemoryBudget::new(100_000, 1_000_000);
        let all = received(&budget, &[30_000, 500, 6_000, 7_000]);
        assert_eq!((all.len(), budget.reserved()), (4, 43_000));
        // Another participant leaves little.
        let other = budget.account();
        let _record = other.reserve_record(100);
        let mut queue = SampleQueue::new(&EndpointQos {
            history: History::KeepLast(10),
            ..EndpointQos::default()
        });
        for item in all {
            queue.push_or_drop_oldest(item);
        }
        assert_eq!((queue.len(), queue.overwritten), (4, 0));
        let tight = MemoryBudget::new(65_000, 1_000_000);
        let mut queue = SampleQueue::new(&EndpointQos {
            history: History::KeepLast(10),
            ..EndpointQos::default()
        });
        for item in received(&tight, &[10_000, 500, 10_000, 10_000]) {
            queue.push_or_drop_oldest(item);
        }
        // 30 000 and the next 10 000 are more than the 35 000 that are free.
        let kept: Vec<_> = all_sequences(&mut queue);
        assert_eq!((kept, queue.overwritten), (vec![2, 3, 4], 1));
    }

    fn all_sequences(queue: &mut SampleQueue) -> Vec<i64> {
        all(queue)
            .into_iter()
            .map(|(_, sequence)| sequence)
            .collect()
    }

    #[test]
    fn keep_all_drops_nothing_and_a_taken_sample_gives_its_memory_back() {
        let budget = MemoryBudget::new(65_000, 1_000_000);
        let mut queue = SampleQueue::new(&EndpointQos {
            history: History::KeepAll,
            ..EndpointQos::default()
        });
        for item in received(&budget, &[10_000; 9]) {
            queue.push_or_drop_oldest(item);
        }
        // The fourth would take more than half.
        assert_eq!((queue.len(), budget.reserved()), (3, 30_000));
        let taken = queue.pop(|| Instant::ZERO);
        assert_eq!(budget.reserved(), 30_000);
        drop(taken);
        assert_eq!(budget.reserved(), 20_000);
    }
}

//! A sample on its way to a subscription, over any transport, and the queue of
//! keyless topics.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::{Representation, to_payload, to_payload_slice};
use pteros_msg::message::Encode;
use pteros_rtps::coherent_mark::CoherentMark;
use pteros_rtps::fault;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, History, ResourceLimits};
use pteros_rtps::seq::SampleIdentity;
use pteros_rtps::time::{Instant, Timestamp};

use crate::destination_order::SourceOrder;
use crate::instance::SampleInstance;
use crate::shm_transport::Chunk;

/// The transport over which a sample arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DeliveryPath {
    /// Within this process: as a shared value, or as bytes in serialize-only mode
    /// (intra-process).
    IntraProcess,
    /// Through shared memory of this host.
    SharedMemory,
    /// Over the network, loopback included.
    Network,
}

impl DeliveryPath {
    /// The name of the path in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IntraProcess => "intra-process",
            Self::SharedMemory => "shared memory",
            Self::Network => "UDP",
        }
    }
}

/// A message as the publisher's own value, shared within the process. Implemented
/// for every message type.
pub trait SharedValue: Any + Send + Sync {
    /// Serializes as CDR with its encapsulation header.
    fn payload(&self, representation: Representation) -> Bytes;

    /// Serializes into memory of exactly its size, if possible.
    fn payload_in(&self, representation: Representation, _memory: Chunk) -> Bytes {
        self.payload(representation)
    }
}

impl dyn SharedValue {
    /// The value, if it has that type.
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        let value: &dyn Any = self;
        value.downcast_ref()
    }
}

impl<T: Encode + Send + Sync + 'static> SharedValue for T {
    fn payload(&self, representation: Representation) -> Bytes {
        to_payload(self, representation).into()
    }

    fn payload_in(&self, representation: Representation, mut memory: Chunk) -> Bytes {
        match to_payload_slice(self, representation, &mut memory) {
            Ok(written) if written == memory.len() => memory.freeze(),
            // Its size has changed since it was determined.
            _ => self.payload(representation),
        }
    }
}

/// The message of a sample.
#[derive(Clone)]
pub enum SampleBody {
    /// The publisher's own value.
    Shared(Arc<dyn SharedValue>),
    /// CDR with its encapsulation header.
    Serialized(Bytes),
}

/// The metadata of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleMeta {
    /// The source timestamp, wall clock.
    pub source: Option<Timestamp>,
    /// The reception timestamp, wall clock.
    pub reception: Timestamp,
    /// The publisher's sequence number, from 1.
    pub sequence: i64,
    /// The publisher.
    pub publisher: Guid,
    /// The transport.
    pub path: DeliveryPath,
}

/// Identities of other samples that belong to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelatedIdentity {
    /// The original identity of a replayed sample (ORIGINAL_WRITER_INFO).
    pub original: Option<SampleIdentity>,
    /// The related sample identity: the request of a reply, or where a reply goes
    /// ([`crate::service`]).
    pub related: Option<SampleIdentity>,
}

impl RelatedIdentity {
    /// `None` if both are absent.
    pub(crate) fn new(
        original: Option<SampleIdentity>,
        related: Option<SampleIdentity>,
    ) -> Option<Box<Self>> {
        let names = original.is_some() || related.is_some();
        names.then(|| Box::new(Self { original, related }))
    }
}

/// A queued sample. Moved several times on its way: rare fields are boxed, so that
/// the rest moves in registers.
#[derive(Clone)]
pub struct QueuedSample {
    /// The message.
    pub body: SampleBody,
    /// Its metadata.
    pub meta: SampleMeta,
    /// When its LIFESPAN ends; it is not delivered afterwards.
    pub expires_at: Instant,
    /// Its instance, on keyed topics.
    pub instance: Option<Box<SampleInstance>>,
    /// Its coherent-set mark and group sequence number.
    pub mark: Option<Box<CoherentMark>>,
    /// Its original and related identities.
    pub related_identity: Option<Box<RelatedIdentity>>,
}

/// Compilers move values up to this size without calling `memcpy`, which stalls on
/// bytes that were just written: ten times slower.
const _: () = assert!(size_of::<PoppedSample>() <= 128);

impl SampleBody {
    /// The Rust type of a shared value.
    pub(crate) fn shared_type(&self) -> Option<TypeId> {
        match self {
            Self::Shared(value) => {
                let value: &dyn Any = &**value;
                Some(value.type_id())
            }
            Self::Serialized(_) => None,
        }
    }
}

impl QueuedSample {
    /// Whether it is the end of an instance; its body is the serialized key then.
    pub fn is_end(&self) -> bool {
        let keyed = self.instance.as_deref();
        keyed.is_some_and(|keyed| keyed.kind != ChangeKind::Alive)
    }

    /// [`RelatedIdentity::original`].
    pub(crate) fn original(&self) -> Option<SampleIdentity> {
        self.related_identity.as_ref()?.original
    }

    /// [`RelatedIdentity::related`].
    pub(crate) fn related(&self) -> Option<SampleIdentity> {
        self.related_identity.as_ref()?.related
    }

    /// Whether it is a message, rather than the end of an instance or a set.
    pub(crate) fn is_data(&self) -> bool {
        !self.is_end() && !self.ends_set()
    }

    /// Whether it only ends a coherent set.
    pub(crate) fn ends_set(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.is_set_end())
    }

    /// Bytes that count against limits. A shared value counts none, since the
    /// publisher owns it.
    pub fn weight(&self) -> usize {
        match &self.body {
            SampleBody::Serialized(bytes) => bytes.len(),
            SampleBody::Shared(_) => 0,
        }
    }

    pub(crate) fn body_is_empty(&self) -> bool {
        matches!(&self.body, SampleBody::Serialized(payload) if payload.is_empty())
    }
}

/// The queue of a keyless subscription: samples that were not taken.
///
/// KEEP_LAST drops the oldest and counts it. KEEP_ALL reports that it is full, so
/// that a reliable writer is blocked.
pub(crate) struct SampleQueue {
    items: VecDeque<QueuedSample>,
    depth: usize,
    keep_all: bool,
    /// Whether some sample has a LIFESPAN.
    has_lifespan: bool,
    /// Whether further samples wait for space here.
    held_back: bool,
    /// The order by source timestamp, if not by arrival.
    order: Option<SourceOrder>,
    /// Samples replaced by newer ones.
    pub overwritten: u64,
    /// Samples whose LIFESPAN ended while they waited.
    pub expired: u64,
}

/// The outcome of [`SampleQueue::pop`].
#[derive(Default)]
pub(crate) struct PoppedSample {
    /// The sample.
    pub item: Option<QueuedSample>,
    /// The queue was full and no longer is.
    pub freed_space: bool,
    /// There is enough space to fetch held-back samples.
    pub resume: bool,
}

/// Limit of KEEP_ALL queues without RESOURCE_LIMITS: at 1 kHz, five seconds of a
/// stalled reader.
pub const KEEP_ALL_SAMPLES_DEFAULT: usize = 5_000;

/// The sample limit of RESOURCE_LIMITS. Without keys there is one instance, so the
/// tighter limit applies.
pub(crate) fn samples_max(limits: &ResourceLimits) -> Option<usize> {
    let bounds = [limits.max_samples, limits.max_samples_per_instance];
    let tighter = bounds.into_iter().flatten().min()?;
    Some(tighter.max(1) as usize)
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
            held_back: false,
            order: SourceOrder::new(qos),
            overwritten: 0,
            expired: 0,
        }
    }

    /// Whether another sample would be refused.
    pub fn is_full(&self) -> bool {
        self.keep_all && self.items.len() >= self.depth && !fault!("queue-without-limit")
    }

    /// Adds a sample; with KEEP_LAST the oldest is dropped.
    ///
    /// KEEP_ALL accepts it even when full: several threads may have checked before
    /// they push. Returns false if it is late for the order by source.
    pub fn push_or_drop_oldest(&mut self, item: QueuedSample) -> bool {
        self.has_lifespan |= item.expires_at != Instant::FAR_FUTURE;
        match &mut self.order {
            None => self.items.push_back(item),
            Some(order) => {
                if !order.insert(&mut self.items, item) {
                    return false;
                }
            }
        }
        if !self.keep_all && self.items.len() > self.depth {
            if fault!("keep-last-drops-newest") {
                self.items.pop_back()
            } else {
                self.take_front()
            };
            self.overwritten += u64::from(!fault!("overwritten-not-counted"));
        }
        true
    }

    /// Samples that were late for the order by source.
    pub fn late(&self) -> u64 {
        self.order.as_ref().map_or(0, |order| order.late)
    }

    /// The sample that is taken next.
    pub fn front(&self) -> Option<&QueuedSample> {
        self.items.front()
    }

    /// Removes the oldest sample and records its order by source.
    fn take_front(&mut self) -> Option<QueuedSample> {
        let item = self.items.pop_front()?;
        if let Some(order) = &mut self.order {
            order.note_taken(&item);
        }
        Some(item)
    }

    /// Notes that samples were left behind for lack of space.
    pub fn hold_back(&mut self) {
        self.held_back = true;
    }

    /// Takes the oldest sample that has not expired. `now` is called only if some
    /// sample has a LIFESPAN.
    pub fn pop(&mut self, now: impl FnOnce() -> Instant) -> PoppedSample {
        let was_full = self.is_full();
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
        // Half empty, so that a slow reader does not request each sample.
        let resume = self.held_back && self.items.len() <= self.depth / 2;
        self.held_back &= !resume;
        PoppedSample {
            item,
            freed_space: was_full && !self.is_full(),
            resume,
        }
    }

    /// Number of samples, and the limit. Several publishers that checked at once
    /// may each put one into a KEEP_ALL queue.
    pub fn held_and_limit(&self) -> (usize, usize) {
        (self.items.len(), self.depth.max(1))
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The limit, and whether it blocks writers.
    pub fn depth_limit(&self) -> (usize, bool) {
        (self.depth, self.keep_all)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::DestinationOrder;

    /// A sample of the first writer with timestamp and sequence number `n`.
    pub(crate) fn item(n: i64) -> QueuedSample {
        item_of(1, n)
    }

    pub(crate) fn item_of(writer: u8, n: i64) -> QueuedSample {
        let id = EntityId::new([0, 0, 1], EntityId::KIND_WRITER_NO_KEY);
        QueuedSample {
            body: SampleBody::Serialized(Bytes::new()),
            meta: SampleMeta {
                source: Some(Timestamp::from_nanos(n)),
                reception: Timestamp::from_nanos(0),
                sequence: n,
                publisher: GuidPrefix([writer; 12]).with(id),
                path: DeliveryPath::Network,
            },
            expires_at: Instant::FAR_FUTURE,
            instance: None,
            mark: None,
            related_identity: None,
        }
    }

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
        std::iter::from_fn(|| taken(queue)).collect()
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
}

//! One message on its way to a subscription, whatever path it took.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::{Representation, to_payload, to_payload_slice};
use pteros_msg::message::Encode;
use pteros_rtps::fault;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::mark::Mark;
use pteros_rtps::qos::{EndpointQos, History, ResourceLimits};
use pteros_rtps::seq::SampleIdentity;
use pteros_rtps::time::{Instant, Timestamp};

use crate::instance::Keyed;
use crate::links::Chunk;
use crate::source_order::SourceOrder;

/// How a sample came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Path {
    /// Within this process: as a shared pointer, or as bytes where an end asks for
    /// them.
    IntraProcess,
    /// Through shared memory of this host.
    SharedMemory,
    /// Over the network, loopback included.
    Network,
}

impl Path {
    /// The path's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IntraProcess => "intra-process",
            Self::SharedMemory => "shared memory",
            Self::Network => "UDP",
        }
    }
}

/// A message as the publisher's own value, shared within the process. Every
/// message of a Rust type is one.
pub trait SharedValue: Any + Send + Sync {
    /// As CDR with its encapsulation header.
    fn payload(&self, representation: Representation) -> Bytes;

    /// The same, written into memory of just its size where that can be.
    fn payload_in(&self, representation: Representation, _memory: Chunk) -> Bytes {
        self.payload(representation)
    }
}

impl dyn SharedValue {
    /// The value, if it is of that type.
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
            // It was of another size when its size was taken.
            _ => self.payload(representation),
        }
    }
}

/// The message itself.
#[derive(Clone)]
pub enum Body {
    /// The publisher's own value.
    Shared(Arc<dyn SharedValue>),
    /// CDR with its encapsulation header.
    Serialized(Bytes),
}

/// What is known about a sample besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleMeta {
    /// When the publisher stamped it, wall clock.
    pub source: Option<Timestamp>,
    /// When it reached the subscription, wall clock.
    pub reception: Timestamp,
    /// The publisher's number for it, from 1 on.
    pub sequence: i64,
    /// Who published it.
    pub publisher: Guid,
    /// How it came.
    pub path: Path,
}

/// Other samples that one names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kin {
    /// Which sample it was when it was first published, if that was in an
    /// earlier life of the publisher.
    pub original: Option<SampleIdentity>,
    /// The request it replies to, or where its reply is to go
    /// ([`crate::service`]).
    pub related: Option<SampleIdentity>,
}

impl Kin {
    /// `None` when it names none.
    pub(crate) fn new(
        original: Option<SampleIdentity>,
        related: Option<SampleIdentity>,
    ) -> Option<Box<Self>> {
        let names = original.is_some() || related.is_some();
        names.then(|| Box::new(Self { original, related }))
    }
}

/// A sample waiting to be taken. Moved several times on its way: what few
/// samples have is boxed, so that the rest moves in registers.
#[derive(Clone)]
pub struct Item {
    /// The message.
    pub body: Body,
    /// What is known about it.
    pub meta: SampleMeta,
    /// When its LIFESPAN ends: it is not handed over after that.
    pub expires_at: Instant,
    /// Its instance, on keyed topics.
    pub instance: Option<Box<Keyed>>,
    /// Its coherent set and its place in its publisher.
    pub mark: Option<Box<Mark>>,
    /// The samples that it stands for or speaks of.
    pub kin: Option<Box<Kin>>,
}

/// Compilers move values up to this size without calling `memcpy`, which stalls
/// on what was just written: ten times slower.
const _: () = assert!(size_of::<Popped>() <= 128);

impl Body {
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

impl Item {
    /// Whether it is the end of an instance rather than a message; its body is
    /// the serialized key then.
    pub fn is_end(&self) -> bool {
        let keyed = self.instance.as_deref();
        keyed.is_some_and(|keyed| keyed.kind != ChangeKind::Alive)
    }

    /// [`Kin::original`].
    pub(crate) fn original(&self) -> Option<SampleIdentity> {
        self.kin.as_ref()?.original
    }

    /// [`Kin::related`].
    pub(crate) fn related(&self) -> Option<SampleIdentity> {
        self.kin.as_ref()?.related
    }

    /// Whether it is a message, rather than the end of an instance or a set.
    pub(crate) fn is_data(&self) -> bool {
        !self.is_end() && !self.ends_set()
    }

    /// Whether it ends a coherent set and is nothing else.
    pub(crate) fn ends_set(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.ends())
    }

    /// Bytes that count against limits: a publisher's own value counts none, for
    /// the publisher pays for it.
    pub fn weight(&self) -> usize {
        match &self.body {
            Body::Serialized(bytes) => bytes.len(),
            Body::Shared(_) => 0,
        }
    }

    pub(crate) fn body_is_empty(&self) -> bool {
        matches!(&self.body, Body::Serialized(payload) if payload.is_empty())
    }
}

/// The samples of one subscription that have not been taken.
///
/// KEEP_LAST drops the oldest and counts it; KEEP_ALL is said to be full, so
/// that a reliable writer is held back.
pub(crate) struct SampleQueue {
    items: VecDeque<Item>,
    depth: usize,
    keep_all: bool,
    /// Some sample may end its lifespan while it waits.
    may_expire: bool,
    /// More waits behind this queue and comes when there is room.
    held_back: bool,
    /// By source stamp instead of arrival.
    order: Option<SourceOrder>,
    /// Samples that made room for newer ones.
    pub overwritten: u64,
    /// Samples whose lifespan ended while they waited.
    pub expired: u64,
}

/// What [`SampleQueue::pop`] found.
#[derive(Default)]
pub(crate) struct Popped {
    /// The sample.
    pub item: Option<Item>,
    /// The queue was full and no longer is.
    pub made_room: bool,
    /// There is room enough to fetch what was held back.
    pub resume: bool,
}

/// Bound of KEEP_ALL queues without RESOURCE_LIMITS: at 1 kHz five seconds of
/// a stalled reader.
pub const KEEP_ALL_SAMPLES_DEFAULT: usize = 5_000;

/// How many samples RESOURCE_LIMITS allow. Without keys there is one instance,
/// so the tighter bound holds.
pub(crate) fn samples_max(limits: &ResourceLimits) -> Option<usize> {
    let bounds = [limits.max_samples, limits.max_samples_per_instance];
    let tighter = bounds.into_iter().flatten().min()?;
    Some(tighter.max(1) as usize)
}

impl SampleQueue {
    /// A queue as deep as `qos` says.
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
            may_expire: false,
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

    /// Adds a sample; with KEEP_LAST the oldest makes room. KEEP_ALL takes it
    /// even when full: those who look before they push may be several. False
    /// when it comes too late for the order by source.
    pub fn push_or_drop_oldest(&mut self, item: Item) -> bool {
        self.may_expire |= item.expires_at != Instant::FAR_FUTURE;
        match &mut self.order {
            None => self.items.push_back(item),
            Some(order) => {
                if !order.insert(&mut self.items, item) {
                    return false;
                }
            }
        }
        if !self.keep_all && self.items.len() > self.depth {
            match fault!("newest-makes-room") {
                true => self.items.pop_back(),
                false => self.leave(),
            };
            self.overwritten += u64::from(!fault!("overwritten-not-counted"));
        }
        true
    }

    /// Samples that came too late for the order by source.
    pub fn late(&self) -> u64 {
        self.order.as_ref().map_or(0, |order| order.late)
    }

    /// The oldest sample leaves.
    /// The one that is taken next.
    pub fn front(&self) -> Option<&Item> {
        self.items.front()
    }

    fn leave(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        if let Some(order) = &mut self.order {
            order.note_left(&item);
        }
        Some(item)
    }

    /// Notes that samples were left behind for lack of room.
    pub fn hold_back(&mut self) {
        self.held_back = true;
    }

    /// Takes the oldest sample whose lifespan has not ended. `now` is asked
    /// only if some sample may end.
    pub fn pop(&mut self, now: impl FnOnce() -> Instant) -> Popped {
        let was_full = self.is_full();
        let now = match self.may_expire {
            true => now(),
            false => Instant::ZERO,
        };
        let mut item = self.leave();
        while item.as_ref().is_some_and(|item| item.expires_at <= now) {
            self.expired += 1;
            item = self.leave();
        }
        // Half empty, so that a slow reader does not ask for each sample.
        let resume = self.held_back && self.items.len() <= self.depth / 2;
        self.held_back &= !resume;
        Popped {
            item,
            made_room: was_full && !self.is_full(),
            resume,
        }
    }

    /// Samples that wait, and how many may. Several publishers that looked
    /// at once may each put one into a KEEP_ALL queue.
    pub fn held(&self) -> (usize, usize) {
        (self.items.len(), self.depth.max(1))
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// How many may wait, and whether that holds writers back.
    pub fn room(&self) -> (usize, bool) {
        (self.depth, self.keep_all)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::DestinationOrder;

    /// A sample that the first writer stamped and numbered so.
    pub(crate) fn item(n: i64) -> Item {
        item_of(1, n)
    }

    pub(crate) fn item_of(writer: u8, n: i64) -> Item {
        let id = EntityId::new([0, 0, 1], EntityId::KIND_WRITER_NO_KEY);
        Item {
            body: Body::Serialized(Bytes::new()),
            meta: SampleMeta {
                source: Some(Timestamp::from_nanos(n)),
                reception: Timestamp::from_nanos(0),
                sequence: n,
                publisher: GuidPrefix([writer; 12]).with(id),
                path: Path::Network,
            },
            expires_at: Instant::FAR_FUTURE,
            instance: None,
            mark: None,
            kin: None,
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
    fn by_source_the_stamp_decides_then_the_writer_whatever_came_first() {
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
    fn by_source_what_is_older_than_the_last_one_taken_is_late() {
        let mut queue = by_source(History::KeepAll);
        queue.push_or_drop_oldest(item_of(2, 5));
        assert_eq!(taken(&mut queue), Some((2, 5)));
        assert!(!queue.push_or_drop_oldest(item_of(1, 4)));
        // The same stamp, but before the one taken in every reader's order.
        assert!(!queue.push_or_drop_oldest(item_of(1, 5)));
        assert!(queue.push_or_drop_oldest(item_of(3, 5)));
        assert_eq!((all(&mut queue), queue.late()), (vec![(3, 5)], 2));
    }

    #[test]
    fn by_source_a_full_queue_keeps_the_newest_by_stamp() {
        let mut queue = by_source(History::KeepLast(2));
        for n in [8, 9, 3, 10, 9] {
            queue.push_or_drop_oldest(item(n));
        }
        assert_eq!(all(&mut queue), [(1, 9), (1, 10)]);
        assert_eq!(queue.overwritten + queue.late(), 3);
    }

    #[test]
    fn by_reception_stamps_do_not_matter() {
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

//! One instance of a keyed subscription.

use alloc::collections::BTreeSet;

use bytes::Bytes;
use pteros_msg::key::KeyHash;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::Timestamp;

use crate::filter::ownership::Owner;
use crate::filter::time_based_filter::TimeBasedFilter;
use crate::sample::instance_info::{InstanceInfo, InstanceState, ViewState};

/// A sample's position in the queue: by source where DESTINATION_ORDER demands it,
/// then by arrival. The order of the fields is the order of comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct QueuePosition {
    pub source_timestamp: Timestamp,
    pub publisher: Guid,
    pub sequence: i64,
    pub arrival: u64,
}

impl QueuePosition {
    /// A position that depends on the arrival alone.
    pub fn by_reception(arrival: u64) -> Self {
        Self {
            source_timestamp: Timestamp::from_nanos(0),
            publisher: Guid::UNKNOWN,
            sequence: 0,
            arrival,
        }
    }
}

/// State, writers and queued samples of one instance.
pub(super) struct ReaderInstance {
    /// Present state and generation counts.
    pub info: InstanceInfo,
    /// The serialized key; empty if unknown.
    pub key: Bytes,
    /// The writers that have registered it.
    pub writers: BTreeSet<Guid>,
    /// The owner, where OWNERSHIP is EXCLUSIVE.
    pub owner: Option<Owner>,
    /// Positions of its queued samples.
    pub queued: BTreeSet<QueuePosition>,
    /// Position of its queued end.
    pub end: Option<QueuePosition>,
    /// Position of the last sample taken.
    pub last_taken: Option<QueuePosition>,
    /// Position of the newest sample or end that arrived. Older ones do not change
    /// the state.
    pub newest: Option<QueuePosition>,
    /// Its time-based filter.
    pub time_filter: Option<TimeBasedFilter>,
}

impl ReaderInstance {
    pub fn new(key: KeyHash, serialized: Bytes, qos: &EndpointQos) -> Self {
        Self {
            info: InstanceInfo {
                key,
                state: InstanceState::Alive,
                view: ViewState::New,
                disposed_generations: 0,
                no_writers_generations: 0,
            },
            key: serialized,
            writers: BTreeSet::new(),
            owner: None,
            queued: BTreeSet::new(),
            end: None,
            last_taken: None,
            newest: None,
            time_filter: TimeBasedFilter::new(qos),
        }
    }

    /// Sets the instance to ALIVE because a sample arrived (DDS 1.4
    /// §2.2.2.5.1.5–6).
    pub fn set_alive(&mut self) {
        let info = &mut self.info;
        match info.state {
            InstanceState::Alive => return,
            InstanceState::Disposed => info.disposed_generations += 1,
            InstanceState::NoWriters => info.no_writers_generations += 1,
        }
        info.state = InstanceState::Alive;
        info.view = ViewState::New;
    }

    /// Whether it has ended and nothing of it waits.
    pub fn is_finished(&self) -> bool {
        self.info.state != InstanceState::Alive
            && self.queued.is_empty()
            && self.end.is_none()
            && self
                .time_filter
                .as_ref()
                .is_none_or(TimeBasedFilter::is_empty)
    }
}

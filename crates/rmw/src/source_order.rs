//! DESTINATION_ORDER BY_SOURCE at a subscription: samples wait in the order of
//! their source stamps, whoever wrote them (DDS 1.4 §2.2.3.17).
//!
//! Equal stamps are ordered by GUID, then by number, so that every reader ends
//! with the same value. What is older than a sample that has left the queue
//! comes too late: it is counted and dropped.

use std::collections::VecDeque;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{DestinationOrder, EndpointQos};
use pteros_rtps::time::Timestamp;

use crate::sample::Item;

/// A sample's place by source: stamp (of reception, if the writer sent none), writer,
/// number.
pub(crate) type Place = (Timestamp, Guid, i64);

/// The order of one subscription's queue.
pub(crate) struct SourceOrder {
    /// The place of the last sample that left the queue.
    left: Option<Place>,
    /// Samples that came after a newer one had left.
    pub(crate) late: u64,
}

impl SourceOrder {
    /// `None` where samples wait as they arrive.
    pub(crate) fn new(reader: &EndpointQos) -> Option<Self> {
        (reader.destination_order == DestinationOrder::BySource).then_some(Self {
            left: None,
            late: 0,
        })
    }

    /// Puts a sample where it belongs among those that wait. False when it is
    /// too late, which is counted. O(1) for samples that come in order.
    pub(crate) fn insert(&mut self, items: &mut VecDeque<Item>, item: Item) -> bool {
        let place = place_of(&item);
        if self.left.is_some_and(|left| place < left) {
            self.late += 1;
            return false;
        }
        let newer = items.iter().rev().take_while(|i| place_of(i) > place);
        items.insert(items.len() - newer.count(), item);
        true
    }

    /// Notes a sample that leaves the queue.
    pub(crate) fn note_left(&mut self, item: &Item) {
        self.left = self.left.max(Some(place_of(item)));
    }
}

pub(crate) fn place_of(item: &Item) -> Place {
    let meta = &item.meta;
    let stamp = meta.source.unwrap_or(meta.reception);
    (stamp, meta.publisher, meta.sequence)
}

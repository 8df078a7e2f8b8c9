//! DESTINATION_ORDER by source (destination order): samples wait in the order of
//! their source timestamps (DDS 1.4 §2.2.3.17).
//!
//! Equal timestamps are ordered by GUID, then by sequence number, so that every
//! reader ends with the same value. A sample older than one that has left the queue
//! is late: it is counted and dropped.

use alloc::collections::VecDeque;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{DestinationOrder, EndpointQos};
use pteros_rtps::time::Timestamp;

use crate::sample::queued_sample::QueuedSample;

/// A sample's order by source. The order of the fields is the order of comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SourceOrderKey {
    /// The source timestamp, or that of reception if the writer sent none.
    source_timestamp: Timestamp,
    publisher: Guid,
    sequence: i64,
}

/// The order of one subscription's queue.
pub(crate) struct SourceOrder {
    /// The key of the last sample that left the queue.
    last_taken: Option<SourceOrderKey>,
    /// Samples that arrived after a newer one had left.
    pub(crate) late: u64,
}

impl SourceOrder {
    /// `None` where samples wait in the order of arrival.
    pub(crate) fn new(reader: &EndpointQos) -> Option<Self> {
        (reader.destination_order == DestinationOrder::BySource).then_some(Self {
            last_taken: None,
            late: 0,
        })
    }

    /// Inserts a sample at its position. Returns false for a late sample, which is
    /// counted. O(1) for samples that arrive in order.
    pub(crate) fn insert(
        &mut self,
        items: &mut VecDeque<QueuedSample>,
        item: QueuedSample,
    ) -> bool {
        let key = source_order_key(&item);
        if self.last_taken.is_some_and(|last| key < last) {
            self.late += 1;
            return false;
        }
        let newer = items.iter().rev().take_while(|i| source_order_key(i) > key);
        items.insert(items.len() - newer.count(), item);
        true
    }

    /// Notes a sample that leaves the queue.
    pub(crate) fn note_taken(&mut self, item: &QueuedSample) {
        self.last_taken = self.last_taken.max(Some(source_order_key(item)));
    }
}

pub(crate) fn source_order_key(item: &QueuedSample) -> SourceOrderKey {
    let meta = &item.meta;
    SourceOrderKey {
        source_timestamp: meta.source.unwrap_or(meta.reception),
        publisher: meta.publisher,
        sequence: meta.sequence,
    }
}

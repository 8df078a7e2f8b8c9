//! Data encoder: DATA and DATA_FRAG encoding of one change for one destination
//! (RTPS 2.5 §8.3.8.2, §8.3.8.3).
//!
//! A large sample is fragmented to fit the MTU. A heartbeat, a GAP and the
//! timestamp share the datagrams. The payload is shared, not copied. On a
//! shared-memory connection every change goes whole, whatever its size.

use bytes::Bytes;

use super::burst_writer::{BurstBudget, BurstWriter};
use super::proxy::Destination;
use crate::change::{ChangeKind, WriterChange};
use crate::id::{EntityId, Guid};
use crate::interval::NumberRun;
use crate::locator::RouteKind;
use crate::outbox::{MessageBuilder, Outbox};
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::stats::Tally;
use crate::stats::WriterStats;
use crate::wire::{DataFragHead, DataHead, Gap, Heartbeat, InlineQosHead, StatusInfo};

/// The largest UDP datagram over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// The destination of one change and the submessages to send with it.
pub(super) struct DataEncoder<'a> {
    pub writer: Guid,
    pub destination: &'a Destination,
    pub reader: EntityId,
    /// Sent before the change, in its first datagram.
    pub leading_heartbeat: Option<Heartbeat>,
    /// Declared irrelevant before the change.
    pub gap: Option<NumberRun>,
    /// Sent in the change's last datagram.
    pub heartbeat: Option<Heartbeat>,
    /// INFO_DST may be omitted in datagrams without other submessages.
    pub may_omit_info_dst: bool,
    /// The payload in the form of the destination, see [`Destination::converted`].
    pub converted: Option<Bytes>,
}

impl DataEncoder<'_> {
    /// Sends the change from fragment `from` on (from 0), within the burst budget.
    /// Returns the next fragment, or `None` when the change is complete.
    pub fn send(
        &self,
        change: &WriterChange,
        from: u32,
        burst: &mut BurstWriter<'_>,
    ) -> Option<u32> {
        let total = self.datagram_count(change);
        if total <= 1 {
            self.send_whole(change, burst);
            return None;
        }
        for index in from..total {
            if burst.is_exhausted() {
                return Some(index);
            }
            self.send_fragment(change, index, index.saturating_add(1) == total, burst);
        }
        None
    }

    /// The number of datagrams for the change.
    pub fn datagram_count(&self, change: &WriterChange) -> u32 {
        match self.destination.route.kind {
            RouteKind::SharedMemory => 1,
            RouteKind::SameHost | RouteKind::Network => self.fragments_total(change),
        }
    }

    /// The number of fragments of the change.
    pub fn fragments_total(&self, change: &WriterChange) -> u32 {
        let size = usize::from(change.fragment_size).max(1);
        let fragments = self.payload(change).len().div_ceil(size);
        u32::try_from(fragments).unwrap_or(u32::MAX)
    }

    fn payload<'c>(&'c self, change: &'c WriterChange) -> &'c Bytes {
        self.converted.as_ref().unwrap_or(&change.payload)
    }

    fn begin<'o>(
        &self,
        out: &'o mut Outbox,
        change: &WriterChange,
        index: u32,
    ) -> MessageBuilder<'o> {
        let bytes_max = match self.destination.route.kind {
            RouteKind::SharedMemory => usize::MAX,
            RouteKind::SameHost | RouteKind::Network => DATAGRAM_BYTES_MAX,
        };
        let route = &self.destination.route.locators;
        let mut message = out.begin(self.writer.prefix, route, bytes_max);
        let omits_info_dst = self.omits_info_dst_at(change, index);
        if !omits_info_dst {
            message.info_destination(self.destination.prefix);
        }
        if let Some(heartbeat) = self.leading_heartbeat.as_ref().filter(|_| index == 0) {
            message.heartbeat(heartbeat);
        }
        if let Some(run) = self.gap {
            message.gap(&Gap::range(
                self.reader,
                self.writer.entity,
                SequenceNumber(run.first),
                SequenceNumber(run.last),
            ));
        }
        // Pteros readers take it from any fragment, others from the first one that
        // arrives.
        if !(omits_info_dst && self.destination.is_pteros) {
            message.info_timestamp(change.source_timestamp);
        }
        message
    }

    /// Whether a datagram holds nothing but a fragment for all readers. The last
    /// fragment never qualifies, since it may be shorter: the others have one size
    /// and form a GSO segment run.
    fn omits_info_dst_at(&self, change: &WriterChange, index: u32) -> bool {
        let is_last = index.saturating_add(1) >= self.datagram_count(change);
        let is_only_submessage =
            self.gap.is_none() && (index > 0 || self.leading_heartbeat.is_none());
        self.may_omit_info_dst && is_only_submessage && !is_last
    }

    fn finish(
        &self,
        mut message: MessageBuilder<'_>,
        budget: &mut BurstBudget,
        stats: &mut WriterStats,
    ) {
        if let Some(heartbeat) = &self.heartbeat
            && message.heartbeat(heartbeat)
        {
            stats.heartbeats.tally();
        }
        budget.finish(message, stats);
    }

    fn send_whole(&self, change: &WriterChange, burst: &mut BurstWriter<'_>) {
        let mut message = self.begin(burst.out, change, 0);
        let head = data_head(self.writer.entity, self.reader, change);
        message.data(&head, self.payload(change));
        self.finish(message, burst.budget, burst.stats);
    }

    pub fn send_fragment(
        &self,
        change: &WriterChange,
        index: u32,
        is_last: bool,
        burst: &mut BurstWriter<'_>,
    ) {
        let size = usize::from(change.fragment_size);
        let start = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .saturating_mul(size);
        let payload = self.payload(change);
        let end = start.saturating_add(size).min(payload.len());
        if start >= end {
            return;
        }
        let mut message = self.begin(burst.out, change, index);
        let head = DataFragHead {
            reader: self.reader,
            writer: self.writer.entity,
            sequence: change.sequence,
            first_fragment: FragmentNumber(index.saturating_add(1)),
            fragment_count: 1,
            fragment_size: change.fragment_size,
            sample_size: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            inline_qos: InlineQosHead {
                // Once per sample is enough.
                filter_info: if index == 0 { filter_info(change) } else { &[] },
                ..inline_qos(change)
            },
            key_only: change.kind != ChangeKind::Alive,
        };
        message.data_frag(&head, payload.slice(start..end));
        if is_last {
            self.finish(message, burst.budget, burst.stats);
        } else {
            burst.budget.finish(message, burst.stats);
        }
    }
}

/// Adds a whole change to a datagram.
pub(super) fn add_data(
    message: &mut MessageBuilder<'_>,
    writer: EntityId,
    reader: EntityId,
    change: &WriterChange,
) {
    message.data(&data_head(writer, reader, change), &change.payload);
}

/// Bytes that [`add_data`] adds.
pub(super) fn data_bytes(change: &WriterChange) -> usize {
    let head = data_head(EntityId::UNKNOWN, EntityId::UNKNOWN, change);
    head.size_bytes()
        .saturating_add(change.payload.len().next_multiple_of(4))
}

fn data_head(writer: EntityId, reader: EntityId, change: &WriterChange) -> DataHead<'_> {
    DataHead {
        reader,
        writer,
        sequence: change.sequence,
        inline_qos: inline_qos(change),
        key_only: change.kind != ChangeKind::Alive,
    }
}

fn filter_info(change: &WriterChange) -> &[u8] {
    let filter_outcome = change.filter_outcome.as_deref();
    filter_outcome.map_or(&[], |filter_outcome| &filter_outcome.results)
}

fn inline_qos(change: &WriterChange) -> InlineQosHead<'_> {
    InlineQosHead {
        status_info: match change.kind {
            ChangeKind::Alive => None,
            ChangeKind::Disposed => Some(StatusInfo::DISPOSED),
            ChangeKind::Unregistered => Some(StatusInfo::UNREGISTERED),
            ChangeKind::DisposedUnregistered => Some(StatusInfo::DISPOSED_UNREGISTERED),
        },
        key_hash: change.key_hash,
        related_sample_identity: change.related_sample_identity,
        coherent_mark: change.coherent_mark.as_deref().copied(),
        original_writer_info: change.original_writer_info,
        filter_info: filter_info(change),
    }
}

//! One change on its way to one destination: whole or in fragments, with what
//! goes along in the same datagram. The payload is shared, not copied. On a link
//! of shared memory every change goes whole, whatever its size.

use super::config::Burst;
use super::proxy::Group;
use crate::history::{Change, ChangeKind};
use crate::id::{EntityId, Guid};
use crate::interval::Run;
use crate::locator::RouteKind;
use crate::outbox::{MessageBuilder, Outbox};
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::stats::Tally;
use crate::stats::WriterStats;
use crate::wire::{DataFragHead, DataHead, Gap, Heartbeat, InlineQosHead, StatusInfo};

/// The largest UDP datagram over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// What is left of a burst.
pub(super) struct Left {
    pub datagrams: usize,
    pub bytes: usize,
}

impl Left {
    pub fn of(burst: Burst) -> Self {
        Self {
            datagrams: burst.datagrams.max(1),
            bytes: burst.bytes.max(1),
        }
    }

    /// Keeps all but so many bytes for later; how many that is.
    pub fn reserve_beyond(&mut self, bytes: usize) -> usize {
        let reserved = self.bytes.saturating_sub(bytes.max(1));
        self.bytes = self.bytes.saturating_sub(reserved);
        reserved
    }

    pub fn is_over(&self, out: &Outbox) -> bool {
        self.datagrams == 0 || self.bytes == 0 || out.is_full() || fault!("burst-ends-early")
    }

    /// Finishes a datagram. What a link need not copy costs nothing of a burst.
    pub fn finish(&mut self, message: MessageBuilder<'_>, stats: &mut WriterStats) {
        self.bytes = self.bytes.saturating_sub(message.cost_bytes());
        if message.finish() {
            self.datagrams = self.datagrams.saturating_sub(1);
            stats.datagrams.tally();
        }
    }
}

/// Where one change goes, and what goes along.
pub(super) struct Parcel<'a> {
    pub writer: Guid,
    pub to: &'a Group,
    pub reader: EntityId,
    /// Sent before the change, in its first datagram.
    pub prelude: Option<Heartbeat>,
    /// Declared irrelevant before the change.
    pub gap: Option<Run>,
    /// Sent in the change's last datagram.
    pub heartbeat: Option<Heartbeat>,
    /// Where nothing goes along the participant need not be named.
    pub is_for_all: bool,
}

impl Parcel<'_> {
    /// Sends the change from fragment `from` on (from 0), as far as the burst
    /// allows. Returns the next fragment, or `None` when it is through.
    pub fn send(
        &self,
        change: &Change,
        from: u32,
        out: &mut Outbox,
        left: &mut Left,
        stats: &mut WriterStats,
    ) -> Option<u32> {
        let total = self.pieces(change);
        if total <= 1 {
            self.send_whole(change, out, left, stats);
            return None;
        }
        for index in from..total {
            crate::fault::step();
            if left.is_over(out) {
                return Some(index);
            }
            self.send_fragment(
                change,
                index,
                index.saturating_add(1) == total,
                out,
                left,
                stats,
            );
        }
        None
    }

    /// In how many datagrams the change goes there.
    pub fn pieces(&self, change: &Change) -> u32 {
        match self.to.route.kind {
            RouteKind::SharedMemory => 1,
            RouteKind::SameHost | RouteKind::Network => fragments_total(change),
        }
    }

    fn begin<'o>(&self, out: &'o mut Outbox, change: &Change, index: u32) -> MessageBuilder<'o> {
        let bytes_max = match self.to.route.kind {
            RouteKind::SharedMemory => usize::MAX,
            RouteKind::SameHost | RouteKind::Network => DATAGRAM_BYTES_MAX,
        };
        let route = &self.to.route.locators;
        let mut message = out.begin(self.writer.prefix, route, bytes_max);
        let is_bare = self.is_bare(change, index);
        if !is_bare {
            message.info_destination(self.to.prefix);
        }
        if let Some(heartbeat) = self.prelude.as_ref().filter(|_| index == 0) {
            message.heartbeat(heartbeat);
        }
        if let Some(run) = self.gap {
            message.gap(&Gap::range(
                self.reader,
                self.writer.entity,
                SequenceNumber(run.first),
                SequenceNumber(
                    run.last
                        .saturating_add(fault!("gap-covers-the-next").into()),
                ),
            ));
        }
        // Readers of this stack take it from whichever fragment has it, others from
        // the one that comes first.
        if !(is_bare && self.to.is_ours) {
            message.info_timestamp(change.source_timestamp);
        }
        message
    }

    /// Whether a datagram has nothing but a fragment that is for all readers. The last one
    /// may be shorter and never is bare: those before are of one size and go together.
    fn is_bare(&self, change: &Change, index: u32) -> bool {
        let is_last = index.saturating_add(1) >= self.pieces(change);
        let is_alone = self.gap.is_none() && (index > 0 || self.prelude.is_none());
        self.is_for_all && is_alone && !is_last
    }

    fn finish(&self, mut message: MessageBuilder<'_>, left: &mut Left, stats: &mut WriterStats) {
        if let Some(heartbeat) = &self.heartbeat
            && message.heartbeat(heartbeat)
        {
            stats.heartbeats.tally();
        }
        left.finish(message, stats);
    }

    fn send_whole(
        &self,
        change: &Change,
        out: &mut Outbox,
        left: &mut Left,
        stats: &mut WriterStats,
    ) {
        let mut message = self.begin(out, change, 0);
        add_data(&mut message, self.writer.entity, self.reader, change);
        self.finish(message, left, stats);
    }

    pub fn send_fragment(
        &self,
        change: &Change,
        index: u32,
        is_last: bool,
        out: &mut Outbox,
        left: &mut Left,
        stats: &mut WriterStats,
    ) {
        let size = usize::from(change.fragment_size);
        let start = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .saturating_mul(size);
        let end = start.saturating_add(size).min(change.payload.len());
        if start >= end {
            return;
        }
        let mut message = self.begin(out, change, index);
        let head = DataFragHead {
            reader: self.reader,
            writer: self.writer.entity,
            sequence: change.sequence,
            first_fragment: FragmentNumber(index.saturating_add(1)),
            fragment_count: 1,
            fragment_size: change.fragment_size,
            sample_size: u32::try_from(change.payload.len()).unwrap_or(u32::MAX),
            inline_qos: InlineQosHead {
                // Once per sample is enough.
                filter_info: if index == 0 { filter_info(change) } else { &[] },
                ..inline_qos(change)
            },
            key_only: change.kind != ChangeKind::Alive,
        };
        message.data_frag(&head, change.payload.slice(start..end));
        if is_last {
            self.finish(message, left, stats);
        } else {
            left.finish(message, stats);
        }
    }
}

/// Adds a whole change to a datagram.
pub(super) fn add_data(
    message: &mut MessageBuilder<'_>,
    writer: EntityId,
    reader: EntityId,
    change: &Change,
) {
    message.data(&data_head(writer, reader, change), &change.payload);
}

/// Bytes that [`add_data`] adds.
pub(super) fn data_bytes(change: &Change) -> usize {
    let head = data_head(EntityId::UNKNOWN, EntityId::UNKNOWN, change);
    head.size_bytes()
        .saturating_add(change.payload.len().next_multiple_of(4))
}

fn data_head(writer: EntityId, reader: EntityId, change: &Change) -> DataHead<'_> {
    DataHead {
        reader,
        writer,
        sequence: change.sequence,
        inline_qos: inline_qos(change),
        key_only: change.kind != ChangeKind::Alive,
    }
}

pub(super) fn fragments_total(change: &Change) -> u32 {
    let size = usize::from(change.fragment_size).max(1);
    u32::try_from(change.payload.len().div_ceil(size)).unwrap_or(u32::MAX)
}

fn filter_info(change: &Change) -> &[u8] {
    let filtering = change.filtering.as_deref();
    filtering.map_or(&[], |filtering| &filtering.results)
}

fn inline_qos(change: &Change) -> InlineQosHead<'_> {
    InlineQosHead {
        status_info: match change.kind {
            ChangeKind::Alive => None,
            ChangeKind::Disposed => Some(StatusInfo::DISPOSED),
            ChangeKind::Unregistered => Some(StatusInfo::UNREGISTERED),
            ChangeKind::DisposedUnregistered => Some(StatusInfo::DISPOSED_UNREGISTERED),
        },
        key_hash: change.key_hash,
        related: change.related,
        mark: change.mark.as_deref().copied(),
        original: change.original,
        filter_info: filter_info(change),
    }
}

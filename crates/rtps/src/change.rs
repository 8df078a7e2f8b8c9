//! Changes: what a reader delivers (CacheChange, RTPS 2.5 §8.2.1.2) and what a
//! writer keeps. The caches of both sides hold them.

use alloc::boxed::Box;
use bytes::Bytes;

use crate::coherent_mark::{CoherentMark, CoherentMarkKind};
use crate::content_filter::FilterOutcome;
use crate::id::Guid;
use crate::memory_budget::SampleCharge;
use crate::seq::{SampleIdentity, SequenceNumber};
use crate::time::{Instant, Timestamp};

/// The effect of a change on its instance: data, dispose or unregister.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum ChangeKind {
    /// New data.
    #[default]
    Alive,
    /// The instance is disposed.
    Disposed,
    /// The writer unregisters the instance.
    Unregistered,
    /// Both.
    DisposedUnregistered,
}

impl ChangeKind {
    /// Whether the change unregisters the instance.
    pub const fn is_unregistered(self) -> bool {
        matches!(self, Self::Unregistered | Self::DisposedUnregistered)
    }
}

/// The path by which a change reached its reader. One byte: each sample carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Carrier {
    /// RTPS datagrams.
    #[default]
    Datagrams,
    /// A shared-memory connection.
    SharedMemory,
    /// A Zenoh session.
    Zenoh,
    /// Another transport than RTPS.
    OtherTransport,
}

/// One change as a reader delivers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheChange {
    /// Its effect on the instance.
    pub kind: ChangeKind,
    /// The writer that made the change; its sequence numbers count per writer.
    pub writer: Guid,
    /// Its sequence number.
    pub sequence: SequenceNumber,
    /// The writer's timestamp.
    pub source_timestamp: Option<Timestamp>,
    /// The path by which it came.
    pub carrier: Carrier,
    /// The serialized sample with its encapsulation header. For dispose and
    /// unregister the serialized key, or empty.
    pub payload: Bytes,
    /// The payload is the serialized key, not a sample.
    pub key_only: bool,
    /// The key hash of the instance, if the writer sent it.
    pub key_hash: Option<[u8; 16]>,
    /// Service correlation (DDS-RPC): the request that this sample answers.
    pub related_sample_identity: Option<SampleIdentity>,
    /// The identity of the sample when it was first written, if another writer
    /// forwards it (RTPS 2.5 §8.7.9). Two changes with one original are the same
    /// sample.
    pub original_writer_info: Option<SampleIdentity>,
    /// When its lifespan ends; [`Instant::FAR_FUTURE`] if never. Counted from
    /// reception, so that differing wall clocks have no effect.
    pub expires_at: Instant,
    /// Its coherent set and group sequence number, for readers whose PRESENTATION
    /// requests them. A change that is no sample has no payload.
    pub coherent_mark: Option<Box<CoherentMark>>,
    /// The share of its participant's receive memory that this change occupies.
    pub charge: SampleCharge,
}

impl CacheChange {
    /// A sample without instance, stamp and correlation.
    pub fn new(writer: Guid, sequence: SequenceNumber, payload: Bytes) -> Self {
        Self {
            kind: ChangeKind::Alive,
            writer,
            sequence,
            source_timestamp: None,
            carrier: Carrier::Datagrams,
            payload,
            key_only: false,
            key_hash: None,
            related_sample_identity: None,
            original_writer_info: None,
            expires_at: Instant::FAR_FUTURE,
            coherent_mark: None,
            charge: SampleCharge::default(),
        }
    }

    /// Whether it is a sample, a dispose or an unregister, and not a marker of a
    /// coherent set or a group sequence number.
    pub(crate) fn is_sample(&self) -> bool {
        let coherent_mark = self.coherent_mark.as_ref();
        coherent_mark
            .is_none_or(|coherent_mark| coherent_mark.kind == CoherentMarkKind::CacheChange)
    }

    /// A marker without a change: all numbers up to `last` are delivered or
    /// irrelevant, and the publisher's group sequence number is `current`.
    pub(crate) fn group_heartbeat(
        writer: Guid,
        last: SequenceNumber,
        current: SequenceNumber,
    ) -> Self {
        let coherent_mark = CoherentMark {
            kind: CoherentMarkKind::GroupHeartbeat,
            group_sequence: Some(current),
            ..CoherentMark::default()
        };
        Self {
            coherent_mark: Some(Box::new(coherent_mark)),
            ..Self::new(writer, last, Bytes::new())
        }
    }
}

/// One change in the writer's history cache.
#[derive(Clone, Debug)]
pub(crate) struct WriterChange {
    pub sequence: SequenceNumber,
    pub kind: ChangeKind,
    pub payload: Bytes,
    /// The size of a deferred payload; else 0.
    pub deferred_bytes: usize,
    pub source_timestamp: Option<Timestamp>,
    pub related_sample_identity: Option<SampleIdentity>,
    pub key_hash: Option<[u8; 16]>,
    pub original_writer_info: Option<SampleIdentity>,
    /// Directed write: the only reader that receives it.
    pub directed_to: Option<Guid>,
    /// When its lifespan ends.
    pub expires_at: Instant,
    /// Its coherent set and its group sequence number.
    pub coherent_mark: Option<Box<CoherentMark>>,
    /// The results of the readers' content filters, if there are any.
    pub filter_outcome: Option<Box<FilterOutcome>>,
    /// Fixed by the first transmission, so that retransmitted fragments have the
    /// same bytes for every reader. Zero until then.
    pub fragment_size: u16,
}

impl WriterChange {
    /// Its share of the byte limits.
    pub fn size_bytes(&self) -> usize {
        let bytes = self.payload.len().max(self.deferred_bytes);
        bytes.saturating_add(Self::OVERHEAD_BYTES)
    }

    /// Whether it was sent in fragments.
    pub fn is_fragmented(&self) -> bool {
        self.fragment_size > 0 && self.payload.len() > usize::from(self.fragment_size)
    }

    /// Whether it ends a coherent set and is no sample.
    pub fn is_set_end(&self) -> bool {
        self.coherent_mark
            .as_ref()
            .is_some_and(|coherent_mark| coherent_mark.is_set_end())
    }

    /// Bookkeeping of one change, counted so that empty samples have a size.
    pub const OVERHEAD_BYTES: usize = size_of::<Self>();
}

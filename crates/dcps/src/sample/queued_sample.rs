//! A sample on its way to a subscription, over any transport.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::{Any, TypeId};

use bytes::Bytes;
use pteros_msg::cdr::{Representation, payload_len, to_payload, to_payload_slice};
use pteros_msg::message::Encode;
use pteros_rtps::coherent_mark::CoherentMark;
use pteros_rtps::history::{Carrier, ChangeKind};
use pteros_rtps::id::Guid;
use pteros_rtps::memory_budget::SampleCharge;
use pteros_rtps::seq::SampleIdentity;
use pteros_rtps::time::{Instant, Timestamp};

use super::instance_info::SampleInstance;

/// The transport over which a sample arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DeliveryPath {
    /// Within this process: as a shared value, or as bytes in serialize-only mode
    /// (intra-process).
    IntraProcess,
    /// Through shared memory of this host.
    SharedMemory,
    /// Over the network by RTPS, loopback included.
    Network,
    /// To or from nodes of rmw_zenoh_cpp.
    Zenoh,
    /// By another transport than RTPS.
    OtherTransport,
}

impl DeliveryPath {
    /// The name of the path in reports.
    #[inline]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IntraProcess => "intra-process",
            Self::SharedMemory => "shared memory",
            Self::Network => "UDP",
            Self::Zenoh => "zenoh",
            Self::OtherTransport => "another transport",
        }
    }
}

impl From<Carrier> for DeliveryPath {
    #[inline]
    fn from(carrier: Carrier) -> Self {
        match carrier {
            Carrier::Datagrams => Self::Network,
            Carrier::SharedMemory => Self::SharedMemory,
            Carrier::Zenoh => Self::Zenoh,
            Carrier::OtherTransport => Self::OtherTransport,
        }
    }
}

/// A message as the publisher's own value, shared within the process. Implemented
/// for every message type, and by the plug-in for the structs of rclcpp and rclpy.
///
/// A full history or queue drops values under locks of the runtime. So a destructor
/// must not publish, take or create endpoints. Those of generated message types only
/// free memory.
pub trait SharedValue: Any + Send + Sync {
    /// Serializes as CDR with its encapsulation header.
    fn payload(&self, representation: Representation) -> Bytes;

    /// The bytes that count against limits: those of its CDR, which is not written.
    fn size_bytes(&self) -> usize;

    /// Serializes into `memory`. Returns whether this filled it exactly; if not, its
    /// content is undefined.
    fn payload_into(&self, _representation: Representation, _memory: &mut [u8]) -> bool {
        false
    }
}

impl dyn SharedValue {
    /// The value, if it has that type.
    #[inline]
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        let value: &dyn Any = self;
        value.downcast_ref()
    }
}

impl<T: Encode + Send + Sync + 'static> SharedValue for T {
    fn payload(&self, representation: Representation) -> Bytes {
        to_payload(self, representation).into()
    }

    fn size_bytes(&self) -> usize {
        payload_len(self, Representation::Xcdr1)
    }

    fn payload_into(&self, representation: Representation, memory: &mut [u8]) -> bool {
        let written = to_payload_slice(self, representation, memory);
        written.is_ok_and(|written| written == memory.len())
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

/// The form in which a subscription's callback receives messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryForm {
    /// Shared values of one Rust type. Serialized messages are decoded on take.
    Type(TypeId),
    /// Always serialized bytes (raw subscriptions).
    Bytes,
}

impl DeliveryForm {
    /// Whether a message body has this form already.
    #[inline]
    pub fn takes(self, body: &SampleBody) -> bool {
        match body.shared_type() {
            None => true,
            Some(ty) => self == Self::Type(ty),
        }
    }
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
    /// GUID of the writer that wrote it, on every transport.
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
    /// (DDS-RPC 1.0).
    pub related: Option<SampleIdentity>,
}

impl RelatedIdentity {
    /// `None` if both are absent. Allocates otherwise.
    #[inline]
    pub fn new(
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
    /// The receive memory of its participant that this sample occupies until it is taken.
    pub charge: SampleCharge,
}

impl SampleBody {
    /// Replaces a shared value by its CDR, so that only one of them is kept. Returns
    /// the bytes.
    pub fn serialize(&mut self, representation: Representation) -> Bytes {
        let payload = match self {
            Self::Shared(value) => value.payload(representation),
            Self::Serialized(payload) => payload.clone(),
        };
        *self = Self::Serialized(payload.clone());
        payload
    }

    /// The Rust type of a shared value.
    #[inline]
    pub fn shared_type(&self) -> Option<TypeId> {
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
    #[inline]
    pub fn is_end(&self) -> bool {
        let keyed = self.instance.as_deref();
        keyed.is_some_and(|keyed| keyed.kind != ChangeKind::Alive)
    }

    /// [`RelatedIdentity::original`].
    #[inline]
    pub fn original(&self) -> Option<SampleIdentity> {
        self.related_identity.as_ref()?.original
    }

    /// [`RelatedIdentity::related`].
    #[inline]
    pub fn related(&self) -> Option<SampleIdentity> {
        self.related_identity.as_ref()?.related
    }

    /// Whether it is a message, rather than the end of an instance or a set.
    #[inline]
    pub fn is_data(&self) -> bool {
        !self.is_end() && !self.ends_set()
    }

    /// Whether it only ends a coherent set.
    #[inline]
    pub fn ends_set(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.is_set_end())
    }

    /// Bytes that count against limits. A shared value counts as its CDR would: the
    /// publisher may have given it away, so that only samples keep it.
    #[inline]
    pub fn weight(&self) -> usize {
        match &self.body {
            SampleBody::Serialized(bytes) => bytes.len(),
            SampleBody::Shared(value) => value.size_bytes(),
        }
    }

    /// Whether it has no bytes.
    #[inline]
    pub fn body_is_empty(&self) -> bool {
        matches!(&self.body, SampleBody::Serialized(payload) if payload.is_empty())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pteros_rtps::id::{EntityId, GuidPrefix};

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
            charge: SampleCharge::default(),
        }
    }
}

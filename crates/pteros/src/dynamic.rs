//! Dynamic types: publishers and subscriptions whose type is known at run time
//! only.
//!
//! They encode and decode by a [`DynamicType`]. A message of another type is
//! refused before anything is sent.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pteros_msg::cdr::{DecodeError, Representation};
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_runtime::error::PublishError;
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::sample::{SampleBody, SharedValue};
use pteros_runtime::shm_transport::Chunk;
use pteros_runtime::writer::{OutboundMessage, WriterCounts};

use crate::payload::Payload;
use crate::publisher::PublisherCore;
use crate::subscription::{BodyDecoder, Decoded, KeyDecoder, downcast};

/// Publishes messages of a type known at run time, or serialized messages.
///
/// Cheap to clone, thread-safe.
///
/// Back-pressure is that of [`Publisher`](crate::Publisher). Dynamic subscriptions
/// of the same context share the publisher's value. For typed and raw subscriptions
/// it is serialized once, and they decode it.
#[derive(Clone)]
pub struct DynamicPublisher {
    pub(crate) raw: Arc<PublisherCore>,
    pub(crate) ty: DynamicType,
}

impl DynamicPublisher {
    /// Publishes a copy of the message.
    ///
    /// It is cloned once if an intra-process dynamic subscription is matched, or if
    /// late joiners may come (transient local). It is serialized once if others
    /// read it.
    ///
    /// # Errors
    /// See [`PublishError`]; a message of another type is
    /// [`PublishError::Invalid`].
    pub fn publish(&self, message: &DynamicMessage) -> Result<(), PublishError> {
        self.send(message, None)
    }

    /// Publishes a message by move: no copy within the process, one allocation for
    /// its [`Arc`].
    ///
    /// # Errors
    /// As [`Self::publish`]; the message is lost then.
    pub fn publish_owned(&self, message: DynamicMessage) -> Result<(), PublishError> {
        self.publish_arc(Arc::new(message))
    }

    /// Publishes a shared message: no copy and no allocation within the process.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub fn publish_arc(&self, message: Arc<DynamicMessage>) -> Result<(), PublishError> {
        self.send(&message, Some(message.clone()))
    }

    fn send(
        &self,
        message: &DynamicMessage,
        shared: Option<Arc<DynamicMessage>>,
    ) -> Result<(), PublishError> {
        self.check_type(message)?;
        if let Err(error) = message.check_bounds() {
            return Err(self.invalid(error.to_string()));
        }
        self.raw.send(&mut OutboundDynamicMessage {
            message,
            shared,
            payload: self.raw.payload(),
        })
    }

    pub(crate) fn check_type(&self, message: &DynamicMessage) -> Result<(), PublishError> {
        if *message.ty() == self.ty {
            return Ok(());
        }
        Err(self.invalid(format!(
            "the message is of type {} ({}), the publisher of type {} ({}); create the message \
             from the publisher's type",
            message.ty().name(),
            message.ty().hash(),
            self.ty.name(),
            self.ty.hash()
        )))
    }

    fn invalid(&self, reason: String) -> PublishError {
        PublishError::Invalid {
            topic: self.raw.topic.clone(),
            reason,
        }
    }

    /// Publishes a serialized message: CDR with its encapsulation header.
    ///
    /// Only its key is read. The caller must ensure that it is of the announced
    /// type.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish_serialized(&self, payload: Bytes) -> Result<(), PublishError> {
        self.raw.send(&mut SerializedMessage(payload))
    }

    /// The topic's fully qualified name, after remapping.
    pub fn topic(&self) -> &str {
        &self.raw.topic
    }

    /// Its gid in the graph.
    pub fn gid(&self) -> Guid {
        self.raw.endpoint.guid()
    }

    /// Number of matched subscriptions.
    pub fn matched_count(&self) -> usize {
        self.raw.endpoint.matched_count()
    }

    /// As [`Publisher::wait_for_matched`](crate::Publisher::wait_for_matched).
    pub fn wait_for_matched(&self, count: usize, timeout: Duration) -> bool {
        self.raw.wait_for_matched(count, timeout)
    }

    /// As [`Publisher::wait_for_all_acked`](crate::Publisher::wait_for_all_acked).
    pub fn wait_for_all_acked(&self, timeout: Duration) -> bool {
        self.raw.wait_for_all_acked(timeout)
    }

    /// As [`Publisher::flush`](crate::Publisher::flush).
    pub fn flush(&self) {
        self.raw.node.core().flush(&self.raw.endpoint);
    }

    /// As [`Publisher::unsent_count`](crate::Publisher::unsent_count).
    pub fn unsent_count(&self) -> usize {
        self.raw.endpoint.unsent_count()
    }

    /// Counters since it was created.
    pub fn counts(&self) -> WriterCounts {
        self.raw.endpoint.counts()
    }
}

impl fmt::Debug for DynamicPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicPublisher")
            .field("topic", &self.raw.topic)
            .field("gid", &self.raw.endpoint.guid())
            .finish()
    }
}

pub(crate) struct OutboundDynamicMessage<'m> {
    pub(crate) message: &'m DynamicMessage,
    pub(crate) shared: Option<Arc<DynamicMessage>>,
    pub(crate) payload: Payload<'m>,
}

impl OutboundMessage for OutboundDynamicMessage<'_> {
    fn message_type(&self) -> TypeId {
        TypeId::of::<DynamicMessage>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        let clone = || Arc::new(self.message.clone());
        let value = self.shared.get_or_insert_with(clone);
        Some(value.clone())
    }

    fn serialized(&mut self) -> Bytes {
        self.payload.bytes(self.message)
    }

    fn serialized_len(&mut self) -> usize {
        self.payload.len(self.message)
    }

    fn key_hash(&mut self, _: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        Ok(self.message.key_hash())
    }

    fn key(&mut self, _: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        let representation = self.payload.representation();
        Ok(self.message.key_payload(representation).into())
    }
}

/// A message that is already serialized.
pub(crate) struct SerializedMessage(pub(crate) Bytes);

impl OutboundMessage for SerializedMessage {
    fn message_type(&self) -> TypeId {
        TypeId::of::<Bytes>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.0.clone()
    }

    fn offer_buffer(&mut self, mut memory: Chunk) {
        if memory.len() == self.0.len() {
            memory.copy_from_slice(&self.0);
            self.0 = memory.freeze();
        }
    }

    fn serialized_len(&mut self) -> usize {
        self.0.len()
    }
}

pub(crate) fn dynamic_decoder(ty: &DynamicType) -> BodyDecoder<DynamicMessage> {
    let ty = ty.clone();
    Box::new(move |body| match body {
        SampleBody::Serialized(bytes) => {
            DynamicMessage::from_payload(&ty, &bytes).map(Decoded::Owned)
        }
        SampleBody::Shared(value) => match downcast::<DynamicMessage>(value) {
            Ok(message) if *message.ty() == ty => Ok(Decoded::Shared(message)),
            // The same type on the network, another one in this process: decode it
            // as received.
            Ok(message) => {
                let bytes = message.to_payload(Representation::Xcdr2);
                DynamicMessage::from_payload(&ty, &bytes).map(Decoded::Owned)
            }
            // Routes are created by type, so this is a bug here, not in user code.
            Err(_) => unreachable!("a typed value reached a dynamic subscription"),
        },
    })
}

pub(crate) fn dynamic_key_decoder(ty: &DynamicType) -> KeyDecoder<DynamicMessage> {
    let ty = ty.clone();
    Box::new(move |key| DynamicMessage::from_key_payload(&ty, key))
}

pub(crate) fn raw_decoder() -> BodyDecoder<Bytes> {
    Box::new(|body| Ok::<_, DecodeError>(Decoded::Owned(bytes_of(body))))
}

/// The serialized bytes: such subscriptions request the serialized form.
fn bytes_of(body: SampleBody) -> Bytes {
    match body {
        SampleBody::Serialized(bytes) => bytes,
        SampleBody::Shared(_) => {
            unreachable!("a shared sample reached a subscription that requests serialized ones")
        }
    }
}

//! Outbound message: a publisher's message in the forms that readers need.
//!
//! The node API implements the trait for its message types, the runtime for its own. It
//! is called under the writer's lock, so it must not publish.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::seq::SampleIdentity;

use crate::instance::{KeyHash, KeyReader};
use crate::sample::SharedValue;
use crate::shm_transport::Chunk;

/// An outbound message: produces each form that a reader needs, each at most once.
pub trait OutboundMessage {
    /// The Rust type of [`OutboundMessage::shared`]'s value.
    fn message_type(&self) -> TypeId;

    /// The message as a shared value; `None` if it only exists as bytes.
    fn shared(&mut self) -> Option<Arc<dyn SharedValue>>;

    /// The message as CDR with its encapsulation header.
    fn serialized(&mut self) -> Bytes;

    /// Whether a buffer of [`OutboundMessage::offer_buffer`] is useful. Not for a message
    /// that is in such a buffer.
    fn wants_buffer(&self) -> bool {
        true
    }

    /// Offers a buffer for the CDR, exactly as large as needed and shared with
    /// readers of other processes. A message that does not use it is copied for
    /// them.
    fn offer_buffer(&mut self, _memory: Chunk) {}

    /// The serialized size in bytes, computed once without serializing.
    fn serialized_len(&mut self) -> usize;

    /// The change kind: data, or an end of an instance, whose bytes are the key.
    fn kind(&self) -> ChangeKind {
        ChangeKind::Alive
    }

    /// Related sample identity: the request of a reply, or the destination of the reply
    /// ([`crate::service`]). Sent with the sample.
    fn related(&self) -> Option<SampleIdentity> {
        None
    }

    /// The only reader of a directed write; `None` means all matched readers.
    fn directed_to(&self) -> Option<Guid> {
        None
    }

    /// The key hash of its instance. Only publishers of keyed topics call it.
    ///
    /// # Errors
    /// The message is not of the type that `reader` reads.
    fn key_hash(&mut self, reader: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        reader.of_sample(&self.serialized())
    }

    /// The serialized key with its encapsulation header. Called once per new
    /// instance.
    ///
    /// # Errors
    /// As [`OutboundMessage::key_hash`].
    fn key(&mut self, reader: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        reader.key_of(&self.serialized()).map(Bytes::from)
    }
}

/// A serialized outbound message: bytes given by the user, or a loan written in place.
pub struct SerializedPayload {
    message_type: TypeId,
    payload: Bytes,
    is_in_chunk: bool,
}

impl SerializedPayload {
    /// CDR with its encapsulation header, in memory of this process. It is copied into
    /// shared memory for readers of other processes.
    pub fn new(payload: Bytes) -> Self {
        Self {
            message_type: TypeId::of::<Bytes>(),
            payload,
            is_in_chunk: false,
        }
    }

    /// The same in a chunk of the shared-memory transport, which is not copied.
    pub fn in_chunk(payload: Bytes) -> Self {
        Self {
            is_in_chunk: true,
            ..Self::new(payload)
        }
    }

    /// Names the Rust type of the message, which is that of the publisher's values.
    /// Bytes of no known type are `Bytes`.
    #[must_use]
    pub fn of_type(self, message_type: TypeId) -> Self {
        Self {
            message_type,
            ..self
        }
    }
}

impl OutboundMessage for SerializedPayload {
    fn message_type(&self) -> TypeId {
        self.message_type
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.payload.clone()
    }

    fn wants_buffer(&self) -> bool {
        !self.is_in_chunk
    }

    fn offer_buffer(&mut self, mut memory: Chunk) {
        if memory.len() == self.payload.len() {
            memory.copy_from_slice(&self.payload);
            self.payload = memory.freeze();
            self.is_in_chunk = true;
        }
    }

    fn serialized_len(&mut self) -> usize {
        self.payload.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_move_into_shared_memory_once_and_only_where_they_fit() {
        let mut message = SerializedPayload::new(Bytes::from_static(b"\0\x01\0\0data"));
        message.offer_buffer(Chunk::Plain(vec![0; 9]));
        assert!(message.wants_buffer(), "it is not as large as needed");
        message.offer_buffer(Chunk::Plain(vec![0; 8]));
        assert!(!message.wants_buffer());
        assert_eq!(message.serialized(), b"\0\x01\0\0data"[..]);
        assert!(!SerializedPayload::in_chunk(message.serialized()).wants_buffer());
    }
}

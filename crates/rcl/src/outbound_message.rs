//! Outbound messages: the forms in which a message is handed to the runtime, borrowed,
//! shared or already serialized.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_msg::type_support::MessageTypeSupport;
use pteros_runtime::sample::SharedValue;
use pteros_runtime::shm_transport::Chunk;
use pteros_runtime::writer::OutboundMessage;

use crate::payload::Payload;

/// A message that is cloned only if a subscription of this process reads it.
pub struct BorrowedMessage<'m, T> {
    message: &'m T,
    shared: Option<Arc<T>>,
    payload: Payload<'m>,
}

impl<'m, T> BorrowedMessage<'m, T> {
    /// A message that the caller keeps.
    pub fn new(message: &'m T, payload: Payload<'m>) -> Self {
        Self {
            message,
            shared: None,
            payload,
        }
    }
}

impl<T: MessageTypeSupport> OutboundMessage for BorrowedMessage<'_, T> {
    fn message_type(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        let value = self
            .shared
            .get_or_insert_with(|| Arc::new(self.message.clone()));
        Some(value.clone())
    }

    fn serialized(&mut self) -> Bytes {
        self.payload.bytes(self.message)
    }

    fn offer_buffer(&mut self, memory: Chunk) {
        self.payload.offer_buffer(memory);
    }

    fn serialized_len(&mut self) -> usize {
        self.payload.len(self.message)
    }

    fn key_hash(&mut self, _: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        Ok(self.message.instance_key_hash())
    }

    fn key(&mut self, _: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        Ok(self
            .message
            .instance_key(self.payload.representation())
            .into())
    }
}

/// A message that subscriptions of this process share.
pub struct SharedMessage<'m, T> {
    /// The message; readers of this process get it without a copy.
    pub message: Arc<T>,
    /// Its serialized form, made when a reader needs it.
    pub payload: Payload<'m>,
}

impl<T: MessageTypeSupport> OutboundMessage for SharedMessage<'_, T> {
    fn message_type(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        Some(self.message.clone())
    }

    fn serialized(&mut self) -> Bytes {
        self.payload.bytes(&*self.message)
    }

    fn offer_buffer(&mut self, memory: Chunk) {
        self.payload.offer_buffer(memory);
    }

    fn serialized_len(&mut self) -> usize {
        self.payload.len(&*self.message)
    }

    fn key_hash(&mut self, _: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        Ok(self.message.instance_key_hash())
    }

    fn key(&mut self, _: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        Ok(self
            .message
            .instance_key(self.payload.representation())
            .into())
    }
}

//! Serialize-only mode: messages of a writer without intra-process communication.
//!
//! Readers in the same process receive serialized bytes, as readers of other processes
//! do. This equals two ROS 2 nodes with intra-process communication off.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::seq::SampleIdentity;

use crate::instance::{KeyHash, KeyReader};
use crate::outbound::OutboundMessage;
use crate::sample::SharedValue;
use crate::shm_transport::Chunk;

/// A message that exists as bytes only.
pub(crate) struct SerializeOnly<'m>(pub(crate) &'m mut dyn OutboundMessage);

impl OutboundMessage for SerializeOnly<'_> {
    fn message_type(&self) -> TypeId {
        self.0.message_type()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.0.serialized()
    }

    fn wants_buffer(&self) -> bool {
        self.0.wants_buffer()
    }

    fn offer_buffer(&mut self, memory: Chunk) {
        self.0.offer_buffer(memory);
    }

    fn serialized_len(&mut self) -> usize {
        self.0.serialized_len()
    }

    fn kind(&self) -> ChangeKind {
        self.0.kind()
    }

    fn related(&self) -> Option<SampleIdentity> {
        self.0.related()
    }

    fn directed_to(&self) -> Option<Guid> {
        self.0.directed_to()
    }

    fn key_hash(&mut self, reader: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        self.0.key_hash(reader)
    }

    fn key(&mut self, reader: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        self.0.key(reader)
    }
}

//! Messages of a writer that shares no values within its process: readers there
//! get the bytes that those of other processes get, as between two nodes of ROS 2
//! without intra-process communication.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::seq::SampleIdentity;

use crate::instance::{KeyHash, KeyReader};
use crate::links::Chunk;
use crate::sample::SharedValue;
use crate::writer::Outgoing;

/// A message that exists as bytes only, whatever it is.
pub(crate) struct AsBytes<'m>(pub(crate) &'m mut dyn Outgoing);

impl Outgoing for AsBytes<'_> {
    fn message_type(&self) -> TypeId {
        self.0.message_type()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.0.serialized()
    }

    fn wants_memory(&self) -> bool {
        self.0.wants_memory()
    }

    fn offer_memory(&mut self, memory: Chunk) {
        self.0.offer_memory(memory);
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

    fn only_for(&self) -> Option<Guid> {
        self.0.only_for()
    }

    fn key_hash(&mut self, reader: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        self.0.key_hash(reader)
    }

    fn key(&mut self, reader: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        self.0.key(reader)
    }
}

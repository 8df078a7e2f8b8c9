//! Ends of instances as outbound messages: published like messages, with the serialized
//! key instead of the message (dispose / unregister).

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_dcps::instance::{InstanceIdentity, InstanceRefusal, SampleInstance};
use pteros_dcps::sample::SharedValue;
use pteros_msg::cdr::DecodeError;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::time::Instant;

use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::error::PublishError;
use crate::outbound::OutboundMessage;

/// Outbound message that disposes of or unregisters an instance.
pub(crate) struct InstanceEndMessage {
    pub(crate) kind: ChangeKind,
    pub(crate) identity: InstanceIdentity,
}

impl OutboundMessage for InstanceEndMessage {
    fn message_type(&self) -> TypeId {
        TypeId::of::<Self>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.identity.key.clone()
    }

    fn serialized_len(&mut self) -> usize {
        self.identity.key.len()
    }

    fn kind(&self) -> ChangeKind {
        self.kind
    }

    fn key_hash(&mut self, _: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        Ok(self.identity.hash)
    }

    fn key(&mut self, _: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        Ok(self.identity.key.clone())
    }
}

impl WriterEndpoint {
    /// Removes the registration of an instance whose first message was refused.
    pub(crate) fn forget_unwritten(&self, keyed: &SampleInstance) {
        if let Some(instances) = &mut self.state.lock().instances {
            instances.remove_unwritten(keyed);
        }
    }

    /// The instance of a message, registered on first use.
    pub(crate) fn register(
        &self,
        message: &mut dyn OutboundMessage,
    ) -> Result<SampleInstance, PublishError> {
        let mut state = self.state.lock();
        let Some(instances) = &mut state.instances else {
            return Err(no_key(self));
        };
        let topic = || self.data.topic.clone();
        let hash = message.key_hash(&**instances.key_reader());
        hash.map_err(InstanceRefusal::Unreadable)
            .and_then(|hash| instances.register(hash, message.kind(), |reader| message.key(reader)))
            .map_err(|refused| match refused {
                InstanceRefusal::Unreadable(error) => PublishError::Invalid {
                    topic: topic(),
                    reason: format!("its key cannot be read: {error}"),
                },
                InstanceRefusal::Full { max } => PublishError::TooManyInstances {
                    topic: topic(),
                    max,
                },
                InstanceRefusal::Unknown => PublishError::UnknownInstance { topic: topic() },
            })
    }
}

impl WriterState {
    /// Records a written message or end of an instance.
    pub(crate) fn note_written(
        &mut self,
        now: Instant,
        kind: ChangeKind,
        keyed: Option<&SampleInstance>,
    ) {
        self.published += u64::from(kind == ChangeKind::Alive);
        if let (Some(instances), Some(keyed)) = (&mut self.instances, keyed) {
            instances.note_written(now, keyed);
        }
    }
}

pub(crate) fn no_key(writer: &WriterEndpoint) -> PublishError {
    PublishError::NoKey {
        topic: writer.data.topic.clone(),
    }
}

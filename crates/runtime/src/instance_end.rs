//! Ends of instances as outbound messages: published like messages, with the
//! serialized key in place of the message (dispose / unregister).

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_dcps::instance::{InstanceEnd, InstanceIdentity, InstanceRefusal, SampleInstance};
use pteros_dcps::sample::SharedValue;
use pteros_msg::cdr::DecodeError;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::time::{Duration, Instant, Timestamp};

use crate::core::Core;
use crate::error::PublishError;
use crate::writer::{OutboundMessage, WriterEndpoint, WriterState};

/// The end of one instance.
struct InstanceEndMessage {
    kind: ChangeKind,
    identity: InstanceIdentity,
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

impl Core {
    /// Publishes the end of an instance. Blocks as [`Core::publish`] does.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::UnknownInstance`], and those of
    /// [`Core::publish`].
    pub fn end_instance(
        &self,
        writer: &WriterEndpoint,
        ending: InstanceEnd,
        identity: InstanceIdentity,
        source: Timestamp,
    ) -> Result<(), PublishError> {
        if !writer.is_keyed {
            return Err(no_key(writer));
        }
        let kind = match (ending, writer.autodisposes()) {
            (InstanceEnd::Dispose, _) => ChangeKind::Disposed,
            (InstanceEnd::Unregister, true) => ChangeKind::DisposedUnregistered,
            (InstanceEnd::Unregister, false) => ChangeKind::Unregistered,
        };
        self.publish(writer, &mut InstanceEndMessage { kind, identity }, source)
            .map(drop)
    }

    /// Registers an instance without publishing anything. Never blocks.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::TooManyInstances`].
    pub fn register_instance(
        &self,
        writer: &WriterEndpoint,
        identity: InstanceIdentity,
    ) -> Result<(), PublishError> {
        if !writer.is_keyed {
            return Err(no_key(writer));
        }
        let kind = ChangeKind::Alive;
        let keyed = writer.register(&mut InstanceEndMessage { kind, identity })?;
        if let Some(instances) = &mut writer.state.lock().instances {
            instances.keep(&keyed);
        }
        Ok(())
    }

    /// Disposes of all instances of a publisher that is being removed, if its QoS
    /// demands it.
    ///
    /// Does not wait: where there is no space, readers see instances without
    /// writers. Instances with stored samples outlive the publisher and are not
    /// disposed of. Returns whether any was disposed of.
    pub(crate) fn dispose_all(&self, writer: &WriterEndpoint) -> bool {
        if !writer.is_keyed || !writer.autodisposes() || writer.store.is_some() {
            return false;
        }
        let all = match &writer.state.lock().instances {
            Some(instances) => instances.all(),
            None => return false,
        };
        let mut disposed = false;
        let source = self.platform.wall_clock();
        let kind = ChangeKind::DisposedUnregistered;
        for identity in all {
            let mut end = InstanceEndMessage { kind, identity };
            let sent = self.publish_with_timeout(writer, &mut end, source, Duration::ZERO);
            if sent.is_err() {
                break;
            }
            disposed = true;
        }
        disposed
    }
}

impl WriterEndpoint {
    /// A message of an instance was refused.
    pub(crate) fn forget_unwritten(&self, keyed: &SampleInstance) {
        if let Some(instances) = &mut self.state.lock().instances {
            instances.remove_unwritten(keyed);
        }
    }

    /// The instance of a message, registered if it was not.
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

fn no_key(writer: &WriterEndpoint) -> PublishError {
    PublishError::NoKey {
        topic: writer.data.topic.clone(),
    }
}

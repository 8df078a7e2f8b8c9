//! Ends of instances on their way out: they are published as messages are,
//! with the serialized key in the message's place.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::time::{Duration, Instant, Timestamp};

use super::{Keyed, Refused};
use crate::core::Core;
use crate::error::PublishError;
use crate::sample::SharedValue;
use crate::writer::{Outgoing, WriterEndpoint, WriterState};

/// What becomes of an instance by its publisher's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It is gone.
    Dispose,
    /// This publisher no longer writes it; where the publisher disposes of what
    /// it unregisters, it is gone, too.
    Unregister,
}

/// The end of one instance.
struct End {
    kind: ChangeKind,
    hash: KeyHash,
    key: Bytes,
}

impl Outgoing for End {
    fn message_type(&self) -> TypeId {
        TypeId::of::<Self>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.key.clone()
    }

    fn serialized_len(&mut self) -> usize {
        self.key.len()
    }

    fn kind(&self) -> ChangeKind {
        self.kind
    }

    fn key_hash(&mut self, _: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        Ok(self.hash)
    }

    fn key(&mut self, _: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        Ok(self.key.clone())
    }
}

impl Core {
    /// Publishes the end of an instance, of which `hash` and `key` (the
    /// serialized key with its encapsulation header) are the key. Blocks as
    /// [`Core::publish`] does.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::UnknownInstance`], and those of
    /// [`Core::publish`].
    pub fn end_instance(
        &self,
        writer: &WriterEndpoint,
        ending: Ending,
        (hash, key): (KeyHash, Bytes),
        source: Timestamp,
    ) -> Result<(), PublishError> {
        if !writer.is_keyed {
            return Err(no_key(writer));
        }
        let kind = match (ending, writer.autodisposes()) {
            (Ending::Dispose, _) => ChangeKind::Disposed,
            (Ending::Unregister, true) => ChangeKind::DisposedUnregistered,
            (Ending::Unregister, false) => ChangeKind::Unregistered,
        };
        self.publish(writer, &mut End { kind, hash, key }, source)
            .map(drop)
    }

    /// Registers an instance without publishing anything: it counts among the
    /// publisher's from now on. Never blocks.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::TooManyInstances`].
    pub fn register_instance(
        &self,
        writer: &WriterEndpoint,
        (hash, key): (KeyHash, Bytes),
    ) -> Result<(), PublishError> {
        if !writer.is_keyed {
            return Err(no_key(writer));
        }
        let kind = ChangeKind::Alive;
        let keyed = writer.register(&mut End { kind, hash, key })?;
        if let Some(registry) = &mut writer.state.lock().registry {
            registry.keep(&keyed);
        }
        Ok(())
    }

    /// A publisher leaves: it disposes of what it wrote, if it is to. Waits for
    /// nobody: to whom there is no room the instances have no writers. What is
    /// stored outlives its publisher, so that is not disposed of. Whether it
    /// disposed of any.
    pub(crate) fn dispose_all(&self, writer: &WriterEndpoint) -> bool {
        if !writer.is_keyed || !writer.autodisposes() || writer.store.is_some() {
            return false;
        }
        let all = match &writer.state.lock().registry {
            Some(registry) => registry.all(),
            None => return false,
        };
        let mut told = false;
        let source = self.env.wall();
        let kind = ChangeKind::DisposedUnregistered;
        for (hash, key) in all {
            let mut end = End { kind, hash, key };
            let sent = self.publish_within_time(writer, &mut end, source, Duration::ZERO);
            if sent.is_err() {
                break;
            }
            told = true;
        }
        told
    }
}

impl WriterEndpoint {
    /// A message of an instance was not accepted.
    pub(crate) fn forget_unwritten(&self, keyed: &Keyed) {
        if let Some(registry) = &mut self.state.lock().registry {
            registry.forget_unwritten(keyed);
        }
    }

    /// The instance of a message, registered if it was not.
    pub(crate) fn register(&self, message: &mut dyn Outgoing) -> Result<Keyed, PublishError> {
        let mut state = self.state.lock();
        let Some(registry) = &mut state.registry else {
            return Err(no_key(self));
        };
        let topic = || self.data.topic.clone();
        registry.register(message).map_err(|refused| match refused {
            Refused::Unreadable(error) => PublishError::Invalid {
                topic: topic(),
                reason: format!("its key cannot be read: {error}"),
            },
            Refused::Full { max } => PublishError::TooManyInstances {
                topic: topic(),
                max,
            },
            Refused::Unknown => PublishError::UnknownInstance { topic: topic() },
        })
    }
}

impl WriterState {
    /// A message, or the end of an instance, was written.
    pub(crate) fn note_written(&mut self, now: Instant, kind: ChangeKind, keyed: Option<&Keyed>) {
        self.published += u64::from(kind == ChangeKind::Alive);
        if let (Some(registry), Some(keyed)) = (&mut self.registry, keyed) {
            registry.note_written(now, keyed);
        }
    }
}

fn no_key(writer: &WriterEndpoint) -> PublishError {
    PublishError::NoKey {
        topic: writer.data.topic.clone(),
    }
}

//! Instances of keyed topics, as users meet them: what a publisher says about
//! one, and how a subscription hears of its end.

use std::fmt;

use bytes::Bytes;
use pteros_msg::dynamic::DynamicMessage;
use pteros_msg::key::{KeyHash, key_hash, key_payload};
use pteros_msg::message::Message;
use pteros_rmw::error::PublishError;
use pteros_rmw::instance::{Ending, InstanceInfo, InstanceState};

use crate::dynamic::DynamicPublisher;
use crate::publisher::{Publisher, RawPublisher};
use crate::sample::{Sample, SampleInfo};

/// What a subscription hears, in order.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// A message.
    Sample(Sample<T>),
    /// An instance ended. Only types with a key have instances.
    End(InstanceEnd<T>),
}

/// The end of an instance: it was disposed of, or nobody writes it any more.
#[derive(Clone)]
pub struct InstanceEnd<T> {
    key: T,
    info: SampleInfo,
    instance: InstanceInfo,
}

impl<T> InstanceEnd<T> {
    pub(crate) fn new(key: T, info: SampleInfo, instance: InstanceInfo) -> Self {
        Self {
            key,
            info,
            instance,
        }
    }

    /// Which instance: its key fields are filled in, all others have their
    /// default. Raw subscriptions get the serialized key.
    pub fn key(&self) -> &T {
        &self.key
    }

    /// How it ended; [`InstanceState::Alive`] never.
    pub fn state(&self) -> InstanceState {
        self.instance.state
    }

    /// The instance when it ended.
    pub fn instance(&self) -> &InstanceInfo {
        &self.instance
    }

    /// Who ended it, and when. Of one whose last publisher left or fell silent:
    /// that publisher, without a source time and with number 0.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }
}

impl<T: fmt::Debug> fmt::Debug for InstanceEnd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceEnd")
            .field("key", &self.key)
            .field("instance", &self.instance)
            .field("info", &self.info)
            .finish()
    }
}

/// For types with a key. Only the key fields of the message given are looked at.
impl<T: Message> Publisher<T> {
    /// Says that this publisher will write an instance, without publishing
    /// anything: it counts among the publisher's from now on. Publishing
    /// registers by itself. Never blocks.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::TooManyInstances`].
    pub fn register(&self, message: &T) -> Result<(), PublishError> {
        self.raw.register(self.identity(message))
    }

    /// Says that an instance is gone. Subscriptions hear of it in order with
    /// the messages, late joiners too where the publisher is transient local.
    /// Publishing the instance again brings it back. Blocks as
    /// [`Publisher::publish`] does.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], and those of [`Publisher::publish`].
    pub fn dispose(&self, message: &T) -> Result<(), PublishError> {
        self.raw.end(Ending::Dispose, self.identity(message))
    }

    /// Says that this publisher no longer writes an instance. With
    /// [`QosProfile::autodispose_unregistered_instances`](crate::QosProfile), as
    /// by default, it is gone with that; else it has one writer less, and ends
    /// when that was the last. Late joiners hear nothing of it any more. Blocks
    /// as [`Publisher::publish`] does.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::UnknownInstance`], and those of
    /// [`Publisher::publish`].
    pub fn unregister(&self, message: &T) -> Result<(), PublishError> {
        self.raw.end(Ending::Unregister, self.identity(message))
    }

    fn identity(&self, message: &T) -> (KeyHash, Bytes) {
        let key = key_payload(message, self.raw.representation);
        (key_hash(message), key.into())
    }
}

/// As for [`Publisher`]: only the key fields of the message given are looked at.
impl DynamicPublisher {
    /// As [`Publisher::register`].
    ///
    /// # Errors
    /// As there; a message of another type is [`PublishError::Invalid`].
    pub fn register(&self, message: &DynamicMessage) -> Result<(), PublishError> {
        self.raw.register(self.identity(message)?)
    }

    /// As [`Publisher::dispose`].
    ///
    /// # Errors
    /// As there; a message of another type is [`PublishError::Invalid`].
    pub fn dispose(&self, message: &DynamicMessage) -> Result<(), PublishError> {
        self.raw.end(Ending::Dispose, self.identity(message)?)
    }

    /// As [`Publisher::unregister`].
    ///
    /// # Errors
    /// As there; a message of another type is [`PublishError::Invalid`].
    pub fn unregister(&self, message: &DynamicMessage) -> Result<(), PublishError> {
        self.raw.end(Ending::Unregister, self.identity(message)?)
    }

    fn identity(&self, message: &DynamicMessage) -> Result<(KeyHash, Bytes), PublishError> {
        self.check_type(message)?;
        let key = message.key_payload(self.raw.representation);
        Ok((message.key_hash(), key.into()))
    }
}

impl RawPublisher {
    pub(crate) fn register(&self, identity: (KeyHash, Bytes)) -> Result<(), PublishError> {
        let core = self.node.core();
        core.register_instance(&self.endpoint, identity)
            .map_err(|error| self.named(error))
    }

    pub(crate) fn end(
        &self,
        ending: Ending,
        identity: (KeyHash, Bytes),
    ) -> Result<(), PublishError> {
        let core = self.node.core();
        let source = core.env.wall();
        core.end_instance(&self.endpoint, ending, identity, source)
            .map_err(|error| self.named(error))
    }
}

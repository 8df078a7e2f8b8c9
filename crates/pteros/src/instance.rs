//! Instances of keyed topics: register, dispose, unregister, and the end of an
//! instance at a subscription (DDS 1.4 §2.2.2.4.2, §2.2.2.5.1).
//!
//! Instance states and their bookkeeping are the runtime's.

use std::fmt;

use pteros_msg::type_support::MessageTypeSupport;
use pteros_runtime::error::PublishError;
use pteros_runtime::instance::{InstanceEnd, InstanceIdentity};

pub use pteros_runtime::instance::{InstanceInfo, InstanceState, KeyHash, ViewState};

use crate::publisher::{Publisher, PublisherCore};
use crate::sample::{Sample, SampleInfo};

/// A change received by a subscription: a message or the end of an instance.
#[derive(Clone, Debug)]
pub enum ReceivedChange<T> {
    /// A message.
    Sample(Sample<T>),
    /// The end of an instance. Only types with a key have instances.
    End(EndedInstance<T>),
}

/// The end of an instance: disposed of, or no publisher writes it any more.
#[derive(Clone)]
pub struct EndedInstance<T> {
    key: T,
    info: SampleInfo,
    instance: InstanceInfo,
}

impl<T> EndedInstance<T> {
    pub(crate) fn new(key: T, info: SampleInfo, instance: InstanceInfo) -> Self {
        Self {
            key,
            info,
            instance,
        }
    }

    /// The instance's key: key fields are set, all others have default values.
    ///
    /// Raw subscriptions get the serialized key.
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Disposed or no writers; never [`InstanceState::Alive`].
    pub fn state(&self) -> InstanceState {
        self.instance.state
    }

    /// The instance at its end.
    pub fn instance(&self) -> &InstanceInfo {
        &self.instance
    }

    /// The writer that ended it, and the time.
    ///
    /// If the last publisher left or lost its liveliness: that publisher, without a
    /// source timestamp and with sequence number 0.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }
}

impl<T: fmt::Debug> fmt::Debug for EndedInstance<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceEnd")
            .field("key", &self.key)
            .field("instance", &self.instance)
            .field("info", &self.info)
            .finish()
    }
}

/// For types with a key. Only the key fields of the given message are read.
impl<T: MessageTypeSupport> Publisher<T> {
    /// Registers an instance without publishing anything. Never blocks.
    ///
    /// It counts among the publisher's instances from now on. Publishing registers
    /// an instance implicitly.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::TooManyInstances`].
    pub fn register(&self, message: &T) -> Result<(), PublishError> {
        self.raw.register(self.key_identity(message)?)
    }

    /// Disposes of an instance. Blocks as [`Publisher::publish`] does.
    ///
    /// Subscriptions receive the dispose in order with the messages; late joiners
    /// also do if the publisher is transient local. Publishing the instance again
    /// makes it alive.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], and those of [`Publisher::publish`].
    pub fn dispose(&self, message: &T) -> Result<(), PublishError> {
        self.raw
            .end_instance(InstanceEnd::Dispose, self.key_identity(message)?)
    }

    /// Unregisters an instance: this publisher no longer writes it.
    ///
    /// Blocks as [`Publisher::publish`] does.
    ///
    /// With [`QosProfile::autodispose_unregistered_instances`](crate::QosProfile),
    /// the default, this also disposes of it. Otherwise the instance has one writer
    /// less, and ends when that was the last. Late joiners no longer receive it.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::UnknownInstance`], and those of
    /// [`Publisher::publish`].
    pub fn unregister(&self, message: &T) -> Result<(), PublishError> {
        self.raw
            .end_instance(InstanceEnd::Unregister, self.key_identity(message)?)
    }

    fn key_identity(&self, message: &T) -> Result<InstanceIdentity, PublishError> {
        self.check_type(message)?;
        let key = message.instance_key(self.raw.representation);
        Ok(InstanceIdentity {
            hash: message.instance_key_hash(),
            key: key.into(),
        })
    }
}

impl PublisherCore {
    pub(crate) fn register(&self, identity: InstanceIdentity) -> Result<(), PublishError> {
        self.endpoint
            .register_instance(identity)
            .map_err(|error| self.with_ros_topic(error))
    }

    pub(crate) fn end_instance(
        &self,
        ending: InstanceEnd,
        identity: InstanceIdentity,
    ) -> Result<(), PublishError> {
        let core = self.node.core();
        let source = core.platform.wall_clock();
        core.end_instance(&self.endpoint, ending, identity, source)
            .map_err(|error| self.with_ros_topic(error))
    }
}

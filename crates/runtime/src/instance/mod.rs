//! Instances of keyed topics (DDS 1.4 §2.2.2.5.1): dispose, unregister, instance
//! and view states.
//!
//! The subscription side is `cache`, the publisher side `writer_instances`. Local
//! late joiners get their instances from `crate::local_history`. Topics without key
//! pay one check of an empty option.

mod cache;
mod instance_end;
mod instance_key;
mod keyed_ready_queue;
mod reader_instance;
#[cfg(test)]
mod tests;
mod timers;
mod writer_instances;

use bytes::Bytes;
pub use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;

pub(crate) use cache::{DropTotals, InstanceCache};
pub use instance_end::{InstanceEnd, InstanceIdentity};
pub(crate) use instance_key::identify;
pub use instance_key::{DataLifecycle, TopicKey};
pub(crate) use writer_instances::{InstanceRefusal, WriterInstances};

/// Maximum number of instances of a publisher or subscription, when RESOURCE_LIMITS
/// names none.
pub const INSTANCES_MAX_DEFAULT: usize = 10_000;

/// The instance state (DDS 1.4 §2.2.2.5.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum InstanceState {
    /// Some publisher writes it (ALIVE).
    Alive,
    /// A publisher has disposed of it (NOT_ALIVE_DISPOSED).
    Disposed,
    /// No publisher writes it any more: all unregistered it, left or lost
    /// liveliness (NOT_ALIVE_NO_WRITERS).
    NoWriters,
}

impl InstanceState {
    /// The DDS name of the state.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "ALIVE",
            Self::Disposed => "NOT_ALIVE_DISPOSED",
            Self::NoWriters => "NOT_ALIVE_NO_WRITERS",
        }
    }
}

/// The view state: whether the subscription has taken samples of the instance
/// before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ViewState {
    /// Nothing was taken since the instance became alive, or alive again.
    New,
    /// Something was taken.
    NotNew,
}

/// The SampleInfo fields of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstanceInfo {
    /// The key hash that identifies the instance (RTPS 2.5 §9.6.4.8).
    pub key: KeyHash,
    /// With a sample: the instance's present state. With an end: how it ended.
    pub state: InstanceState,
    /// Whether something of it was taken before.
    pub view: ViewState,
    /// How often the instance had become alive again after a disposal.
    pub disposed_generations: u32,
    /// How often the instance had become alive again after it had no writers.
    pub no_writers_generations: u32,
}

/// The instance of a sample of a keyed topic.
#[derive(Clone, Debug)]
pub struct SampleInstance {
    /// Its instance.
    pub info: InstanceInfo,
    /// Data, or an end of the instance, which has no message.
    pub kind: ChangeKind,
    /// The serialized key with its encapsulation header; empty with data received
    /// from the network.
    pub key: Bytes,
}

impl SampleInstance {
    pub(crate) fn new(key: KeyHash, kind: ChangeKind, serialized: Bytes) -> Self {
        Self {
            info: InstanceInfo {
                key,
                state: InstanceState::Alive,
                view: ViewState::New,
                disposed_generations: 0,
                no_writers_generations: 0,
            },
            kind,
            key: serialized,
        }
    }
}

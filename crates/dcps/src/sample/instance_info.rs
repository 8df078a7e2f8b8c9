//! Instance and view states as SampleInfo has them (DDS 1.4 §2.2.2.5.1): a writer
//! may dispose of an instance or unregister it.

use bytes::Bytes;
use pteros_msg::key::KeyHash;
use pteros_rtps::history::ChangeKind;

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
    /// A sample or an end of the instance `key`, alive and not taken before.
    #[inline]
    pub fn new(key: KeyHash, kind: ChangeKind, serialized: Bytes) -> Self {
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

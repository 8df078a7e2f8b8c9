//! Instances of keyed topics (DDS 1.4 §2.2.2.5.1): what a subscription knows of
//! them (`cache`), what a publisher does (`registry`), what of them late
//! joiners of this process get (`crate::latch`).
//!
//! Topics without key have none of this and pay one look at an empty option.

mod alarms;
mod cache;
mod identity;
mod record;
mod registry;
mod shelf;
#[cfg(test)]
mod tests;
mod writing;

use bytes::Bytes;
pub use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::ChangeKind;

pub(crate) use cache::{Instances, Totals};
pub(crate) use identity::identify;
pub use identity::{Keying, Lifecycle};
pub(crate) use registry::{Refused, Registry};
pub use writing::Ending;

/// Instances that a publisher writes, or a subscription knows, when
/// RESOURCE_LIMITS names no number.
pub const INSTANCES_MAX_DEFAULT: usize = 10_000;

/// Whether an instance exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum InstanceState {
    /// Somebody writes it (ALIVE).
    Alive,
    /// A publisher said that it is gone (NOT_ALIVE_DISPOSED).
    Disposed,
    /// Nobody writes it any more: its publishers unregistered it, left or fell
    /// silent (NOT_ALIVE_NO_WRITERS).
    NoWriters,
}

impl InstanceState {
    /// The state's name as in DDS.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "ALIVE",
            Self::Disposed => "NOT_ALIVE_DISPOSED",
            Self::NoWriters => "NOT_ALIVE_NO_WRITERS",
        }
    }
}

/// Whether the subscription has seen the instance before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ViewState {
    /// Nothing of it was taken since it was born, or born again.
    New,
    /// Something of it was taken.
    NotNew,
}

/// What is known of an instance when something of it is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstanceInfo {
    /// Which instance: the hash of its key (RTPS 2.5 §9.6.4.8).
    pub key: KeyHash,
    /// With a sample: the instance's state now. With an end: how it ended.
    pub state: InstanceState,
    /// Whether something of it was taken before.
    pub view: ViewState,
    /// How often it had come back after a disposal when this came.
    pub disposed_generations: u32,
    /// How often it had come back after being left by all its writers when this
    /// came.
    pub no_writers_generations: u32,
}

/// What a sample of a keyed topic carries besides.
#[derive(Clone, Debug)]
pub struct Keyed {
    /// Its instance.
    pub info: InstanceInfo,
    /// Data, or an end of the instance: then there is no message.
    pub kind: ChangeKind,
    /// The serialized key with its encapsulation header; empty with data that
    /// came over the network.
    pub key: Bytes,
}

impl Keyed {
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

//! Which instance a change belongs to, and what an endpoint is told of keys.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::CacheChange;
use pteros_rtps::id::{EntityId, VendorId};
use pteros_rtps::time::Duration;

use super::{InstanceState, Keyed};

/// Whether an endpoint's topic has a key.
#[derive(Clone, Default)]
pub enum Keying {
    /// It has none: one instance, the topic.
    #[default]
    Keyless,
    /// It has, but nobody here can read it: samples are taken as they come, ends
    /// of instances are not told. Subscriptions only.
    Unread,
    /// It has, and this reads it.
    Keyed(Arc<dyn KeyReader>),
}

impl Keying {
    pub(crate) fn reader(&self) -> Option<&Arc<dyn KeyReader>> {
        match self {
            Self::Keyed(reader) => Some(reader),
            Self::Keyless | Self::Unread => None,
        }
    }

    pub(crate) fn writer_kind(&self) -> u8 {
        match self {
            Self::Keyless => EntityId::KIND_WRITER_NO_KEY,
            Self::Unread | Self::Keyed(_) => EntityId::KIND_WRITER_WITH_KEY,
        }
    }

    pub(crate) fn reader_kind(&self) -> u8 {
        match self {
            Self::Keyless => EntityId::KIND_READER_NO_KEY,
            Self::Unread | Self::Keyed(_) => EntityId::KIND_READER_WITH_KEY,
        }
    }
}

impl fmt::Debug for Keying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keyless => "Keyless",
            Self::Unread => "Unread",
            Self::Keyed(_) => "Keyed",
        })
    }
}

/// WRITER_DATA_LIFECYCLE and READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.21–22). They
/// concern one side alone and are not announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifecycle {
    /// Unregistering an instance, or dropping its publisher, disposes of it too.
    pub autodispose_unregistered_instances: bool,
    /// When what is left of an instance without writers is thrown away.
    pub autopurge_nowriter_samples_delay: Duration,
    /// When what is left of a disposed instance is thrown away.
    pub autopurge_disposed_samples_delay: Duration,
}

impl Lifecycle {
    /// How long what is left of an instance that ended so is kept.
    pub(crate) fn purge_delay(&self, state: InstanceState) -> Duration {
        match state {
            InstanceState::NoWriters => self.autopurge_nowriter_samples_delay,
            _ => self.autopurge_disposed_samples_delay,
        }
    }
}

impl Default for Lifecycle {
    /// DDS's: dispose, and throw nothing away.
    fn default() -> Self {
        Self {
            autodispose_unregistered_instances: true,
            autopurge_nowriter_samples_delay: Duration::INFINITE,
            autopurge_disposed_samples_delay: Duration::INFINITE,
        }
    }
}

/// The instance of a change that came over the network; `None` if nothing in it
/// tells.
///
/// Other stacks send no hash (Cyclone DDS) or one of their own making, so theirs
/// counts only where there is no key to read.
pub(crate) fn identify(reader: &dyn KeyReader, change: &CacheChange) -> Option<Keyed> {
    let sent = change.key_hash.map(KeyHash);
    let is_ours = change.writer.prefix.0.starts_with(&VendorId::PTEROS.0);
    let read = match sent {
        Some(hash) if is_ours => Some(hash),
        _ => read(reader, change),
    };
    let key = read.or(sent)?;
    let serialized = match change.key_only && read.is_some() {
        true => change.payload.clone(),
        // An end with nothing but the hash.
        false if change.payload.is_empty() || change.key_only => {
            reader.key_of_hash(key).unwrap_or_default().into()
        }
        false => Bytes::new(),
    };
    Some(Keyed::new(key, change.kind, serialized))
}

fn read(reader: &dyn KeyReader, change: &CacheChange) -> Option<KeyHash> {
    match (change.payload.is_empty(), change.key_only) {
        (true, _) => None,
        (false, true) => reader.of_key(&change.payload).ok(),
        (false, false) => reader.of_sample(&change.payload).ok(),
    }
}

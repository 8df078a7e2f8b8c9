//! Instance identification by key hash, and what endpoints announce about keys.

use alloc::sync::Arc;
use core::fmt;

use bytes::Bytes;
use pteros_msg::key::{KeyHash, KeyReader};
use pteros_rtps::history::CacheChange;
use pteros_rtps::id::{EntityId, VendorId};

use crate::sample::instance_info::SampleInstance;

/// Whether an endpoint's topic has a key (RTPS TopicKind_t).
#[derive(Clone, Default)]
pub enum TopicKey {
    /// No key: the topic is its only instance.
    #[default]
    NoKey,
    /// A key that cannot be read here. Samples are delivered as they arrive, ends
    /// of instances are not. Subscriptions only.
    Unreadable,
    /// A key, with its reader.
    WithKey(Arc<dyn KeyReader>),
}

impl TopicKey {
    /// The key's reader, if the key can be read.
    #[inline]
    pub fn reader(&self) -> Option<&Arc<dyn KeyReader>> {
        match self {
            Self::WithKey(reader) => Some(reader),
            Self::NoKey | Self::Unreadable => None,
        }
    }

    /// The entity kind of a writer (RTPS 2.5 §9.3.1.2).
    pub fn writer_kind(&self) -> u8 {
        match self {
            Self::NoKey => EntityId::KIND_WRITER_NO_KEY,
            Self::Unreadable | Self::WithKey(_) => EntityId::KIND_WRITER_WITH_KEY,
        }
    }

    /// The entity kind of a reader (RTPS 2.5 §9.3.1.2).
    pub fn reader_kind(&self) -> u8 {
        match self {
            Self::NoKey => EntityId::KIND_READER_NO_KEY,
            Self::Unreadable | Self::WithKey(_) => EntityId::KIND_READER_WITH_KEY,
        }
    }
}

impl fmt::Debug for TopicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKey => "Keyless",
            Self::Unreadable => "Unread",
            Self::WithKey(_) => "Keyed",
        })
    }
}

/// How a publisher ends an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstanceEnd {
    /// The instance is deleted.
    Dispose,
    /// This publisher no longer writes it. With autodispose, it is deleted too.
    Unregister,
}

/// The key of an instance, in the two forms that identify it.
#[derive(Clone, Debug)]
pub struct InstanceIdentity {
    /// The key hash.
    pub hash: KeyHash,
    /// The serialized key with its encapsulation header.
    pub key: Bytes,
}

/// The instance of a received change; `None` if it cannot be determined.
///
/// Other stacks send no hash (Cyclone DDS) or compute it differently. Their hash
/// counts only where there is no key to read.
pub fn identify(reader: &dyn KeyReader, change: &CacheChange) -> Option<SampleInstance> {
    let sent = change.key_hash.map(KeyHash);
    let is_ours = change.writer.prefix.0.starts_with(&VendorId::PTEROS.0);
    let read = match sent {
        Some(hash) if is_ours => Some(hash),
        _ => read(reader, change),
    };
    let key = read.or(sent)?;
    let serialized = if change.key_only && read.is_some() {
        change.payload.clone()
    } else if change.payload.is_empty() || change.key_only {
        // An end with nothing but the hash.
        reader.key_of_hash(key).unwrap_or_default().into()
    } else {
        Bytes::new()
    };
    Some(SampleInstance::new(key, change.kind, serialized))
}

fn read(reader: &dyn KeyReader, change: &CacheChange) -> Option<KeyHash> {
    match (change.payload.is_empty(), change.key_only) {
        (true, _) => None,
        (false, true) => reader.of_key(&change.payload).ok(),
        (false, false) => reader.of_sample(&change.payload).ok(),
    }
}

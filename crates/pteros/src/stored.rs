//! What a transient or persistent publisher can be asked about its store.

use std::path::PathBuf;
use std::time::Duration;

use pteros_msg::message::Message;

use crate::dynamic::DynamicPublisher;
use crate::publisher::Publisher;
use crate::store::StoreCounts;

/// Durability transient and persistent, see
/// [`DurabilityPolicy::Transient`](crate::qos::DurabilityPolicy::Transient).
impl<T: Message> Publisher<T> {
    /// Waits until everything published so far is in the store, with a
    /// persistent publisher on the disk; returns whether it is. Blocks, at most
    /// `timeout`. False also when some sample was not stored for lack of room.
    /// True at once without a store.
    pub fn wait_until_stored(&self, timeout: Duration) -> bool {
        self.raw.endpoint.wait_until_stored(timeout)
    }

    /// The store's file; `None` for volatile and transient local publishers.
    pub fn store_path(&self) -> Option<PathBuf> {
        self.raw.endpoint.store_path()
    }

    /// What the store holds, and what it could not take.
    pub fn store_counts(&self) -> Option<StoreCounts> {
        self.raw.endpoint.store_counts()
    }
}

/// As for [`Publisher`].
impl DynamicPublisher {
    /// See [`Publisher::wait_until_stored`].
    pub fn wait_until_stored(&self, timeout: Duration) -> bool {
        self.raw.endpoint.wait_until_stored(timeout)
    }

    /// See [`Publisher::store_path`].
    pub fn store_path(&self) -> Option<PathBuf> {
        self.raw.endpoint.store_path()
    }
}

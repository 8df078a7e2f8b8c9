//! Durability store of a transient or persistent publisher (durability service):
//! its file, counters and synchronization.

use std::path::PathBuf;
use std::time::Duration;

use pteros_msg::type_support::MessageTypeSupport;

use crate::publisher::Publisher;
use crate::store::StoreCounts;

/// For durability transient and persistent, see
/// [`DurabilityPolicy::Transient`](crate::qos::DurabilityPolicy::Transient).
impl<T: MessageTypeSupport> Publisher<T> {
    /// Waits until everything published so far is in the store; true if it is.
    ///
    /// With a persistent publisher, that means on the disk. Blocks, at most
    /// `timeout`. Also false if a sample was not stored because the store was full.
    /// True at once without a store.
    pub fn wait_until_stored(&self, timeout: Duration) -> bool {
        self.raw.endpoint.wait_until_stored(timeout)
    }

    /// The store's file; `None` for volatile and transient local publishers.
    pub fn store_path(&self) -> Option<PathBuf> {
        self.raw.endpoint.store_path()
    }

    /// Counters of the store: samples held and samples refused.
    pub fn store_counts(&self) -> Option<StoreCounts> {
        self.raw.endpoint.store_counts()
    }
}

//! Reference count of a chunk, in memory that no other process maps.
//!
//! As in [`std::sync::Arc`]: a new reference comes from one that exists, so adding needs
//! no order. The last holder to leave sees what all others did with the chunk.

use crate::sync::{AtomicU32, Ordering};

/// How many hold a chunk.
#[derive(Debug, Default)]
pub(crate) struct HolderCount(AtomicU32);

impl HolderCount {
    /// The chunk, which nobody holds, gets its first holder. The pool's lock orders this
    /// after the last one left.
    pub(crate) fn begin(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    /// A holder makes another one.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// A holder leaves. Returns whether it was the last one.
    pub(crate) fn leave(&self) -> bool {
        // AcqRel: all reads and writes of other holders happen before the last one leaves.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

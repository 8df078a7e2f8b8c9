//! Ready flag: whether an entity stands in a ready queue.
//!
//! A producer adds work, then sets the flag. The taker resets the flag, then looks for
//! work. Both exchange the flag with acquire and release, so one of them comes after the
//! other: either the producer queues the entity again, or the taker sees the work.
//! `cargo xtask loom` checks that on its own atomics, which is why this file takes its
//! atomics from the module above (crates/shm/src/loom_tests.rs).

use super::atomic::{AtomicBool, Ordering};

/// Set while the entity has an entry in its queue.
#[derive(Debug, Default)]
pub(crate) struct ReadyFlag(AtomicBool);

impl ReadyFlag {
    /// Producer's side, after the work can be found. Returns whether it was not set: then
    /// the caller adds the entry.
    pub(crate) fn set(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// Taker's side, before it looks for work: later work sets it again.
    pub(crate) fn begin_take(&self) {
        self.0.swap(false, Ordering::AcqRel);
    }

    /// The entity has no entry: it left its queue, or there is none to stand in.
    pub(crate) fn clear(&self) {
        // Release: pairs with the exchange in `set`.
        self.0.store(false, Ordering::Release);
    }
}

//! Atomics of the protocols between processes: std's, or loom's in the
//! model-checking tests (`--cfg loom`).

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Reads a word that another process writes, and orders later reads after it. A
/// relaxed load and a fence, because only relaxed loads are defined on memory that
/// is mapped read-only.
pub(crate) fn load_peer_word(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    value
}

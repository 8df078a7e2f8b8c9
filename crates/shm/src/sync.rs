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
    let value = load_read_only(word);
    fence(Ordering::Acquire);
    value
}

/// Reads a word of memory that may be mapped read-only, without an order.
///
/// The compiler may make a load of 64 bits a read-modify-write on a processor of 32 bits,
/// which ends in SIGSEGV there (std::sync::atomic, "Atomic accesses to read-only memory").
/// Two loads of 32 bits take its place there.
#[cfg(any(loom, target_pointer_width = "64"))]
pub(crate) fn load_read_only(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

#[cfg(not(any(loom, target_pointer_width = "64")))]
pub(crate) use crate::memory::load_halves as load_read_only;

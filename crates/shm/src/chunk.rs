//! Chunks of shared memory: a chunk that is written, a frozen chunk, and a body in
//! a peer's chunk.
//!
//! `unsafe` is here because this file makes slices of shared memory. Own chunks: a
//! [`ChunkMut`] is the only holder of its chunk, and a frozen chunk is never
//! written again while it has a holder. A peer's chunks: they are mapped read-only
//! and returned only when the last clone of their `Bytes` is dropped. A *correct*
//! peer does not write them before. A misbehaving peer may, and the bytes then
//! change under the reader, as in any shared memory. Decoders must therefore check
//! as they read, as all decoders of wire data do.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::Bytes;

use crate::connection::BorrowedChunks;
use crate::loans::Loan;
use crate::memory::PeerMemory;
use crate::pool::ChunkHold;

/// A chunk of shared memory that no other process sees yet.
///
/// Dropping it returns the chunk to the pool. Its initial bytes are what this
/// process last wrote there: write all bytes that you freeze.
pub struct ChunkMut {
    hold: ChunkHold,
    len: usize,
}

impl ChunkMut {
    pub(crate) fn new(hold: ChunkHold, len: usize) -> Self {
        Self { hold, len }
    }

    /// The chunk hold, and the offset of the bytes in its segment.
    pub(crate) fn into_hold(self) -> (ChunkHold, usize) {
        let at = self.hold.payload_at();
        (self.hold, at)
    }

    /// Ends writing and shares the first `len` bytes. The chunk returns to the pool
    /// when the last clone is dropped and every reader in another process has
    /// returned it. Allocates the reference count.
    ///
    /// # Panics
    /// When `len` is more than the chunk has.
    #[must_use]
    pub fn freeze(self, len: usize) -> Bytes {
        assert!(len <= self.len, "freeze no more than was taken");
        let frozen = FrozenChunk {
            hold: self.hold,
            len,
        };
        Bytes::from_owner(frozen)
    }
}

impl Deref for ChunkMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        slice(&self.hold, self.len)
    }
}

impl DerefMut for ChunkMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        let memory = &self.hold.segment.memory;
        let start = memory.pointer(self.hold.payload_at(), self.len);
        // SAFETY: within the mapping (`pointer` checks), which the hold keeps.
        // Chunks do not overlap, the pool gave this one to us alone, and peers map
        // it read-only and read it only after it was sent.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for ChunkMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkMut({} bytes)", self.len)
    }
}

fn slice(hold: &ChunkHold, len: usize) -> &[u8] {
    let start = hold.segment.memory.pointer(hold.payload_at(), len);
    // SAFETY: within the mapping (`pointer` checks), which the hold keeps;
    // initialised by the kernel; not written while there is a hold, except
    // through `ChunkMut`, which borrows itself mutably for that.
    unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
}

/// An own chunk that is read-only from now on.
struct FrozenChunk {
    hold: ChunkHold,
    len: usize,
}

impl AsRef<[u8]> for FrozenChunk {
    fn as_ref(&self) -> &[u8] {
        slice(&self.hold, self.len)
    }
}

/// A piece of a peer's chunk. Dropping it returns the loan.
pub(crate) struct LoanedBody {
    memory: Arc<PeerMemory>,
    offset: usize,
    len: usize,
    loan: Loan,
    borrowed: Arc<BorrowedChunks>,
}

impl LoanedBody {
    /// Offset and length must be within `memory`; the reader of the record has
    /// checked them.
    pub(crate) fn bytes(
        memory: Arc<PeerMemory>,
        offset: usize,
        len: usize,
        loan: Loan,
        borrowed: Arc<BorrowedChunks>,
    ) -> Bytes {
        Bytes::from_owner(Self {
            memory,
            offset,
            len,
            loan,
            borrowed,
        })
    }
}

impl AsRef<[u8]> for LoanedBody {
    fn as_ref(&self) -> &[u8] {
        let start = self.memory.pointer(self.offset, self.len);
        // SAFETY: within the mapping (`pointer` checks), which self keeps. The file
        // is sealed against shrinking and made of ordinary pages, so reading cannot
        // fault. A correct owner does not write it until the loan is returned,
        // which our drop does (see the file's header).
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }
    }
}

impl Drop for LoanedBody {
    fn drop(&mut self) {
        self.borrowed.give_back(self.loan);
    }
}

//! A chunk while it is written, and after; and a peer's, while it is read.
//!
//! `unsafe` is here because a slice of shared memory is made here. Ours: a
//! [`ChunkMut`] is the only holder of its chunk, a frozen one is never written
//! again while anybody holds it. A peer's: mapped read-only and given back only
//! when the last clone of its `Bytes` is dropped; a *correct* peer does not
//! write it before. A broken one may, and the bytes then change under the
//! reader as those of any shared memory do: whoever decodes them must check as
//! it reads, which everything that reads the wire does.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::Bytes;

use crate::link::Borrowed;
use crate::loans::Loan;
use crate::memory::PeerMemory;
use crate::pool::Hold;

/// A chunk of shared memory that nobody else sees yet.
///
/// Dropped, it goes back to the pool. Its bytes are what was last written
/// there, by this process: write all that you freeze.
pub struct ChunkMut {
    hold: Hold,
    len: usize,
}

impl ChunkMut {
    pub(crate) fn new(hold: Hold, len: usize) -> Self {
        crate::fault!("chunk-taken");
        Self { hold, len }
    }

    /// The holder and where in its segment the bytes begin.
    pub(crate) fn into_hold(self) -> (Hold, usize) {
        let at = self.hold.payload_at();
        (self.hold, at)
    }

    /// Ends writing: the first `len` bytes, shared from now on. The chunk goes
    /// back to the pool when the last clone is dropped and every reader in
    /// another process has given it back. Allocates the count of owners.
    ///
    /// # Panics
    /// When `len` is more than the chunk has.
    #[must_use]
    pub fn freeze(self, len: usize) -> Bytes {
        assert!(len <= self.len, "freeze no more than was taken");
        let frozen = Frozen {
            hold: self.hold,
            len,
        };
        crate::fault!("chunk-frozen");
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
        // Chunks do not overlap, the pool handed this one to us alone, and
        // peers map it read-only and look only once it was sent.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for ChunkMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkMut({} bytes)", self.len)
    }
}

fn slice(hold: &Hold, len: usize) -> &[u8] {
    let start = hold.segment.memory.pointer(hold.payload_at(), len);
    // SAFETY: within the mapping (`pointer` checks), which the hold keeps;
    // initialised by the kernel; not written while there is a hold, except
    // through `ChunkMut`, which borrows itself mutably for that.
    unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
}

/// A chunk of ours that is only read from now on.
struct Frozen {
    hold: Hold,
    len: usize,
}

impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        slice(&self.hold, self.len)
    }
}

/// A piece of a peer's chunk; given back when dropped.
pub(crate) struct Loaned {
    memory: Arc<PeerMemory>,
    offset: usize,
    len: usize,
    loan: Loan,
    borrowed: Arc<Borrowed>,
}

impl Loaned {
    /// Offset and length lie within `memory`; whoever read them has checked.
    pub(crate) fn bytes(
        memory: Arc<PeerMemory>,
        (offset, len): (usize, usize),
        loan: Loan,
        borrowed: Arc<Borrowed>,
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

impl AsRef<[u8]> for Loaned {
    fn as_ref(&self) -> &[u8] {
        let start = self.memory.pointer(self.offset, self.len);
        // SAFETY: within the mapping (`pointer` checks), which self keeps. The
        // file is sealed against shrinking and made of ordinary pages, so
        // reading cannot fault. A correct owner does not write it until the
        // loan is given back, which is in our drop (see the file's header).
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }
    }
}

impl Drop for Loaned {
    fn drop(&mut self) {
        self.borrowed.give_back(self.loan);
    }
}

//! What lies where in the memory that processes show each other, and the
//! limits that both sides hold to. Numbers only; nothing here touches memory.
//!
//! ```text
//! context page (one per hub, 4 KiB)        link memory (one per link and direction)
//!    0  magic u64                             0  magic u64
//!    8  version u32                           8  version u32
//!   64  sleeping u64: odd while asleep       16  nonce 2 x u64
//!  128  starved u64: odd wants chunks        64  tail u64: end of what was written
//!                                           128  head u64: what we read of the peer's ring
//!                                          4096  returned 1024 x u32: loans given back
//!                                          8192  ring, a power of two
//! ```
//! Each is written by the process that made it and by nobody else. Words that
//! change often have a cache line of their own.

/// Version of everything in this crate that two processes share. A peer of
/// another version is refused, never guessed at.
pub const VERSION: u16 = 2;

/// First word of a context page.
pub(crate) const CONTEXT_MAGIC: u64 = u64::from_le_bytes(*b"PterosCx");
/// First word of a link's memory.
pub(crate) const LINK_MAGIC: u64 = u64::from_le_bytes(*b"PterosLk");

pub(crate) const AT_MAGIC: usize = 0;
pub(crate) const AT_VERSION: usize = 8;

pub(crate) const CONTEXT_BYTES: usize = 4096;
pub(crate) const AT_SLEEPING: usize = 64;
pub(crate) const AT_STARVED: usize = 128;

pub(crate) const AT_NONCE: usize = 16;
pub(crate) const AT_TAIL: usize = 64;
pub(crate) const AT_HEAD: usize = 128;
pub(crate) const AT_RETURNED: usize = 4096;
pub(crate) const AT_RING: usize = 8192;

/// Chunks that may be lent over one link at a time. More are refused
/// ([`Refused::Loans`](crate::Refused::Loans)).
pub const LOANS_MAX: usize = 1024;

/// Smallest ring, bytes.
pub const RING_BYTES_MIN: usize = 4 << 10;
/// Largest ring, bytes.
pub const RING_BYTES_MAX: usize = 16 << 20;

/// Segments of one peer that are mapped at a time. One more ends the link.
pub const SEGMENTS_MAX: usize = 512;
/// Largest segment, bytes: offsets in records have 32 bits.
pub const SEGMENT_BYTES_MAX: usize = 1 << 31;

/// Bodies up to this size go into the ring even if they lie in a chunk: a loan
/// costs more than copying them twice.
pub(crate) const NAMED_MIN_BYTES: usize = 257;
/// Bodies outside chunks up to this size go into the ring, longer ones are
/// copied into a chunk.
pub(crate) const INLINE_MAX_BYTES: usize = 4096;

/// Where the payload begins in its chunk: the 4 bytes of a CDR encapsulation
/// bring its body to a multiple of 64.
pub(crate) const CHUNK_OFFSET: usize = 60;

/// Bytes of a link's memory with a ring of that many bytes.
pub(crate) const fn link_bytes(ring_bytes: usize) -> usize {
    AT_RING + ring_bytes
}

//! Layout of the memory that processes share, and the limits on both sides. Numbers
//! only; nothing here touches memory.
//!
//! ```text
//! wake page (one per transport, 4096)      connection memory (one per connection and direction)
//!    0  magic u64                             0  magic u64
//!    8  version u32                           8  version u32
//!   64  sleeping u64: odd while asleep       16  nonce 2 x u64
//!  128  chunk wait u64: odd while waiting    64  tail u64: end of what was written
//!  192  deferring u64: odd while a message  128  head u64: what we read of the peer's ring
//!       may wait without a wake-up
//!                                          4096  returned 1024 x u32: returned loans
//!                                          8192  ring, a power of two
//! ```
//! Offsets and sizes are the same whatever the size of a page: 4, 16 or 64 KiB.
//! Only the process that created a memory writes it. Words that change often have a
//! cache line of their own.

/// Version of everything in this crate that two processes share. Peers of another
/// version are refused.
pub const VERSION: u16 = 3;

/// First word of a wake page.
pub(crate) const CONTEXT_MAGIC: u64 = u64::from_le_bytes(*b"PterosCx");
/// First word of a connection's memory.
pub(crate) const CONNECTION_MAGIC: u64 = u64::from_le_bytes(*b"PterosLk");

pub(crate) const AT_MAGIC: usize = 0;
pub(crate) const AT_VERSION: usize = 8;

/// Unit of sizes and offsets. It is not the size of a page: a mapping begins on a page
/// of any size, and the kernel rounds its end up.
pub(crate) const BLOCK_BYTES: usize = 4096;

pub(crate) const CONTEXT_BYTES: usize = BLOCK_BYTES;
pub(crate) const AT_SLEEPING: usize = 64;
pub(crate) const AT_CHUNK_WAIT: usize = 128;
/// Peers of the first builds of this version leave it zero, and ring for no such sleep.
pub(crate) const AT_DEFERRING: usize = 192;

pub(crate) const AT_NONCE: usize = 16;
pub(crate) const AT_TAIL: usize = 64;
pub(crate) const AT_HEAD: usize = 128;
pub(crate) const AT_RETURNED: usize = BLOCK_BYTES;
pub(crate) const AT_RING: usize = 2 * BLOCK_BYTES;

/// Chunks that may be on loan over one connection at a time. More are refused
/// ([`SendRefusal::TooManyLoans`](crate::SendRefusal::TooManyLoans)).
pub const LOANS_MAX: usize = 1024;

/// Smallest ring, bytes.
pub const RING_BYTES_MIN: usize = 4 << 10;
/// Largest ring, bytes.
pub const RING_BYTES_MAX: usize = 16 << 20;

/// Segments of one peer that are mapped at a time. One more closes the connection.
pub const SEGMENTS_MAX: usize = 512;
/// Largest segment, bytes: offsets in records have 32 bits.
pub const SEGMENT_BYTES_MAX: usize = 1 << 31;

/// Bodies shorter than this are copied into the ring even if they are in a chunk: a
/// loan costs more than two copies.
pub(crate) const CHUNK_BODY_MIN_BYTES: usize = 257;
/// Bodies outside chunks up to this size are copied into the ring, longer ones into
/// a chunk.
pub(crate) const INLINE_MAX_BYTES: usize = 4096;

/// Offset of the payload in its chunk: after the 4 bytes of a CDR encapsulation
/// header the data is at a multiple of 64.
pub(crate) const CHUNK_OFFSET: usize = 60;

/// Bytes of a connection's memory with a ring of that many bytes.
pub(crate) const fn connection_bytes(ring_bytes: usize) -> usize {
    AT_RING + ring_bytes
}

//! Chunk pool of the loaned messages: segments of equal chunks in shared memory.
//!
//! ```text
//! class   0      1      2    …   16
//! chunk  1 KiB  2 KiB  4 KiB …  64 MiB      and 64 bytes or a page of slack
//!                                           (pages of 4, 16 or 64 KiB)
//! segment = memfd of n chunks of one class; the first of a class is small,
//!           each further one as large as all before it together
//! ```
//! Chunks are taken last in, first out, so that prefaulted memory is reused. Each
//! chunk is prefaulted once. The reference counts ([`ChunkHold`]) are in memory
//! that no other process maps. At most `limit_bytes` of segments are created. At
//! the limit [`Pool::take`] returns nothing and the caller decides.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::holder_count::HolderCount;
use crate::layout::{CHUNK_OFFSET, SEGMENT_BYTES_MAX};
use crate::memory::OwnMemory;

/// Bytes of a class 0 chunk.
const CLASS_ZERO_BYTES: usize = 1 << 10;
/// Least size of a segment, so that small chunks do not cost a descriptor each.
const SEGMENT_BYTES_MIN: usize = 256 << 10;
/// Slack before a chunk's payload. Larger chunks get a page, so that each begins on
/// a page and is prefaulted alone.
const SLACK_BYTES: usize = 64;

/// The sizes of chunks and segments on a system with pages of that many bytes: 4, 16
/// or 64 KiB. Peers do not compute with them.
#[derive(Clone, Copy, Debug)]
struct ChunkSizes {
    page: usize,
}

impl ChunkSizes {
    fn of_system() -> Self {
        Self {
            page: rustix::param::page_size(),
        }
    }

    /// The smallest class whose chunks hold `len` bytes. The slack counts, so that an
    /// image of 4 MiB does not take 8 MiB because of its header.
    fn class_of(self, len: usize) -> usize {
        let chunk = len.max(CLASS_ZERO_BYTES).next_power_of_two();
        let class = (chunk / CLASS_ZERO_BYTES).trailing_zeros() as usize;
        match class.checked_sub(1) {
            Some(smaller) if len <= self.largest_of(smaller) => smaller,
            _ => class,
        }
    }

    /// Distance from one chunk of a class to the next.
    fn stride_of(self, class: usize) -> usize {
        let bytes = CLASS_ZERO_BYTES << class;
        let slack = if bytes < 4 * self.page {
            SLACK_BYTES
        } else {
            self.page
        };
        bytes + slack
    }

    /// Most bytes in a chunk of a class.
    fn largest_of(self, class: usize) -> usize {
        self.stride_of(class) - CHUNK_OFFSET
    }

    fn segment_bytes(self, chunks: usize, class: usize) -> usize {
        (chunks * self.stride_of(class)).next_multiple_of(self.page)
    }
}

/// A memfd that holds chunks of one size.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its number on every connection; never reused.
    pub(crate) number: u32,
    pub(crate) memory: OwnMemory,
    fd: OwnedFd,
    class: usize,
    stride: usize,
    /// Per chunk: number of holders ([`ChunkHold`]), and how many bytes are
    /// prefaulted.
    chunks: Vec<(HolderCount, AtomicUsize)>,
}

impl Segment {
    /// Where the payload of a chunk begins in the segment.
    fn payload_at(&self, chunk: u32) -> usize {
        chunk as usize * self.stride + CHUNK_OFFSET
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A reference to a chunk. The chunk is free when the last one is dropped.
#[derive(Debug)]
pub(crate) struct ChunkHold {
    pool: Arc<Pool>,
    pub(crate) segment: Arc<Segment>,
    chunk: u32,
}

impl ChunkHold {
    /// Where the payload begins in the segment.
    pub(crate) fn payload_at(&self) -> usize {
        self.segment.payload_at(self.chunk)
    }
}

impl Drop for ChunkHold {
    fn drop(&mut self) {
        if self.segment.chunks[self.chunk as usize].0.leave() {
            self.pool.put_back(&self.segment, self.chunk);
        }
    }
}

/// No chunk is free, and no segment can be added.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolExhausted {
    /// Larger than the pool's largest chunk. Retrying does not help.
    #[error(
        "a message of {len} bytes does not fit the largest shared memory chunk of {largest} bytes; \
         raise the largest message"
    )]
    TooLarge {
        /// Bytes asked for.
        len: usize,
        /// Bytes of the largest chunk.
        largest: usize,
    },
    /// All chunks are in use. Try again when one was returned, or raise the pool's
    /// limit.
    #[error(
        "no chunk for {len} bytes: {used} of the shared memory pool's {limit} bytes are made into \
         segments; raise the pool's limit, or let subscribers hold fewer samples"
    )]
    Full {
        /// Bytes asked for.
        len: usize,
        /// Bytes in segments.
        used: usize,
        /// The pool's limit.
        limit: usize,
    },
    /// The system refused memory or a descriptor.
    #[error("the system gives no shared memory: {0:?}")]
    System(io::ErrorKind),
}

// The plain text: what `main` prints of a returned error.
impl fmt::Debug for PoolExhausted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The segments, and the free chunks of each class.
#[derive(Debug)]
pub(crate) struct Pool {
    limit_bytes: usize,
    sizes: ChunkSizes,
    class_max: usize,
    state: Mutex<State>,
    /// Sorted by address, for [`Pool::find`].
    segments: RwLock<Vec<Arc<Segment>>>,
    /// Rings the doorbell when a chunk returns during a chunk wait.
    chunk_waiters: crate::doorbell::ChunkWaiters,
}

#[derive(Debug)]
struct State {
    /// Free chunks per class. The last one returned is at the end.
    free: Vec<Vec<(Arc<Segment>, u32)>>,
    /// Chunks in all segments, per class.
    chunks: Vec<usize>,
    bytes: usize,
    number: u32,
}

/// Sizes of a pool, for [`ShmCounts`](crate::ShmCounts).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolCounts {
    pub segments: usize,
    pub bytes: usize,
    pub chunks: usize,
    pub free: usize,
}

impl Pool {
    pub(crate) fn new(
        limit_bytes: usize,
        largest: usize,
        starved: crate::doorbell::ChunkWaiters,
    ) -> Arc<Self> {
        Self::with_sizes(ChunkSizes::of_system(), limit_bytes, largest, starved)
    }

    fn with_sizes(
        sizes: ChunkSizes,
        limit_bytes: usize,
        largest: usize,
        starved: crate::doorbell::ChunkWaiters,
    ) -> Arc<Self> {
        let class_max = sizes.class_of(largest.clamp(CLASS_ZERO_BYTES, SEGMENT_BYTES_MAX / 2));
        Arc::new(Self {
            limit_bytes,
            sizes,
            class_max,
            state: Mutex::new(State {
                free: (0..=class_max).map(|_| Vec::new()).collect(),
                chunks: vec![0; class_max + 1],
                bytes: 0,
                number: 0,
            }),
            segments: RwLock::default(),
            chunk_waiters: starved,
        })
    }

    /// Limit of the total size of segments, bytes.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Takes a free chunk for `len` bytes. Looks in larger classes too when `any`
    /// is set.
    pub(crate) fn take(self: &Arc<Self>, len: usize, any: bool) -> Option<ChunkHold> {
        let class = self.sizes.class_of(len);
        let last = if any { self.class_max } else { class };
        let mut state = self.state.lock();
        let classes = state.free.get_mut(class..=last)?;
        let (segment, chunk) = classes.iter_mut().find_map(Vec::pop)?;
        drop(state);
        Some(self.hand_out(segment, chunk, len))
    }

    /// Takes the chunk that was returned last, if at least `len` bytes of it are
    /// prefaulted.
    pub(crate) fn take_prefaulted(self: &Arc<Self>, len: usize) -> Option<ChunkHold> {
        let mut state = self.state.lock();
        let free = state.free.get_mut(self.sizes.class_of(len))?;
        let (segment, chunk) = free.pop_if(|(segment, chunk)| {
            let (_, prefaulted) = &segment.chunks[*chunk as usize];
            prefaulted.load(Ordering::Relaxed) >= len
        })?;
        drop(state);
        Some(self.hand_out(segment, chunk, len))
    }

    fn hand_out(self: &Arc<Self>, segment: Arc<Segment>, chunk: u32, len: usize) -> ChunkHold {
        let (holders, prefaulted) = &segment.chunks[chunk as usize];
        holders.begin();
        // Only the holder of a chunk reads its prefaulted length.
        let missing_from = prefaulted.load(Ordering::Relaxed);
        if let Some(missing @ 1..) = len.checked_sub(missing_from) {
            let at = segment.payload_at(chunk);
            segment.memory.populate(at + missing_from, missing);
            prefaulted.store(len, Ordering::Relaxed);
        }
        ChunkHold {
            pool: Arc::clone(self),
            segment,
            chunk,
        }
    }

    /// Creates another segment of chunks for `len` bytes. At the limit, unused
    /// segments of other sizes are retired first. Returns their numbers, for peers
    /// that have mapped them.
    pub(crate) fn grow(&self, len: usize) -> Result<Vec<u32>, PoolExhausted> {
        let class = self.sizes.class_of(len);
        if class > self.class_max {
            let largest = self.sizes.largest_of(self.class_max);
            return Err(PoolExhausted::TooLarge { len, largest });
        }
        let stride = self.sizes.stride_of(class);
        let mut state = self.state.lock();
        let mut retired = Vec::new();
        if self.limit_bytes.saturating_sub(state.bytes) < stride {
            retired = self.retire(&mut state, class, stride);
        }
        let room = self.limit_bytes.saturating_sub(state.bytes) / stride;
        let wanted = (SEGMENT_BYTES_MIN / stride).max(state.chunks[class]).max(1);
        let count = wanted.min(room).min(SEGMENT_BYTES_MAX / stride);
        if count == 0 {
            return Err(PoolExhausted::Full {
                len,
                used: state.bytes,
                limit: self.limit_bytes,
            });
        }
        let bytes = self.sizes.segment_bytes(count, class);
        let made = OwnMemory::create("pteros-pool", bytes);
        let (memory, fd) = made.map_err(|e| PoolExhausted::System(e.kind()))?;
        let segment = Arc::new(Segment {
            number: state.number,
            memory,
            fd,
            class,
            stride,
            chunks: (0..count).map(|_| Default::default()).collect(),
        });
        state.number += 1;
        state.bytes += bytes;
        state.chunks[class] += count;
        let fresh = (0..count as u32).rev().map(|c| (Arc::clone(&segment), c));
        state.free[class].extend(fresh);
        let mut segments = self.segments.write();
        let at = segments.partition_point(|s| s.memory.address() < segment.memory.address());
        segments.insert(at, segment);
        Ok(retired)
    }

    /// Retires unused segments of classes other than `class`, until there is room
    /// for `bytes` more or none is left.
    fn retire(&self, state: &mut State, class: usize, bytes: usize) -> Vec<u32> {
        let mut retired = Vec::new();
        let mut segments = self.segments.write();
        segments.retain(|segment| {
            let enough = self.limit_bytes - state.bytes.min(self.limit_bytes) >= bytes;
            if enough || segment.class == class {
                return true;
            }
            let free = &mut state.free[segment.class];
            let unused = free.iter().filter(|(s, _)| s.number == segment.number);
            if unused.count() < segment.chunks.len() {
                return true;
            }
            free.retain(|(s, _)| s.number != segment.number);
            state.chunks[segment.class] -= segment.chunks.len();
            state.bytes -= segment.memory.len();
            retired.push(segment.number);
            false
        });
        retired
    }

    /// The chunk that holds `bytes`, with one more reference to it, and the offset.
    /// The owner of the slice holds the chunk already.
    pub(crate) fn find(self: &Arc<Self>, bytes: &[u8]) -> Option<(ChunkHold, usize)> {
        let address = bytes.as_ptr() as usize;
        let segments = self.segments.read();
        let after = segments.partition_point(|s| s.memory.address() <= address);
        let segment = segments.get(after.checked_sub(1)?)?;
        let offset = address - segment.memory.address();
        let chunk = offset / segment.stride;
        if offset + bytes.len() > segment.memory.len() || chunk >= segment.chunks.len() {
            return None;
        }
        segment.chunks[chunk].0.add();
        let hold = ChunkHold {
            pool: Arc::clone(self),
            segment: Arc::clone(segment),
            chunk: chunk as u32,
        };
        Some((hold, offset))
    }

    /// Suppresses the doorbell for chunks that return now, because the owner checks
    /// the pool itself.
    pub(crate) fn suppress_wake(&self) {
        self.chunk_waiters.suppress_wake();
    }

    fn put_back(&self, segment: &Arc<Segment>, chunk: u32) {
        self.state.lock().free[segment.class].push((Arc::clone(segment), chunk));
        self.chunk_waiters.wake();
    }

    /// The error for a caller that found no chunk.
    pub(crate) fn full(&self, len: usize) -> PoolExhausted {
        PoolExhausted::Full {
            len,
            used: self.state.lock().bytes,
            limit: self.limit_bytes,
        }
    }

    pub(crate) fn counts(&self) -> PoolCounts {
        let state = self.state.lock();
        PoolCounts {
            segments: self.segments.read().len(),
            bytes: state.bytes,
            chunks: state.chunks.iter().sum(),
            free: state.free.iter().map(Vec::len).sum(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::doorbell::{ChunkWaiters, WakePage};

    /// Raspberry Pi 5 has 16 KiB, kernels for Jetson and servers may have 64 KiB.
    const PAGES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

    #[test]
    fn large_chunks_begin_on_a_page_of_any_size_and_fit_what_their_class_promises() {
        for page in PAGES {
            let sizes = ChunkSizes { page };
            for class in 0..=16 {
                let (bytes, stride) = (CLASS_ZERO_BYTES << class, sizes.stride_of(class));
                assert!(stride.is_multiple_of(64), "{page} {class}");
                if bytes >= 4 * page {
                    assert!(stride.is_multiple_of(page), "{page} {class}");
                }
                assert!(sizes.largest_of(class) >= bytes, "{page} {class}");
                let edge = sizes.largest_of(class);
                assert_eq!(sizes.class_of(edge), class, "{page}");
                assert_eq!(sizes.class_of(edge + 1), class + 1, "{page}");
                assert!(sizes.segment_bytes(3, class).is_multiple_of(page));
                assert!(
                    stride - bytes <= bytes / 4 || bytes < 4 << 10,
                    "{page} {class}"
                );
            }
        }
    }

    #[test]
    fn chunks_of_every_page_size_are_apart_and_within_their_segment() {
        for page in PAGES {
            let context = WakePage::new().expect("memory");
            let sizes = ChunkSizes { page };
            let starved = ChunkWaiters::new(context);
            let pool = Pool::with_sizes(sizes, 64 << 20, 4 << 20, starved);
            for len in [1, 5_000, 60_000, 300_000, 1 << 20, 4 << 20] {
                pool.grow(len).expect("within the limit");
                let mut holds = Vec::new();
                while let Some(hold) = pool.take(len, false) {
                    // Panics outside of the mapping.
                    let payload = hold.segment.memory.pointer(hold.payload_at(), len);
                    holds.push((payload.as_ptr() as usize, hold));
                }
                assert!(!holds.is_empty(), "{page} {len}");
                holds.sort_by_key(|(address, _)| *address);
                for pair in holds.windows(2) {
                    assert!(pair[0].0 + len <= pair[1].0, "{page} {len}");
                }
            }
            assert!(pool.counts().bytes <= 64 << 20);
        }
    }
}

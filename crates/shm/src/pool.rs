//! The memory that payloads are written into: segments of equal chunks.
//!
//! ```text
//! class   0      1      2    …   16
//! chunk  1 KiB  2 KiB  4 KiB …  64 MiB      and 64 bytes or a page of slack
//! segment = memfd of n chunks of one class; the first of a class is small,
//!           each further one as large as all before it together
//! ```
//! A chunk is handed out, last in first out, so that warm memory is used
//! again; it is brought in once. Who holds a chunk is counted here, in memory
//! that no other process sees ([`Hold`]). No more than `limit_bytes` of
//! segments are ever made; then [`Pool::take`] says so and the caller decides.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::layout::{CHUNK_OFFSET, SEGMENT_BYTES_MAX};
use crate::memory::OwnMemory;

/// Bytes of a class 0 chunk.
const CLASS_ZERO_BYTES: usize = 1 << 10;
/// A segment is at least about this large, so that small chunks do not cost a
/// descriptor each.
const SEGMENT_BYTES_MIN: usize = 256 << 10;
/// Slack before a chunk's payload; larger chunks get a page, so that each
/// begins on one and is brought in without its neighbour.
const SLACK_BYTES: usize = 64;
const PAGE: usize = 4096;

/// Which chunks hold `len` bytes: the smallest. The slack counts as well, so that
/// an image of 4 MiB does not take 8 for its header's sake.
fn class_of(len: usize) -> usize {
    let chunk = len.max(CLASS_ZERO_BYTES).next_power_of_two();
    let class = (chunk / CLASS_ZERO_BYTES).trailing_zeros() as usize;
    match class.checked_sub(1) {
        Some(smaller) if len <= stride_of(smaller) - CHUNK_OFFSET => smaller,
        _ => class,
    }
}

/// Distance from one chunk of a class to the next.
fn stride_of(class: usize) -> usize {
    let bytes = CLASS_ZERO_BYTES << class;
    bytes + if bytes < 4 * PAGE { SLACK_BYTES } else { PAGE }
}

/// Memory of several chunks of one size.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its name on every link; never used again.
    pub(crate) number: u32,
    pub(crate) memory: OwnMemory,
    fd: OwnedFd,
    class: usize,
    stride: usize,
    /// Per chunk: who holds it ([`Hold`]s), and how many bytes were brought in.
    chunks: Vec<(AtomicU32, AtomicUsize)>,
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

/// One holder of a chunk. The chunk is free when the last is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    pool: Arc<Pool>,
    pub(crate) segment: Arc<Segment>,
    chunk: u32,
}

impl Hold {
    /// Where the payload begins in the segment.
    pub(crate) fn payload_at(&self) -> usize {
        self.segment.payload_at(self.chunk)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let holders = &self.segment.chunks[self.chunk as usize].0;
        // Whoever drops last has everybody's reading and writing behind it.
        if holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.pool.put_back(&self.segment, self.chunk);
        }
    }
}

/// There is no chunk and no room for another segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// Larger than a pool's largest chunk, ever.
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
    /// All is in use now. Try again when somebody has let go, or give the pool
    /// more memory.
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

/// Segments, and who has which chunk.
#[derive(Debug)]
pub(crate) struct Pool {
    limit_bytes: usize,
    class_max: usize,
    state: Mutex<State>,
    /// By address, for [`Pool::find`].
    segments: RwLock<Vec<Arc<Segment>>>,
    /// Rung when a chunk comes back while somebody waits for one.
    starved: crate::doorbell::Starved,
}

#[derive(Debug)]
struct State {
    /// Per class, the last one put back at the end.
    free: Vec<Vec<(Arc<Segment>, u32)>>,
    /// Per class, chunks in all segments.
    chunks: Vec<usize>,
    bytes: usize,
    number: u32,
}

/// What a pool has, for [`ShmCounts`](crate::ShmCounts).
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
        starved: crate::doorbell::Starved,
    ) -> Arc<Self> {
        let class_max = class_of(largest.clamp(CLASS_ZERO_BYTES, SEGMENT_BYTES_MAX / 2));
        Arc::new(Self {
            limit_bytes,
            class_max,
            state: Mutex::new(State {
                free: (0..=class_max).map(|_| Vec::new()).collect(),
                chunks: vec![0; class_max + 1],
                bytes: 0,
                number: 0,
            }),
            segments: RwLock::default(),
            starved,
        })
    }

    /// Bytes of segments at most.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// A chunk for `len` bytes from what is free. Looks in larger classes too
    /// when `any` is set.
    pub(crate) fn take(self: &Arc<Self>, len: usize, any: bool) -> Option<Hold> {
        let class = class_of(len);
        let last = if any { self.class_max } else { class };
        let mut state = self.state.lock();
        let classes = state.free.get_mut(class..=last)?;
        let (segment, chunk) = classes.iter_mut().find_map(Vec::pop)?;
        drop(state);
        Some(self.hand_out(segment, chunk, len))
    }

    /// The chunk that came back last, if so many bytes of it were used before.
    pub(crate) fn take_warm(self: &Arc<Self>, len: usize) -> Option<Hold> {
        let mut state = self.state.lock();
        let free = state.free.get_mut(class_of(len))?;
        let (segment, chunk) = free.pop_if(|(segment, chunk)| {
            let (_, warm) = &segment.chunks[*chunk as usize];
            warm.load(Ordering::Relaxed) >= len
        })?;
        drop(state);
        Some(self.hand_out(segment, chunk, len))
    }

    fn hand_out(self: &Arc<Self>, segment: Arc<Segment>, chunk: u32, len: usize) -> Hold {
        let (holders, warm) = &segment.chunks[chunk as usize];
        holders.store(1, Ordering::Relaxed);
        // Only the holder of a chunk looks at what of it is warm.
        let cold_from = warm.load(Ordering::Relaxed);
        if cold_from < len {
            let at = segment.payload_at(chunk);
            segment.memory.populate(at + cold_from, len - cold_from);
            warm.store(len, Ordering::Relaxed);
        }
        Hold {
            pool: Arc::clone(self),
            segment,
            chunk,
        }
    }

    /// Makes another segment of chunks for `len` bytes. If there is no room
    /// for one, segments of other sizes that nobody uses go first; returns
    /// their numbers, for those who have mapped them.
    pub(crate) fn grow(&self, len: usize) -> Result<Vec<u32>, Exhausted> {
        let class = class_of(len);
        if class > self.class_max {
            let largest = stride_of(self.class_max) - CHUNK_OFFSET;
            return Err(Exhausted::TooLarge { len, largest });
        }
        let stride = stride_of(class);
        let mut state = self.state.lock();
        let mut retired = Vec::new();
        if self.limit_bytes.saturating_sub(state.bytes) < stride {
            retired = self.retire(&mut state, class, stride);
        }
        let room = self.limit_bytes.saturating_sub(state.bytes) / stride;
        let wanted = (SEGMENT_BYTES_MIN / stride).max(state.chunks[class]).max(1);
        let count = wanted.min(room).min(SEGMENT_BYTES_MAX / stride);
        if count == 0 {
            return Err(Exhausted::Full {
                len,
                used: state.bytes,
                limit: self.limit_bytes,
            });
        }
        let bytes = (count * stride).next_multiple_of(PAGE);
        let made = OwnMemory::create("pteros-pool", bytes);
        let (memory, fd) = made.map_err(|e| Exhausted::System(e.kind()))?;
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
        crate::fault!("segment-made");
        Ok(retired)
    }

    /// Gives up segments of classes other than `class` none of whose chunks is
    /// used, until there is room for `bytes` more or none is left.
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

    /// The chunk in which `bytes` lie, one more holder of it, and where.
    /// Whoever lends the slice holds the chunk already.
    pub(crate) fn find(self: &Arc<Self>, bytes: &[u8]) -> Option<(Hold, usize)> {
        let address = bytes.as_ptr() as usize;
        let segments = self.segments.read();
        let after = segments.partition_point(|s| s.memory.address() <= address);
        let segment = segments.get(after.checked_sub(1)?)?;
        let offset = address - segment.memory.address();
        let chunk = offset / segment.stride;
        if offset + bytes.len() > segment.memory.len() || chunk >= segment.chunks.len() {
            return None;
        }
        segment.chunks[chunk].0.fetch_add(1, Ordering::Relaxed);
        let hold = Hold {
            pool: Arc::clone(self),
            segment: Arc::clone(segment),
            chunk: chunk as u32,
        };
        Some((hold, offset))
    }

    /// What comes back now rings no bell of ours: its owner is looking.
    pub(crate) fn hush(&self) {
        self.starved.hush();
    }

    fn put_back(&self, segment: &Arc<Segment>, chunk: u32) {
        self.state.lock().free[segment.class].push((Arc::clone(segment), chunk));
        self.starved.tell();
    }

    /// The error of whoever finds nothing.
    pub(crate) fn full(&self, len: usize) -> Exhausted {
        Exhausted::Full {
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

//! Anonymous shared memory: own memory to write, a peer's to read.
//!
//! [`OwnMemory`] is a memfd, mapped, then sealed: no process can shrink or grow it,
//! and no receiver of the descriptor can map it for writing. [`PeerMemory`] is
//! memory that another process handed over. It is mapped read-only after a check of
//! its seals and type. Its content may change at any time.
//!
//! `unsafe` of this crate is here and in `chunk.rs`. No pointer leaves this file
//! except from [`OwnMemory::pointer`] and [`PeerMemory::pointer`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};

use crate::sync::{AtomicU32, AtomicU64};
#[cfg(all(not(loom), any(test, not(target_pointer_width = "64"))))]
use crate::sync::{Ordering, fence};

/// Seals that make memory safe to map: its size stays (no SIGBUS), and only its
/// creator writes it.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::FUTURE_WRITE)
    .union(SealFlags::SEAL);

/// `f_type` of tmpfs (linux/magic.h), the file system of memfds. Those of huge
/// pages have another: touching them may end in SIGBUS when the pages run out.
const TMPFS_MAGIC: i128 = 0x0102_1994;

/// A mapping, unmapped when dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is memory of the process, not of a thread; all access goes
// through atomics or through pointers whose users synchronise (chunk.rs).
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, len: usize, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice overlaps
        // nothing; it lives until drop.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, fd, 0) };
        let start = start.map_err(|e| io_error("map memory", e))?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, len })
    }

    /// Extends the mapping. Its address may change.
    fn extend(&mut self, len: usize) -> io::Result<()> {
        let flags = MremapFlags::MAYMOVE;
        // SAFETY: our own mapping; `&mut` guarantees that there is no pointer into
        // it.
        let start = unsafe { rustix::mm::mremap(self.start.as_ptr().cast(), self.len, len, flags) };
        let start = start.map_err(|e| io_error("map more memory", e))?;
        self.start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        self.len = len;
        Ok(())
    }

    fn pointer(&self, offset: usize, len: usize) -> NonNull<u8> {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "within the mapping");
        // SAFETY: the assertion keeps it within the mapping.
        unsafe { self.start.add(offset) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words(offset, 1)[0]
    }

    fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        assert!(offset.is_multiple_of(8), "words are aligned");
        let start = self.pointer(offset, count * 8);
        // SAFETY: aligned (mappings begin on a page), within the mapping for its
        // whole life, and initialised by the kernel. Other writers, in this process
        // or another, share the atomics. Through a read-only mapping only relaxed
        // loads are made (`load_read_only`).
        unsafe { std::slice::from_raw_parts(start.as_ptr().cast(), count) }
    }

    fn words_u32(&self, offset: usize, count: usize) -> &[AtomicU32] {
        assert!(offset.is_multiple_of(4), "words are aligned");
        let start = self.pointer(offset, count * 4);
        // SAFETY: as in `words`.
        unsafe { std::slice::from_raw_parts(start.as_ptr().cast(), count) }
    }
}

/// Reads a word by two loads of 32 bits, without an order.
///
/// The result is a value that the word had, if its upper half never goes back: positions
/// and counters only grow, and other words do not change once they may be read. It is any
/// number while a hostile peer writes, as every word of its memory is.
#[cfg(all(not(loom), any(test, not(target_pointer_width = "64"))))]
pub(crate) fn load_halves(word: &AtomicU64) -> u64 {
    const TRIES_MAX: u32 = 1_000;
    // SAFETY: both halves lie within the word and are aligned for 32 bits. Its writers are
    // processes that use atomics, and this one only loads.
    let halves = unsafe { &*std::ptr::from_ref(word).cast::<[AtomicU32; 2]>() };
    let [low, high] = if cfg!(target_endian = "big") {
        [&halves[1], &halves[0]]
    } else {
        [&halves[0], &halves[1]]
    };
    let mut upper = high.load(Ordering::Relaxed);
    let mut tries = 0;
    loop {
        fence(Ordering::Acquire);
        let lower = low.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let again = high.load(Ordering::Relaxed);
        tries += 1;
        if again == upper || tries == TRIES_MAX {
            return u64::from(again) << 32 | u64::from(lower);
        }
        upper = again;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping; a holder of a pointer into it also holds an Arc
        // of its owner.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Memory that this process created and alone writes.
#[derive(Debug)]
pub(crate) struct OwnMemory(Mapping);

impl OwnMemory {
    /// Creates `len` zeroed bytes. The descriptor is for peers. `label` is the name
    /// in /proc.
    pub(crate) fn create(label: &str, len: usize) -> io::Result<(Self, OwnedFd)> {
        check_size_limit(len)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let made = |flags| rustix::fs::memfd_create(label, flags);
        // Kernels from 6.3 on want this flag; older ones reject it.
        let fd = match made(flags | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => made(flags),
            other => other,
        };
        let fd = fd.map_err(|e| io_error("create memory", e))?;
        rustix::fs::ftruncate(&fd, len as u64).map_err(|e| io_error("size memory", e))?;
        let mapping = Mapping::new(fd.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE)?;
        rustix::fs::fcntl_add_seals(&fd, SEALS).map_err(|e| io_error("seal memory", e))?;
        Ok((Self(mapping), fd))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len
    }

    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        self.0.word(offset)
    }

    pub(crate) fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        self.0.words(offset, count)
    }

    pub(crate) fn words_u32(&self, offset: usize, count: usize) -> &[AtomicU32] {
        self.0.words_u32(offset, count)
    }

    /// Address of the bytes. Panics when they reach beyond the end.
    pub(crate) fn pointer(&self, offset: usize, len: usize) -> NonNull<u8> {
        self.0.pointer(offset, len)
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> usize {
        self.0.start.as_ptr() as usize
    }

    /// Prefaults pages at once, which is a third faster than page faults one by
    /// one. Kernels before 5.14 refuse; then pages are faulted in when they are
    /// touched.
    pub(crate) fn populate(&self, offset: usize, len: usize) {
        let page = rustix::param::page_size();
        let from = offset / page * page;
        let to = (offset + len).next_multiple_of(page).min(self.len());
        let start = self.0.pointer(from, to - from);
        // SAFETY: populating changes no byte.
        let _ = unsafe {
            rustix::mm::madvise(start.as_ptr().cast(), to - from, Advice::LinuxPopulateWrite)
        };
    }
}

/// Memory that another process created, mapped read-only.
#[derive(Debug)]
pub(crate) struct PeerMemory(Mapping);

impl PeerMemory {
    /// Maps `fd` if it is a sealed memfd of exactly `len` bytes. The error names
    /// what is wrong with it.
    pub(crate) fn map(fd: BorrowedFd<'_>, len: usize) -> Result<Self, UnusableDescriptor> {
        Self::map_start(fd, len, len)
    }

    /// As [`PeerMemory::map`], but only the first `window` bytes. It can be
    /// [extended](PeerMemory::extend) later. Unmapped parts cost no page tables,
    /// which the kernel keeps for every 2 MiB and process.
    pub(crate) fn map_start(
        fd: BorrowedFd<'_>,
        len: usize,
        window: usize,
    ) -> Result<Self, UnusableDescriptor> {
        let seals = rustix::fs::fcntl_get_seals(fd)
            .map_err(|_| UnusableDescriptor("is not sealed memory"))?;
        if !seals.contains(SEALS) {
            return Err(UnusableDescriptor("lacks a seal"));
        }
        let system = rustix::fs::fstatfs(fd)
            .map_err(|_| UnusableDescriptor("has an unknown file system type"))?;
        if system.f_type as i128 != TMPFS_MAGIC {
            return Err(UnusableDescriptor("is not made of ordinary pages"));
        }
        let status =
            rustix::fs::fstat(fd).map_err(|_| UnusableDescriptor("has an unknown size"))?;
        if u64::try_from(status.st_size) != Ok(len as u64) || len == 0 {
            return Err(UnusableDescriptor("has another size than announced"));
        }
        let mapping = Mapping::new(fd, window.min(len), ProtFlags::READ)
            .map_err(|_| UnusableDescriptor("cannot be mapped"))?;
        Ok(Self(mapping))
    }

    /// Extends the mapping to the first `window` bytes. The caller checks that the
    /// memory has them.
    pub(crate) fn extend(&mut self, window: usize) -> Result<(), UnusableDescriptor> {
        let extended = self.0.extend(window);
        extended.map_err(|_| UnusableDescriptor("cannot be mapped any further"))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len
    }

    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        self.0.word(offset)
    }

    pub(crate) fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        self.0.words(offset, count)
    }

    pub(crate) fn words_u32(&self, offset: usize, count: usize) -> &[AtomicU32] {
        self.0.words_u32(offset, count)
    }

    /// Address of the bytes. Panics when they reach beyond the end.
    pub(crate) fn pointer(&self, offset: usize, len: usize) -> NonNull<u8> {
        self.0.pointer(offset, len)
    }
}

/// The problem with a descriptor that a peer passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnusableDescriptor(pub(crate) &'static str);

/// Refuses a size beyond RLIMIT_FSIZE, which holds for memory too. Setting it would
/// end a process that does not handle SIGXFSZ.
fn check_size_limit(len: usize) -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    match limit.filter(|limit| len as u64 > *limit) {
        None => Ok(()),
        Some(limit) => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "size memory: {len} bytes are above RLIMIT_FSIZE, {limit}; raise it with ulimit -f"
            ),
        )),
    }
}

pub(crate) fn io_error(action: &str, errno: Errno) -> io::Error {
    io::Error::new(errno.kind(), format!("{action}: {errno}"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Processors of 32 bits read so. The writer carries into the upper half each time.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "threads stand for processes")]
    fn a_word_read_by_halves_is_one_that_it_had() {
        const STEP: u64 = (1 << 31) + 1;
        const STEPS: u64 = 200_000;
        let (own, fd) = OwnMemory::create("halves", 4096).expect("memory");
        let peer = PeerMemory::map(fd.as_fd(), 4096).expect("read-only memory");
        for value in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            own.word(64).store(value, Ordering::Relaxed);
            assert_eq!(load_halves(peer.word(64)), value);
        }
        own.word(64).store(0, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in 1..=STEPS {
                    own.word(64).store(step * STEP, Ordering::Release);
                }
            });
            let mut last = 0;
            while last < STEPS * STEP {
                let value = load_halves(peer.word(64));
                assert_eq!(value % STEP, 0, "{value:#x}");
                assert!(value >= last);
                last = value;
            }
        });
    }
}

//! Doorbell: wake-up of a sleeping process, and of no other.
//!
//! A transport has one page that all its peers can read, and one eventfd that they can
//! ring. The page shows whether the transport sleeps (`sleeping`) and whether it waits
//! for chunks (`chunk_wait`). Each number is odd during a sleep or wait, and every
//! sleep or wait has its own. A peer rings once per number.
//!
//! ```text
//! sender                              sleeper
//! tail = new          (release)       sleeping = odd
//! fence               (SeqCst)  A     fence           (SeqCst)  B
//! look at sleeping: odd? ring         look at all tails: new? stay awake
//! ```
//! A and B are in one order. If A is first, the sleeper sees the tail. If B is
//! first, the sender sees the sleep. Returned chunks follow the same rule with
//! `returned` for `tail` and `chunk_wait` for `sleeping`.
//!
//! A transport that has time sleeps deferred (`deferring` is odd, `sleeping` even) and
//! sets itself a timer. Peers ring only if much waits: half a ring, or many chunks. A
//! sender that saw no such sleep looks again with each message, so there is no fence.

#[cfg(not(loom))]
pub(crate) use eventfd::{ChunkWaiters, Doorbell, WakePage};

use crate::sync::{AtomicU64, Ordering, fence, load_read_only};

/// Sleeper's side: from now on senders ring. The caller checks afterwards, before
/// sleeping, for messages that were sent before.
pub(crate) fn arm(sleeping: &AtomicU64) {
    let sleep = sleeping.load(Ordering::Relaxed) | 1;
    sleeping.store(sleep, Ordering::Relaxed);
    // B above.
    fence(Ordering::SeqCst);
}

/// Sleeper's side: senders need not ring any more.
pub(crate) fn disarm(sleeping: &AtomicU64) {
    let sleep = sleeping.load(Ordering::Relaxed);
    // Even again; the next sleep gets another number.
    sleeping.store(sleep.wrapping_add(sleep & 1), Ordering::Relaxed);
}

/// The action of a sender when its peer sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeUp {
    /// The peer is awake, or rung for and checked already.
    NotNeeded,
    Ring,
    /// The peer still sleeps although this sender rang: look whether its doorbell
    /// works.
    CheckDoorbell,
}

/// The peer's sleeps that a sender has dealt with.
#[derive(Debug, Default)]
pub(crate) struct WokenSleeps {
    /// Number of the sleep that it rang for.
    rung_for: u64,
    /// Number of the sleep during which it looked at the doorbell.
    checked_in: u64,
    /// Number of the deferred sleep that it rang for.
    ended: u64,
}

impl WokenSleeps {
    /// Sender's side, after it stored its tail: what to do. A sleep causes one ring
    /// and one check per sender at most.
    pub(crate) fn next_step(&mut self, sleeping: &AtomicU64) -> WakeUp {
        // A above.
        fence(Ordering::SeqCst);
        let sleep = load_read_only(sleeping);
        if sleep & 1 == 0 {
            return WakeUp::NotNeeded;
        }
        if self.rung_for != sleep {
            self.rung_for = sleep;
            return WakeUp::Ring;
        }
        if self.checked_in != sleep {
            self.checked_in = sleep;
            return WakeUp::CheckDoorbell;
        }
        WakeUp::NotNeeded
    }

    /// Sender's side, when much waits for the peer: whether to ring because it sleeps
    /// deferred. Such a sleep causes one ring per sender at most.
    pub(crate) fn must_end_deferred_sleep(&mut self, deferring: &AtomicU64) -> bool {
        let sleep = load_read_only(deferring);
        sleep & 1 == 1 && std::mem::replace(&mut self.ended, sleep) != sleep
    }
}

/// Waiter's side: from now on a returned chunk rings, once, even if one rang
/// before. The caller checks afterwards for chunks that were returned before.
pub(crate) fn begin_chunk_wait(chunk_wait: &AtomicU64) {
    // Odd, and a new number. Other threads may do the same.
    let next = |number: u64| Some(number.wrapping_add(1) | 1);
    let _ = chunk_wait.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    // B above.
    fence(Ordering::SeqCst);
}

/// Waiter's side: ends the chunk wait, unless another thread began one after `seen`
/// was read.
pub(crate) fn end_chunk_wait(chunk_wait: &AtomicU64, seen: u64) {
    let even = seen.wrapping_add(seen & 1);
    let _ = chunk_wait.compare_exchange(seen, even, Ordering::Relaxed, Ordering::Relaxed);
}

/// Returner's side, after a chunk was returned: whether to ring. `rung_for` is the
/// number it has rung for already. Several returners may share it: one ring makes
/// the waiter collect all returned chunks, and begin a new wait if that is not
/// enough.
pub(crate) fn must_wake_chunk_waiter(chunk_wait: &AtomicU64, rung_for: &AtomicU64) -> bool {
    // A above.
    fence(Ordering::SeqCst);
    let number = load_read_only(chunk_wait);
    number & 1 == 1 && rung_for.swap(number, Ordering::Relaxed) != number
}

#[cfg(not(loom))]
mod eventfd {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::sync::Arc;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
    use rustix::fs::OFlags;
    use rustix::io::Errno;

    use super::{AtomicU64, Ordering, must_wake_chunk_waiter};
    use crate::layout::{
        AT_CHUNK_WAIT, AT_DEFERRING, AT_MAGIC, AT_SLEEPING, AT_VERSION, CONTEXT_BYTES,
        CONTEXT_MAGIC, VERSION,
    };
    use crate::memory::{OwnMemory, UnusableDescriptor, io_error};

    /// An eventfd, own or a peer's. Its counter is one from the beginning, and its
    /// owner watches it edge-triggered and never reads it.
    #[derive(Debug)]
    pub(crate) struct Doorbell(OwnedFd);

    impl Doorbell {
        pub(crate) fn new() -> io::Result<Self> {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            let fd = rustix::event::eventfd(1, flags);
            fd.map(Self).map_err(|e| io_error("create a doorbell", e))
        }

        /// Takes a peer's eventfd if it is non-blocking.
        pub(crate) fn of_peer(fd: OwnedFd) -> Result<Self, UnusableDescriptor> {
            let flags = rustix::fs::fcntl_getfl(&fd)
                .map_err(|_| UnusableDescriptor("is not a descriptor"))?;
            if !flags.contains(OFlags::NONBLOCK) || !flags.contains(OFlags::RDWR) {
                return Err(UnusableDescriptor("is not a doorbell"));
            }
            // Without /proc, only the flags are known.
            let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
            match rustix::fs::readlink(link, Vec::new()) {
                Ok(kind) if kind.as_bytes() != b"anon_inode:[eventfd]" => {
                    Err(UnusableDescriptor("is not a doorbell"))
                }
                _ => Ok(Self(fd)),
            }
        }

        /// Rings. Has no effect if a misbehaving process has emptied the counter:
        /// see [`Doorbell::is_usable`].
        ///
        /// Never blocks, whatever other holders of the descriptor do to its flags
        /// and its counter. It adds zero, which has space in a counter of any value
        /// that a process can write, and wakes whoever watches the descriptor. They
        /// see a counter above zero.
        pub(crate) fn ring(&self) {
            let zero = 0_u64.to_ne_bytes();
            while rustix::io::write(&self.0, &zero) == Err(Errno::INTR) {}
        }

        /// Whether a ring has an effect: the counter is above zero. Never blocks. It
        /// is one more system call, so a sender asks only after a ring that did not
        /// wake the peer.
        #[must_use]
        pub(crate) fn is_usable(&self) -> bool {
            let mut bell = [PollFd::new(&self.0, PollFlags::IN)];
            let looked = rustix::event::poll(&mut bell, Some(&NOT_AT_ALL));
            // An overflowing counter, of the kernel's making, shows an error.
            looked == Ok(1) && bell[0].revents() == PollFlags::IN
        }
    }

    /// A look that does not wait.
    const NOT_AT_ALL: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };

    impl AsFd for Doorbell {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    /// A transport's own wake page and doorbell.
    #[derive(Debug)]
    pub(crate) struct WakePage {
        page: OwnMemory,
        pub(crate) page_fd: OwnedFd,
        pub(crate) bell: Doorbell,
    }

    impl WakePage {
        pub(crate) fn new() -> io::Result<Arc<Self>> {
            let (page, page_fd) = OwnMemory::create("pteros-context", CONTEXT_BYTES)?;
            page.word(AT_MAGIC).store(CONTEXT_MAGIC, Ordering::Relaxed);
            let version = u64::from(VERSION);
            page.word(AT_VERSION).store(version, Ordering::Relaxed);
            let bell = Doorbell::new()?;
            Ok(Arc::new(Self {
                page,
                page_fd,
                bell,
            }))
        }

        pub(crate) fn sleeping(&self) -> &AtomicU64 {
            self.page.word(AT_SLEEPING)
        }

        pub(crate) fn chunk_wait(&self) -> &AtomicU64 {
            self.page.word(AT_CHUNK_WAIT)
        }

        pub(crate) fn deferring(&self) -> &AtomicU64 {
            self.page.word(AT_DEFERRING)
        }
    }

    /// Wakes the own process when a chunk returns to the pool.
    #[derive(Debug)]
    pub(crate) struct ChunkWaiters {
        context: Arc<WakePage>,
        /// Number of the chunk wait that was rung for.
        rung_for: AtomicU64,
    }

    impl ChunkWaiters {
        pub(crate) fn new(context: Arc<WakePage>) -> Self {
            let rung_for = AtomicU64::new(0);
            Self { context, rung_for }
        }

        /// Suppresses the ring for the current chunk wait: its caller checks the
        /// pool itself.
        pub(crate) fn suppress_wake(&self) {
            let number = self.context.chunk_wait().load(Ordering::Relaxed);
            self.rung_for.store(number, Ordering::Relaxed);
        }

        /// Rings the own doorbell if a chunk wait is open.
        pub(crate) fn wake(&self) {
            if must_wake_chunk_waiter(self.context.chunk_wait(), &self.rung_for) {
                // A peer that empties our counter delays our waits to their end.
                self.context.bell.ring();
            }
        }
    }
}

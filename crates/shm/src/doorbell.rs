//! Waking a process that sleeps, and nobody else.
//!
//! A hub has one page that all its peers can read, and one eventfd that they
//! can ring. The page says whether the hub sleeps (`sleeping`, odd while it
//! does; each sleep has its own number) and whether it waits for chunks
//! (`starved`, odd while it does; each time it finds none has its own number).
//! Whoever rings does so once per number.
//!
//! ```text
//! sender                              sleeper
//! tail = new          (release)       sleeping = odd
//! fence               (SeqCst)  A     fence           (SeqCst)  B
//! look at sleeping: odd? ring         look at all tails: new? stay awake
//! ```
//! A and B are in one order: if A is first, the sleeper sees the tail; if B
//! is, the sender sees the sleep. Chunks given back go by the same rule with
//! `returned` for `tail` and `starved` for `sleeping`.

#[cfg(not(loom))]
pub(crate) use bell::{Bell, Context, Starved};

use crate::sync::{AtomicU64, Ordering, fence};

/// The sleeper's side: from now on senders ring. What was sent before is to be
/// looked for after this, before sleeping.
pub(crate) fn arm(sleeping: &AtomicU64) {
    let sleep = sleeping.load(Ordering::Relaxed) | 1;
    sleeping.store(sleep, Ordering::Relaxed);
    // B above.
    fence(Ordering::SeqCst);
}

/// The sleeper's side: senders need not ring.
pub(crate) fn disarm(sleeping: &AtomicU64) {
    let sleep = sleeping.load(Ordering::Relaxed);
    // Even again, and the next sleep's number is another one.
    sleeping.store(sleep.wrapping_add(sleep & 1), Ordering::Relaxed);
}

/// The sender's side, after it stored its tail: whether to ring. `rung` is the
/// sleep it has rung for already, its own to keep.
pub(crate) fn must_ring(sleeping: &AtomicU64, rung: &mut u64) -> bool {
    // A above.
    fence(Ordering::SeqCst);
    let sleep = sleeping.load(Ordering::Relaxed);
    let ring = sleep & 1 == 1 && *rung != sleep;
    if ring {
        *rung = sleep;
    }
    ring
}

/// Who waits for a chunk: from now on whoever gives one back rings, once, even if it
/// rang before. What came back before is to be looked for after this.
pub(crate) fn starve(starved: &AtomicU64) {
    // Odd, and not as before; other threads may do the same.
    let next = |number: u64| Some(number.wrapping_add(1) | 1);
    let _ = starved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    // B above.
    fence(Ordering::SeqCst);
}

/// Nobody needs to ring for a chunk, unless somebody has found none since `seen` was
/// read.
pub(crate) fn sate(starved: &AtomicU64, seen: u64) {
    let even = seen.wrapping_add(seen & 1);
    let _ = starved.compare_exchange(seen, even, Ordering::Relaxed, Ordering::Relaxed);
}

/// The giver's side, after a chunk is given back: whether to ring. `rung` is the
/// number it has rung for already; givers may share it, for one ring makes the
/// waiter look at all that came back, and say so again if that is not enough.
pub(crate) fn must_tell(starved: &AtomicU64, rung: &AtomicU64) -> bool {
    // A above.
    fence(Ordering::SeqCst);
    let number = starved.load(Ordering::Relaxed);
    number & 1 == 1 && rung.swap(number, Ordering::Relaxed) != number
}

#[cfg(not(loom))]
mod bell {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::sync::Arc;

    use rustix::event::EventfdFlags;
    use rustix::fs::OFlags;
    use rustix::io::Errno;

    use super::{AtomicU64, Ordering, must_tell};
    use crate::layout::{
        AT_MAGIC, AT_SLEEPING, AT_STARVED, AT_VERSION, CONTEXT_BYTES, CONTEXT_MAGIC, VERSION,
    };
    use crate::memory::{OwnMemory, Unfit, named};

    /// An eventfd, ours or a peer's.
    #[derive(Debug)]
    pub(crate) struct Bell(OwnedFd);

    impl Bell {
        pub(crate) fn new() -> io::Result<Self> {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            let fd = rustix::event::eventfd(0, flags);
            fd.map(Self).map_err(|e| named("create a doorbell", e))
        }

        /// Takes a peer's if it does not block.
        pub(crate) fn of_peer(fd: OwnedFd) -> Result<Self, Unfit> {
            let flags = rustix::fs::fcntl_getfl(&fd).map_err(|_| Unfit("is no descriptor"))?;
            if !flags.contains(OFlags::NONBLOCK) || !flags.contains(OFlags::RDWR) {
                return Err(Unfit("is no doorbell"));
            }
            // Where /proc cannot be read, the look before each ring is what is left.
            let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
            match rustix::fs::readlink(link, Vec::new()) {
                Ok(kind) if kind.as_bytes() != b"anon_inode:[eventfd]" => {
                    Err(Unfit("is no doorbell"))
                }
                _ => Ok(Self(fd)),
            }
        }

        /// Rings. Does not wait: whoever else holds the descriptor can make it
        /// block, which is looked at, and taken back, each time. A full counter
        /// (only a broken peer fills it) is emptied, so that the next ring is
        /// heard again.
        pub(crate) fn ring(&self) {
            if let Ok(flags) = rustix::fs::fcntl_getfl(&self.0)
                && !flags.contains(OFlags::NONBLOCK)
            {
                let _ = rustix::fs::fcntl_setfl(&self.0, flags | OFlags::NONBLOCK);
            }
            let one = 1_u64.to_ne_bytes();
            loop {
                match rustix::io::write(&self.0, &one) {
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => {
                        let _ = rustix::io::read(&self.0, &mut [0; 8]);
                        let _ = rustix::io::write(&self.0, &one);
                        break;
                    }
                    _ => break,
                }
            }
            crate::fault!("doorbell-rung");
        }
    }

    impl AsFd for Bell {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    /// A hub's own page and bell.
    #[derive(Debug)]
    pub(crate) struct Context {
        page: OwnMemory,
        pub(crate) page_fd: OwnedFd,
        pub(crate) bell: Bell,
    }

    impl Context {
        pub(crate) fn new() -> io::Result<Arc<Self>> {
            let (page, page_fd) = OwnMemory::create("pteros-context", CONTEXT_BYTES)?;
            page.word(AT_MAGIC).store(CONTEXT_MAGIC, Ordering::Relaxed);
            let version = u64::from(VERSION);
            page.word(AT_VERSION).store(version, Ordering::Relaxed);
            let bell = Bell::new()?;
            Ok(Arc::new(Self {
                page,
                page_fd,
                bell,
            }))
        }

        pub(crate) fn sleeping(&self) -> &AtomicU64 {
            self.page.word(AT_SLEEPING)
        }

        pub(crate) fn starved(&self) -> &AtomicU64 {
            self.page.word(AT_STARVED)
        }
    }

    /// The pool's way to say that a chunk came back.
    #[derive(Debug)]
    pub(crate) struct Starved {
        context: Arc<Context>,
        /// What was rung for.
        rung: AtomicU64,
    }

    impl Starved {
        pub(crate) fn new(context: Arc<Context>) -> Self {
            let rung = AtomicU64::new(0);
            Self { context, rung }
        }

        /// Whoever waits for a chunk is told otherwise of what comes back now.
        pub(crate) fn hush(&self) {
            let number = self.context.starved().load(Ordering::Relaxed);
            self.rung.store(number, Ordering::Relaxed);
        }

        /// Rings our own bell if somebody waits for a chunk.
        pub(crate) fn tell(&self) {
            if must_tell(self.context.starved(), &self.rung) {
                self.context.bell.ring();
            }
        }
    }
}

//! Waker: wake-up of one thread by another. It is an eventfd that the sleeping
//! thread polls in [`crate::Poller::wait`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd; any number of wakes before a drain count as one.
///
/// Thread-safe through `&self`. Never blocks and never allocates.
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
}

impl Waker {
    /// Creates a waker that is not rung.
    ///
    /// # Errors
    /// The operating system's error, in practice only "too many open files".
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| io::Error::new(e.kind(), format!("create an eventfd: {e}")))?;
        Ok(Self { fd })
    }

    /// Makes the descriptor readable. One system call, about 0.2 us.
    ///
    /// A counter that is already full means that it is already readable, so
    /// there is no error to report.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again; returns whether it had been rung.
    ///
    /// Drain before reading the shared state that the waking thread changed, else a
    /// wake between the read and the drain is lost.
    pub fn drain(&self) -> bool {
        let mut count = [0u8; 8];
        rustix::io::read(&self.fd, &mut count).is_ok()
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_wakes_are_one_drain() {
        let waker = Waker::new().expect("eventfd");
        assert!(!waker.drain());
        waker.wake();
        waker.wake();
        assert!(waker.drain());
        assert!(!waker.drain());
    }
}

//! A context in a foreign event loop: one descriptor that is readable when there
//! is something to do.
//!
//! The descriptor is an epoll set of the sockets' own set, an eventfd that the
//! ready queue rings while nobody runs it, and a timer for the next deadline.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use pteros_net::{Poller, Timer, Waker};
use pteros_rtps::time::Instant;

use crate::core::Core;
use crate::ready::ReadyQueue;

/// What a foreign loop sleeps on.
pub struct Foreign {
    poller: Poller,
    timer: Timer,
    waker: Arc<Waker>,
}

const SOCKETS: u64 = 0;
const TIMER: u64 = 1;
const WAKER: u64 = 2;

impl Core {
    /// A descriptor for the work of `queue`, which from now on rings it whenever
    /// it is [armed](Foreign::arm). Not armed yet.
    ///
    /// # Errors
    /// The operating system's, in practice "too many open files"; `Unsupported`
    /// in a simulation, which has no descriptors.
    pub fn foreign(&self, queue: &ReadyQueue) -> io::Result<Foreign> {
        let sockets = self.transport.descriptor().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "this context has no sockets to poll; turn it by hand",
            )
        })?;
        let foreign = Foreign {
            poller: Poller::new()?,
            timer: Timer::new()?,
            waker: Arc::new(Waker::new()?),
        };
        foreign.poller.add(sockets, SOCKETS)?;
        foreign.poller.add(&foreign.timer, TIMER)?;
        foreign.poller.add(&*foreign.waker, WAKER)?;
        let waker = foreign.waker.clone();
        queue.ring(Arc::new(move || waker.wake()));
        Ok(foreign)
    }
}

impl Foreign {
    /// The caller goes to sleep elsewhere: from now on the descriptor becomes
    /// readable when a packet comes, `queue` gets work, or at `until` at the
    /// latest; at once if something waits already.
    pub fn arm(&self, core: &Core, queue: &ReadyQueue, until: Instant) {
        let now = core.env.now();
        let wake_at = until.min(core.next_deadline());
        // As in the driver's sleep: `schedule` sees until when we sleep, or we
        // see its deadline.
        core.sleeping_until
            .store(wake_at.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let wake_at = wake_at.min(core.next_deadline());
        let sleeps = wake_at > now && core.links_rest() && queue.may_sleep_elsewhere();
        match sleeps {
            false => self.waker.wake(),
            true if wake_at == Instant::FAR_FUTURE => self.timer.disarm(),
            true => {
                let span = wake_at.since(now).to_std();
                self.timer.arm(span.unwrap_or_default());
            }
        }
    }

    /// The caller is back and about to work.
    pub fn disarm(&self, core: &Core, queue: &ReadyQueue) {
        queue.awake();
        self.timer.drain();
        self.waker.drain();
        core.wake_links();
        core.sleeping_until.store(0, Ordering::SeqCst);
    }
}

impl AsFd for Foreign {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

//! External event loop: one file descriptor that is readable when a context has
//! work.
//!
//! The descriptor is an epoll set of three: the set of the sockets, an eventfd, and a
//! timer for the next timeout. The ready queue signals the eventfd while its owner
//! sleeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use pteros_net::{Poller, Timer, Waker};
use pteros_rtps::time::Instant;

use crate::core::driver::Driver;
use crate::scheduler::ready_queue::ReadyQueue;

/// The descriptor on which an external event loop sleeps.
pub struct ExternalEventLoop {
    poller: Poller,
    timer: Timer,
    waker: Arc<Waker>,
}

const SOCKETS: u64 = 0;
const TIMER: u64 = 1;
const WAKER: u64 = 2;

impl Driver {
    /// Creates a descriptor for the work of `queue`.
    ///
    /// The queue signals it while it is [armed](ExternalEventLoop::arm). It is not
    /// armed yet.
    ///
    /// # Errors
    /// That of the operating system, in practice "too many open files".
    /// `Unsupported` in a simulation, which has no descriptors.
    pub fn external_event_loop(&self, queue: &ReadyQueue) -> io::Result<ExternalEventLoop> {
        let sockets = self.datagrams.descriptor().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "this context has no sockets to poll; call Driver::poll",
            )
        })?;
        let foreign = ExternalEventLoop {
            poller: Poller::new()?,
            timer: Timer::new()?,
            waker: Arc::new(Waker::new()?),
        };
        foreign.poller.add(sockets, SOCKETS)?;
        foreign.poller.add(&foreign.timer, TIMER)?;
        foreign.poller.add(&*foreign.waker, WAKER)?;
        let waker = foreign.waker.clone();
        queue.set_external_waker(Arc::new(move || waker.wake()));
        Ok(foreign)
    }
}

impl ExternalEventLoop {
    /// Announces that the caller is about to sleep in its own loop.
    ///
    /// The descriptor becomes readable when a packet arrives, when `queue` gets work, or
    /// at `until`; at once if work is pending.
    pub fn arm(&self, driver: &Driver, queue: &ReadyQueue, until: Instant) {
        let now = driver.platform.now();
        // As in the driver's sleep: either `schedule` sees until when this thread sleeps,
        // or this thread sees the timeout.
        let wake_at = driver.scheduler.begin_sleep(until);
        let sleeps = wake_at > now && driver.arm_shm_doorbell() && queue.begin_external_sleep();
        if !sleeps {
            self.waker.wake();
        } else if wake_at == Instant::FAR_FUTURE {
            self.timer.disarm();
        } else {
            let span = wake_at.since(now).to_std();
            self.timer.arm(span.unwrap_or_default());
        }
    }

    /// Announces that the caller is awake and about to work.
    pub fn disarm(&self, driver: &Driver, queue: &ReadyQueue) {
        queue.end_sleep();
        self.timer.drain();
        self.waker.drain();
        driver.disarm_shm_doorbell();
        driver.scheduler.end_sleep();
    }
}

impl AsFd for ExternalEventLoop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

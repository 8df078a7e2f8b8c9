//! A one-shot timer (timerfd) that a poller can wait on together with sockets.
//!
//! Arming it from another thread costs one system call and wakes no thread until it
//! fires.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer descriptor on the monotonic clock. Thread-safe.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// A timer that is not armed.
    ///
    /// # Errors
    /// The operating system's, in practice only "too many open files".
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(|e| {
            io::Error::new(io::Error::from(e).kind(), format!("create a timer: {e}"))
        })?;
        Ok(Self { fd })
    }

    /// Makes the descriptor readable once, `after` from now; replaces an
    /// earlier setting. A zero span counts as one nanosecond.
    pub fn arm(&self, after: Duration) {
        self.set(after.max(Duration::from_nanos(1)));
    }

    /// Disarms the timer: it does not fire until it is armed again.
    pub fn disarm(&self) {
        self.set(Duration::ZERO);
    }

    fn set(&self, after: Duration) {
        let setting = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: after.subsec_nanos().into(),
            },
        };
        // The arguments are valid and the descriptor is ours: it cannot fail.
        let _ = timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &setting);
    }

    /// Makes the descriptor unreadable again; true if the timer had fired.
    pub fn drain(&self) -> bool {
        let mut count = [0; 8];
        rustix::io::read(&self.fd, &mut count).is_ok()
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Events, Poller};

    #[test]
    fn a_disarmed_timer_does_not_fire() {
        let timer = Timer::new().unwrap();
        let poller = Poller::new().unwrap();
        poller.add(&timer, 9).unwrap();
        timer.arm(Duration::from_millis(1));
        timer.disarm();
        let mut events = Events::with_capacity(1);
        let limit = Some(Duration::from_millis(20));
        assert_eq!(poller.wait(&mut events, limit).unwrap(), 0);
    }

    #[test]
    fn an_armed_timer_ends_a_wait_once() {
        let timer = Timer::new().unwrap();
        let poller = Poller::new().unwrap();
        poller.add(&timer, 9).unwrap();
        timer.arm(Duration::from_millis(1));
        let mut events = Events::with_capacity(1);
        assert_eq!(
            poller
                .wait(&mut events, Some(Duration::from_secs(10)))
                .unwrap(),
            1
        );
        assert!(timer.drain());
        assert!(!timer.drain());
    }
}

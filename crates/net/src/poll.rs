//! Poller (epoll): waits for sockets, doorbells and the next deadline with one
//! system call.
//!
//! Level-triggered: a descriptor that stays readable is reported again at the next
//! wait, so a caller may read one datagram per poll. Doorbells, which are never
//! read, are edge-triggered.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

/// Events taken per wait unless said otherwise. A ROS process has about six
/// descriptors; more ready ones than this are reported by the next wait.
pub const EVENTS_DEFAULT: usize = 64;

/// An epoll instance.
///
/// Methods take `&self` and are thread-safe; the kernel locks. A closed descriptor
/// leaves the set by itself, unless it was duplicated.
#[derive(Debug)]
pub struct Poller {
    fd: OwnedFd,
}

impl Poller {
    /// Makes an empty set.
    ///
    /// # Errors
    /// The operating system's error, in practice only "too many open files".
    pub fn new() -> io::Result<Self> {
        let fd =
            epoll::create(CreateFlags::CLOEXEC).map_err(|e| io_error("create an epoll set", e))?;
        Ok(Self { fd })
    }

    /// Reports `fd` as `token` whenever it is readable.
    ///
    /// # Errors
    /// `AlreadyExists` when it is in the set; else the operating system's.
    pub fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        epoll::add(&self.fd, fd, EventData::new_u64(token), EventFlags::IN)
            .map_err(|e| io_error("add a descriptor to the epoll set", e))
    }

    /// Reports `fd` as `token` once for each new readable event (edge-triggered),
    /// not again for unread data.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn add_edge(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.fd, fd, EventData::new_u64(token), flags)
            .map_err(|e| io_error("add a descriptor to the epoll set", e))
    }

    /// Takes a descriptor out of the set.
    ///
    /// # Errors
    /// `NotFound` when it is not in the set.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.fd, fd)
            .map_err(|e| io_error("remove a descriptor from the epoll set", e))
    }

    /// Blocks until something is ready or `timeout` has passed; returns how
    /// many events there are (0: time is over, or a signal came).
    ///
    /// `None` waits for ever, zero only looks. Never returns early on time: the
    /// timeout has nanoseconds (epoll_pwait2, Linux 5.11) or, where the kernel
    /// lacks or forbids that call, is rounded up to milliseconds. Allocates
    /// nothing. At most `events`' capacity is taken, the rest next time.
    ///
    /// # Errors
    /// The operating system's; an interrupting signal is not one.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
        events.list.clear();
        let spec = timeout.map(timespec);
        let outcome = match self.wait_raw(events, spec.as_ref()) {
            // No epoll_pwait2: absent before 5.11, EPERM from some seccomp
            // profiles. rustix uses it only for fractions of a millisecond.
            Err(Errno::NOSYS | Errno::PERM) => {
                let rounded = timeout.map(|t| timespec(round_up_to_millisecond(t)));
                self.wait_raw(events, rounded.as_ref())
            }
            other => other,
        };
        match outcome {
            Ok(()) | Err(Errno::INTR) => Ok(events.list.len()),
            Err(e) => Err(io_error("wait on the epoll set", e)),
        }
    }

    fn wait_raw(&self, events: &mut Events, timeout: Option<&Timespec>) -> Result<(), Errno> {
        let spare = rustix::buffer::spare_capacity(&mut events.list);
        epoll::wait(&self.fd, spare, timeout).map(|_| ())
    }
}

impl AsFd for Poller {
    /// Readable when any member is ready, so a set can be part of an external event
    /// loop.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Buffer for the events of [`Poller::wait`], allocated once.
pub struct Events {
    list: Vec<epoll::Event>,
}

impl Events {
    /// Room for `capacity` events (at least one) per wait.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            list: Vec::with_capacity(capacity.max(1)),
        }
    }

    /// The events of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        let token = |raw: &epoll::Event| Event {
            token: raw.data.u64(),
        };
        self.list.iter().map(token)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::with_capacity(EVENTS_DEFAULT)
    }
}

/// A ready descriptor: a read will not block (it may return an error).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token given when the descriptor was added.
    pub token: u64,
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// The plain call counts milliseconds in an i32, about 24 days at most; a
/// longer wait returns then, which callers must expect of any wait.
fn round_up_to_millisecond(duration: Duration) -> Duration {
    let milliseconds = duration.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(milliseconds.min(i32::MAX as u128) as u64)
}

fn io_error(action: &str, errno: Errno) -> io::Error {
    io::Error::new(errno.kind(), format!("{action}: {errno}"))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "what is tested is real waiting")]
mod tests {
    use super::*;
    use crate::Waker;
    use std::time::Instant;

    #[test]
    fn a_rung_waker_is_reported_under_its_token_until_drained() {
        let poller = Poller::new().expect("epoll");
        let (quiet, rung) = (Waker::new().expect("a"), Waker::new().expect("b"));
        poller.add(&quiet, 1).expect("add");
        poller.add(&rung, u64::MAX).expect("add");
        let mut events = Events::default();
        assert_eq!(
            poller
                .wait(&mut events, Some(Duration::ZERO))
                .expect("wait"),
            0
        );
        rung.wake();
        for _ in 0..2 {
            assert_eq!(poller.wait(&mut events, None).expect("wait"), 1);
            let event = events.iter().next().expect("one");
            assert_eq!(event.token, u64::MAX);
        }
        rung.drain();
        assert_eq!(
            poller
                .wait(&mut events, Some(Duration::ZERO))
                .expect("wait"),
            0
        );
        poller.remove(&rung).expect("remove");
        let again = poller.remove(&rung).expect_err("not in the set");
        assert_eq!(again.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_edge_is_reported_once_each_time_and_needs_no_reading() {
        let poller = Poller::new().expect("epoll");
        let bell = Waker::new().expect("eventfd");
        poller.add_edge(&bell, 1).expect("add");
        let mut events = Events::default();
        for expected in [1, 0] {
            for _ in 0..2 {
                if expected == 1 {
                    bell.wake();
                }
                let look = poller.wait(&mut events, Some(Duration::ZERO));
                assert_eq!(look.expect("wait"), expected);
            }
        }
    }

    #[test]
    fn more_ready_descriptors_than_room_come_with_the_next_wait() {
        let poller = Poller::new().expect("epoll");
        let wakers: Vec<Waker> = (0..3).map(|_| Waker::new().expect("eventfd")).collect();
        for (token, waker) in wakers.iter().enumerate() {
            poller.add(waker, token as u64).expect("add");
            waker.wake();
        }
        let mut events = Events::with_capacity(2);
        assert_eq!(poller.wait(&mut events, None).expect("wait"), 2);
        for event in events.iter().collect::<Vec<_>>() {
            wakers[event.token as usize].drain();
        }
        assert_eq!(poller.wait(&mut events, None).expect("wait"), 1);
    }

    #[test]
    fn a_timeout_below_a_millisecond_neither_spins_nor_ends_early() {
        let poller = Poller::new().expect("epoll");
        let mut events = Events::default();
        let asked = Duration::from_micros(300);
        let start = Instant::now();
        assert_eq!(poller.wait(&mut events, Some(asked)).expect("wait"), 0);
        assert!(start.elapsed() >= asked, "{:?}", start.elapsed());
    }

    #[test]
    fn the_fallback_rounds_up_and_never_overflows() {
        assert_eq!(
            round_up_to_millisecond(Duration::from_nanos(1)),
            Duration::from_millis(1)
        );
        assert_eq!(round_up_to_millisecond(Duration::ZERO), Duration::ZERO);
        assert_eq!(
            round_up_to_millisecond(Duration::MAX),
            Duration::from_millis(i32::MAX as u64)
        );
    }
}

//! Scheduler of a context: timeouts of all owners, the driver role, and wake-ups.
//!
//! All parts call [`Scheduler::schedule`] and [`Scheduler::wake_waiters`]. The driver
//! gets from it how long to sleep and which timeouts are due. It never runs the protocol,
//! never accesses an endpoint and never blocks, except in a ready queue whose owner is
//! about to sleep.

pub(crate) mod background_io;
pub mod busy_poll;
pub mod mutual_exclusion;
mod ready_flag;
pub mod ready_queue;
pub(crate) mod timeout_queue;
pub(crate) mod waiters;

use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool, AtomicU64, Ordering, fence};

use pteros_rtps::time::{Duration, Instant};

use crate::lock::{Mutex, rank};
use crate::platform::{DatagramSockets, UndrivenContext};
use background_io::BackgroundIo;
use ready_queue::ReadyQueue;
use timeout_queue::{TimeoutOwner, TimeoutQueue};
use waiters::Waiters;

/// See the module documentation. Thread-safe.
pub(crate) struct Scheduler {
    sockets: Arc<dyn DatagramSockets>,
    timeouts: TimeoutQueue,
    /// The instant until which the driver sleeps, nanoseconds; 0 while it is awake.
    sleeping_until: AtomicU64,
    /// The queues of threads that found the driver role taken.
    followers: Mutex<Vec<Arc<ReadyQueue>>, rank::Followers>,
    waiters: Waiters,
    background_io: Option<BackgroundIo>,
    polls: AtomicU64,
    in_poll: AtomicBool,
    shut_down: AtomicBool,
    closed: AtomicBool,
}

impl Scheduler {
    /// `background_io`: the thread that drives the context while no other thread does.
    pub(crate) fn new(
        sockets: Arc<dyn DatagramSockets>,
        background_io: Option<BackgroundIo>,
    ) -> Self {
        Self {
            sockets,
            timeouts: TimeoutQueue::new(),
            sleeping_until: AtomicU64::new(0),
            followers: Mutex::default(),
            waiters: Waiters::default(),
            background_io,
            polls: AtomicU64::new(0),
            in_poll: AtomicBool::new(false),
            shut_down: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// Lets the background I/O thread watch the context.
    pub(crate) fn watch(&self, context: std::sync::Weak<dyn UndrivenContext>) {
        if let Some(background_io) = &self.background_io {
            background_io.adopt(context);
        }
    }

    // --- timeouts ---

    /// Schedules the next timeout of an owner and wakes a driver that would sleep
    /// too long.
    pub(crate) fn schedule(&self, owner: TimeoutOwner, at: Option<Instant>) {
        if !self.timeouts.schedule(owner, at) {
            return;
        }
        let Some(at) = at else { return };
        fence(Ordering::SeqCst);
        let sleeping_until = self.sleeping_until.load(Ordering::SeqCst);
        if sleeping_until != 0 && at.as_nanos() < sleeping_until {
            self.sockets.wake();
        }
    }

    /// Removes an owner.
    pub(crate) fn remove(&self, owner: TimeoutOwner) {
        self.timeouts.remove(owner);
    }

    /// The earliest timeout; [`Instant::FAR_FUTURE`] without one.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.timeouts.next()
    }

    /// Takes one owner whose timeout is due.
    pub(crate) fn pop_due(&self, now: Instant) -> Option<TimeoutOwner> {
        self.timeouts.pop_due(now)
    }

    // --- the sleep of the driver ---

    /// Announces that the driver sleeps until `until` or the next timeout. Returns
    /// which comes first.
    pub(crate) fn begin_sleep(&self, until: Instant) -> Instant {
        let wake_at = until.min(self.timeouts.next());
        // This fence pairs with the one in `schedule`. Either that call sees that
        // this thread sleeps past its timeout and wakes it, or this thread sees the
        // timeout here.
        self.sleeping_until
            .store(wake_at.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        wake_at.min(self.timeouts.next())
    }

    /// Announces that the driver is awake.
    pub(crate) fn end_sleep(&self) {
        self.sleeping_until.store(0, Ordering::SeqCst);
    }

    /// Notes that the background I/O thread sleeps for this context. Returns until
    /// when.
    pub(crate) fn begin_background_sleep(&self) -> Instant {
        self.sleeping_until.store(u64::MAX, Ordering::SeqCst);
        // Pairs with the fence in `schedule`.
        fence(Ordering::SeqCst);
        let next = self.timeouts.next();
        self.sleeping_until.store(next.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        next.min(self.timeouts.next())
    }

    // --- leader and followers ---

    /// Sleeps on `queue` as a follower, until it has work, `until` has passed or it
    /// is chosen to drive. `limit` is the time until then.
    pub(crate) fn follow(
        &self,
        queue: &Arc<ReadyQueue>,
        until: Instant,
        is_driver_free: impl Fn() -> bool,
        limit: impl Fn() -> Option<std::time::Duration>,
    ) {
        self.followers.lock().push(queue.clone());
        // The driver may have left between the two checks.
        if is_driver_free() {
            queue.wake();
        }
        if self.sockets.sleep_queue(queue, until) {
            queue.clear_wake()
        } else {
            queue.sleep(limit())
        }
        self.followers.lock().retain(|f| !Arc::ptr_eq(f, queue));
    }

    /// Wakes a follower other than `own`, to take the driver role.
    pub(crate) fn wake_follower(&self, own: Option<&Arc<ReadyQueue>>) {
        let is_other = |f: &&Arc<ReadyQueue>| own.is_none_or(|own| !Arc::ptr_eq(f, own));
        let next = self.followers.lock().iter().find(is_other).cloned();
        // Without the lock, which the follower needs as soon as it is awake. A thread
        // that finds it taken yields its CPU, for milliseconds on a loaded host.
        if let Some(next) = next {
            next.wake();
        }
    }

    // --- waiters ---

    /// The threads that wait for a condition.
    pub(crate) fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Wakes threads that wait for a condition, to check it again.
    pub(crate) fn wake_waiters(&self) {
        self.waiters.wake_all();
    }

    /// A ready queue that wakes the driver of this context.
    pub(crate) fn ready_queue(&self) -> Arc<ReadyQueue> {
        let sockets = Arc::downgrade(&self.sockets);
        Arc::new(ReadyQueue::new(move || {
            if let Some(sockets) = sockets.upgrade() {
                sockets.wake();
            }
        }))
    }

    // --- polls, as the background I/O thread sees them ---

    pub(crate) fn poll_counter(&self) -> (u64, bool) {
        // Acquire pairs with the stores in `enter_poll` and `leave_poll`.
        let polls = self.polls.load(Ordering::Acquire);
        (polls, self.in_poll.load(Ordering::Acquire))
    }

    pub(crate) fn enter_poll(&self) {
        self.in_poll.store(true, Ordering::Release);
    }

    pub(crate) fn leave_poll(&self) {
        self.polls.fetch_add(1, Ordering::AcqRel);
        self.in_poll.store(false, Ordering::Release);
        if let Some(background_io) = &self.background_io {
            background_io.note_poll_finished();
        }
    }

    /// Notes that a thread sleeps within its poll, so the background I/O thread can
    /// rest.
    pub(crate) fn note_poll_sleeping(&self, slept: Duration) {
        if let Some(background_io) = &self.background_io {
            background_io.note_poll_sleeping(slept);
        }
    }

    // --- the end ---

    /// Whether executors should stop spinning.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Acquire) || self.sockets.shutdown_requested()
    }

    /// Ends every spin of this context. Thread-safe and does not block.
    pub(crate) fn request_shutdown(&self) {
        if self.shut_down.swap(true, Ordering::AcqRel) {
            return;
        }
        self.sockets.wake();
        for follower in self.followers.lock().iter() {
            follower.wake();
        }
        self.waiters.wake_all();
    }

    /// Whether the context is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Marks the context closed. Returns false if it was.
    pub(crate) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{self, IoSlice};
    use std::os::fd::BorrowedFd;

    use super::*;
    use crate::platform::{Locator, ReceivedDatagram};

    /// Sockets in which nothing arrives. Counts wake calls.
    #[derive(Default)]
    struct SilentSockets {
        wakes: AtomicU64,
    }

    impl DatagramSockets for SilentSockets {
        fn send(&self, _: &[IoSlice<'_>], _: &Locator) -> io::Result<()> {
            Ok(())
        }

        fn receive(&self, _: &mut [u8]) -> Option<ReceivedDatagram> {
            None
        }

        fn check_readable(&self) {}

        fn sleep(&self, _: Instant, _: Instant) {}

        fn wake(&self) {
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }

        fn shutdown_requested(&self) -> bool {
            false
        }

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    #[test]
    fn a_follower_sleeps_in_its_queue_unless_the_driver_is_gone() {
        let scheduler = Scheduler::new(Arc::new(SilentSockets::default()), None);
        let queue = Arc::new(ReadyQueue::new(|| {}));
        let sleeps = Cell::new(0);
        let follow = |is_driver_free: bool| {
            let limit = || {
                sleeps.set(sleeps.get() + 1);
                Some(std::time::Duration::ZERO)
            };
            scheduler.follow(&queue, Instant::FAR_FUTURE, || is_driver_free, limit);
        };
        follow(false);
        assert_eq!(sleeps.get(), 1);
        // The driver returned before it saw the follower. The wake call ends with the
        // sleep, and the follower is no longer in a list.
        follow(true);
        assert!(!queue.has_wake_reason());
        scheduler.wake_follower(None);
        assert!(!queue.has_wake_reason());
    }

    #[test]
    fn an_earlier_timeout_wakes_a_sleeping_driver() {
        let sockets = Arc::new(SilentSockets::default());
        let scheduler = Scheduler::new(sockets.clone(), None);
        let at = |nanos| Some(Instant::from_nanos(nanos));
        let wakes = || sockets.wakes.load(Ordering::Relaxed);
        scheduler.schedule(TimeoutOwner::Participant, at(200));
        assert_eq!(wakes(), 0, "the driver is awake");
        let wake_at = scheduler.begin_sleep(Instant::from_nanos(100));
        assert_eq!(wake_at.as_nanos(), 100);
        // It wakes by itself in time.
        scheduler.schedule(TimeoutOwner::Interfaces, at(150));
        scheduler.schedule(TimeoutOwner::ShmConnections, at(100));
        assert_eq!(wakes(), 0);
        scheduler.schedule(TimeoutOwner::TraceFile, at(50));
        assert_eq!(wakes(), 1);
        scheduler.end_sleep();
        scheduler.schedule(TimeoutOwner::TraceFile, at(40));
        assert_eq!((wakes(), scheduler.next_timeout().as_nanos()), (1, 40));
    }
}

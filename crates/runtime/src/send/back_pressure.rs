//! Back-pressure of a full send buffer: which thread blocks for socket space, and for how
//! long.
//!
//! A program can write faster than a network transmits. Datagrams for which the kernel
//! has no space are not lost here. The publishing thread blocks until the socket has
//! space, within its blocking budget. The writer keeps the remaining data, and the driver
//! retries soon. Meanwhile, HISTORY decides which samples are replaced. The driver itself
//! never blocks: its discovery messages and acknowledgements are lost, and repeated.
//!
//! The kernel reports space once half of the send buffer is free, which is more
//! than a burst of datagrams of a network's size.

use std::cell::Cell;
use std::io;
use std::sync::atomic::Ordering;

use pteros_rtps::time::{Duration, Instant};

use super::SendPath;

/// How long a goodbye may wait for space in the socket.
pub(crate) const GOODBYE_WAIT: Duration = Duration::from_millis(20);

/// How long the driver waits before it retries a full socket.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// The total blocking budget as a multiple of that for a single wait.
const TOTAL_BUDGET_FACTOR: i64 = 10;

/// Minimum duration that one wait counts, so that the budget ends.
const WAIT_MIN: Duration = Duration::from_micros(100);

/// How long a sender may block for space in the socket.
#[derive(Debug)]
pub(crate) struct BlockingBudget {
    per_wait: Duration,
    remaining: Cell<Duration>,
    /// Whether the budget ended without space.
    is_exhausted: Cell<bool>,
}

impl BlockingBudget {
    /// Budget of a publishing thread: `max_blocking_time` without space, ten times that
    /// in total.
    pub(crate) const fn for_publish(max_blocking_time: Duration) -> Self {
        Self {
            per_wait: max_blocking_time,
            remaining: Cell::new(max_blocking_time.times(TOTAL_BUDGET_FACTOR)),
            is_exhausted: Cell::new(false),
        }
    }

    /// The budget of a thread that never blocks.
    pub(crate) const fn non_blocking() -> Self {
        Self::for_publish(Duration::ZERO)
    }

    /// Whether the budget ended without space.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_exhausted.get()
    }

    /// Whether the thread never blocks.
    pub(crate) fn is_non_blocking(&self) -> bool {
        self.per_wait <= Duration::ZERO
    }

    fn next_wait(&self) -> Option<Duration> {
        let span = self.per_wait.min(self.remaining.get());
        (span > Duration::ZERO && !self.is_exhausted()).then_some(span)
    }

    fn note_waited(&self, span: Duration) {
        let remaining = self.remaining.get().as_nanos() - span.max(WAIT_MIN).as_nanos();
        self.remaining.set(Duration::from_nanos(remaining));
    }
}

impl SendPath {
    /// Calls `send` again after each wait for space, within the budget. Returns its
    /// last result.
    pub(crate) fn send_within_budget(
        &self,
        budget: &BlockingBudget,
        send: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let sent = send();
            let is_full = matches!(&sent, Err(e) if e.kind() == io::ErrorKind::WouldBlock);
            if !is_full {
                return sent;
            }
            self.recheck_socket_space();
            if !self.wait_for_socket(budget) {
                return sent;
            }
        }
    }

    fn wait_for_socket(&self, budget: &BlockingBudget) -> bool {
        let Some(span) = budget.next_wait() else {
            budget.is_exhausted.set(true);
            return false;
        };
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
        let from = self.platform.now();
        let is_writable = self.sockets.wait_writable(span);
        budget.note_waited(self.platform.now().since(from));
        budget.is_exhausted.set(!is_writable);
        is_writable
    }

    /// Makes the next [`SendPath::has_socket_space`] query the socket: it was full, or a
    /// burst was sent and more follows.
    pub(crate) fn recheck_socket_space(&self) {
        // Relaxed: a thread that misses it detects a full socket itself.
        self.socket_may_be_full.store(true, Ordering::Relaxed);
    }

    /// Whether the socket has space for a burst, as far as known.
    pub(crate) fn has_socket_space(&self) -> bool {
        if !self.socket_may_be_full.load(Ordering::Relaxed) {
            return true;
        }
        let is_writable = self.sockets.wait_writable(Duration::ZERO);
        self.socket_may_be_full
            .store(!is_writable, Ordering::Relaxed);
        is_writable
    }

    /// Blocks for space before a second or later burst. Returns false if there is
    /// none; then the driver sends the rest. Call without locks.
    pub(crate) fn wait_for_socket_space(&self, budget: &BlockingBudget) -> bool {
        self.recheck_socket_space();
        self.has_socket_space() || self.wait_for_socket(budget)
    }
}

/// When a full socket is retried.
pub(crate) fn next_send_retry(now: Instant) -> Instant {
    now.after(RETRY_INTERVAL)
}

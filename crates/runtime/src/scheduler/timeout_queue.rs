//! Timeout queue: the next timeout of each protocol machine. A lock around
//! [`TimeoutTable`], and the earliest timeout for threads that are about to sleep. The
//! deadline monitor of DEADLINE is scheduled here as well.

use std::sync::atomic::{AtomicU64, Ordering};

use pteros_dcps::timeout_table::TimeoutTable;
use pteros_rtps::id::EntityId;
use pteros_rtps::time::Instant;

use crate::lock::{Mutex, rank};

/// The part of a context that a timeout belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum TimeoutOwner {
    /// Discovery: SPDP and SEDP.
    Participant,
    /// A further transport, by its index in the context.
    Transport(usize),
    /// The announcement of the node list.
    Graph,
    /// Discovery logs of same-host peers.
    SameHostPeers,
    /// Authentication handshakes.
    Handshakes,
    /// A user writer.
    Writer(EntityId),
    /// A user reader.
    Reader(EntityId),
    /// A removed user writer with unacknowledged changes.
    LingeringWriter(EntityId),
    /// Shared-memory connections.
    ShmConnections,
    /// The list of network interfaces, after a change.
    Interfaces,
    /// A flow controller, by its index in the context.
    FlowController(usize),
    /// Writing of the trace file.
    TraceFile,
}

/// The timeouts of one context. Thread-safe; holds its lock briefly.
#[derive(Default)]
pub struct TimeoutQueue {
    table: Mutex<TimeoutTable<TimeoutOwner>, rank::Timeouts>,
    next: AtomicU64,
}

impl TimeoutQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self {
            table: Mutex::default(),
            next: AtomicU64::new(u64::MAX),
        }
    }

    /// The earliest timeout; [`Instant::FAR_FUTURE`] without one.
    pub fn next(&self) -> Instant {
        // Relaxed: a hint. A thread that sleeps by it is woken by the caller of
        // `schedule`.
        Instant::from_nanos(self.next.load(Ordering::Relaxed))
    }

    /// Schedules `owner` for `at` (`None`: no timeout). Returns whether that is now
    /// the earliest timeout of all.
    pub fn schedule(&self, owner: TimeoutOwner, at: Option<Instant>) -> bool {
        let mut table = self.table.lock();
        let is_earliest = table.schedule(owner, at);
        if is_earliest {
            self.next.store(table.next().as_nanos(), Ordering::Relaxed);
        }
        is_earliest
    }

    /// Removes an owner.
    pub fn remove(&self, owner: TimeoutOwner) {
        self.table.lock().remove(owner);
    }

    /// Takes one owner whose timeout is due.
    pub fn pop_due(&self, now: Instant) -> Option<TimeoutOwner> {
        let mut table = self.table.lock();
        let due = table.pop_due(now);
        self.next.store(table.next().as_nanos(), Ordering::Relaxed);
        due
    }
}

//! Timeout queue: when each protocol machine must be called again.
//!
//! A heap of instants with one live entry per owner. A timeout that moves on, as
//! with each message, leaves its entry in place; when that surfaces it is put back
//! for the later instant. A timeout that moves closer gets a second entry; the
//! stale one is skipped when it surfaces. Bounded by some entries per owner and
//! compacted beyond that. The deadline monitor of DEADLINE schedules itself here, too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicU64, Ordering};

use pteros_rtps::fault;
use pteros_rtps::id::EntityId;
use pteros_rtps::time::Instant;

use crate::lock::{Mutex, rank};

/// An owner of timeouts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum TimeoutOwner {
    /// Discovery: SPDP and SEDP.
    Participant,
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
    /// A flow controller, by its index in the context.
    FlowController(usize),
}

/// The timeouts of one context. Thread-safe; holds its lock briefly.
#[derive(Default)]
pub struct TimeoutQueue {
    table: Mutex<TimeoutTable, rank::Timeouts>,
    next: AtomicU64,
}

#[derive(Default)]
struct TimeoutTable {
    heap: BinaryHeap<Reverse<(Instant, TimeoutOwner)>>,
    live: BTreeMap<TimeoutOwner, LiveTimeout>,
}

/// The timeout of one owner.
#[derive(Clone, Copy)]
struct LiveTimeout {
    /// [`Instant::FAR_FUTURE`] if it has none now.
    at: Instant,
    /// The instant of its heap entry; never later than `at`.
    entry: Instant,
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
    pub fn schedule(&self, machine: TimeoutOwner, at: Option<Instant>) -> bool {
        let mut table = self.table.lock();
        let at = at.unwrap_or(Instant::FAR_FUTURE);
        if let Some(live) = table.live.get_mut(&machine) {
            if live.at != Instant::FAR_FUTURE && fault!("earlier-deadline-ignored") {
                return false;
            }
            live.at = at;
            if at >= live.entry {
                return false;
            }
        }
        if at == Instant::FAR_FUTURE {
            return false;
        }
        table.live.insert(machine, LiveTimeout { at, entry: at });
        table.heap.push(Reverse((at, machine)));
        if table.heap.len() > 64 + 4 * table.live.len() {
            table.compact();
        }
        let earliest = at < self.next();
        if earliest {
            self.next.store(at.as_nanos(), Ordering::Relaxed);
        }
        earliest
    }

    /// Removes an owner.
    pub fn remove(&self, machine: TimeoutOwner) {
        self.table.lock().live.remove(&machine);
    }

    /// Takes one owner whose timeout is due.
    pub fn pop_due(&self, now: Instant) -> Option<TimeoutOwner> {
        let mut table = self.table.lock();
        let mut due = None;
        while let Some(Reverse((entry, machine))) = table.heap.peek().copied() {
            let live = table.live.get(&machine).copied();
            let live = live.filter(|live| live.entry == entry);
            if live.is_some_and(|live| live.at == entry) && entry > now {
                break;
            }
            table.heap.pop();
            let Some(LiveTimeout { at, .. }) = live else {
                continue;
            };
            table.live.remove(&machine);
            if at <= now {
                due = Some(machine);
                break;
            }
            if at != Instant::FAR_FUTURE {
                table.live.insert(machine, LiveTimeout { at, entry: at });
                table.heap.push(Reverse((at, machine)));
            }
        }
        let next = table.earliest();
        self.next.store(next.as_nanos(), Ordering::Relaxed);
        due
    }
}

impl TimeoutTable {
    fn compact(&mut self) {
        self.live.retain(|_, live| live.at != Instant::FAR_FUTURE);
        for live in self.live.values_mut() {
            live.entry = live.at;
        }
        let entries = self.live.iter().map(|(m, live)| Reverse((live.at, *m)));
        self.heap = entries.collect();
    }

    fn earliest(&self) -> Instant {
        self.heap
            .peek()
            .map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TimeoutOwner = TimeoutOwner::Participant;
    const B: TimeoutOwner = TimeoutOwner::Graph;

    fn at(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    #[test]
    fn the_last_schedule_of_each_owner_counts() {
        let deadlines = TimeoutQueue::new();
        assert!(deadlines.schedule(A, Some(at(50))));
        assert!(deadlines.schedule(B, Some(at(20))));
        assert!(!deadlines.schedule(B, Some(at(70))));
        assert_eq!(deadlines.pop_due(at(40)), None);
        assert_eq!(deadlines.pop_due(at(60)), Some(A));
        assert_eq!(deadlines.pop_due(at(60)), None);
        assert_eq!(deadlines.next(), at(70));
        assert_eq!(deadlines.pop_due(at(70)), Some(B));
        assert_eq!(deadlines.next(), Instant::FAR_FUTURE);
    }

    #[test]
    fn a_timeout_that_moves_on_keeps_its_heap_entry_and_fires_in_time() {
        let deadlines = TimeoutQueue::new();
        for n in 1..1_000 {
            deadlines.schedule(A, Some(at(n)));
        }
        assert_eq!(deadlines.table.lock().heap.len(), 1);
        assert_eq!(deadlines.pop_due(at(998)), None);
        assert_eq!(deadlines.next(), at(999));
        assert_eq!(deadlines.pop_due(at(999)), Some(A));
        assert_eq!(deadlines.pop_due(at(9_999)), None);
    }

    #[test]
    fn a_cancelled_timeout_does_not_fire_and_may_be_set_again() {
        let deadlines = TimeoutQueue::new();
        deadlines.schedule(A, Some(at(10)));
        deadlines.schedule(A, None);
        assert_eq!(deadlines.pop_due(at(10)), None);
        deadlines.schedule(A, Some(at(30)));
        deadlines.schedule(A, None);
        deadlines.schedule(A, Some(at(20)));
        assert_eq!(deadlines.pop_due(at(25)), Some(A));
        assert_eq!(deadlines.pop_due(at(99)), None);
        assert_eq!(deadlines.next(), Instant::FAR_FUTURE);
    }

    #[test]
    fn rescheduling_for_ever_does_not_grow_the_heap() {
        let deadlines = TimeoutQueue::new();
        for n in 0..100_000 {
            deadlines.schedule(A, Some(at(1_000_000 - n)));
        }
        assert!(deadlines.table.lock().heap.len() <= 128);
    }
}

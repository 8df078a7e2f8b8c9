//! When which machine wants to be called again.
//!
//! A heap of instants with one live entry per machine. A deadline that moves on,
//! as with each message, leaves its entry where it is: when that surfaces it is
//! put back for the later instant. One that moves closer gets a second entry;
//! the stale one is skipped when it surfaces. Bounded by some entries per
//! machine and compacted beyond that.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pteros_rtps::fault;
use pteros_rtps::id::EntityId;
use pteros_rtps::time::Instant;

/// A machine with deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Machine {
    /// Discovery.
    Participant,
    /// The graph's announcement.
    Graph,
    /// Boards of neighbours.
    Neighbours,
    /// Handshakes with strangers.
    Handshakes,
    /// A user writer.
    Writer(EntityId),
    /// A user reader.
    Reader(EntityId),
    /// A user writer that is gone but for its last word.
    Departure(EntityId),
    /// The links to peers of this host.
    Links,
    /// A flow controller, by its place among the context's.
    Flow(usize),
}

/// The deadlines of one context. Thread-safe; never blocks for long.
#[derive(Default)]
pub struct Deadlines {
    table: Mutex<Table>,
    next: AtomicU64,
}

#[derive(Default)]
struct Table {
    heap: BinaryHeap<Reverse<(Instant, Machine)>>,
    live: BTreeMap<Machine, Live>,
}

/// One machine's deadline.
#[derive(Clone, Copy)]
struct Live {
    /// [`Instant::FAR_FUTURE`]: it has none now.
    at: Instant,
    /// Of its entry in the heap; never later than `at`.
    entry: Instant,
}

impl Deadlines {
    /// No deadlines.
    pub fn new() -> Self {
        Self {
            table: Mutex::default(),
            next: AtomicU64::new(u64::MAX),
        }
    }

    /// The earliest deadline; [`Instant::FAR_FUTURE`] when there is none.
    pub fn next(&self) -> Instant {
        // Relaxed: a hint; whoever sleeps by it is woken by `schedule`'s caller.
        Instant::from_nanos(self.next.load(Ordering::Relaxed))
    }

    /// Notes that `machine` wants to be called at `at` (`None`: not at all).
    /// Returns whether this is now the earliest deadline of all.
    pub fn schedule(&self, machine: Machine, at: Option<Instant>) -> bool {
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
        table.live.insert(machine, Live { at, entry: at });
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

    /// Forgets a machine that is gone.
    pub fn forget(&self, machine: Machine) {
        self.table.lock().live.remove(&machine);
    }

    /// Takes one machine whose deadline has come.
    pub fn pop_due(&self, now: Instant) -> Option<Machine> {
        let mut table = self.table.lock();
        let mut due = None;
        while let Some(Reverse((entry, machine))) = table.heap.peek().copied() {
            let live = table.live.get(&machine).copied();
            let live = live.filter(|live| live.entry == entry);
            if live.is_some_and(|live| live.at == entry) && entry > now {
                break;
            }
            table.heap.pop();
            let Some(Live { at, .. }) = live else {
                continue;
            };
            table.live.remove(&machine);
            if at <= now {
                due = Some(machine);
                break;
            }
            if at != Instant::FAR_FUTURE {
                table.live.insert(machine, Live { at, entry: at });
                table.heap.push(Reverse((at, machine)));
            }
        }
        let next = table.earliest();
        self.next.store(next.as_nanos(), Ordering::Relaxed);
        due
    }
}

impl Table {
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

    const A: Machine = Machine::Participant;
    const B: Machine = Machine::Graph;

    fn at(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    #[test]
    fn the_latest_word_of_each_machine_counts() {
        let deadlines = Deadlines::new();
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
    fn a_deadline_that_moves_on_keeps_its_entry_and_is_met_in_its_time() {
        let deadlines = Deadlines::new();
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
    fn a_deadline_taken_back_is_not_met_and_may_be_set_again() {
        let deadlines = Deadlines::new();
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
        let deadlines = Deadlines::new();
        for n in 0..100_000 {
            deadlines.schedule(A, Some(at(1_000_000 - n)));
        }
        assert!(deadlines.table.lock().heap.len() <= 128);
    }
}

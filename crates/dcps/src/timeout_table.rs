//! Timeout table: when each owner of timeouts must be called again.
//!
//! A heap of instants with one live entry per owner. A timeout that moves on, as
//! with each message, leaves its entry in place; when that surfaces it is put back
//! for the later instant. A timeout that moves closer gets a second entry; the
//! stale one is skipped when it surfaces. Bounded by some entries per owner and
//! compacted beyond that.

use alloc::collections::{BTreeMap, BinaryHeap};
use core::cmp::Reverse;

use pteros_rtps::time::Instant;

/// The timeouts of owners `O`, at most one each.
pub struct TimeoutTable<O> {
    heap: BinaryHeap<Reverse<(Instant, O)>>,
    live: BTreeMap<O, LiveTimeout>,
    next: Instant,
}

/// The timeout of one owner.
#[derive(Clone, Copy)]
struct LiveTimeout {
    /// [`Instant::FAR_FUTURE`] if it has none now.
    at: Instant,
    /// The instant of its heap entry; never later than `at`.
    entry: Instant,
}

impl<O: Ord + Copy> Default for TimeoutTable<O> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            live: BTreeMap::new(),
            next: Instant::FAR_FUTURE,
        }
    }
}

impl<O: Ord + Copy> TimeoutTable<O> {
    /// The earliest timeout; [`Instant::FAR_FUTURE`] without one. Never too late.
    #[inline]
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Schedules `owner` for `at` (`None`: no timeout). Returns whether that is now
    /// the earliest timeout of all.
    #[inline]
    pub fn schedule(&mut self, owner: O, at: Option<Instant>) -> bool {
        let at = at.unwrap_or(Instant::FAR_FUTURE);
        if let Some(live) = self.live.get_mut(&owner) {
            live.at = at;
            if at >= live.entry {
                return false;
            }
        }
        if at == Instant::FAR_FUTURE {
            return false;
        }
        self.live.insert(owner, LiveTimeout { at, entry: at });
        self.heap.push(Reverse((at, owner)));
        if self.heap.len() > 64 + 4 * self.live.len() {
            self.compact();
        }
        let is_earliest = at < self.next;
        if is_earliest {
            self.next = at;
        }
        is_earliest
    }

    /// Removes an owner.
    pub fn remove(&mut self, owner: O) {
        self.live.remove(&owner);
    }

    /// Takes one owner whose timeout is due.
    #[inline]
    pub fn pop_due(&mut self, now: Instant) -> Option<O> {
        let mut due = None;
        while let Some(Reverse((entry, owner))) = self.heap.peek().copied() {
            let live = self.live.get(&owner).copied();
            let live = live.filter(|live| live.entry == entry);
            if live.is_some_and(|live| live.at == entry) && entry > now {
                break;
            }
            self.heap.pop();
            let Some(LiveTimeout { at, .. }) = live else {
                continue;
            };
            self.live.remove(&owner);
            if at <= now {
                due = Some(owner);
                break;
            }
            if at != Instant::FAR_FUTURE {
                self.live.insert(owner, LiveTimeout { at, entry: at });
                self.heap.push(Reverse((at, owner)));
            }
        }
        self.next = self.earliest();
        due
    }

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

    const A: u8 = 1;
    const B: u8 = 2;

    fn at(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    #[test]
    fn the_last_schedule_of_each_owner_counts() {
        let mut deadlines = TimeoutTable::default();
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
        let mut deadlines = TimeoutTable::default();
        for n in 1..1_000 {
            deadlines.schedule(A, Some(at(n)));
        }
        assert_eq!(deadlines.heap.len(), 1);
        assert_eq!(deadlines.pop_due(at(998)), None);
        assert_eq!(deadlines.next(), at(999));
        assert_eq!(deadlines.pop_due(at(999)), Some(A));
        assert_eq!(deadlines.pop_due(at(9_999)), None);
    }

    #[test]
    fn a_cancelled_timeout_does_not_fire_and_may_be_set_again() {
        let mut deadlines = TimeoutTable::default();
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
        let mut deadlines = TimeoutTable::default();
        for n in 0..100_000 {
            deadlines.schedule(A, Some(at(1_000_000 - n)));
        }
        assert!(deadlines.heap.len() <= 128);
    }
}

//! Timer heap: the timers of one executor, ordered by due time.
//!
//! Executors and wait sets pop what is due. A timer in simulated time waits in the
//! heap of the time source instead. An entry of a timer that was reset, moved or
//! dropped meanwhile is skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::ready_queue::Task;
use pteros_runtime::rtps::time::Instant;

use crate::clock::ClockTimer;

/// A timer, as heaps, executors and the time source see it.
pub trait ScheduledTimer: Task + ClockTimer {
    /// When the next tick is due, on the timer's clock.
    fn due(&self) -> Instant;

    /// Whether a heap entry of that instant is still valid.
    fn is_due(&self, entry: Instant) -> bool;

    /// Whether the heap belongs to the executor that spins the timer now, and the
    /// timer is not in simulated time.
    fn is_scheduled_with(&self, timers: &TimerHeap) -> bool;

    /// Runs the callback and returns when the next tick is due. A tick during the
    /// callback itself (it spins, or another executor runs it) is skipped.
    fn tick(&self, now: Instant) -> Option<Instant>;

    /// Whether the timer uses simulated time and its next tick is at `due`.
    fn is_scheduled_at(&self, due: u64) -> bool;

    /// Simulated time has reached `due`: queues the tick.
    fn queue_tick(&self, due: u64);
}

/// Timers of one executor, ordered by due time.
#[derive(Default)]
pub struct TimerHeap {
    heap: Mutex<BinaryHeap<Reverse<TimerEntry<Instant>>>>,
    /// Due time of the earliest entry in nanoseconds; `u64::MAX` if empty.
    next: AtomicU64,
}

/// Heap entry of a timer, ordered by due time.
pub struct TimerEntry<D> {
    /// When it is due.
    pub due: D,
    /// A timer that was dropped is skipped.
    pub timer: Weak<dyn ScheduledTimer>,
}

impl<D: Ord> PartialEq for TimerEntry<D> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl<D: Ord> Eq for TimerEntry<D> {}

impl<D: Ord> PartialOrd for TimerEntry<D> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<D: Ord> Ord for TimerEntry<D> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl TimerHeap {
    /// An empty heap.
    pub fn new() -> Self {
        Self {
            heap: Mutex::default(),
            next: AtomicU64::new(u64::MAX),
        }
    }

    /// Adds an entry. Those of a timer's earlier due times stay and are skipped.
    pub fn add(&self, due: Instant, timer: Weak<dyn ScheduledTimer>) {
        let mut heap = self.heap.lock();
        if heap.len() == heap.capacity() {
            // Remove entries of timers that were reset, moved or dropped.
            heap.retain(|Reverse(entry)| {
                let timer = entry.timer.upgrade();
                timer.is_some_and(|t| t.is_due(entry.due))
            });
        }
        heap.push(Reverse(TimerEntry { due, timer }));
        self.update_next(&heap);
    }

    fn update_next(&self, heap: &BinaryHeap<Reverse<TimerEntry<Instant>>>) {
        let next = heap.peek().map_or(u64::MAX, |e| e.0.due.as_nanos());
        self.next.store(next, Ordering::Release);
    }

    /// Due time of the earliest timer.
    pub fn next(&self) -> Instant {
        Instant::from_nanos(self.next.load(Ordering::Acquire))
    }

    /// Removes and returns the earliest timer if it is due.
    pub fn pop_due(&self, now: Instant) -> Option<Arc<dyn ScheduledTimer>> {
        if self.next() > now {
            return None;
        }
        let mut heap = self.heap.lock();
        let mut found = None;
        while heap.peek().is_some_and(|e| e.0.due <= now) {
            let Some(Reverse(entry)) = heap.pop() else {
                break;
            };
            let live = entry
                .timer
                .upgrade()
                .filter(|t| t.is_due(entry.due) && t.is_scheduled_with(self));
            if live.is_some() {
                found = live;
                break;
            }
        }
        self.update_next(&heap);
        found
    }
}

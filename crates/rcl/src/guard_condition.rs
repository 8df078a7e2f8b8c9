//! Guard condition: a flag that any thread sets, and that ends the waits for it.
//!
//! Any number of wait sets may wait for one. One of them takes the trigger. A language
//! whose executor runs a callback for a trigger gives it a task, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pteros_runtime::ready_queue::{ReadyQueue, ReadySlot};

use crate::wakers::Wakers;

/// A guard condition (`rcl_guard_condition_t`). Triggers coalesce: one that comes before
/// the last was taken adds nothing.
#[derive(Default)]
pub struct GuardCondition {
    is_triggered: AtomicBool,
    /// [`this_thread`] at the last trigger.
    triggered_by: AtomicUsize,
    wakers: Wakers,
    /// The task that an executor runs for a trigger, if there is one.
    pub slot: ReadySlot,
}

impl GuardCondition {
    /// Triggers it and wakes those who wait for it. Thread-safe, does not block, allocates
    /// nothing. Makes a system call only if one of them sleeps.
    pub fn trigger(&self) {
        self.triggered_by.store(this_thread(), Ordering::Relaxed);
        // AcqRel: earlier writes of the triggering thread are visible to the one that takes
        // it. Who waits has been added before it checks, so a later one needs no wake-up.
        if !self.is_triggered.swap(true, Ordering::AcqRel) {
            self.slot.mark_ready();
            self.wakers.wake();
        }
    }

    /// Whether a trigger was not taken.
    pub fn is_triggered(&self) -> bool {
        self.is_triggered.load(Ordering::Acquire)
    }

    /// Whether another thread made the last trigger.
    pub fn is_of_other_thread(&self) -> bool {
        self.triggered_by.load(Ordering::Relaxed) != this_thread()
    }

    /// Takes the trigger. Returns whether there was one.
    pub fn take(&self) -> bool {
        // Most are not triggered, and a load costs less.
        self.is_triggered() && self.is_triggered.swap(false, Ordering::AcqRel)
    }

    /// Wakes a wait set, too, from now on.
    pub fn add_waker(&self, queue: &Arc<ReadyQueue>) {
        self.wakers.add(queue);
    }
}

/// A number that is unique among living threads.
fn this_thread() -> usize {
    thread_local! {
        static OF_THREAD: u8 = const { 0 };
    }
    OF_THREAD.with(|own| std::ptr::from_ref(own).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_coalesce_until_one_is_taken() {
        let guard = GuardCondition::default();
        let queue = Arc::new(ReadyQueue::new(|| {}));
        guard.add_waker(&queue);
        for _ in 0..2 {
            assert!(!guard.is_triggered() && !guard.take());
            guard.trigger();
            guard.trigger();
            assert!(guard.is_triggered());
            assert!(queue.has_wake_reason());
            assert!(guard.take());
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "another thread triggers it")]
    fn the_thread_of_the_last_trigger_is_known() {
        let guard = GuardCondition::default();
        guard.trigger();
        assert!(!guard.is_of_other_thread());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                assert!(guard.is_of_other_thread());
                guard.trigger();
            });
            other.join().unwrap();
        });
        assert!(guard.is_of_other_thread());
        assert!(guard.take() && !guard.take());
    }
}

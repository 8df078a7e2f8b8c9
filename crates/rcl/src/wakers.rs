//! Wakers: the ready queues of the wait sets that wait for a guard condition, a timer or a
//! clock. Any number of wait sets may wait for one of these.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::ready_queue::ReadyQueue;

/// The queues: one entry per wait set. Entries of wait sets that have ended leave with
/// the next addition.
#[derive(Default)]
pub struct Wakers {
    queues: Mutex<Vec<Weak<ReadyQueue>>>,
    /// Address of the queue that was added last; null: none. It is compared, never
    /// followed.
    last_added: AtomicPtr<ReadyQueue>,
}

impl Wakers {
    /// Wakes all. Thread-safe, does not block, allocates nothing.
    pub fn wake(&self) {
        let mut last: Option<Arc<ReadyQueue>> = None;
        for queue in self.queues.lock().iter().filter_map(Weak::upgrade) {
            if let Some(before) = last.replace(queue) {
                before.wake();
            }
        }
        // Most have one wait set. It is woken without the lock, which its next wait may
        // need. A thread that finds the lock taken yields its CPU, for milliseconds on a
        // loaded host.
        if let Some(last) = last {
            last.wake();
        }
    }

    /// Wakes that queue too from now on. Each wait calls it: one load if the queue was the
    /// last to be added.
    pub fn add(&self, queue: &Arc<ReadyQueue>) {
        let address = Arc::as_ptr(queue).cast_mut();
        if std::ptr::eq(self.last_added.load(Ordering::Acquire), address) {
            return;
        }
        let mut queues = self.queues.lock();
        // Before an entry ends, since a new queue may then have its address.
        let none = std::ptr::null_mut();
        self.last_added.store(none, Ordering::Release);
        queues.retain(|known| known.strong_count() > 0);
        if !queues
            .iter()
            .any(|known| std::ptr::eq(known.as_ptr(), address))
        {
            queues.push(Arc::downgrade(queue));
        }
        self.last_added.store(address, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn queue() -> Arc<ReadyQueue> {
        Arc::new(ReadyQueue::new(|| {}))
    }

    #[test]
    fn each_living_queue_is_woken_and_has_one_entry() {
        let [first, second] = [(); 2].map(|()| queue());
        let wakers = Wakers::default();
        for added in [&first, &second, &first, &first] {
            wakers.add(added);
        }
        assert_eq!(wakers.queues.lock().len(), 2);
        assert!(!first.has_wake_reason() && !second.has_wake_reason());
        wakers.wake();
        assert!(first.has_wake_reason() && second.has_wake_reason());
    }

    /// A queue at the address of one that has ended is another queue.
    #[test]
    fn a_new_queue_is_added_wherever_it_lies() {
        let wakers = Wakers::default();
        let stays = queue();
        let reused = AtomicUsize::new(0);
        let mut before = std::ptr::null();
        for _ in 0..1_000 {
            let next = queue();
            let is_reused = std::ptr::eq(before, Arc::as_ptr(&next));
            reused.fetch_add(usize::from(is_reused), Ordering::Relaxed);
            wakers.add(&next);
            wakers.wake();
            assert!(next.has_wake_reason());
            before = Arc::as_ptr(&next);
            drop(next);
            // Removes the entry, and with it the last claim on the memory.
            wakers.add(&stays);
            assert_eq!(wakers.queues.lock().len(), 1);
        }
        assert!(reused.into_inner() > 0, "no address came twice");
    }
}

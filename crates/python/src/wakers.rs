//! Ready queues that something wakes: those of the pollers that have waited for it.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::ready_queue::ReadyQueue;

/// The queues. One entry per poller.
#[derive(Default)]
pub(crate) struct Wakers(Mutex<Vec<Weak<ReadyQueue>>>);

impl Wakers {
    /// Wakes all. Thread-safe, does not block.
    pub(crate) fn wake(&self) {
        self.0.lock().retain(|queue| {
            let queue = queue.upgrade();
            queue.inspect(|queue| queue.wake()).is_some()
        });
    }

    /// Wakes that queue too from now on.
    pub(crate) fn add(&self, queue: &Arc<ReadyQueue>) {
        let mut queues = self.0.lock();
        let is_known = |known: &Weak<ReadyQueue>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(queue));
        if !queues.iter().any(is_known) {
            queues.retain(|known| known.strong_count() > 0);
            queues.push(Arc::downgrade(queue));
        }
    }
}

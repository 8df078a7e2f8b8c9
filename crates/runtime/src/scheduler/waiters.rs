//! Wake-up of threads that block for a condition: a match, space, an
//! acknowledgement, a change of the graph.
//!
//! A waiter registers, checks its condition, and sleeps if it does not hold. A
//! thread that changes something a waiter may check calls [`Waiters::wake_all`]
//! afterwards. Either the check sees the change, or the wake-up sees the waiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use crate::lock::{Mutex, rank};
use crate::scheduler::ready_queue::ReadyQueue;

/// The waiting threads of one context, each with its own queue.
#[derive(Default)]
pub(crate) struct Waiters {
    count: AtomicUsize,
    registered: Mutex<Vec<Arc<ReadyQueue>>, rank::Waiters>,
    /// Unused queues; at most as many as threads ever waited at once.
    spare: Mutex<Vec<Arc<ReadyQueue>>, rank::SpareWaiters>,
}

impl Waiters {
    /// Wakes every waiter to check its condition again. Costs a fence when there is
    /// none.
    pub(crate) fn wake_all(&self) {
        // Pairs with the fence in `Waiters::register`.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for queue in self.registered.lock().iter() {
            queue.wake();
        }
    }

    /// Registers a waiter before its first check. `queue` belongs to its thread
    /// alone.
    pub(crate) fn register(&self, queue: &Arc<ReadyQueue>) {
        queue.clear_wake();
        self.registered.lock().push(queue.clone());
        self.count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Removes a waiter.
    pub(crate) fn unregister(&self, queue: &Arc<ReadyQueue>) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        let mut registered = self.registered.lock();
        registered.retain(|one| !Arc::ptr_eq(one, queue));
    }

    /// Takes an unused queue of an earlier waiter.
    pub(crate) fn take_spare(&self) -> Option<Arc<ReadyQueue>> {
        self.spare.lock().pop()
    }

    /// Keeps the queue of a finished waiter.
    pub(crate) fn keep_spare(&self, queue: Arc<ReadyQueue>) {
        self.spare.lock().push(queue);
    }
}

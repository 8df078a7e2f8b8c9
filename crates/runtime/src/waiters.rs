//! Wake-up of threads that block for a condition: a match, space, an
//! acknowledgement, a change of the graph.
//!
//! A waiter registers, checks its condition, and sleeps if it does not hold. A
//! thread that changes something a waiter may check calls [`Waiters::wake_all`]
//! afterwards. Either the check sees the change, or the wake-up sees the waiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use pteros_rtps::time::Instant;

use crate::core::Core;
use crate::lock::{Mutex, rank};
use crate::ready_queue::ReadyQueue;

/// The waiting threads of one context, each with its own queue.
#[derive(Default)]
pub(crate) struct Waiters {
    count: AtomicUsize,
    registered: Mutex<Vec<Arc<ReadyQueue>>, rank::Waiters>,
    /// Unused queues; as many as ever waited at once.
    spare: Mutex<Vec<Arc<ReadyQueue>>, rank::SpareWaiters>,
}

impl Waiters {
    /// Wakes every waiter to check its condition again. Costs a fence when there is
    /// none.
    pub(crate) fn wake_all(&self) {
        // Pairs with the fence in `RegisteredWaiter::begin`.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for queue in self.registered.lock().iter() {
            queue.wake();
        }
    }
}

/// A registered waiter; ends when dropped.
pub(crate) struct RegisteredWaiter<'c> {
    core: &'c Core,
    queue: &'c Arc<ReadyQueue>,
}

impl<'c> RegisteredWaiter<'c> {
    /// Registers before the first check. `queue` belongs to this thread alone.
    pub(crate) fn begin(core: &'c Core, queue: &'c Arc<ReadyQueue>) -> Self {
        core.send_deferred();
        queue.clear_wake();
        core.waiters.registered.lock().push(queue.clone());
        core.waiters.count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Self { core, queue }
    }
}

impl Drop for RegisteredWaiter<'_> {
    fn drop(&mut self) {
        let waiters = &self.core.waiters;
        waiters.count.fetch_sub(1, Ordering::Relaxed);
        let mut waiting = waiters.registered.lock();
        waiting.retain(|queue| !Arc::ptr_eq(queue, self.queue));
        drop(waiting);
        // The waiter may have been chosen to drive next.
        self.core.hand_over(self.queue);
    }
}

impl Core {
    /// Wakes threads in [`Core::wait_until`].
    pub(crate) fn wake_waiters_now(&self) {
        self.waiters.wake_all();
    }

    /// Wakes threads in [`Core::wait_until`], whose condition may hold for reasons
    /// outside of the network.
    pub fn wake_waiters(&self) {
        self.wake_waiters_now();
    }

    /// Drives the network until `done` returns true or `until` has passed. Blocks.
    ///
    /// Returns the last result of `done`. For callers without an executor.
    pub fn wait_until(&self, until: Instant, done: impl FnMut() -> bool) -> bool {
        let spare = self.waiters.spare.lock().pop();
        let queue = spare.unwrap_or_else(|| self.ready_queue());
        let met = self.drive_until(&queue, until, done);
        self.waiters.spare.lock().push(queue);
        met
    }
}

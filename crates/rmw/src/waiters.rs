//! Threads that wait for something to become true: a match, room, an
//! acknowledgement, a change of the graph.
//!
//! A waiter registers, looks, and sleeps if what it wants is not so. Whoever
//! changes something a waiter may look at calls [`Waiters::nudge`] afterwards.
//! Either the look sees the change, or the nudge sees the waiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use parking_lot::Mutex;
use pteros_rtps::time::Instant;

use crate::core::Core;
use crate::ready::ReadyQueue;

/// The waiting threads of one context, each with a bed of its own.
#[derive(Default)]
pub(crate) struct Waiters {
    count: AtomicUsize,
    waiting: Mutex<Vec<Arc<ReadyQueue>>>,
    /// Beds to lend; as many as ever waited at once.
    spare: Mutex<Vec<Arc<ReadyQueue>>>,
}

impl Waiters {
    /// Makes every waiter look again. Costs a fence when there is none.
    pub(crate) fn nudge(&self) {
        // Pairs with the fence in `Waiting::begin`.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for queue in self.waiting.lock().iter() {
            queue.nudge();
        }
    }
}

/// A registered waiter; ends when dropped.
pub(crate) struct Waiting<'c> {
    core: &'c Core,
    queue: &'c Arc<ReadyQueue>,
}

impl<'c> Waiting<'c> {
    /// Registers before the first look. `queue` is this thread's alone.
    pub(crate) fn begin(core: &'c Core, queue: &'c Arc<ReadyQueue>) -> Self {
        core.send_aside();
        queue.forget_nudges();
        core.waiters.waiting.lock().push(queue.clone());
        core.waiters.count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Self { core, queue }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waiters = &self.core.waiters;
        waiters.count.fetch_sub(1, Ordering::Relaxed);
        let mut waiting = waiters.waiting.lock();
        waiting.retain(|queue| !Arc::ptr_eq(queue, self.queue));
        drop(waiting);
        // The waiter may have been chosen to drive next.
        self.core.hand_over(self.queue);
    }
}

impl Core {
    /// Makes threads in [`Core::wait_until`] look again.
    pub(crate) fn note_progress(&self) {
        self.waiters.nudge();
    }

    /// Makes threads in [`Core::wait_until`] look again: what they wait for may
    /// have become so by other means than the network's.
    pub fn wake_waiters(&self) {
        self.note_progress();
    }

    /// Drives the network until `done` says so or `until` has passed; returns
    /// `done`'s last word. Blocks. For callers without an executor.
    pub fn wait_until(&self, until: Instant, done: impl FnMut() -> bool) -> bool {
        let spare = self.waiters.spare.lock().pop();
        let queue = spare.unwrap_or_else(|| self.ready_queue());
        let met = self.drive_until(&queue, until, done);
        self.waiters.spare.lock().push(queue);
        met
    }
}

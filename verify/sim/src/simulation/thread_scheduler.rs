//! Cooperative thread scheduler: which of the threads that wait in simulated time
//! runs. One runs at a time.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};
use pteros_runtime::ready_queue::ReadyQueue;

/// Condition that ends a wait before its timeout.
#[derive(Clone)]
pub enum WakeCondition {
    /// A datagram for this socket.
    Datagram(usize),
    /// An entry in this ready queue.
    Queue(Arc<ReadyQueue>),
    /// The end of a thread.
    End(Arc<AtomicBool>),
    /// Only the timeout.
    Never,
}

/// Scheduler of the test threads: one runs at a time, in simulated time.
#[derive(Default)]
pub struct ThreadScheduler {
    /// The running thread and those that wait.
    pub state: Mutex<State>,
    /// Signalled when another thread may run.
    pub switched: Condvar,
}

/// The running thread and those that wait.
#[derive(Default)]
pub struct State {
    /// The thread that may run. 0 until a second thread exists.
    pub running: u64,
    /// Threads that wait.
    pub waiting: Vec<Waiter>,
    /// A thread has panicked, so all waits end with a panic.
    pub poisoned: bool,
}

/// A thread that waits.
pub struct Waiter {
    /// Its number.
    pub thread: u64,
    /// The condition that ends the wait.
    pub wake: WakeCondition,
    /// When the wait ends at the latest.
    pub until: u64,
}

thread_local! {
    pub static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// A unique thread number.
pub fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The number of this thread.
pub fn this_thread() -> u64 {
    if NUMBER.get() == 0 {
        NUMBER.set(next_number());
    }
    NUMBER.get()
}

impl ThreadScheduler {
    /// Switches to the thread `to`, until another thread switches back.
    pub fn switch_to(&self, to: u64, current: u64, wake: &WakeCondition, until: u64) {
        let mut state = self.state.lock();
        let wake = wake.clone();
        state.waiting.push(Waiter {
            thread: current,
            wake,
            until,
        });
        state.running = to;
        self.switched.notify_all();
        self.wait_until_scheduled(&mut state, current);
    }

    /// Waits until this thread may run.
    pub fn wait_until_scheduled(&self, state: &mut MutexGuard<'_, State>, current: u64) {
        while state.running != current {
            assert!(!state.poisoned, "another thread of the simulation panicked");
            self.switched.wait(state);
        }
        state.waiting.retain(|waiter| waiter.thread != current);
    }

    /// The earliest timeout of another thread.
    pub fn earliest(&self) -> u64 {
        let state = self.state.lock();
        let spans = state.waiting.iter().map(|waiter| waiter.until);
        spans.min().unwrap_or(u64::MAX)
    }
}

//! Cooperative scheduler for test threads that wait in simulated time.
//!
//! One thread runs at a time. A waiting thread runs the event loop. When the wait
//! of another thread ends first, it switches to that one. So a run is deterministic
//! with any number of threads.
#![allow(
    clippy::disallowed_methods,
    reason = "threads of a cooperative scheduler in simulated time"
)]

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use pteros_runtime::ready_queue::ReadyQueue;

use crate::world::SimWorld;

/// Condition that ends a wait before its timeout.
#[derive(Clone)]
pub(crate) enum WakeCondition {
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
pub(crate) struct ThreadScheduler {
    state: Mutex<State>,
    switched: Condvar,
}

#[derive(Default)]
struct State {
    /// The thread that may run. 0 until a second thread exists.
    running: u64,
    /// Threads that wait.
    waiting: Vec<Waiter>,
    /// A thread has panicked, so all waits end with a panic.
    poisoned: bool,
}

struct Waiter {
    thread: u64,
    wake: WakeCondition,
    until: u64,
}

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// A unique thread number.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The number of this thread.
fn this_thread() -> u64 {
    if NUMBER.get() == 0 {
        NUMBER.set(next_number());
    }
    NUMBER.get()
}

impl ThreadScheduler {
    /// Switches to the thread `to`, until another thread switches back.
    fn switch_to(&self, to: u64, current: u64, wake: &WakeCondition, until: u64) {
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

    fn wait_until_scheduled(&self, state: &mut parking_lot::MutexGuard<'_, State>, current: u64) {
        while state.running != current {
            assert!(!state.poisoned, "another thread of the simulation panicked");
            self.switched.wait(state);
        }
        state.waiting.retain(|waiter| waiter.thread != current);
    }

    /// The earliest timeout of another thread.
    fn earliest(&self) -> u64 {
        let state = self.state.lock();
        let spans = state.waiting.iter().map(|waiter| waiter.until);
        spans.min().unwrap_or(u64::MAX)
    }
}

/// A registered thread that has not started yet.
struct ScheduledThread {
    world: Arc<SimWorld>,
    number: u64,
    ended: Arc<AtomicBool>,
    /// The armed fault points of the creating thread.
    #[cfg(feature = "faults")]
    faults: Vec<(&'static str, u32)>,
}

thread_local! {
    static WORLD: RefCell<Weak<SimWorld>> = const { RefCell::new(Weak::new()) };
}

/// A number of the current world that no other living world has.
pub(crate) fn current_world_id() -> usize {
    WORLD.with_borrow(|world| world.as_ptr().addr())
}

/// Sleeps in simulated time.
pub(crate) fn sleep(nanos: u64) {
    let world = WORLD.with_borrow(Weak::upgrade);
    if let Some(world) = world {
        world.wait(&WakeCondition::Never, world.now().saturating_add(nanos));
    }
}

impl ScheduledThread {
    /// Runs the body on the new thread once it is scheduled.
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        // It may already be scheduled.
        NUMBER.set(self.number);
        WORLD.set(Arc::downgrade(&self.world));
        #[cfg(feature = "faults")]
        pteros_rtps::fault::arm(self.number, &self.faults);
        let scheduler = &self.world.scheduler;
        {
            let mut state = scheduler.state.lock();
            scheduler.wait_until_scheduled(&mut state, self.number);
        }
        let _exit_guard = ExitGuard(&self);
        work()
    }
}

/// Switches to another thread at the end, also after a panic.
struct ExitGuard<'n>(&'n ScheduledThread);

impl Drop for ExitGuard<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        let scheduler = &self.0.world.scheduler;
        let mut state = scheduler.state.lock();
        state.poisoned |= std::thread::panicking();
        if let Some(next) = state.waiting.first() {
            state.running = next.thread;
        }
        scheduler.switched.notify_all();
    }
}

/// Body of a thread.
pub type ThreadBody<'w> = Box<dyn FnOnce() + Send + 'w>;

/// A thread of a simulation. Dropping it joins the thread.
pub struct SimThread {
    world: Arc<SimWorld>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for SimThread {
    fn drop(&mut self) {
        if thread::panicking() {
            self.world.poison()
        } else {
            self.world
                .wait(&WakeCondition::End(self.ended.clone()), u64::MAX)
        }
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            assert!(
                joined.is_ok() || thread::panicking(),
                "a thread of the simulation panicked"
            );
        }
    }
}

/// Ends the waits of the other threads if this one panics.
struct PoisonGuard<'w>(&'w SimWorld);

impl Drop for PoisonGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.poison();
        }
    }
}

impl SimWorld {
    /// Runs `body` here and `others` on threads of their own, one at a time.
    /// Returns when all have ended.
    pub(crate) fn run_concurrently<R>(
        self: &Arc<Self>,
        others: Vec<ThreadBody<'_>>,
        body: impl FnOnce() -> R,
    ) -> R {
        thread::scope(|scope| {
            let ends: Vec<_> = others
                .into_iter()
                .map(|other| {
                    let (thread, ended) = self.register_thread();
                    scope.spawn(move || thread.run(other));
                    ended
                })
                .collect();
            let _poison_guard = PoisonGuard(self);
            let outcome = body();
            for ended in ends {
                self.wait(&WakeCondition::End(ended), u64::MAX);
            }
            outcome
        })
    }

    /// Makes this world the current one of the calling thread.
    pub(crate) fn enter(self: &Arc<Self>) {
        WORLD.set(Arc::downgrade(self));
    }

    /// Runs `work` on a detached thread.
    pub(crate) fn spawn_detached(self: &Arc<Self>, work: ThreadBody<'static>) {
        let (thread, _) = self.register_thread();
        thread::spawn(move || thread.run(work));
    }

    /// Runs `work` on a thread of its own.
    pub(crate) fn spawn(self: &Arc<Self>, work: ThreadBody<'static>) -> SimThread {
        let (thread, ended) = self.register_thread();
        SimThread {
            world: self.clone(),
            ended,
            thread: Some(thread::spawn(move || thread.run(work))),
        }
    }

    /// Registers a thread. The flag becomes true when it ends.
    fn register_thread(self: &Arc<Self>) -> (ScheduledThread, Arc<AtomicBool>) {
        let number = next_number();
        let ended: Arc<AtomicBool> = Arc::default();
        self.scheduler.state.lock().waiting.push(Waiter {
            thread: number,
            wake: WakeCondition::Never,
            until: self.now(),
        });
        let thread = ScheduledThread {
            world: self.clone(),
            number,
            ended: ended.clone(),
            #[cfg(feature = "faults")]
            faults: pteros_rtps::fault::armed_faults(),
        };
        (thread, ended)
    }

    /// Ends the waits of all other threads with a panic, because this one panicked.
    fn poison(&self) {
        self.scheduler.state.lock().poisoned = true;
        self.scheduler.switched.notify_all();
    }

    /// Runs the event loop, and other threads, until `wake` or `until`.
    pub(crate) fn wait(&self, wake: &WakeCondition, until: u64) {
        let current = this_thread();
        loop {
            if self.has_failed() {
                self.fail_external_contexts();
                return;
            }
            if self.wait_is_over(wake, until) {
                return;
            }
            if let Some(other) = self.next_thread() {
                self.scheduler.switch_to(other, current, wake, until);
                continue;
            }
            let limit = until.min(self.scheduler.earliest());
            if !self.step(limit) {
                assert!(limit < u64::MAX, "all threads wait for ever");
                self.set_now(limit);
            }
        }
    }

    /// Panics in external contexts of a failed world, where no wait ends otherwise.
    fn fail_external_contexts(&self) {
        let has_external = self
            .processes()
            .iter()
            .any(|process| process.external.is_some());
        if has_external && !thread::panicking() {
            let violations = self.model.lock().violations.clone();
            panic!("{}", violations.first().map_or("failed", String::as_str));
        }
    }

    /// The thread that waits longest among those whose wait has ended.
    fn next_thread(&self) -> Option<u64> {
        let state = self.scheduler.state.lock();
        let mut waiting = state.waiting.iter();
        let over = waiting.find(|waiter| self.wait_is_over(&waiter.wake, waiter.until));
        over.map(|waiter| waiter.thread)
    }

    fn wait_is_over(&self, wake: &WakeCondition, until: u64) -> bool {
        let is_awake = match wake {
            WakeCondition::Datagram(socket) => {
                let network = self.network();
                network.sockets[*socket].woken || network.has_input(*socket)
            }
            WakeCondition::Queue(queue) => queue.has_wake_reason(),
            WakeCondition::End(ended) => ended.load(Ordering::Acquire),
            WakeCondition::Never => false,
        };
        is_awake || until <= self.now()
    }
}

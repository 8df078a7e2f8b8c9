//! Threads that wait in simulated time: test threads and those of whole nodes.
//!
//! One thread runs at a time. A waiting thread runs the event loop. When the wait
//! of another thread ends first, it switches to that one. So a run is deterministic
//! with any number of threads.
#![allow(clippy::disallowed_methods, reason = "threads in simulated time")]

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use super::event_loop::EventLoop;
use super::thread_scheduler::{NUMBER, Waiter, WakeCondition, next_number, this_thread};

/// A registered thread that has not started yet.
struct ScheduledThread {
    world: Arc<EventLoop>,
    number: u64,
    ended: Arc<AtomicBool>,
    /// The armed seeded bugs of the creating thread.
    faults: Vec<(&'static str, u32)>,
}

thread_local! {
    static WORLD: RefCell<Weak<EventLoop>> = const { RefCell::new(Weak::new()) };
}

/// A number of the current world that no other living world has.
pub fn current_world_id() -> usize {
    WORLD.with_borrow(|world| world.as_ptr().addr())
}

/// A moment of the real clock, for code that takes moments as arguments: simulated time
/// is added to it, and only differences count.
pub fn origin() -> std::time::Instant {
    std::time::Instant::now()
}

/// Sleeps in simulated time.
pub fn sleep(nanos: u64) {
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
        pteros_seeded_bugs::arm(self.number, &self.faults);
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

pub type ThreadBody<'w> = Box<dyn FnOnce() + Send + 'w>;

/// A thread of a simulation. Dropping it joins the thread.
pub struct SimThread {
    world: Arc<EventLoop>,
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
struct PoisonGuard<'w>(&'w EventLoop);

impl Drop for PoisonGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.poison();
        }
    }
}

impl EventLoop {
    /// Runs `body` here and `others` on threads of their own, one at a time.
    /// Returns when all have ended.
    pub fn run_concurrently<R>(
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
    pub fn enter(self: &Arc<Self>) {
        WORLD.set(Arc::downgrade(self));
    }

    /// Runs `work` on a detached thread.
    pub fn spawn_detached(self: &Arc<Self>, work: ThreadBody<'static>) {
        let (thread, _) = self.register_thread();
        thread::spawn(move || thread.run(work));
    }

    /// Runs `work` on a thread of its own.
    pub fn spawn(self: &Arc<Self>, work: ThreadBody<'static>) -> SimThread {
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
            faults: pteros_seeded_bugs::armed(),
        };
        (thread, ended)
    }

    /// Ends the waits of all other threads with a panic, because this one panicked.
    fn poison(&self) {
        self.scheduler.state.lock().poisoned = true;
        self.scheduler.switched.notify_all();
    }

    /// Runs the event loop, and other threads, until `wake` or `until`.
    pub fn wait(&self, wake: &WakeCondition, until: u64) {
        let current = this_thread();
        loop {
            if self.has_failed() {
                self.fail_external_contexts();
                if until < u64::MAX {
                    // Nothing happens any more; the time-out of the caller ends its loop.
                    self.set_now(until);
                }
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
            let violation = self.violations().lock().first().cloned();
            panic!("{}", violation.unwrap_or_else(|| "failed".into()));
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

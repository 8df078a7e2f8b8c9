//! Threads of a test that wait in simulated time. One runs at a time: who waits
//! lets the world go on, and when somebody else's wait is over before its own, hands
//! over to that one. So a run is the same each time, however many threads take part.
#![allow(
    clippy::disallowed_methods,
    reason = "threads that take turns, in simulated time"
)]

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use pteros_rmw::ready::ReadyQueue;

use crate::world::World;

/// What ends a wait before its time.
#[derive(Clone)]
pub(crate) enum Wake {
    /// Something for this socket.
    Mail(usize),
    /// Something for this queue.
    Queue(Arc<ReadyQueue>),
    /// The end of a thread.
    End(Arc<AtomicBool>),
    /// Nothing.
    Never,
}

/// See the module's description.
#[derive(Default)]
pub(crate) struct Relay {
    state: Mutex<State>,
    passed: Condvar,
}

#[derive(Default)]
struct State {
    /// Who may run; nobody has begun to count while it is zero.
    running: u64,
    /// Those that wait, but for who runs.
    waiting: Vec<Waiter>,
    /// A thread has panicked: who waits shall end, too.
    is_over: bool,
}

struct Waiter {
    thread: u64,
    wake: Wake,
    until: u64,
}

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// A number that no other thread has.
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

impl Relay {
    /// Hands over to the thread `to` until somebody hands back to this one.
    fn pass(&self, to: u64, me: u64, wake: &Wake, until: u64) {
        let mut state = self.state.lock();
        let wake = wake.clone();
        state.waiting.push(Waiter {
            thread: me,
            wake,
            until,
        });
        state.running = to;
        self.passed.notify_all();
        self.await_turn(&mut state, me);
    }

    fn await_turn(&self, state: &mut parking_lot::MutexGuard<'_, State>, me: u64) {
        while state.running != me {
            assert!(!state.is_over, "another thread of the simulation panicked");
            self.passed.wait(state);
        }
        state.waiting.retain(|waiter| waiter.thread != me);
    }

    /// The earliest time at which another thread goes on.
    fn earliest(&self) -> u64 {
        let state = self.state.lock();
        let spans = state.waiting.iter().map(|waiter| waiter.until);
        spans.min().unwrap_or(u64::MAX)
    }
}

/// A thread that is about to take part.
struct Newcomer {
    world: Arc<World>,
    number: u64,
    ended: Arc<AtomicBool>,
    /// Those of who let it take part.
    #[cfg(feature = "faults")]
    faults: Vec<(&'static str, u32)>,
}

thread_local! {
    static WORLD: RefCell<Weak<World>> = const { RefCell::new(Weak::new()) };
}

/// A number of the world that this thread takes part in, which no other living one has.
pub(crate) fn this_world() -> usize {
    WORLD.with_borrow(|world| world.as_ptr().addr())
}

/// Lets time pass in the world that this thread takes part in.
pub(crate) fn pass(nanos: u64) {
    let world = WORLD.with_borrow(Weak::upgrade);
    if let Some(world) = world {
        world.wait(&Wake::Never, world.now().saturating_add(nanos));
    }
}

impl Newcomer {
    /// Runs what the thread is for, when its turn comes; called on it.
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        // Chosen by it already, perhaps.
        NUMBER.set(self.number);
        WORLD.set(Arc::downgrade(&self.world));
        #[cfg(feature = "faults")]
        pteros_rtps::fault::arm(self.number, &self.faults);
        let relay = &self.world.relay;
        {
            let mut state = relay.state.lock();
            relay.await_turn(&mut state, self.number);
        }
        let _leaving = Leaving(&self);
        work()
    }
}

/// Hands over for good, also after a panic.
struct Leaving<'n>(&'n Newcomer);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        let relay = &self.0.world.relay;
        let mut state = relay.state.lock();
        state.is_over |= std::thread::panicking();
        if let Some(next) = state.waiting.first() {
            state.running = next.thread;
        }
        relay.passed.notify_all();
    }
}

/// What is done on a thread of its own.
pub type Work<'w> = Box<dyn FnOnce() + Send + 'w>;

/// A thread that takes part in a simulation; waited for when this is dropped.
pub struct Companion {
    world: Arc<World>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Companion {
    fn drop(&mut self) {
        match thread::panicking() {
            true => self.world.abandon(),
            false => self.world.wait(&Wake::End(self.ended.clone()), u64::MAX),
        }
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            assert!(
                joined.is_ok() || thread::panicking(),
                "a companion panicked"
            );
        }
    }
}

/// Ends the others' waits if who has this panics.
struct GivesUp<'w>(&'w World);

impl Drop for GivesUp<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abandon();
        }
    }
}

impl World {
    /// Runs `body` here and `others` beside it, in turns; returns when all are done.
    pub(crate) fn beside<R>(
        self: &Arc<Self>,
        others: Vec<Work<'_>>,
        body: impl FnOnce() -> R,
    ) -> R {
        thread::scope(|scope| {
            let ends: Vec<_> = others
                .into_iter()
                .map(|other| {
                    let (newcomer, ended) = self.newcomer();
                    scope.spawn(move || newcomer.run(other));
                    ended
                })
                .collect();
            let _gives_up = GivesUp(self);
            let outcome = body();
            for ended in ends {
                self.wait(&Wake::End(ended), u64::MAX);
            }
            outcome
        })
    }

    /// Notes that this thread takes part, from which the others are made.
    pub(crate) fn enter(self: &Arc<Self>) {
        WORLD.set(Arc::downgrade(self));
    }

    /// Runs `work` beside what goes on here, whether somebody waits for it or not.
    pub(crate) fn let_run(self: &Arc<Self>, work: Work<'static>) {
        let (newcomer, _) = self.newcomer();
        thread::spawn(move || newcomer.run(work));
    }

    /// Runs `work` beside what goes on here.
    pub(crate) fn companion(self: &Arc<Self>, work: Work<'static>) -> Companion {
        let (newcomer, ended) = self.newcomer();
        Companion {
            world: self.clone(),
            ended,
            thread: Some(thread::spawn(move || newcomer.run(work))),
        }
    }

    /// Lets a thread take part; what says that it has ended.
    fn newcomer(self: &Arc<Self>) -> (Newcomer, Arc<AtomicBool>) {
        let number = next_number();
        let ended: Arc<AtomicBool> = Arc::default();
        self.relay.state.lock().waiting.push(Waiter {
            thread: number,
            wake: Wake::Never,
            until: self.now(),
        });
        let newcomer = Newcomer {
            world: self.clone(),
            number,
            ended: ended.clone(),
            #[cfg(feature = "faults")]
            faults: pteros_rtps::fault::armed(),
        };
        (newcomer, ended)
    }

    /// Ends the wait of all other threads by a panic, since this one has panicked.
    fn abandon(&self) {
        self.relay.state.lock().is_over = true;
        self.relay.passed.notify_all();
    }

    /// Lets the world, and other threads in it, go on until `wake` or `until`.
    pub(crate) fn wait(&self, wake: &Wake, until: u64) {
        let me = this_thread();
        loop {
            if self.has_failed() {
                self.end_guests();
                return;
            }
            if self.is_over(wake, until) {
                return;
            }
            if let Some(other) = self.next_thread() {
                self.relay.pass(other, me, wake, until);
                continue;
            }
            let limit = until.min(self.relay.earliest());
            if !self.step(limit) {
                assert!(limit < u64::MAX, "everybody waits for ever");
                self.set_now(limit);
            }
        }
    }

    /// Nobody's wait ends in a world that has failed, so those end who do nothing else.
    fn end_guests(&self) {
        let is_of_guests = self.places().iter().any(|place| place.guest.is_some());
        if is_of_guests && !thread::panicking() {
            let violations = self.cast.lock().violations.clone();
            panic!("{}", violations.first().map_or("failed", String::as_str));
        }
    }

    /// The thread that has waited longest of those whose wait is over.
    fn next_thread(&self) -> Option<u64> {
        let state = self.relay.state.lock();
        let mut waiting = state.waiting.iter();
        let over = waiting.find(|waiter| self.is_over(&waiter.wake, waiter.until));
        over.map(|waiter| waiter.thread)
    }

    fn is_over(&self, wake: &Wake, until: u64) -> bool {
        let is_awake = match wake {
            Wake::Mail(socket) => {
                let network = self.network();
                network.sockets[*socket].woken || network.has_mail(*socket)
            }
            Wake::Queue(queue) => queue.is_roused(),
            Wake::End(ended) => ended.load(Ordering::Acquire),
            Wake::Never => false,
        };
        is_awake || until <= self.now()
    }
}

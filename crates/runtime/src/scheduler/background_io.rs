//! The background I/O thread: one per process, for contexts that no other thread
//! drives.
//!
//! It drives a context while user code keeps every spinning thread busy, or while no
//! thread spins. So acknowledgements, heartbeats and leases continue.
//!
//! It has no cost per message. A thread that finishes a poll arms a timer at most once
//! per [`UNDRIVEN_AFTER`]. If no poll has followed when the timer fires, this thread
//! takes over the context's sockets until it sees another poll. A process that sleeps
//! inside its spin never wakes it. A process with rare, short callbacks disarms the timer
//! itself.

use std::os::fd::AsFd;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pteros_net::{Events, Poller, Timer, Waker};
use pteros_rtps::time::Instant;

use crate::lock::{Mutex, rank};
use crate::platform::UndrivenContext;

/// User code may be busy for this long before its contexts are driven here.
const UNDRIVEN_AFTER: Duration = Duration::from_millis(50);

/// A thread that slept for less is expected to wake soon again.
const SHORT_SLEEP: Duration = Duration::from_millis(40);

/// Stack of the background I/O thread. It runs the protocol and no user code.
const STACK_BYTES: usize = 256 * 1024;

/// Polls of one context before the thread serves the others again.
const ROUNDS_MAX: usize = 64;

/// A handle to the background I/O thread of this process.
pub struct BackgroundIo {
    shared: &'static ThreadControl,
}

struct ThreadControl {
    armed: AtomicBool,
    /// Number of contexts that it watches.
    contexts: AtomicUsize,
    timer: Timer,
    waker: Waker,
    new_contexts: Mutex<Vec<Weak<dyn UndrivenContext>>, rank::NewContexts>,
}

impl BackgroundIo {
    /// The thread of this process, started on first use. A forked child has no threads of
    /// its parent, so it starts its own.
    ///
    /// `None` if the system refuses a thread or descriptors. Then only spinning threads
    /// drive.
    pub fn for_process() -> Option<Self> {
        static STARTED: Mutex<Option<StartedThread>, rank::BackgroundThread> = Mutex::new(None);
        let process = std::process::id();
        let mut refusal = None;
        let mut started = STARTED.lock();
        let shared = match &*started {
            Some(known) if known.process == process => known.shared,
            _ => {
                let shared = start_thread().inspect_err(|e| refusal = Some(e.to_string()));
                let shared = shared.ok();
                *started = Some(StartedThread { process, shared });
                shared
            }
        };
        drop(started);
        if let Some(e) = refusal {
            tracing::warn!("no background I/O thread ({e}): spin without long callbacks");
        }
        shared.map(|shared| Self { shared })
    }

    /// Registers a context.
    pub(crate) fn adopt(&self, context: Weak<dyn UndrivenContext>) {
        self.shared.contexts.fetch_add(1, Ordering::Relaxed);
        self.shared.new_contexts.lock().push(context);
        self.shared.waker.wake();
    }

    /// Notes that a thread has finished its poll.
    pub(crate) fn note_poll_finished(&self) {
        // Relaxed: a lost race arms the timer twice, which is harmless.
        if self.shared.armed.load(Ordering::Relaxed) {
            return;
        }
        self.shared.armed.store(true, Ordering::Relaxed);
        self.shared.timer.arm(UNDRIVEN_AFTER);
    }

    /// Notes that a thread sleeps within its poll, and how long it slept before.
    ///
    /// If its context is the only one, this thread need not wake to see that. A thread
    /// that wakes soon leaves the timer armed, because a system call between a message
    /// and its callback costs too much.
    pub(crate) fn note_poll_sleeping(&self, slept: pteros_rtps::time::Duration) {
        if self.shared.contexts.load(Ordering::Relaxed) != 1
            || !self.shared.armed.load(Ordering::Relaxed)
        {
            return;
        }
        match slept.to_std().filter(|slept| *slept < SHORT_SLEEP) {
            Some(slept) => self.shared.timer.arm(slept + UNDRIVEN_AFTER),
            None => {
                self.shared.timer.disarm();
                self.shared.armed.store(false, Ordering::Relaxed);
            }
        }
    }
}

/// The thread of one process, or the refusal of its only try.
struct StartedThread {
    process: u32,
    /// `None` if the system refused.
    shared: Option<&'static ThreadControl>,
}

fn start_thread() -> std::io::Result<&'static ThreadControl> {
    let shared = Box::leak(Box::new(start_thread_control()?));
    spawn_thread(shared)?;
    Ok(shared)
}

fn start_thread_control() -> std::io::Result<ThreadControl> {
    Ok(ThreadControl {
        armed: AtomicBool::new(false),
        contexts: AtomicUsize::new(0),
        timer: Timer::new()?,
        waker: Waker::new()?,
        new_contexts: Mutex::new(Vec::new()),
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the background I/O thread is the only thread of this crate"
)]
fn spawn_thread(shared: &'static ThreadControl) -> std::io::Result<()> {
    let poller = Poller::new()?;
    poller.add(&shared.timer, TIMER)?;
    poller.add(&shared.waker, WAKER)?;
    std::thread::Builder::new()
        .name("pteros-io".into())
        .stack_size(STACK_BYTES)
        .spawn(move || BackgroundLoop::new(shared, poller).run())?;
    Ok(())
}

const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// A registered context.
struct WatchedContext {
    context: Weak<dyn UndrivenContext>,
    token: u64,
    polls_seen: u64,
    changed_at: Option<std::time::Instant>,
    adopted: bool,
}

struct BackgroundLoop {
    shared: &'static ThreadControl,
    poller: Poller,
    watched: Vec<WatchedContext>,
    next_token: u64,
}

/// How long the thread may sleep.
#[derive(Clone, Copy, PartialEq)]
enum SleepLimit {
    Unlimited,
    For(Duration),
}

impl SleepLimit {
    fn shorten_to(self, limit: Duration) -> Self {
        match self {
            Self::For(nap) if nap <= limit => self,
            _ => Self::For(limit),
        }
    }
}

impl BackgroundLoop {
    fn new(shared: &'static ThreadControl, poller: Poller) -> Self {
        Self {
            shared,
            poller,
            watched: Vec::new(),
            next_token: 0,
        }
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(16);
        loop {
            self.register_new_contexts();
            let nap = self.poll_all();
            let limit = match nap {
                SleepLimit::Unlimited => None,
                SleepLimit::For(nap) => Some(nap),
            };
            let _ = self.poller.wait(&mut events, limit);
            for event in events.iter() {
                match event.token {
                    TIMER => {
                        self.shared.timer.drain();
                        self.shared.armed.store(false, Ordering::Relaxed);
                    }
                    WAKER => {
                        self.shared.waker.drain();
                    }
                    _ => {}
                }
            }
        }
    }

    fn register_new_contexts(&mut self) {
        for context in self.shared.new_contexts.lock().drain(..) {
            self.next_token += 1;
            self.watched.push(WatchedContext {
                context,
                token: self.next_token,
                polls_seen: 0,
                changed_at: None,
                adopted: false,
            });
        }
    }

    /// Serves every context once.
    fn poll_all(&mut self) -> SleepLimit {
        let mut nap = SleepLimit::Unlimited;
        let (poller, contexts) = (&self.poller, &self.shared.contexts);
        self.watched.retain_mut(|charge| {
            let Some(context) = charge.context.upgrade() else {
                contexts.fetch_sub(1, Ordering::Relaxed);
                return false;
            };
            if context.is_closed() {
                charge.release(poller, &*context);
                contexts.fetch_sub(1, Ordering::Relaxed);
                return false;
            }
            nap = charge.poll_context(poller, &*context, nap);
            true
        });
        nap
    }
}

impl WatchedContext {
    #[allow(
        clippy::disallowed_methods,
        reason = "real time decides how long a context was not driven"
    )]
    fn poll_context(
        &mut self,
        poller: &Poller,
        context: &dyn UndrivenContext,
        nap: SleepLimit,
    ) -> SleepLimit {
        let (turns, in_poll) = context.poll_counter();
        if in_poll {
            self.polls_seen = turns;
            self.release(poller, context);
            return nap;
        }
        if turns != self.polls_seen {
            self.polls_seen = turns;
            self.changed_at = Some(std::time::Instant::now());
            self.release(poller, context);
            return nap.shorten_to(UNDRIVEN_AFTER);
        }
        let away = self.changed_at.map(|at| at.elapsed());
        if let Some(left) = away.and_then(|away| UNDRIVEN_AFTER.checked_sub(away)) {
            return nap.shorten_to(left + Duration::from_millis(1));
        }
        self.drive(poller, context, nap)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "real time decides how long a context was not driven"
    )]
    fn drive(
        &mut self,
        poller: &Poller,
        context: &dyn UndrivenContext,
        nap: SleepLimit,
    ) -> SleepLimit {
        if !self.adopted
            && let Some(fd) = context.descriptor()
        {
            self.adopted = poller.add(fd, self.token).is_ok();
        }
        if !context.drive_undriven(ROUNDS_MAX) {
            // Another thread has just returned to its poll.
            self.changed_at = Some(std::time::Instant::now());
            self.release(poller, context);
            return nap.shorten_to(UNDRIVEN_AFTER);
        }
        let next = context.begin_background_sleep();
        if next == Instant::FAR_FUTURE {
            return nap;
        }
        let span = next.since(context.now()).to_std();
        nap.shorten_to(span.unwrap_or(Duration::from_secs(3600)))
    }

    fn release(&mut self, poller: &Poller, context: &dyn UndrivenContext) {
        if std::mem::take(&mut self.adopted)
            && let Some(fd) = context.descriptor()
        {
            let _ = poller.remove(fd.as_fd());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A context that another thread drives.
    #[derive(Default)]
    struct DrivenContext {
        polls: AtomicU64,
        is_closed: AtomicBool,
    }

    impl UndrivenContext for DrivenContext {
        fn drive_undriven(&self, _: usize) -> bool {
            false
        }

        fn next_deadline(&self) -> Instant {
            Instant::FAR_FUTURE
        }

        fn begin_background_sleep(&self) -> Instant {
            Instant::FAR_FUTURE
        }

        fn poll_counter(&self) -> (u64, bool) {
            (self.polls.fetch_add(1, Ordering::Relaxed), true)
        }

        fn is_closed(&self) -> bool {
            self.is_closed.load(Ordering::Relaxed)
        }

        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn memory_bytes(&self) -> (usize, usize) {
            (0, 0)
        }

        fn exceeded_limit(&self) -> Option<String> {
            None
        }
    }

    #[test]
    fn a_closed_context_is_watched_no_more_and_counts_once() {
        let shared: &ThreadControl = Box::leak(Box::new(start_thread_control().unwrap()));
        let io = BackgroundIo { shared };
        let contexts = [(); 3].map(|()| Arc::new(DrivenContext::default()));
        for context in &contexts {
            let weak: Weak<DrivenContext> = Arc::downgrade(context);
            io.adopt(weak);
        }
        let mut thread = BackgroundLoop::new(shared, Poller::new().unwrap());
        thread.register_new_contexts();
        let mut watched = || {
            assert!(thread.poll_all() == SleepLimit::Unlimited);
            (
                thread.watched.len(),
                shared.contexts.load(Ordering::Relaxed),
            )
        };
        assert_eq!(watched(), (3, 3));
        let [closed, dropped, stays] = contexts;
        closed.is_closed.store(true, Ordering::Relaxed);
        drop(dropped);
        for _ in 0..2 {
            assert_eq!(watched(), (1, 1));
        }
        let polls = |context: &DrivenContext| context.polls.load(Ordering::Relaxed);
        assert_eq!((polls(&closed), polls(&stays)), (1, 3));
    }
}

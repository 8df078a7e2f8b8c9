//! The one helper thread of a process: it drives a context while user code
//! keeps every spinning thread busy, or while nobody spins at all, so that
//! acknowledgements, heartbeats and leases go on.
//!
//! It costs nothing per message: a thread that leaves its turn arms a timer at
//! most once per [`ABANDONED_AFTER`]; only if no turn has followed when it
//! fires does the helper adopt the context's sockets, until a turn is seen
//! again. A process that rests inside its spin never wakes it, nor does one
//! whose callbacks are short and far between: it takes the timer back.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_net::{Events, Poller, Timer, Waker};
use pteros_rtps::time::Instant;

use crate::core::Core;

/// User code that is busy for longer than this gets the helper.
const ABANDONED_AFTER: Duration = Duration::from_millis(50);

/// A thread that slept for less is taken to do so again.
const WAKES_SOON: Duration = Duration::from_millis(40);

/// Stack of the helper thread: it runs the protocol, no user code.
const STACK_BYTES: usize = 256 * 1024;

/// Rounds of emptying sockets before the helper looks at the others again.
const ROUNDS_MAX: usize = 64;

/// The helper of this process.
pub struct Helper {
    shared: &'static Shared,
}

struct Shared {
    armed: AtomicBool,
    /// Contexts that it looks after.
    contexts: AtomicUsize,
    timer: Timer,
    waker: Waker,
    newcomers: Mutex<Vec<Weak<Core>>>,
}

impl Helper {
    /// The process's helper, started on first use; `None` where the system
    /// refuses a thread or descriptors: then only spinning threads drive.
    pub fn of_process() -> Option<Self> {
        static SHARED: OnceLock<Option<Shared>> = OnceLock::new();
        let shared = SHARED
            .get_or_init(|| match start() {
                Ok(shared) => Some(shared),
                Err(e) => {
                    tracing::warn!("no helper thread ({e}): spin without long callbacks");
                    None
                }
            })
            .as_ref()?;
        static THREAD: OnceLock<bool> = OnceLock::new();
        let running = *THREAD.get_or_init(|| spawn(shared));
        running.then_some(Self { shared })
    }

    /// Puts a context into the helper's care.
    pub(crate) fn adopt(&self, core: &Arc<Core>) {
        self.shared.contexts.fetch_add(1, Ordering::Relaxed);
        self.shared.newcomers.lock().push(Arc::downgrade(core));
        self.shared.waker.wake();
    }

    /// Notes that a thread has left its turn.
    pub(crate) fn turn_left(&self) {
        // Relaxed: a lost race arms the timer twice, which is harmless.
        if self.shared.armed.load(Ordering::Relaxed) {
            return;
        }
        self.shared.armed.store(true, Ordering::Relaxed);
        self.shared.timer.arm(ABANDONED_AFTER);
    }

    /// Notes that a thread rests in its turn, and how long it did before: where
    /// its context is the only one the helper need not wake to see that. One that
    /// will wake soon finds the timer armed: between a message and its callback
    /// there is no time for that.
    pub(crate) fn turn_rests(&self, slept: pteros_rtps::time::Duration) {
        if self.shared.contexts.load(Ordering::Relaxed) != 1
            || !self.shared.armed.load(Ordering::Relaxed)
        {
            return;
        }
        match slept.to_std().filter(|slept| *slept < WAKES_SOON) {
            Some(slept) => self.shared.timer.arm(slept + ABANDONED_AFTER),
            None => {
                self.shared.timer.disarm();
                self.shared.armed.store(false, Ordering::Relaxed);
            }
        }
    }
}

fn start() -> std::io::Result<Shared> {
    Ok(Shared {
        armed: AtomicBool::new(false),
        contexts: AtomicUsize::new(0),
        timer: Timer::new()?,
        waker: Waker::new()?,
        newcomers: Mutex::new(Vec::new()),
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the process's only thread of our own"
)]
fn spawn(shared: &'static Shared) -> bool {
    let Ok(poller) = Poller::new() else {
        return false;
    };
    if poller.add(&shared.timer, TIMER).is_err() || poller.add(&shared.waker, WAKER).is_err() {
        return false;
    }
    std::thread::Builder::new()
        .name("pteros-helper".into())
        .stack_size(STACK_BYTES)
        .spawn(move || Rounds::new(shared, poller).run())
        .is_ok()
}

const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// A context in care.
struct Charge {
    core: Weak<Core>,
    token: u64,
    turns_seen: u64,
    changed_at: Option<std::time::Instant>,
    adopted: bool,
}

struct Rounds {
    shared: &'static Shared,
    poller: Poller,
    charges: Vec<Charge>,
    next_token: u64,
}

/// How long the helper may sleep.
#[derive(Clone, Copy, PartialEq)]
enum Nap {
    Unlimited,
    For(Duration),
}

impl Nap {
    fn at_most(self, limit: Duration) -> Self {
        match self {
            Self::For(nap) if nap <= limit => self,
            _ => Self::For(limit),
        }
    }
}

impl Rounds {
    fn new(shared: &'static Shared, poller: Poller) -> Self {
        Self {
            shared,
            poller,
            charges: Vec::new(),
            next_token: 0,
        }
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(16);
        loop {
            self.welcome();
            let nap = self.look();
            let limit = match nap {
                Nap::Unlimited => None,
                Nap::For(nap) => Some(nap),
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

    fn welcome(&mut self) {
        for core in self.shared.newcomers.lock().drain(..) {
            self.next_token += 1;
            self.charges.push(Charge {
                core,
                token: self.next_token,
                turns_seen: 0,
                changed_at: None,
                adopted: false,
            });
        }
    }

    /// Looks after every context once.
    fn look(&mut self) -> Nap {
        let mut nap = Nap::Unlimited;
        let (poller, contexts) = (&self.poller, &self.shared.contexts);
        self.charges.retain_mut(|charge| {
            let Some(core) = charge.core.upgrade() else {
                contexts.fetch_sub(1, Ordering::Relaxed);
                return false;
            };
            if core.is_closed() {
                charge.release(poller, &core);
                contexts.fetch_sub(1, Ordering::Relaxed);
                return false;
            }
            nap = charge.look(poller, &core, nap);
            true
        });
        nap
    }
}

impl Charge {
    #[allow(
        clippy::disallowed_methods,
        reason = "how long a thread has been away is a matter of this machine's clock"
    )]
    fn look(&mut self, poller: &Poller, core: &Arc<Core>, nap: Nap) -> Nap {
        let (turns, in_turn) = core.turns();
        if in_turn {
            self.turns_seen = turns;
            self.release(poller, core);
            return nap;
        }
        if turns != self.turns_seen {
            self.turns_seen = turns;
            self.changed_at = Some(std::time::Instant::now());
            self.release(poller, core);
            return nap.at_most(ABANDONED_AFTER);
        }
        let away = self.changed_at.map(|at| at.elapsed());
        if let Some(left) = away.and_then(|away| ABANDONED_AFTER.checked_sub(away)) {
            return nap.at_most(left + Duration::from_millis(1));
        }
        self.drive(poller, core, nap)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "how long a thread has been away is a matter of this machine's clock"
    )]
    fn drive(&mut self, poller: &Poller, core: &Arc<Core>, nap: Nap) -> Nap {
        if !self.adopted
            && let Some(fd) = core.transport.descriptor()
        {
            self.adopted = poller.add(fd, self.token).is_ok();
        }
        if !core.drive_for_others(ROUNDS_MAX) {
            // Somebody has just come back.
            self.changed_at = Some(std::time::Instant::now());
            self.release(poller, core);
            return nap.at_most(ABANDONED_AFTER);
        }
        let next = core.sleep_on_behalf();
        if next == Instant::FAR_FUTURE {
            return nap;
        }
        let span = next.since(core.env.now()).to_std();
        nap.at_most(span.unwrap_or(Duration::from_secs(3600)))
    }

    fn release(&mut self, poller: &Poller, core: &Core) {
        if std::mem::take(&mut self.adopted)
            && let Some(fd) = core.transport.descriptor()
        {
            let _ = poller.remove(fd.as_fd());
        }
    }
}

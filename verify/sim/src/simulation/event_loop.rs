//! The event loop: virtual clock, processes and network, without a world's events.
//!
//! Processes are real contexts of the engine. Everything runs on one thread. A
//! publish that blocks continues the event loop inside [`EventLoop::wait`]. A world
//! adds its own events as an [`Agenda`].
//!
//! Lock order: no lock of the loop is held while the engine runs, except the
//! network's lock for a single datagram.
//!
//! Its methods are the steps of the loop and the state that worlds, threads and
//! processes read from it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use pteros_runtime::platform::UndrivenContext;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::{Core, DriverState};
use pteros_seeded_bugs::take_steps;

use super::process::SimProcess;
use super::thread_scheduler::ThreadScheduler;
use crate::network::Network;
use crate::network::trace::Trace;

/// Maximum timer wake-ups of one process at one instant. More is a busy loop.
const TIMERS_PER_INSTANT_MAX: u32 = 50;

/// Maximum work steps for one datagram. A datagram has several submessages. Each
/// names at most 256 sequence numbers and may cause as many retransmissions, the
/// largest of 75 fragments at two steps each.
const STEPS_PER_DATAGRAM_MAX: u64 = 40_000;

/// Datagrams and shared-memory records that a context has received.
fn received(core: &Core) -> u64 {
    let linked = core
        .discovery()
        .connection_counts()
        .map_or(0, |counts| counts.received);
    core.counts().datagrams_received + linked
}

/// Rounds of reading the sockets of an external context per poll.
const DRAIN_ROUNDS: usize = 64;

/// Violated invariants in the order of their detection. Each begins with the name
/// of its invariant.
pub type Violations = Arc<Mutex<Vec<String>>>;

/// The events of a world.
pub trait Agenda: Send + Sync {
    /// When the next event is due.
    fn next_at(&self) -> Option<u64>;

    /// Applies the next event.
    fn apply_next(&self);

    /// Handles what endpoints of a process reported during a call into the engine.
    fn handle_ready(&self, process: usize);
}

/// The clock, the network and the processes of a run.
pub struct EventLoop {
    now: AtomicU64,
    failed: AtomicBool,
    violations: Violations,
    network: Mutex<Network>,
    processes: Mutex<Vec<SimProcess>>,
    agenda: OnceLock<Weak<dyn Agenda>>,
    wall_offsets: Vec<AtomicI64>,
    /// Switches between threads that wait in simulated time.
    pub(super) scheduler: ThreadScheduler,
}

/// Next event of the loop.
enum NextEvent {
    Datagram,
    Poll(usize),
    Agenda,
}

impl EventLoop {
    /// A loop in which no process runs yet. `hosts` holds the host of each process,
    /// and `seed` drives the network.
    pub fn new(hosts: &[u8], seed: u64, trace: Trace) -> Arc<Self> {
        let process = |host: &u8| SimProcess {
            host: *host,
            ..SimProcess::default()
        };
        Arc::new(Self {
            // Not 0, so that an engine that takes 0 for "never" fails.
            now: AtomicU64::new(1_000_000_000),
            failed: AtomicBool::new(false),
            violations: Violations::default(),
            network: Mutex::new(Network::new(seed, hosts.len(), trace)),
            processes: Mutex::new(hosts.iter().map(process).collect()),
            agenda: OnceLock::new(),
            wall_offsets: hosts.iter().map(|_| AtomicI64::new(0)).collect(),
            scheduler: ThreadScheduler::default(),
        })
    }

    /// Adds the events of a world, once.
    pub fn set_agenda(&self, agenda: Weak<dyn Agenda>) {
        let set = self.agenda.set(agenda);
        debug_assert!(set.is_ok(), "a loop has one world");
    }

    fn agenda(&self) -> Option<Arc<dyn Agenda>> {
        self.agenda.get()?.upgrade()
    }

    /// The virtual clock in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Advances the clock.
    pub fn set_now(&self, at: u64) {
        self.now.fetch_max(at, Ordering::Relaxed);
    }

    /// Locks the network.
    pub fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock()
    }

    /// Locks the processes.
    pub fn processes(&self) -> MutexGuard<'_, Vec<SimProcess>> {
        self.processes.lock()
    }

    /// The offset of a process's wall clock in nanoseconds.
    pub fn wall_offset(&self, process: usize) -> i64 {
        self.wall_offsets[process].load(Ordering::Relaxed)
    }

    /// Sets the offset of a process's wall clock.
    pub fn set_wall_offset(&self, process: usize, offset: i64) {
        self.wall_offsets[process].store(offset, Ordering::Relaxed);
    }

    /// The list of violated invariants.
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// Records violated invariants, and ends the run if there are any.
    pub fn report(&self, wrong: impl IntoIterator<Item = String>) {
        self.violations.lock().extend(wrong);
        self.check_failure();
    }

    /// Ends the run if an invariant is violated.
    pub fn check_failure(&self) {
        if !self.violations.lock().is_empty() {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// Records a violated invariant. The run ends after this event.
    pub fn fail(&self, text: String) {
        self.violations.lock().push(text);
    }

    /// Adds a line to a readable trace.
    pub fn trace_line(&self, line: std::fmt::Arguments<'_>) {
        let now = self.now();
        self.network().trace.line(now, line);
    }

    /// Records which socket a process has opened.
    pub fn record_socket(&self, process: usize, number: usize) {
        self.processes.lock()[process].socket = Some(number);
    }

    /// The context of a process, if it runs.
    pub fn core(&self, process: usize) -> Option<Arc<Core>> {
        let processes = self.processes.lock();
        Some(processes[process].running.as_ref()?.core.clone())
    }

    /// The ready queue of a process, if it runs.
    pub fn queue(&self, process: usize) -> Option<Arc<ReadyQueue>> {
        let processes = self.processes.lock();
        Some(processes[process].running.as_ref()?.queue.clone())
    }

    /// Runs a call of a process that may block. Other processes go on meanwhile.
    pub fn blocking<R>(&self, process: usize, call: impl FnOnce() -> R) -> R {
        self.processes()[process].blocked = true;
        let outcome = call();
        self.processes()[process].blocked = false;
        outcome
    }

    /// Runs all events that are due until `limit`.
    pub fn run_until(&self, limit: u64) {
        while !self.has_failed() && self.step(limit) {}
        self.set_now(limit);
    }

    /// Whether an invariant is violated.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Runs the next event if it is due until `limit`. False if it is not.
    pub fn step(&self, limit: u64) -> bool {
        let Some((at, next)) = self.next().filter(|(at, _)| *at <= limit) else {
            return false;
        };
        self.set_now(at);
        match next {
            NextEvent::Datagram => {
                let now = self.now();
                let socket = self.network().deliver_next(now);
                if let Some(socket) = socket {
                    let process = self.network().sockets[socket].process;
                    self.poll_process(process);
                }
            }
            NextEvent::Poll(process) => {
                self.count_timer(process);
                self.poll_process(process);
            }
            NextEvent::Agenda => {
                if let Some(agenda) = self.agenda() {
                    agenda.apply_next();
                }
            }
        }
        self.check_failure();
        true
    }

    fn next(&self) -> Option<(u64, NextEvent)> {
        let now = self.now();
        let mut best = None;
        let mut offer = |at: Option<u64>, next: NextEvent| {
            if let Some(at) = at {
                let at = at.max(now);
                if best.as_ref().is_none_or(|(earliest, _)| at < *earliest) {
                    best = Some((at, next));
                }
            }
        };
        for (index, process) in self.processes.lock().iter().enumerate() {
            if let Some(running) = process.running.as_ref().filter(|_| !process.blocked) {
                let at = running.core.next_deadline().as_nanos();
                let at = at.max(process.paused_until);
                offer((at < u64::MAX).then_some(at), NextEvent::Poll(index));
            }
            offer(process.external_due(), NextEvent::Poll(index));
        }
        offer(self.network().next_at(), NextEvent::Datagram);
        let events = self.agenda().and_then(|agenda| agenda.next_at());
        offer(events, NextEvent::Agenda);
        best
    }

    /// I7: no process wakes up repeatedly without progress of time.
    fn count_timer(&self, process: usize) {
        let now = self.now();
        let mut processes = self.processes.lock();
        let entry = &mut processes[process];
        entry.timers = match entry.timers {
            (at, count) if at == now => (at, count + 1),
            _ => (now, 1),
        };
        let most = match entry.external {
            // The polls of its callbacks count as well.
            Some(_) => 20 * TIMERS_PER_INSTANT_MAX,
            None => TIMERS_PER_INSTANT_MAX,
        };
        if entry.timers.1 > most {
            drop(processes);
            self.fail(format!("I7 p{process}: its timers fire in a busy loop"));
        }
    }

    /// Polls a process until it has no more input, unless it is blocked or paused.
    pub fn poll_process(&self, process: usize) {
        if self.poll_external(process) {
            return;
        }
        let now = self.now();
        loop {
            let (core, mut state) = {
                let mut processes = self.processes.lock();
                let entry = &mut processes[process];
                if entry.blocked || entry.paused_until > now {
                    return;
                }
                entry.polls_total += 1;
                let Some(running) = &mut entry.running else {
                    return;
                };
                let Some(state) = running.state.take() else {
                    return;
                };
                (running.core.clone(), state)
            };
            self.poll_within_budget(process, &core, &mut state);
            let socket = {
                let mut processes = self.processes.lock();
                if let Some(running) = &mut processes[process].running {
                    running.state = Some(state);
                }
                processes[process].socket
            };
            self.drain_ready(process);
            let has_input = socket.is_some_and(|s| self.network().has_input(s));
            if !has_input || self.has_failed() {
                return;
            }
        }
    }

    /// I8 and I10: the work of one poll is bounded by the number of received
    /// datagrams, and every queue stays within its limit.
    fn poll_within_budget(&self, process: usize, core: &Core, state: &mut DriverState) {
        let before = received(core);
        take_steps();
        core.driver().poll_now(state);
        let steps = take_steps();
        let datagrams = received(core) - before;
        let bound = STEPS_PER_DATAGRAM_MAX * (datagrams + 1);
        if steps > bound {
            self.fail(format!(
                "I10 p{process}: {steps} steps of work for {datagrams} datagrams, bound {bound}"
            ));
        }
        self.check_memory(process, core);
    }

    /// I8: no queue or table exceeds its limit.
    pub fn check_memory(&self, process: usize, core: &dyn UndrivenContext) {
        if let Some(exceeded) = core.exceeded_limit() {
            self.fail(format!("I8 p{process}: {exceeded}"));
        }
        let (held, most) = core.memory_bytes();
        if held > most {
            self.fail(format!("I8 p{process}: {held} bytes held, at most {most}"));
        }
    }

    /// Drains the ready queue of a process after a call into its context.
    pub fn drain_ready(&self, process: usize) {
        let Some(queue) = self.queue(process) else {
            return;
        };
        while let Some(task) = queue.pop() {
            task.run();
        }
        if let Some(agenda) = self.agenda() {
            agenda.handle_ready(process);
        }
    }

    /// Attaches an external context, in place of the previous one.
    pub fn attach_external_context(&self, process: usize, core: &Weak<dyn UndrivenContext>) {
        let left = self.processes()[process].external.replace(core.clone());
        drop(left);
    }

    /// As [`Self::poll_process`] for an external context. False if there is
    /// none.
    fn poll_external(&self, process: usize) -> bool {
        loop {
            let now = self.now();
            let core = {
                let mut processes = self.processes();
                let entry = &mut processes[process];
                let Some(external) = &entry.external else {
                    return false;
                };
                if entry.blocked || entry.paused_until > now {
                    return true;
                }
                entry.polls_total += 1;
                external.upgrade()
            };
            let Some(core) = core else {
                return true;
            };
            core.drive_undriven(DRAIN_ROUNDS);
            self.check_memory(process, &*core);
            let socket = self.processes()[process].socket;
            let has_input = socket.is_some_and(|s| self.network().has_input(s));
            if !has_input || self.has_failed() {
                return true;
            }
        }
    }
}

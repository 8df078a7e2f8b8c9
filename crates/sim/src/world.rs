//! The simulated world: virtual clock, processes and the event loop.
//!
//! Processes are real contexts of the engine. Everything runs on one thread. A
//! publish that blocks continues the event loop inside
//! [`SimWorld::wait_for_datagram`].
//!
//! Lock order: no lock of the world is held while the engine runs, except the
//! network's lock for a single datagram.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use pteros_runtime::graph::NodeKey;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::{Core, CoreOptions, DriverState};

use crate::env::SimEnv;
use crate::external_context::{ExternalContext, ScheduledActions};
use crate::model::{Model, ReadySource};
use crate::network::Network;
use crate::plan::SeedPlan;
use crate::schedule::Schedule;
use crate::scheduler::{ThreadScheduler, WakeCondition};
use crate::service::Services;
use crate::trace::Trace;

/// Maximum timer wake-ups of one process at one instant. More is a busy loop.
const TIMERS_PER_INSTANT_MAX: u32 = 50;

/// Maximum work steps for one datagram. A datagram has several submessages. Each
/// names at most 256 sequence numbers and may cause as many retransmissions, the
/// largest of 75 fragments at two steps each.
const STEPS_PER_DATAGRAM_MAX: u64 = 40_000;

/// Work steps since the last call. Always 0 in builds without fault points.
fn take_steps() -> u64 {
    #[cfg(feature = "faults")]
    return pteros_rtps::fault::take_steps();
    #[cfg(not(feature = "faults"))]
    0
}

/// Chance in 1/10000, at each use, that a shared-memory connection is refused, is
/// full, or ends.
const CONNECTION_FAULT_RATE: u32 = 20;

/// Datagrams and shared-memory records that a context has received.
fn received(core: &Core) -> u64 {
    let linked = core.connection_counts().map_or(0, |counts| counts.received);
    core.counts().datagrams_received + linked
}

/// A running process.
pub struct RunningProcess {
    /// Its context.
    pub core: Arc<Core>,
    state: Option<DriverState>,
    /// The ready queue of its endpoints.
    pub queue: Arc<ReadyQueue>,
    /// Its nodes.
    pub nodes: Vec<(NodeKey, String)>,
}

/// A process of the plan. It may die and start again as another incarnation.
#[derive(Default)]
pub struct SimProcess {
    /// Its host, the last byte of its IP address.
    pub host: u8,
    /// The running process, if any.
    pub running: Option<RunningProcess>,
    /// A context that a caller opened instead, if any.
    pub external: Option<ExternalContext>,
    /// Number of starts so far.
    pub incarnations: u32,
    /// The incarnation that first used the current GUID prefix.
    identity: u32,
    /// Paused until this time.
    pub paused_until: u64,
    /// Its thread blocks in a publish.
    pub blocked: bool,
    /// It was paused, so its events may have come late.
    pub was_paused: bool,
    /// Its open socket.
    pub socket: Option<usize>,
    /// Time and number of the timer wake-ups at the present instant.
    timers: (u64, u32),
    /// Polls of its driver in all.
    pub polls_total: u64,
}

/// A simulated world: its processes, network, clock and schedule of events.
pub struct SimWorld {
    now: AtomicU64,
    failed: AtomicBool,
    /// The plan of this seed.
    pub plan: SeedPlan,
    network: Mutex<Network>,
    processes: Mutex<Vec<SimProcess>>,
    /// Scheduled events.
    pub schedule: Mutex<Schedule>,
    /// The oracle.
    pub model: Mutex<Model>,
    /// Service clients and servers.
    pub(crate) services: Mutex<Services>,
    /// Endpoints that became ready during the last call into the engine.
    pub ready_sources: Arc<Mutex<Vec<ReadySource>>>,
    wall_offsets: Vec<AtomicI64>,
    /// Switches between threads that wait in simulated time.
    pub(crate) scheduler: ThreadScheduler,
    /// Scheduled actions that belong to no process.
    pub(crate) scheduled_actions: Mutex<ScheduledActions>,
    weak_self: Weak<SimWorld>,
}

/// The unique part of a process's GUID. It stands at both ends of the prefix,
/// because service clients are identified by a part of it.
pub(crate) fn unique(process: usize, incarnation: u32) -> [u8; 10] {
    let [a, b, c, d] = incarnation.to_le_bytes();
    let process = process as u8 + 1;
    [process, a, b, c, d, process, a, b, c, d]
}

/// Next event of the loop.
enum NextEvent {
    Datagram,
    ScheduledAction,
    Poll(usize),
    ScheduleEvent,
}

/// Gap intervals that a reader may store where limits are small.
const GAP_INTERVALS_TIGHT: usize = 3;

/// Seeds of the random numbers of a world.
#[derive(Clone, Copy, Debug)]
pub struct WorldSeeds {
    /// Of the network.
    pub network: u64,
    /// Of the schedule.
    pub schedule: u64,
}

impl SimWorld {
    /// A world in which no process runs yet.
    pub fn new(plan: SeedPlan, seeds: WorldSeeds, trace: Trace) -> Arc<Self> {
        let count = plan.hosts.len();
        let process = |host: &u8| SimProcess {
            host: *host,
            ..SimProcess::default()
        };
        Arc::new_cyclic(|weak_self| Self {
            // Not 0, so that an engine that takes 0 for "never" fails.
            now: AtomicU64::new(1_000_000_000),
            failed: AtomicBool::new(false),
            network: Mutex::new(Network::new(seeds.network, count, trace)),
            processes: Mutex::new(plan.hosts.iter().map(process).collect()),
            schedule: Mutex::new(Schedule::new(seeds.schedule)),
            model: Mutex::new(Model {
                lenient: plan.has(crate::plan::Fault::Corrupt),
                guid_reused: plan.has(crate::plan::Fault::GuidReuse),
                ..Model::default()
            }),
            services: Mutex::default(),
            ready_sources: Arc::default(),
            wall_offsets: (0..count).map(|_| AtomicI64::new(0)).collect(),
            scheduler: ThreadScheduler::default(),
            scheduled_actions: Mutex::default(),
            weak_self: weak_self.clone(),
            plan,
        })
    }

    /// The virtual clock in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn set_now(&self, at: u64) {
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

    /// Records a violated invariant. The run ends.
    pub fn fail(&self, text: String) {
        self.model.lock().fail(text);
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

    /// Starts a process and returns the number of its incarnation.
    pub fn start(&self, process: usize) -> u32 {
        let returns = self.plan.has(crate::plan::Fault::GuidReuse)
            && self.processes.lock()[process].incarnations > 0
            && self.schedule.lock().random.bool();
        let (host, incarnations, identity) = {
            let mut processes = self.processes.lock();
            let entry = &mut processes[process];
            entry.incarnations += 1;
            if !returns {
                entry.identity = entry.incarnations;
            }
            (entry.host, entry.incarnations, entry.identity)
        };
        let unique = unique(process, identity);
        let mut options = CoreOptions {
            lease: self.plan.lease,
            ..CoreOptions::default()
        };
        options.shared_memory.enabled =
            self.plan.has(crate::plan::Fault::SharedMemory) && !self.is_cyclone(process);
        if options.shared_memory.enabled && !self.schedule.lock().healed {
            self.network().connection_fault_rate = CONNECTION_FAULT_RATE;
        }
        if self.plan.flow_controlled {
            options.flow_controllers = vec![crate::generators::flow()];
        }
        if self.plan.has(crate::plan::Fault::SmallLimits) {
            options.limits.gap_intervals = GAP_INTERVALS_TIGHT;
        }
        self.open_core(process, (host, unique), options);
        incarnations
    }

    /// Starts a process with the caller's options.
    pub fn start_with(&self, process: usize, options: CoreOptions) {
        let (host, incarnations) = {
            let mut processes = self.processes.lock();
            processes[process].incarnations += 1;
            (processes[process].host, processes[process].incarnations)
        };
        let unique = unique(process, incarnations);
        self.open_core(process, (host, unique), options);
    }

    fn open_core(&self, process: usize, (host, unique): (u8, [u8; 10]), options: CoreOptions) {
        let full = self.plan.has(crate::plan::Fault::SocketFull);
        let env = Arc::new(SimEnv {
            world: self.weak_self.clone(),
            process,
            host,
            unique,
            is_external: false,
            disk: None,
            buffer_bytes: if full { 64 << 10 } else { 8 << 20 },
        });
        match Core::open(env, options) {
            Ok(core) => {
                let queue = core.ready_queue();
                self.processes.lock()[process].running = Some(RunningProcess {
                    core,
                    state: Some(DriverState::default()),
                    queue,
                    nodes: Vec::new(),
                });
            }
            Err(error) => self.fail(format!("I11 p{process}: cannot start: {error}")),
        }
    }

    /// Stops a process. `gracefully` announces the departure to peers.
    pub fn end(&self, process: usize, gracefully: bool) {
        let (running, socket) = {
            let mut processes = self.processes.lock();
            (
                processes[process].running.take(),
                processes[process].socket.take(),
            )
        };
        let Some(running) = running else { return };
        if gracefully {
            running.core.close();
        }
        if let Some(socket) = socket {
            let now = self.now();
            self.network().close(now, socket);
        }
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

    /// Ends the run if an invariant is violated.
    pub fn record_failure(&self, model: &Model) {
        if !model.violations.is_empty() {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn step(&self, limit: u64) -> bool {
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
            NextEvent::ScheduledAction => self.run_scheduled_action(),
            NextEvent::Poll(process) => {
                self.count_timer(process);
                self.poll_process(process);
            }
            NextEvent::ScheduleEvent => {
                let event = self.schedule.lock().next();
                if let Some(event) = event {
                    self.apply(event);
                }
            }
        }
        self.record_failure(&self.model.lock());
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
            offer(process.external_due(now), NextEvent::Poll(index));
        }
        offer(
            self.scheduled_actions.lock().next_at(),
            NextEvent::ScheduledAction,
        );
        offer(self.network().next_at(), NextEvent::Datagram);
        offer(self.schedule.lock().next_at(), NextEvent::ScheduleEvent);
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
        core.poll_now(state);
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
    pub fn check_memory(&self, process: usize, core: &Core) {
        if let Some(exceeded) = core.exceeded_limit() {
            self.fail(format!("I8 p{process}: {exceeded}"));
        }
        let (held, most) = (core.memory_bytes(), core.worst_case_bytes());
        if held > most {
            self.fail(format!("I8 p{process}: {held} bytes held, at most {most}"));
        }
    }

    /// Drains the ready queue of a process after a call into its context.
    pub fn drain_ready(&self, process: usize) {
        let queue = {
            let processes = self.processes.lock();
            let Some(running) = &processes[process].running else {
                return;
            };
            running.queue.clone()
        };
        while let Some(task) = queue.pop() {
            task.run();
        }
        let ready_sources = std::mem::take(&mut *self.ready_sources.lock());
        for source in ready_sources {
            self.handle_ready(source);
        }
        self.record_reader_activity(process);
    }

    /// Records new samples of readers whose deadlines are counted.
    fn record_reader_activity(&self, process: usize) {
        let now = self.now();
        let mut model = self.model.lock();
        for reader in model.readers.iter_mut() {
            if reader.location.process == process && reader.is_watched() {
                reader.record_activity(now);
            }
        }
    }

    /// Blocks a thread of the engine until a datagram arrives. The event loop runs
    /// on meanwhile.
    pub fn wait_for_datagram(&self, socket: usize, until: u64) {
        self.wait(&WakeCondition::Datagram(socket), until);
        self.network().sockets[socket].woken = false;
    }
}

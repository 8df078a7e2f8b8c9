//! The world of a workload of nodes: processes, link faults, clients, and the
//! report of violations.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::config::DiscoveryRange;
use pteros::limits::Limits;
use pteros::{
    Context, ContextOptions, Node,
    executors::{ChainExecutor, SingleThreadedExecutor},
};

use crate::harness::Counts;
use crate::harness::options::{Fault, Options};
use crate::network::link::Link;
use crate::simulation::Simulation;
use crate::simulation::threads::SimThread;

/// Index of the server's process. The others belong to clients.
pub const SERVER: usize = 0;

/// Number of processes, each on a host of its own.
const PROCESSES: usize = 5;

/// Maximum time from healing until everything is repaired.
pub const REPAIR_MAX: Duration = Duration::from_secs(5);

/// Tolerance of call time limits. No process is short of CPU here.
const CALL_SLACK: Duration = Duration::from_micros(1);

/// Violations, and counts of requests.
#[derive(Default)]
pub struct InvariantReport {
    violations: Mutex<Vec<String>>,
    asked: AtomicU64,
    done: AtomicU64,
}

impl InvariantReport {
    /// Records a violation. The text begins with the invariant's name.
    pub fn violation(&self, what: String) {
        let mut violations = self.violations.lock();
        if violations.len() < 20 {
            violations.push(what);
        }
    }

    /// Records a violation unless `holds`.
    pub fn expect(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violation(what());
        }
    }
}

/// Runs a workload of nodes in a simulation and collects invariant violations.
pub struct NodeWorld {
    pub sim: Arc<Simulation>,
    pub report: Arc<InvariantReport>,
    pub random: Mutex<Rng>,
    /// The seed of the run: consecutive runs take turns.
    pub run: u64,
    healed: Arc<AtomicBool>,
    options: Options,
}

/// Kind of the executor of a process.
#[derive(Clone, Copy, Debug)]
pub enum ExecutorKind {
    Single,
    Chain,
}

/// A process. Its nodes spin until it is dropped.
pub struct Process {
    pub context: Context,
    threads: Vec<SimThread>,
    kept: Vec<Box<dyn Any + Send>>,
}

impl Process {
    /// Keeps a value alive as long as the process.
    pub fn keep(&mut self, what: impl Any + Send) {
        self.kept.push(Box::new(what));
    }

    /// Adds a thread that spins until the context shuts down.
    pub fn add_thread(&mut self, thread: SimThread) {
        self.threads.push(thread);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.context.shutdown();
        self.threads.clear();
        self.kept.clear();
    }
}

/// A client's part of the world.
#[derive(Clone)]
pub struct Caller {
    pub sim: Arc<Simulation>,
    pub report: Arc<InvariantReport>,
    pub number: usize,
    healed: Arc<AtomicBool>,
}

impl Caller {
    /// Whether fault injection goes on.
    pub fn faults_active(&self) -> bool {
        !self.healed.load(Ordering::Relaxed)
    }

    /// Runs a call with the time limit `limit`; I11.
    pub fn call<R>(&self, what: &str, limit: Duration, call: impl FnOnce() -> R) -> R {
        let begin = self.sim.now();
        self.report.asked.fetch_add(1, Ordering::Relaxed);
        let outcome = call();
        let took = self.sim.now() - begin;
        self.report.expect(took <= limit + CALL_SLACK, || {
            format!(
                "I11 client {}: {what} took {took:?} of {limit:?}",
                self.number
            )
        });
        outcome
    }

    /// A process without nodes in the place of the client's last one, missed after `lease`.
    pub fn process(&self, lease: Duration) -> Process {
        open_process(&self.sim, self.number, Some(lease), Limits::default())
    }

    /// Counts a completed request.
    pub fn mark_done(&self) {
        self.report.done.fetch_add(1, Ordering::Relaxed);
    }
}

fn open_process(
    sim: &Simulation,
    process_index: usize,
    lease: Option<Duration>,
    limits: Limits,
) -> Process {
    let options = ContextOptions {
        limits,
        participant_lease: lease,
        domain_id: Some(0),
        discovery_range: Some(DiscoveryRange::Subnet),
        ..ContextOptions::default()
    };
    let context = Context::with_platform(sim.env(process_index, None), options);
    Process {
        context: context.expect("a simulated network has ports"),
        threads: Vec::new(),
        kept: Vec::new(),
    }
}

impl NodeWorld {
    /// Processes without contexts.
    pub fn new(seed: u64, options: &Options) -> Self {
        let hosts: Vec<u8> = (1u8..).take(PROCESSES).collect();
        let sim = Simulation::new(&hosts, seed);
        if options.readable {
            sim.record_trace();
        }
        Self {
            sim: Arc::new(sim),
            report: Arc::default(),
            random: Mutex::new(Rng::with_seed(seed)),
            run: seed,
            healed: Arc::default(),
            options: options.clone(),
        }
    }

    /// A process without nodes.
    pub fn process(&self, process_index: usize) -> Process {
        open_process(&self.sim, process_index, None, Limits::default())
    }

    /// A process without nodes, with these limits.
    pub fn process_with_limits(&self, process_index: usize, limits: Limits) -> Process {
        open_process(&self.sim, process_index, None, limits)
    }

    /// A process without nodes that is missed after `participant_lease`.
    pub fn process_with_lease(&self, process_index: usize, lease: Duration) -> Process {
        open_process(&self.sim, process_index, Some(lease), Limits::default())
    }

    /// Spins nodes of a process in an executor.
    pub fn spin(&self, process: &mut Process, spin: ExecutorKind, nodes: &[&Node]) {
        let context = process.context.clone();
        let nodes: Vec<Node> = nodes.iter().map(|node| (*node).clone()).collect();
        let thread = self.sim.spawn(Box::new(move || match spin {
            ExecutorKind::Single => {
                let executor = SingleThreadedExecutor::new(&context);
                for node in &nodes {
                    executor.add_node(node).expect("a node of this context");
                }
                executor.spin();
            }
            ExecutorKind::Chain => {
                let executor = ChainExecutor::new(&context);
                for node in &nodes {
                    executor.add_node(node).expect("a node of this context");
                }
                executor.spin();
            }
        }));
        process.add_thread(thread);
    }

    /// Whether the options leave a kind of fault in.
    pub fn has_fault(&self, fault: Fault) -> bool {
        !self.options.without.contains(&fault)
    }

    /// A random kind of executor.
    pub fn random_executor(&self) -> ExecutorKind {
        if self.random.lock().bool() {
            ExecutorKind::Single
        } else {
            ExecutorKind::Chain
        }
    }

    /// A seed for a client's random requests.
    pub fn seed(&self) -> u64 {
        self.random.lock().u64(..)
    }

    /// The part of client `number`.
    pub fn caller(&self, number: usize) -> Caller {
        Caller {
            sim: self.sim.clone(),
            report: self.report.clone(),
            number,
            healed: self.healed.clone(),
        }
    }

    /// Starts a client: a process with a node and random requests, whose `body` runs
    /// on a thread of its own.
    pub fn client(
        &self,
        number: usize,
        name: &str,
        body: impl FnOnce(Process, Caller, Node, Rng) + Send + 'static,
    ) -> SimThread {
        let process = self.process(number);
        let (caller, seed) = (self.caller(number), self.seed());
        let name = format!("{name}{number}");
        self.sim.spawn(Box::new(move || {
            let node = process.context.create_node(&name).expect("a node");
            body(process, caller, node, Rng::with_seed(seed));
        }))
    }

    /// Fault injection for some seconds, then healing. Links lose, duplicate and
    /// reorder, and are cut in one direction or both. Each cut is shorter than a
    /// lease.
    pub fn run_fault_phase(&self) {
        let millis = self.random.lock().u64(4_000..12_000);
        let millis = self.options.fault_millis.unwrap_or(millis);
        let until = self.sim.now() + Duration::from_millis(millis);
        while self.sim.now() < until {
            let pause = self.change_link_faults();
            self.sim.advance(pause);
        }
        self.sim.set_links(Link::perfect(100_000));
        self.sim.trace_line(format_args!("calm"));
        self.healed.store(true, Ordering::Relaxed);
    }

    fn change_link_faults(&self) -> Duration {
        let mut random = self.random.lock();
        let (server, other) = (SERVER, random.usize(1..PROCESSES));
        let (loss, duplicate) = (random.u32(0..3_000), random.u32(0..3_000));
        let (jitter, delay) = (random.u64(0..20_000_000), random.u64(100_000..5_000_000));
        let has = |fault| self.has_fault(fault);
        let faulty = Link {
            loss: if has(Fault::Loss) { loss } else { 0 },
            duplicate: if has(Fault::Duplicate) { duplicate } else { 0 },
            jitter: if has(Fault::Reorder) { jitter } else { 0 },
            ..Link::perfect(delay)
        };
        let cut = Link {
            cut: has(Fault::Cut),
            ..faulty
        };
        match random.u32(0..6) {
            0 => self.sim.set_links_between(server, other, cut),
            1 => self.sim.set_link(server, other, cut),
            2 => self.sim.set_link(other, server, cut),
            3 => self.sim.set_links(Link::perfect(100_000)),
            _ => self.sim.set_links(faulty),
        }
        self.sim.trace_line(format_args!(
            "link faults: {server} and {other}, {faulty:?}"
        ));
        Duration::from_millis(random.u64(200..2_500))
    }

    /// The violations that clients and servers found, once all processes have ended.
    pub fn violations(&self) -> Vec<String> {
        let mut violations = self.report.violations.lock().clone();
        let counts = self.counts();
        if counts.answered == 0 {
            violations.push(format!("none of {} requests was done", counts.asked));
        }
        violations
    }

    /// Requests of clients, and how many of them were done.
    pub fn counts(&self) -> Counts {
        Counts {
            asked: self.report.asked.load(Ordering::Relaxed),
            answered: self.report.done.load(Ordering::Relaxed),
            ..Counts::default()
        }
    }
}

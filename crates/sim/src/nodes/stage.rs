//! Where acts are played: processes, weather, clients, and the book in which is
//! written what is wrong.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::config::DiscoveryRange;
use pteros::{ChainExecutor, Context, ContextOptions, Node, SingleThreadedExecutor};

use super::{Act, Played};
use crate::link::Link;
use crate::relay::Companion;
use crate::simulation::Simulation;

/// The server's place; clients have the others.
pub const SERVER: usize = 0;

/// Places there are: hosts of their own.
const PLACES: usize = 5;

/// After the weather has cleared up everything is repaired within this.
pub const SOON: Duration = Duration::from_secs(5);

/// Calls end by their time limit to the microsecond: nobody is short of CPU here.
const LATE_MAX: Duration = Duration::from_micros(1);

/// What is wrong, and what was done.
#[derive(Default)]
pub struct Book {
    violations: Mutex<Vec<String>>,
    asked: AtomicU64,
    done: AtomicU64,
}

impl Book {
    /// Notes a broken invariant, in words that begin with its name.
    pub fn broken(&self, what: String) {
        let mut violations = self.violations.lock();
        if violations.len() < 20 {
            violations.push(what);
        }
    }

    /// Notes a broken invariant unless `holds`.
    pub fn expect(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken(what());
        }
    }
}

/// See the module's description.
pub struct Stage {
    pub sim: Arc<Simulation>,
    pub book: Arc<Book>,
    pub random: Mutex<Rng>,
    is_calm: Arc<AtomicBool>,
}

/// What spins the nodes of a process.
#[derive(Clone, Copy, Debug)]
pub enum Spin {
    Single,
    Chain,
}

/// A process: its nodes are spun until it is dropped.
pub struct Process {
    pub context: Context,
    spins: Vec<Companion>,
    kept: Vec<Box<dyn Any + Send>>,
}

impl Process {
    /// Keeps something as long as the process.
    pub fn keep(&mut self, what: impl Any + Send) {
        self.kept.push(Box::new(what));
    }

    /// Lets something of its own spin until the context shuts down.
    pub fn spins(&mut self, companion: Companion) {
        self.spins.push(companion);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.context.shutdown();
        self.spins.clear();
        self.kept.clear();
    }
}

/// A client's view of the stage.
#[derive(Clone)]
pub struct Asker {
    pub sim: Arc<Simulation>,
    pub book: Arc<Book>,
    pub number: usize,
    is_calm: Arc<AtomicBool>,
}

impl Asker {
    /// Whether the weather is bad still.
    pub fn goes_on(&self) -> bool {
        !self.is_calm.load(Ordering::Relaxed)
    }

    /// Calls something that may take `limit`; I11.
    pub fn call<R>(&self, what: &str, limit: Duration, call: impl FnOnce() -> R) -> R {
        let begin = self.sim.now();
        self.book.asked.fetch_add(1, Ordering::Relaxed);
        let outcome = call();
        let took = self.sim.now() - begin;
        self.book.expect(took <= limit + LATE_MAX, || {
            format!(
                "I11 client {}: {what} took {took:?} of {limit:?}",
                self.number
            )
        });
        outcome
    }

    /// Notes that something asked for was done.
    pub fn note_done(&self) {
        self.book.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Stage {
    pub fn new(seed: u64, readable: bool) -> Self {
        let hosts: Vec<u8> = (1u8..).take(PLACES).collect();
        let sim = Simulation::new(&hosts, seed);
        if readable {
            sim.keep_lines();
        }
        Self {
            sim: Arc::new(sim),
            book: Arc::default(),
            random: Mutex::new(Rng::with_seed(seed)),
            is_calm: Arc::default(),
        }
    }

    /// A process without nodes.
    pub fn process(&self, place: usize) -> Process {
        self.leased(place, None)
    }

    /// A process without nodes that is missed after `lease`.
    pub fn mortal(&self, place: usize, lease: Duration) -> Process {
        self.leased(place, Some(lease))
    }

    fn leased(&self, place: usize, lease: Option<Duration>) -> Process {
        let options = ContextOptions {
            lease,
            domain_id: Some(0),
            discovery_range: Some(DiscoveryRange::Subnet),
            ..ContextOptions::default()
        };
        let context = Context::with_env(self.sim.env(place, None), options);
        Process {
            context: context.expect("a simulated network has ports"),
            spins: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Lets an executor spin nodes of a process.
    pub fn spin(&self, process: &mut Process, spin: Spin, nodes: &[&Node]) {
        let context = process.context.clone();
        let nodes: Vec<Node> = nodes.iter().map(|node| (*node).clone()).collect();
        let companion = self.sim.companion(Box::new(move || match spin {
            Spin::Single => {
                let executor = SingleThreadedExecutor::new(&context);
                for node in &nodes {
                    executor.add_node(node).expect("a node of this context");
                }
                executor.spin();
            }
            Spin::Chain => {
                let executor = ChainExecutor::new(&context);
                for node in &nodes {
                    executor.add_node(node).expect("a node of this context");
                }
                executor.spin();
            }
        }));
        process.spins(companion);
    }

    /// One of the executors.
    pub fn any_spin(&self) -> Spin {
        match self.random.lock().bool() {
            true => Spin::Single,
            false => Spin::Chain,
        }
    }

    /// A number for a client's random deeds.
    pub fn seed(&self) -> u64 {
        self.random.lock().u64(..)
    }

    /// What client `number` has of the stage.
    pub fn asker(&self, number: usize) -> Asker {
        Asker {
            sim: self.sim.clone(),
            book: self.book.clone(),
            number,
            is_calm: self.is_calm.clone(),
        }
    }

    /// Bad weather for some seconds, then good: links lose, double and reorder, are
    /// cut in one direction or both, and come back. Whoever is cut off comes back
    /// before its lease is over.
    pub fn storm(&self) {
        let span = Duration::from_millis(self.random.lock().u64(4_000..12_000));
        let until = self.sim.now() + span;
        while self.sim.now() < until {
            let pause = self.turn_the_weather();
            self.sim.pass(pause);
        }
        self.sim.set_links(Link::perfect(100_000));
        self.sim.say(format_args!("calm"));
        self.is_calm.store(true, Ordering::Relaxed);
    }

    fn turn_the_weather(&self) -> Duration {
        let mut random = self.random.lock();
        let (one, other) = (SERVER, random.usize(1..PLACES));
        let (loss, duplicate) = (random.u32(0..3_000), random.u32(0..3_000));
        let rough = Link {
            loss,
            duplicate,
            jitter: random.u64(0..20_000_000),
            ..Link::perfect(random.u64(100_000..5_000_000))
        };
        let cut = Link { cut: true, ..rough };
        match random.u32(0..6) {
            0 => self.sim.set_links_between(one, other, cut),
            1 => self.sim.set_link(one, other, cut),
            2 => self.sim.set_link(other, one, cut),
            3 => self.sim.set_links(Link::perfect(100_000)),
            _ => self.sim.set_links(rough),
        }
        self.sim
            .say(format_args!("weather: {one} and {other}, {rough:?}"));
        Duration::from_millis(random.u64(200..2_500))
    }

    /// What it came to; all processes are to be gone.
    pub fn end(&self, act: Act, seed: u64) -> Played {
        let mut violations = self.book.violations.lock().clone();
        violations.extend(self.sim.violations());
        let asked = self.book.asked.load(Ordering::Relaxed);
        let done = self.book.done.load(Ordering::Relaxed);
        if done == 0 {
            violations.push(format!("{act}: nothing of {asked} was done"));
        }
        Played {
            act,
            seed,
            violations,
            hash: self.sim.hash(),
            simulated: self.sim.now(),
            asked: (asked, done),
            lines: self.sim.lines(),
        }
    }
}

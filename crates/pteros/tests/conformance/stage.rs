//! Where a conformance story is played: a publishing and a subscribing node,
//! within one context or in two that meet: on this host, over UDP or linked by shared
//! memory, or on two hosts of a simulated network, where time passes only while
//! somebody waits.

use std::path::Path as FolderPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use pteros::config::DiscoveryRange;
use pteros::env::SystemEnv;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{EndpointEvent, FlowController, NodeOptions, Path, SharedMemoryOptions};
use pteros_sim::{Companion, Link, Simulation, Work};

/// For whatever should happen soon, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Every context's flow controller: 5 MB/s in periods of 10 ms.
pub const SLOW: &str = "slow";

/// How samples travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Local,
    Udp,
    SharedMemory,
    /// Over a simulated network that is perfect.
    Sim,
    /// Over one that loses, doubles and reorders, as the seed says.
    Storm(u64),
}

impl Way {
    fn simulated(self) -> Option<Simulation> {
        match self {
            Self::Sim => Some(Simulation::new(&[1, 2], 1)),
            Self::Storm(seed) => {
                let sim = Simulation::new(&[1, 2], seed);
                sim.set_links(Link {
                    loss: 1_000,
                    duplicate: 1_000,
                    jitter: 3_000_000,
                    ..Link::perfect(200_000)
                });
                Some(sim)
            }
            Self::Local | Self::Udp | Self::SharedMemory => None,
        }
    }
}

pub struct Stage {
    pub way: Way,
    /// Within a process its nodes share values.
    pub shares: bool,
    pub publishing: Node,
    pub subscribing: Node,
    /// Contexts of their own, so that nothing but the endpoints is shared.
    contexts: Vec<Context>,
    opened: Instant,
    /// Dropped after those who live in it.
    sim: Option<Arc<Simulation>>,
}

impl Stage {
    pub fn new(way: Way) -> Self {
        Self::open(way, true)
    }

    /// Within one context, by nodes that share no values.
    pub fn as_bytes() -> Self {
        Self::open(Way::Local, false)
    }

    fn open(way: Way, shares: bool) -> Self {
        static STAGES: AtomicU32 = AtomicU32::new(0);
        // Far fewer are open at a time.
        let domain = 1 + STAGES.fetch_add(1, Ordering::Relaxed) % 232;
        let slow = FlowController::new(SLOW)
            .bytes_per_period(50_000)
            .period(Duration::from_millis(10));
        let stores = FolderPath::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stage-{domain}"));
        let _ = std::fs::remove_dir_all(&stores);
        let options = ContextOptions {
            flow_controllers: vec![slow],
            store_folder: Some(stores),
            shared_memory: SharedMemoryOptions {
                on: way == Way::SharedMemory,
                ..SharedMemoryOptions::default()
            },
            ..ContextOptions::local(domain)
        };
        let sim = way.simulated().map(Arc::new);
        let open = |place| match &sim {
            None => Context::with_options(options.clone()).unwrap(),
            Some(sim) => {
                let options = ContextOptions {
                    discovery_range: Some(DiscoveryRange::Subnet),
                    ..options.clone()
                };
                let disk = Arc::new(SystemEnv::new());
                Context::with_env(sim.env(place, Some(disk)), options).unwrap()
            }
        };
        let a = open(0);
        let b = match way {
            Way::Local => a.clone(),
            _ => open(1),
        };
        let node = |context: &Context, name: &str| {
            let options = NodeOptions::new(name).use_intra_process_comms(shares);
            context.node_with(options).unwrap()
        };
        let stage = Self {
            way,
            shares,
            publishing: node(&a, "publishing"),
            subscribing: node(&b, "subscribing"),
            contexts: vec![a, b],
            opened: Instant::now(),
            sim,
        };
        if way == Way::SharedMemory {
            stage.link();
        }
        stage
    }

    /// Links are made when endpoints match, and stay.
    fn link(&self) {
        let _publisher: Publisher<Text> = self.publishing.create_publisher("link", 1).unwrap();
        let _subscription: Subscription<Text> = self
            .subscribing
            .create_polled_subscription("link", 1)
            .unwrap();
        let paths = || {
            let [a, b] = [&self.contexts[0], &self.contexts[1]];
            [a.path_to(b.guid()), b.path_to(a.guid())]
        };
        self.until(&format!("linked: {:?}", paths()), || {
            paths().iter().all(|path| path.path == Path::SharedMemory)
        });
    }

    pub fn path(&self) -> Path {
        match self.way {
            Way::Local => Path::IntraProcess,
            Way::Udp | Way::Sim | Way::Storm(_) => Path::Network,
            Way::SharedMemory => Path::SharedMemory,
        }
    }

    pub fn publisher(&self, qos: &QosProfile) -> Publisher<Text> {
        self.publishing.create_publisher("topic", qos).unwrap()
    }

    pub fn subscription(&self, qos: &QosProfile) -> Subscription<Text> {
        self.subscribing
            .create_polled_subscription("topic", qos)
            .unwrap()
    }

    /// Both ends, matched; the matched events are taken.
    pub fn pair(&self, qos: &QosProfile) -> (Publisher<Text>, Subscription<Text>) {
        self.pair_of(qos, qos)
    }

    pub fn pair_of(
        &self,
        offered: &QosProfile,
        requested: &QosProfile,
    ) -> (Publisher<Text>, Subscription<Text>) {
        let publisher = self.publisher(offered);
        let subscription = self.subscription(requested);
        assert!(publisher.wait_for_matched(1, PATIENCE));
        assert!(subscription.wait_for_matched(1, PATIENCE));
        (publisher, subscription)
    }

    /// How long it has been there.
    pub fn now(&self) -> Duration {
        match &self.sim {
            Some(sim) => sim.now(),
            None => self.opened.elapsed(),
        }
    }

    /// What the wall clock shows.
    pub fn wall(&self) -> SystemTime {
        match &self.sim {
            Some(sim) => sim.wall(0),
            None => SystemTime::now(),
        }
    }

    /// Lets others work for a moment, without waiting for anything.
    pub fn step_aside(&self) {
        match &self.sim {
            Some(sim) => sim.pass(Duration::from_micros(50)),
            None => thread::yield_now(),
        }
    }

    /// Runs `body` and `other`, which may both block, at once.
    pub fn beside<R>(&self, other: impl FnOnce() + Send, body: impl FnOnce() -> R) -> R {
        self.beside_all(vec![Box::new(other)], body)
    }

    /// As [`Stage::beside`], with many others.
    pub fn beside_all<R>(&self, others: Vec<Work<'_>>, body: impl FnOnce() -> R) -> R {
        if let Some(sim) = &self.sim {
            return sim.beside(others, body);
        }
        thread::scope(|scope| {
            let others: Vec<_> = others.into_iter().map(|other| scope.spawn(other)).collect();
            let outcome = body();
            for other in others {
                other.join().unwrap();
            }
            outcome
        })
    }

    /// Lets a thread of its own spin a node until what is returned is dropped.
    pub fn spin(&self, node: &Node) -> Spun {
        let (node, stop) = (node.clone(), Arc::new(AtomicBool::new(false)));
        let work = {
            let stop = stop.clone();
            move || {
                let stopped = || stop.load(Ordering::Relaxed);
                while !node.spin_until(stopped, Duration::from_millis(20)) {}
            }
        };
        let (thread, companion) = match &self.sim {
            Some(sim) => (None, Some(sim.companion(Box::new(work)))),
            None => (Some(thread::spawn(work)), None),
        };
        Spun {
            stop,
            thread,
            companion,
        }
    }

    /// What another thread sends.
    #[track_caller]
    pub fn received<T>(&self, channel: &Receiver<T>) -> T {
        if self.sim.is_none() {
            return channel.recv_timeout(PATIENCE).unwrap();
        }
        let mut received = None;
        self.until("what another thread sends", || {
            received = match channel.try_recv() {
                Err(TryRecvError::Empty) => None,
                sent => Some(sent.unwrap()),
            };
            received.is_some()
        });
        received.unwrap()
    }

    /// Waits for something that either end brings about.
    #[track_caller]
    pub fn until(&self, what: &str, done: impl FnMut() -> bool) {
        assert!(
            self.watch(PATIENCE, done),
            "{what}: not within {PATIENCE:?}"
        );
    }

    /// As [`Stage::until`], for what the thread that stores brings about: a disk knows no
    /// simulated time.
    #[track_caller]
    pub fn until_on_disk(&self, what: &str, mut done: impl FnMut() -> bool) {
        if self.sim.is_none() {
            return self.until(what, done);
        }
        let begin = Instant::now();
        while !done() {
            assert!(
                begin.elapsed() < PATIENCE,
                "{what}: not within {PATIENCE:?}"
            );
            thread::yield_now();
        }
    }

    /// Looks on for at most `span`; whether `done` came true.
    pub fn watch(&self, span: Duration, mut done: impl FnMut() -> bool) -> bool {
        let slice = Duration::from_millis(5);
        let mut left = span;
        while !left.is_zero() {
            let graph = self.contexts[1].graph();
            if graph.wait_until(slice, &mut done) {
                return true;
            }
            left = left.saturating_sub(slice);
        }
        done()
    }
}

/// A node that is spun by a thread of its own until this is dropped.
pub struct Spun {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    companion: Option<Companion>,
}

impl Drop for Spun {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.companion.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn text(n: usize) -> Text {
    Text {
        data: format!("{n}"),
    }
}

/// The events of an endpoint in the order they came.
pub struct Seen<'e> {
    take: Box<dyn Fn() -> Option<EndpointEvent> + 'e>,
    pub list: Vec<EndpointEvent>,
}

impl<'e> Seen<'e> {
    pub fn by(take: impl Fn() -> Option<EndpointEvent> + 'e) -> Self {
        Self {
            take: Box::new(take),
            list: Vec::new(),
        }
    }

    /// Whether such an event has come.
    pub fn any(&mut self, wanted: impl Fn(&EndpointEvent) -> bool) -> bool {
        while let Some(event) = (self.take)() {
            self.list.push(event);
        }
        self.list.iter().any(wanted)
    }

    /// Forgets what has come so far.
    pub fn clear(&mut self) {
        self.any(|_| false);
        self.list.clear();
    }
}

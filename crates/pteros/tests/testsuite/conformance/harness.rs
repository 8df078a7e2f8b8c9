//! Conformance test harness: a publishing and a subscribing node.
//!
//! They are in one context, or in two that discover each other on this host, over
//! UDP or shared memory, or on two hosts of a simulated network, where time passes
//! only while some thread waits, and over a second transport there. With the
//! feature `zenoh` a router of Zenoh joins them, too.

use std::path::Path as FolderPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::platform::SystemPlatform;
use pteros::prelude::*;
use pteros::{
    NodeOptions, event_handler::EndpointEvent, publisher::FlowController,
    shared_memory::SharedMemoryOptions, subscription::DeliveryPath,
};
use pteros_sim::{Link, SimThread, Simulation, ThreadBody, TransportBus};

/// For anything that should happen soon, on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Every context's flow controller: 5 MB/s in periods of 10 ms.
pub const SLOW_CONTROLLER: &str = "slow";

/// How samples travel in a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestTransport {
    IntraProcess,
    Udp,
    SharedMemory,
    /// Over a perfect simulated network.
    Simulated,
    /// Over a simulated network that loses, duplicates and reorders datagrams, by
    /// this seed.
    SimulatedLossy(u64),
    /// Over a transport of the simulation that carries whole samples, without RTPS.
    SimulatedSamples,
    /// Over a Zenoh router on this host.
    #[cfg(feature = "zenoh")]
    Zenoh,
}

impl TestTransport {
    fn simulated(self) -> Option<Simulation> {
        match self {
            Self::Simulated | Self::SimulatedSamples => Some(Simulation::new(&[1, 2], 1)),
            Self::SimulatedLossy(seed) => {
                let sim = Simulation::new(&[1, 2], seed);
                sim.set_links(Link {
                    loss: 1_000,
                    duplicate: 1_000,
                    jitter: 3_000_000,
                    ..Link::perfect(200_000)
                });
                Some(sim)
            }
            Self::IntraProcess | Self::Udp | Self::SharedMemory => None,
            #[cfg(feature = "zenoh")]
            Self::Zenoh => None,
        }
    }
}

pub struct Harness {
    pub transport: TestTransport,
    /// Intra-process, its nodes share values.
    pub shares_values: bool,
    pub publishing: Node,
    pub subscribing: Node,
    /// Separate contexts, so that only the endpoints are shared.
    contexts: Vec<Context>,
    opened: Instant,
    /// Dropped after the contexts that live in it.
    sim: Option<Arc<Simulation>>,
    /// Dropped after the contexts that it joins.
    #[cfg(feature = "zenoh")]
    _router: Option<pteros_zenoh::Router>,
}

impl Harness {
    pub fn new(transport: TestTransport) -> Self {
        Self::open(transport, true)
    }

    /// One context with nodes that share no values.
    pub fn serialize_only() -> Self {
        Self::open(TestTransport::IntraProcess, false)
    }

    fn open(transport: TestTransport, shares_values: bool) -> Self {
        static NEXT_DOMAIN: AtomicU32 = AtomicU32::new(0);
        // Far fewer domains are open at a time.
        let domain = 121 + NEXT_DOMAIN.fetch_add(1, Ordering::Relaxed) % 49;
        let slow = FlowController::new(SLOW_CONTROLLER)
            .bytes_per_period(50_000)
            .period(Duration::from_millis(10));
        let stores = FolderPath::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stage-{domain}"));
        let _ = std::fs::remove_dir_all(&stores);
        let options = ContextOptions {
            flow_controllers: vec![slow],
            store_folder: Some(stores),
            shared_memory: SharedMemoryOptions {
                enabled: transport == TestTransport::SharedMemory,
                ..SharedMemoryOptions::default()
            },
            ..ContextOptions::local(domain)
        };
        let sim = transport.simulated().map(Arc::new);
        let bus = (transport == TestTransport::SimulatedSamples)
            .then(|| TransportBus::new(Duration::from_micros(100)));
        #[cfg(feature = "zenoh")]
        let (router, options) = match transport {
            TestTransport::Zenoh => {
                let (router, transport) = crate::conformance::over_zenoh::router();
                let options = ContextOptions {
                    discovery_range: Some(DiscoveryRange::Off),
                    transports: vec![transport],
                    ..options
                };
                (Some(router), options)
            }
            _ => (None, options),
        };
        let open = |place| match &sim {
            None => Context::with_options(options.clone()).unwrap(),
            Some(sim) => {
                let options = ContextOptions {
                    discovery_range: Some(match &bus {
                        None => DiscoveryRange::Subnet,
                        Some(_) => DiscoveryRange::Off,
                    }),
                    transports: bus.iter().map(TransportBus::transport).collect(),
                    ..options.clone()
                };
                let disk = Arc::new(SystemPlatform::new());
                Context::with_platform(sim.env(place, Some(disk)), options).unwrap()
            }
        };
        let a = open(0);
        let b = match transport {
            TestTransport::IntraProcess => a.clone(),
            _ => open(1),
        };
        let node = |context: &Context, name: &str| {
            let options = NodeOptions::new(name).use_intra_process_comms(shares_values);
            context.create_node(options).unwrap()
        };
        let harness = Self {
            transport,
            shares_values,
            publishing: node(&a, "publishing"),
            subscribing: node(&b, "subscribing"),
            contexts: vec![a, b],
            opened: Instant::now(),
            sim,
            #[cfg(feature = "zenoh")]
            _router: router,
        };
        if transport == TestTransport::SharedMemory {
            harness.connect_shared_memory();
        }
        harness
    }

    /// Connections are made when endpoints match, and stay.
    fn connect_shared_memory(&self) {
        let _publisher: Publisher<Text> = self
            .publishing
            .create_publisher("link".keep_last(1))
            .unwrap();
        let _subscription: Subscription<Text> = self
            .subscribing
            .create_polled_subscription("link".keep_last(1))
            .unwrap();
        let paths = || {
            let [a, b] = [&self.contexts[0], &self.contexts[1]];
            [a.delivery_path_to(b.guid()), b.delivery_path_to(a.guid())]
        };
        self.wait_until(&format!("linked: {:?}", paths()), || {
            paths()
                .iter()
                .all(|path| path.path == DeliveryPath::SharedMemory)
        });
    }

    pub fn path(&self) -> DeliveryPath {
        match self.transport {
            TestTransport::IntraProcess => DeliveryPath::IntraProcess,
            TestTransport::Udp | TestTransport::Simulated | TestTransport::SimulatedLossy(_) => {
                DeliveryPath::Network
            }
            TestTransport::SimulatedSamples => DeliveryPath::OtherTransport,
            #[cfg(feature = "zenoh")]
            TestTransport::Zenoh => DeliveryPath::Zenoh,
            TestTransport::SharedMemory => DeliveryPath::SharedMemory,
        }
    }

    /// Whether what arrives lies where the receiver put it, at any address.
    pub fn copies_bytes(&self) -> bool {
        let path = self.path();
        path != DeliveryPath::IntraProcess && path != DeliveryPath::SharedMemory
    }

    pub fn publisher(&self, qos: &QosProfile) -> Publisher<Text> {
        self.publishing.create_publisher("topic".qos(qos)).unwrap()
    }

    pub fn subscription(&self, qos: &QosProfile) -> Subscription<Text> {
        self.subscribing
            .create_polled_subscription("topic".qos(qos))
            .unwrap()
    }

    /// Both endpoints, matched; the matched events are taken.
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
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        assert!(subscription.wait_for_matched(1, TIMEOUT));
        (publisher, subscription)
    }

    /// Time since the harness was created.
    pub fn now(&self) -> Duration {
        match &self.sim {
            Some(sim) => sim.now(),
            None => self.opened.elapsed(),
        }
    }

    /// The wall clock.
    pub fn wall(&self) -> SystemTime {
        match &self.sim {
            Some(sim) => sim.wall(0),
            None => SystemTime::now(),
        }
    }

    /// Lets other threads run for a moment, without waiting for anything.
    pub fn yield_now(&self) {
        match &self.sim {
            Some(sim) => sim.advance(Duration::from_micros(50)),
            None => thread::yield_now(),
        }
    }

    /// Runs `body` and `other` concurrently; both may block.
    pub fn run_concurrently<R>(&self, other: impl FnOnce() + Send, body: impl FnOnce() -> R) -> R {
        self.run_all_concurrently(vec![Box::new(other)], body)
    }

    /// As [`Harness::run_concurrently`], with several others.
    pub fn run_all_concurrently<R>(
        &self,
        others: Vec<ThreadBody<'_>>,
        body: impl FnOnce() -> R,
    ) -> R {
        if let Some(sim) = &self.sim {
            return sim.run_concurrently(others, body);
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

    /// Spins a node on a new thread until the result is dropped.
    pub fn spin(&self, node: &Node) -> SpinThread {
        let (node, stop) = (node.clone(), Arc::new(AtomicBool::new(false)));
        let work = {
            let stop = stop.clone();
            move || {
                let stopped = || stop.load(Ordering::Relaxed);
                while !node.spin_until(stopped, Duration::from_millis(20)) {}
            }
        };
        let (thread, companion) = match &self.sim {
            Some(sim) => (None, Some(sim.spawn(Box::new(work)))),
            None => (Some(thread::spawn(work)), None),
        };
        SpinThread {
            stop,
            thread,
            companion,
        }
    }

    /// The next value that another thread sends.
    #[track_caller]
    pub fn received<T>(&self, channel: &Receiver<T>) -> T {
        if self.sim.is_none() {
            return channel.recv_timeout(TIMEOUT).unwrap();
        }
        let mut received = None;
        self.wait_until("what another thread sends", || {
            received = match channel.try_recv() {
                Err(TryRecvError::Empty) => None,
                sent => Some(sent.unwrap()),
            };
            received.is_some()
        });
        received.unwrap()
    }

    /// Waits for something that either endpoint causes.
    #[track_caller]
    pub fn wait_until(&self, what: &str, done: impl FnMut() -> bool) {
        assert!(
            self.poll_for(TIMEOUT, done),
            "{what}: not within {TIMEOUT:?}"
        );
    }

    /// As [`Harness::wait_until`], for the storing thread: disks do not run in
    /// simulated time.
    #[track_caller]
    pub fn wait_until_on_disk(&self, what: &str, mut done: impl FnMut() -> bool) {
        if self.sim.is_none() {
            return self.wait_until(what, done);
        }
        let begin = Instant::now();
        while !done() {
            assert!(begin.elapsed() < TIMEOUT, "{what}: not within {TIMEOUT:?}");
            thread::yield_now();
        }
    }

    /// Waits at most `span`; returns whether `done` became true.
    pub fn poll_for(&self, span: Duration, mut done: impl FnMut() -> bool) -> bool {
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

/// A thread that spins a node until this is dropped.
pub struct SpinThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    companion: Option<SimThread>,
}

impl Drop for SpinThread {
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

/// The events of an endpoint, in order of arrival.
pub struct EventLog<'e> {
    take: Box<dyn Fn() -> Option<EndpointEvent> + 'e>,
    pub list: Vec<EndpointEvent>,
}

impl<'e> EventLog<'e> {
    pub fn by(take: impl Fn() -> Option<EndpointEvent> + 'e) -> Self {
        Self {
            take: Box::new(take),
            list: Vec::new(),
        }
    }

    /// Whether such an event has arrived.
    pub fn any(&mut self, wanted: impl Fn(&EndpointEvent) -> bool) -> bool {
        while let Some(event) = (self.take)() {
            self.list.push(event);
        }
        self.list.iter().any(wanted)
    }

    /// Forgets the events so far.
    pub fn clear(&mut self) {
        self.any(|_| false);
        self.list.clear();
    }
}

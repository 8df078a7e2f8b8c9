//! Simulated clock and network for contexts that a caller opens: test cases and
//! whole graphs of `pteros` in simulated time.

pub mod contexts;
pub mod event_loop;
mod platform;
pub mod process;
mod shared_memory;
pub mod thread_scheduler;
pub mod threads;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use pteros_rtps::locator::Locator;
use pteros_rtps::time::Duration as Span;
use pteros_runtime::platform::Platform;

use self::event_loop::EventLoop;
use self::thread_scheduler::WakeCondition;
use self::threads::{SimThread, ThreadBody};
use crate::network::link::Link;
use crate::network::processing::ProcessingCost;
use crate::network::trace::Trace;

/// A simulation. Time advances only while a thread waits, in a call of a context or
/// in [`Simulation::advance`].
pub struct Simulation {
    world: Arc<EventLoop>,
    start: u64,
}

impl Simulation {
    /// A network of processes, one per entry of `hosts`, which holds the host
    /// number. Links have a latency of 100 µs and no loss. The seed drives link
    /// faults.
    pub fn new(hosts: &[u8], seed: u64) -> Self {
        let world = EventLoop::new(hosts, seed, Trace::new(false));
        world.network().in_order = true;
        world.enter();
        Self {
            start: world.now(),
            world,
        }
    }

    /// The loop behind it.
    pub(crate) fn event_loop(&self) -> &Arc<EventLoop> {
        &self.world
    }

    /// Sets all links. With faults, datagrams that arrive at one instant come in
    /// any order from now on.
    pub fn set_links(&self, like: Link) {
        let mut network = self.world.network();
        network.in_order = like == Link::perfect(like.delay);
        for link in network.links_mut() {
            *link = like;
        }
    }

    /// The link from one process to another.
    pub fn set_link(&self, from: usize, to: usize, like: Link) {
        *self.world.network().link_mut(from, to) = like;
    }

    /// Sets the links between two processes, in both directions.
    pub fn set_links_between(&self, one: usize, other: usize, like: Link) {
        let mut network = self.world.network();
        *network.link_mut(one, other) = like;
        *network.link_mut(other, one) = like;
    }

    /// The platform of a process's next context. With a disk, durable stores use
    /// it, and the wall clock starts at the disk's time, because stored samples
    /// have timestamps.
    pub fn env(&self, process: usize, disk: Option<Arc<dyn Platform>>) -> Arc<dyn Platform> {
        let mut env = self.world.external_env(process);
        if let Some(disk) = &disk {
            let stamp = |stamp: pteros_rtps::time::Timestamp| stamp.as_nanos();
            let shown = stamp(platform::wall(&self.world, process));
            let offset = self.world.wall_offset(process) + stamp(disk.wall_clock()) - shown;
            self.world.set_wall_offset(process, offset);
        }
        env.disk = disk;
        Arc::new(env)
    }

    /// Disconnects a process for good. Nothing that it sends from now on arrives,
    /// including its departure. The caller drops the rest.
    pub fn crash(&self, process: usize) {
        let socket = self.world.processes()[process].socket.take();
        if let Some(socket) = socket {
            let now = self.world.now();
            self.world.network().close(now, socket);
        }
    }

    /// Simulated time since the start.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.world.now() - self.start)
    }

    /// The wall clock of a process.
    pub fn wall(&self, process: usize) -> SystemTime {
        let stamp = platform::wall(&self.world, process).as_nanos();
        SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(stamp).unwrap_or(0))
    }

    /// The address of a process that has a context.
    pub(crate) fn address(&self, process: usize) -> Locator {
        let socket = self.world.processes()[process].socket;
        let network = self.world.network();
        socket.map_or(Locator::udp_v4([0; 4], 0), |n| network.sockets[n].address)
    }

    /// A process receives a datagram now, as if it came from that address.
    pub(crate) fn inject(&self, from: Locator, to: usize, bytes: Bytes) {
        let socket = self.world.processes()[to].socket;
        if let Some(socket) = socket {
            let now = self.world.now();
            self.world.network().inject(now, from, socket, bytes);
        }
    }

    /// From now on datagrams take time of the processes that get them.
    pub(crate) fn set_processing_cost(&self, cost: ProcessingCost) {
        self.world.network().processing_cost = Some(cost);
    }

    /// Bytes that one process has sent to another, before any loss.
    pub(crate) fn bytes_sent(&self, from: usize, to: usize) -> u64 {
        let network = self.world.network();
        network.sent_between.get(&(from, to)).copied().unwrap_or(0)
    }

    /// Bytes that a process has sent to an address where nobody listens.
    pub(crate) fn bytes_to_nobody(&self, from: usize, ip: [u8; 4]) -> u64 {
        let network = self.world.network();
        let to_it = network.undeliverable.iter();
        let to_it = to_it.filter(|((process, to), _)| *process == from && to.address[12..] == ip);
        to_it.map(|(_, bytes)| *bytes).sum()
    }

    /// Advances the time.
    pub fn advance(&self, span: Duration) {
        let until = self.world.now().saturating_add(nanos(span));
        self.world.wait(&WakeCondition::Never, until);
    }

    /// Runs `body` here and `others` on threads of their own, in simulated time and
    /// one at a time. Returns when all have ended.
    pub fn run_concurrently<R>(&self, others: Vec<ThreadBody<'_>>, body: impl FnOnce() -> R) -> R {
        self.world.run_concurrently(others, body)
    }

    /// Runs `work` on a thread of its own, in the same way.
    pub fn spawn(&self, work: ThreadBody<'static>) -> SimThread {
        self.world.spawn(work)
    }

    /// Violations of the invariants that hold in every process: bounded memory (I8)
    /// and no busy loop (I7).
    pub fn violations(&self) -> Vec<String> {
        self.world.violations().lock().clone()
    }

    /// Records a readable trace from now on, with every datagram.
    pub fn record_trace(&self) {
        self.world.network().trace = Trace::new(true);
    }

    /// Adds a line to the trace.
    pub fn trace_line(&self, line: std::fmt::Arguments<'_>) {
        self.world.trace_line(line);
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(Span::from(span).as_nanos()).unwrap_or(u64::MAX)
}

//! A simulated clock and network for contexts that somebody else opens: stories
//! and whole graphs of `pteros` in simulated time.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pteros_rmw::env::Env;
use pteros_rtps::time::Duration as Span;

use crate::guest::Runner;
use crate::link::Link;
use crate::plan::Plan;
use crate::relay::{Companion, Wake, Work};
use crate::trace::Trace;
use crate::world::World;

/// See the module's description. Time passes only while somebody waits, in a call
/// of a context or in [`Simulation::pass`].
pub struct Simulation {
    world: Arc<World>,
    start: u64,
}

impl Simulation {
    /// A network of places, each on the host of that number, whose links take 100 µs
    /// and keep everything. The seed decides what links do that are worse.
    pub fn new(hosts: &[u8], seed: u64) -> Self {
        let plan = Plan {
            hosts: hosts.to_vec(),
            ..Plan::quiet()
        };
        let world = World::new(plan, (seed, seed), Trace::new(false));
        world.network().in_order = true;
        world.enter();
        Self {
            start: world.now(),
            world,
        }
    }

    /// Makes all links alike. Unless they are perfect, what arrives at one instant
    /// comes in any order from now on.
    pub fn set_links(&self, like: Link) {
        let mut network = self.world.network();
        network.in_order = like == Link::perfect(like.delay);
        for link in network.links_mut() {
            *link = like;
        }
    }

    /// The link from one place to another.
    pub fn set_link(&self, from: usize, to: usize, like: Link) {
        *self.world.network().link_mut(from, to) = like;
    }

    /// The links between two places, in both directions.
    pub fn set_links_between(&self, one: usize, other: usize, like: Link) {
        let mut network = self.world.network();
        *network.link_mut(one, other) = like;
        *network.link_mut(other, one) = like;
    }

    /// Clock and network of a place, for one context: its next process. With a
    /// disk, its stores are there and its wall clock begins with that one's: what is
    /// stored has a date.
    pub fn env(&self, place: usize, disk: Option<Arc<dyn Env>>) -> Arc<dyn Env> {
        let mut env = self.world.guest_env(place);
        if let Some(disk) = &disk {
            let stamp = |stamp: pteros_rtps::time::Timestamp| stamp.as_nanos();
            let shown = stamp(crate::env::wall(&self.world, place));
            let offset = self.world.wall_offset(place) + stamp(disk.wall()) - shown;
            self.world.set_wall_offset(place, offset);
        }
        env.disk = disk;
        Arc::new(env)
    }

    /// Who runs the callbacks of the context at a place whenever there is something
    /// to run, until it is taken away by `None` or the next context comes there.
    pub fn set_runner(&self, place: usize, runner: Option<Box<dyn Runner>>) {
        self.world.set_runner(place, runner);
    }

    /// Cuts a place's process off for good: whatever it sends from now on, its
    /// goodbye included, reaches nobody. What it still holds is to be dropped.
    pub fn crash(&self, place: usize) {
        self.world.set_runner(place, None);
        let socket = self.world.places()[place].socket.take();
        if let Some(socket) = socket {
            let now = self.world.now();
            self.world.network().close(now, socket);
        }
    }

    /// Lets a place stand still for so long, as a process that gets no CPU.
    pub fn pause(&self, place: usize, span: Duration) {
        let until = self.world.now().saturating_add(nanos(span));
        self.world.places()[place].paused_until = until;
    }

    /// How long it has gone on.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.world.now() - self.start)
    }

    /// What a place's wall clock shows.
    pub fn wall(&self, place: usize) -> SystemTime {
        let stamp = crate::env::wall(&self.world, place).as_nanos();
        SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(stamp).unwrap_or(0))
    }

    /// Lets time pass.
    pub fn pass(&self, span: Duration) {
        let until = self.world.now().saturating_add(nanos(span));
        self.world.wait(&Wake::Never, until);
    }

    /// Lets time pass until something is so, asked whenever something has happened;
    /// false if it is not within `span`.
    pub fn pass_until(&self, span: Duration, mut done: impl FnMut() -> bool) -> bool {
        let until = self.world.now().saturating_add(nanos(span));
        loop {
            if done() {
                return true;
            }
            if self.world.now() >= until || self.world.has_failed() {
                return false;
            }
            if !self.world.step(until) {
                self.world.set_now(until);
            }
        }
    }

    /// Plans a deed. It is done within somebody's wait, so it may not wait for the
    /// context of who waits.
    pub fn after(&self, span: Duration, deed: impl FnOnce() + Send + 'static) {
        let at = self.world.now().saturating_add(nanos(span));
        self.world.deeds.lock().plan(at, Box::new(deed));
    }

    /// Runs `body` here and `others` on threads beside it, all in simulated time and
    /// one at a time; returns when all are done.
    pub fn beside<R>(&self, others: Vec<Work<'_>>, body: impl FnOnce() -> R) -> R {
        self.world.beside(others, body)
    }

    /// Runs `work` on a thread beside what goes on here, likewise.
    pub fn companion(&self, work: Work<'static>) -> Companion {
        self.world.companion(work)
    }

    /// What is broken of the invariants that are watched in every process: bounded
    /// memory, no timer that goes in circles.
    pub fn violations(&self) -> Vec<String> {
        self.world.cast.lock().violations.clone()
    }

    /// Keeps lines to read from now on, of every datagram.
    pub fn keep_lines(&self) {
        self.world.network().trace = Trace::new(true);
    }

    /// The lines that were kept.
    pub fn lines(&self) -> Vec<String> {
        let network = self.world.network();
        network.trace.lines().map(str::to_owned).collect()
    }

    /// Adds a line to those that are kept.
    pub fn say(&self, line: std::fmt::Arguments<'_>) {
        self.world.say(line);
    }

    /// The hash of all that was sent.
    pub fn hash(&self) -> u64 {
        self.world.network().trace.hash()
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(Span::from(span).as_nanos()).unwrap_or(u64::MAX)
}

//! The world: a virtual clock, processes that are real contexts of the engine,
//! and the loop that lets the next thing happen. One thread; a publish that
//! waits for room lets the world go on inside [`World::wait_for_mail`].
//!
//! No lock of the world is held while the engine runs, except the network's
//! for a single datagram.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use pteros_rmw::graph::NodeKey;
use pteros_rmw::ready::ReadyQueue;
use pteros_rmw::{Core, CoreOptions, DriverState};

use crate::cast::{Cast, Ready};
use crate::env::SimEnv;
use crate::guest::{Deeds, Guest};
use crate::link::Network;
use crate::plan::Plan;
use crate::relay::{Relay, Wake};
use crate::script::Script;
use crate::service::Services;
use crate::trace::Trace;

/// Timers of one process at one instant; more is going in circles.
const TIMERS_PER_INSTANT_MAX: u32 = 50;

/// Steps of work for one datagram. A datagram carries some submessages, each
/// of which names at most 256 numbers and may have as many samples sent again,
/// the largest of them in 75 pieces of two steps each.
const STEPS_PER_DATAGRAM_MAX: u64 = 40_000;

/// Steps of work since the last look; none in builds that do not count.
fn take_steps() -> u64 {
    #[cfg(feature = "faults")]
    return pteros_rtps::fault::take_steps();
    #[cfg(not(feature = "faults"))]
    0
}

/// Chance in 1/10000 that a link is refused, full or ends, with each use.
const LINK_FAULTS: u32 = 20;

/// Datagrams and messages of links that a context has received.
fn received(core: &Core) -> u64 {
    let linked = core.link_counts().map_or(0, |counts| counts.received);
    core.counts().datagrams_received + linked
}

/// A process that lives.
pub struct Life {
    /// Its context.
    pub core: Arc<Core>,
    state: Option<DriverState>,
    /// Where its endpoints report.
    pub queue: Arc<ReadyQueue>,
    /// Its nodes.
    pub nodes: Vec<(NodeKey, String)>,
}

/// A place for a process: it may die and be started again.
#[derive(Default)]
pub struct Place {
    /// Its host.
    pub host: u8,
    /// Who lives there.
    pub life: Option<Life>,
    /// Who lives there in its stead, opened by others.
    pub guest: Option<Guest>,
    /// How many have.
    pub lives: u32,
    /// The first life that had the present GUID.
    identity: u32,
    /// It stands still until then.
    pub paused_until: u64,
    /// Its thread waits inside a publish.
    pub blocked: bool,
    /// It has stood still, so its events may have come late.
    pub was_paused: bool,
    /// Its present socket.
    pub socket: Option<usize>,
    /// Timers fired at the present instant.
    timers: (u64, u32),
    /// Turns in all.
    pub turns_total: u64,
}

/// See the module's description.
pub struct World {
    now: AtomicU64,
    failed: AtomicBool,
    /// What the seed stands for.
    pub plan: Plan,
    network: Mutex<Network>,
    places: Mutex<Vec<Place>>,
    /// What happens when.
    pub script: Mutex<Script>,
    /// Who plays.
    pub cast: Mutex<Cast>,
    /// Who asks and answers.
    pub(crate) services: Mutex<Services>,
    /// What became ready during the last call into the engine.
    pub marks: Arc<Mutex<Vec<Ready>>>,
    wall_offsets: Vec<AtomicI64>,
    /// Whose turn it is, where several threads wait in simulated time.
    pub(crate) relay: Relay,
    /// What is done when, on behalf of no process.
    pub(crate) deeds: Mutex<Deeds>,
    me: Weak<World>,
}

/// What tells a process from all others, at either end of its name: clients of
/// services are known by a part of it.
pub(crate) fn unique(place: usize, life: u32) -> [u8; 10] {
    let [a, b, c, d] = life.to_le_bytes();
    let place = place as u8 + 1;
    [place, a, b, c, d, place, a, b, c, d]
}

/// What happens next.
enum Next {
    Mail,
    Deed,
    Turn(usize),
    Step,
}

/// Runs of numbers that a reader may remember where limits are tight.
const GAP_INTERVALS_TIGHT: usize = 3;

impl World {
    /// A world without processes.
    pub fn new(plan: Plan, seeds: (u64, u64), trace: Trace) -> Arc<Self> {
        let count = plan.hosts.len();
        let place = |host: &u8| Place {
            host: *host,
            ..Place::default()
        };
        Arc::new_cyclic(|me| Self {
            // Not zero: an engine that takes zero for "never" shall not
            // profit.
            now: AtomicU64::new(1_000_000_000),
            failed: AtomicBool::new(false),
            network: Mutex::new(Network::new(seeds.0, count, trace)),
            places: Mutex::new(plan.hosts.iter().map(place).collect()),
            script: Mutex::new(Script::new(seeds.1)),
            cast: Mutex::new(Cast {
                lenient: plan.has(crate::plan::Fault::Corrupt),
                blurred: plan.has(crate::plan::Fault::Return),
                ..Cast::default()
            }),
            services: Mutex::default(),
            marks: Arc::default(),
            wall_offsets: (0..count).map(|_| AtomicI64::new(0)).collect(),
            relay: Relay::default(),
            deeds: Mutex::default(),
            me: me.clone(),
            plan,
        })
    }

    /// The virtual clock, nanoseconds.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn set_now(&self, at: u64) {
        self.now.fetch_max(at, Ordering::Relaxed);
    }

    /// The network.
    pub fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock()
    }

    /// The places.
    pub fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock()
    }

    /// How far a place's wall clock has jumped, nanoseconds.
    pub fn wall_offset(&self, place: usize) -> i64 {
        self.wall_offsets[place].load(Ordering::Relaxed)
    }

    /// Lets a place's wall clock jump.
    pub fn set_wall_offset(&self, place: usize, offset: i64) {
        self.wall_offsets[place].store(offset, Ordering::Relaxed);
    }

    /// Notes a broken invariant; the run ends.
    pub fn fail(&self, text: String) {
        self.cast.lock().fail(text);
    }

    /// Adds a line to a readable trace.
    pub fn say(&self, line: std::fmt::Arguments<'_>) {
        let now = self.now();
        self.network().trace.line(now, line);
    }

    /// Remembers which socket a process has opened.
    pub fn note_socket(&self, place: usize, number: usize) {
        self.places.lock()[place].socket = Some(number);
    }

    /// The context at a place.
    pub fn core(&self, place: usize) -> Option<Arc<Core>> {
        let places = self.places.lock();
        Some(places[place].life.as_ref()?.core.clone())
    }

    /// Starts a process; the number of its life.
    pub fn start(&self, place: usize) -> u32 {
        let returns = self.plan.has(crate::plan::Fault::Return)
            && self.places.lock()[place].lives > 0
            && self.script.lock().random.bool();
        let (host, lives, identity) = {
            let mut places = self.places.lock();
            let here = &mut places[place];
            here.lives += 1;
            if !returns {
                here.identity = here.lives;
            }
            (here.host, here.lives, here.identity)
        };
        let unique = unique(place, identity);
        let mut options = CoreOptions {
            lease: self.plan.lease,
            ..CoreOptions::default()
        };
        options.shared_memory.on =
            self.plan.has(crate::plan::Fault::Links) && !self.is_foreign(place);
        if options.shared_memory.on && !self.script.lock().healed {
            self.network().link_faults = LINK_FAULTS;
        }
        if self.plan.paced {
            options.flow_controllers = vec![crate::variety::flow()];
        }
        if self.plan.has(crate::plan::Fault::Tight) {
            options.limits.gap_intervals = GAP_INTERVALS_TIGHT;
        }
        self.open_core(place, (host, unique), options);
        lives
    }

    /// Starts a process with options of the caller's.
    pub fn start_with(&self, place: usize, options: CoreOptions) {
        let (host, lives) = {
            let mut places = self.places.lock();
            places[place].lives += 1;
            (places[place].host, places[place].lives)
        };
        let unique = unique(place, lives);
        self.open_core(place, (host, unique), options);
    }

    fn open_core(&self, place: usize, (host, unique): (u8, [u8; 10]), options: CoreOptions) {
        let full = self.plan.has(crate::plan::Fault::Full);
        let env = Arc::new(SimEnv {
            world: self.me.clone(),
            place,
            host,
            unique,
            is_guest: false,
            disk: None,
            buffer_bytes: if full { 64 << 10 } else { 8 << 20 },
        });
        match Core::open(env, options) {
            Ok(core) => {
                let queue = core.ready_queue();
                self.places.lock()[place].life = Some(Life {
                    core,
                    state: Some(DriverState::default()),
                    queue,
                    nodes: Vec::new(),
                });
            }
            Err(error) => self.fail(format!("I11 p{place}: cannot start: {error}")),
        }
    }

    /// Ends a process; `politely` with a goodbye.
    pub fn end(&self, place: usize, politely: bool) {
        let (life, socket) = {
            let mut places = self.places.lock();
            (places[place].life.take(), places[place].socket.take())
        };
        let Some(life) = life else { return };
        if politely {
            life.core.close();
        }
        if let Some(socket) = socket {
            let now = self.now();
            self.network().close(now, socket);
        }
    }

    /// Lets everything happen that is due until `limit`.
    pub fn run_until(&self, limit: u64) {
        while !self.has_failed() && self.step(limit) {}
        self.set_now(limit);
    }

    /// Whether an invariant is broken.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Ends the run if an invariant is broken.
    pub fn note_failure(&self, cast: &Cast) {
        if !cast.violations.is_empty() {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn step(&self, limit: u64) -> bool {
        let Some((at, next)) = self.next().filter(|(at, _)| *at <= limit) else {
            return false;
        };
        self.set_now(at);
        match next {
            Next::Mail => {
                let now = self.now();
                let socket = self.network().arrive(now);
                if let Some(socket) = socket {
                    let place = self.network().sockets[socket].place;
                    self.turn(place);
                }
            }
            Next::Deed => self.do_deed(),
            Next::Turn(place) => {
                self.count_timer(place);
                self.turn(place);
            }
            Next::Step => {
                let step = self.script.lock().next();
                if let Some(step) = step {
                    self.act(step);
                }
            }
        }
        self.note_failure(&self.cast.lock());
        true
    }

    fn next(&self) -> Option<(u64, Next)> {
        let now = self.now();
        let mut best = None;
        let mut offer = |at: Option<u64>, next: Next| {
            if let Some(at) = at {
                let at = at.max(now);
                if best.as_ref().is_none_or(|(earliest, _)| at < *earliest) {
                    best = Some((at, next));
                }
            }
        };
        for (index, place) in self.places.lock().iter().enumerate() {
            if let Some(life) = place.life.as_ref().filter(|_| !place.blocked) {
                let at = life.core.next_deadline().as_nanos();
                let at = at.max(place.paused_until);
                offer((at < u64::MAX).then_some(at), Next::Turn(index));
            }
            offer(place.guest_due(now), Next::Turn(index));
        }
        offer(self.deeds.lock().next_at(), Next::Deed);
        offer(self.network().next_at(), Next::Mail);
        offer(self.script.lock().next_at(), Next::Step);
        best
    }

    /// I7: no timer fires over and over at one instant.
    fn count_timer(&self, place: usize) {
        let now = self.now();
        let mut places = self.places.lock();
        let here = &mut places[place];
        here.timers = match here.timers {
            (at, count) if at == now => (at, count + 1),
            _ => (now, 1),
        };
        let most = match here.guest {
            // Its callbacks' turns count, too.
            Some(_) => 20 * TIMERS_PER_INSTANT_MAX,
            None => TIMERS_PER_INSTANT_MAX,
        };
        if here.timers.1 > most {
            drop(places);
            self.fail(format!("I7 p{place}: its timers go in circles"));
        }
    }

    /// Lets a process do what it has to do, unless it cannot.
    pub fn turn(&self, place: usize) {
        if self.turn_guest(place) {
            return;
        }
        let now = self.now();
        loop {
            let (core, mut state) = {
                let mut places = self.places.lock();
                let here = &mut places[place];
                if here.blocked || here.paused_until > now {
                    return;
                }
                here.turns_total += 1;
                let Some(life) = &mut here.life else { return };
                let Some(state) = life.state.take() else {
                    return;
                };
                (life.core.clone(), state)
            };
            self.turn_watched(place, &core, &mut state);
            let socket = {
                let mut places = self.places.lock();
                if let Some(life) = &mut places[place].life {
                    life.state = Some(state);
                }
                places[place].socket
            };
            self.settle(place);
            let has_mail = socket.is_some_and(|s| self.network().has_mail(s));
            if !has_mail || self.has_failed() {
                return;
            }
        }
    }

    /// I8 and I10: one turn of the engine costs no more than what came in is
    /// worth, and leaves every queue within its limit.
    fn turn_watched(&self, place: usize, core: &Core, state: &mut DriverState) {
        let before = received(core);
        take_steps();
        core.turn_now(state);
        let steps = take_steps();
        let datagrams = received(core) - before;
        let bound = STEPS_PER_DATAGRAM_MAX * (datagrams + 1);
        if steps > bound {
            self.fail(format!(
                "I10 p{place}: {steps} steps of work for {datagrams} datagrams, bound {bound}"
            ));
        }
        self.check_memory(place, core);
    }

    /// I8: no queue or table is beyond its limit.
    pub fn check_memory(&self, place: usize, core: &Core) {
        if let Some(exceeded) = core.exceeded_limit() {
            self.fail(format!("I8 p{place}: {exceeded}"));
        }
        let (held, most) = (core.memory_bytes(), core.worst_case_bytes());
        if held > most {
            self.fail(format!("I8 p{place}: {held} bytes held, at most {most}"));
        }
    }

    /// After a call into a process's context: takes in what it reported.
    pub fn settle(&self, place: usize) {
        let queue = {
            let places = self.places.lock();
            let Some(life) = &places[place].life else {
                return;
            };
            life.queue.clone()
        };
        while let Some(task) = queue.pop() {
            task.run();
        }
        let marks = std::mem::take(&mut *self.marks.lock());
        for mark in marks {
            self.take_in(mark);
        }
        self.note_stirs(place);
    }

    /// What a call brought the readers whose deadlines are counted.
    fn note_stirs(&self, place: usize) {
        let now = self.now();
        let mut cast = self.cast.lock();
        for reader in cast.readers.iter_mut() {
            if reader.home.place == place && reader.is_watched() {
                reader.note_stir(now);
            }
        }
    }

    /// A thread of the engine waits for a datagram: the world goes on without
    /// it.
    pub fn wait_for_mail(&self, socket: usize, until: u64) {
        self.wait(&Wake::Mail(socket), until);
        self.network().sockets[socket].woken = false;
    }
}

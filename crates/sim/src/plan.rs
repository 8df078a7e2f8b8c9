//! What a seed stands for: how many processes on which hosts, which faults,
//! how long; and the policies of endpoints. Everything else follows from the
//! random numbers drawn while it runs.

use fastrand::Rng;
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability, ResourceLimits};
use pteros_rtps::time::Duration;

use crate::faults::MISHAPS;
use crate::link::Link;

/// One kind of fault, which can be left out to find the one that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Datagrams vanish.
    Loss,
    /// Datagrams come twice.
    Duplicate,
    /// Datagrams overtake each other.
    Reorder,
    /// A direction delivers nothing for a while, then all at once.
    Clog,
    /// A direction delivers nothing.
    Cut,
    /// Large datagrams vanish.
    Mtu,
    /// Sockets are full, when sending and when receiving.
    Full,
    /// Processes die without a word and come back as others.
    Crash,
    /// Nodes and endpoints come and go.
    Churn,
    /// Processes stand still.
    Pause,
    /// The wall clock jumps.
    Wall,
    /// Subscriptions are read late.
    Slow,
    /// A stranger sends garbage and copies.
    Attack,
    /// Bytes change under way. RTPS has no checksum, so of the rules only those
    /// hold that garbage cannot break: no panic, no circles, calls return.
    Corrupt,
    /// Fault points inside the engine strike (`faults.rs`): limits reached
    /// early, lost hints. Needs the cargo feature of that name.
    Mishap,
    /// A process comes back with the GUID of the one that died. What is told
    /// and delivered until that is noticed is not judged, what holds after
    /// healing is.
    Return,
    /// A direction is cut for longer than a lease: one side loses the other,
    /// which never notices.
    Deaf,
    /// Limits so small that they are reached.
    Tight,
    /// The attacker can be reached at the address it announces, so that it is
    /// met and matched like anybody.
    Insider,
    /// Processes of one host are linked by shared memory; now and then a link is
    /// refused, full, or ends.
    Links,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Loss,
        Self::Duplicate,
        Self::Reorder,
        Self::Clog,
        Self::Cut,
        Self::Mtu,
        Self::Full,
        Self::Crash,
        Self::Churn,
        Self::Pause,
        Self::Wall,
        Self::Slow,
        Self::Attack,
        Self::Corrupt,
        Self::Mishap,
        Self::Return,
        Self::Deaf,
        Self::Tight,
        Self::Insider,
        Self::Links,
    ];

    /// Those that came later. They are drawn apart, so that older seeds stay
    /// what they were but for them.
    pub const LATER: [Self; 5] = [
        Self::Mishap,
        Self::Return,
        Self::Deaf,
        Self::Tight,
        Self::Insider,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Duplicate => "duplicate",
            Self::Reorder => "reorder",
            Self::Clog => "clog",
            Self::Cut => "cut",
            Self::Mtu => "mtu",
            Self::Full => "full",
            Self::Crash => "crash",
            Self::Churn => "churn",
            Self::Pause => "pause",
            Self::Wall => "wall",
            Self::Slow => "slow",
            Self::Attack => "attack",
            Self::Corrupt => "corrupt",
            Self::Mishap => "mishap",
            Self::Return => "return",
            Self::Deaf => "deaf",
            Self::Tight => "tight",
            Self::Insider => "insider",
            Self::Links => "links",
        }
    }

    /// The fault of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

/// What the caller decides; the rest is the seed's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Faults left out.
    pub without: Vec<Fault>,
    /// Faults that the run has whatever the seed says.
    pub forced: Vec<Fault>,
    /// Milliseconds of the phase with faults; the seed decides otherwise.
    pub fault_millis: Option<u64>,
    /// Five processes, twenty endpoints, fifty messages a second: for
    /// measuring speed.
    pub standard: bool,
    /// Keep lines to read.
    pub readable: bool,
    /// The bug of the engine that is switched on ([`crate::faults::BUGS`]).
    pub bug: Option<&'static str>,
}

impl Options {
    /// The command that runs a seed again as these options did.
    pub fn replay(&self, seed: u64) -> String {
        let mut command = format!("cargo xtask sim --seeds 1 --start {seed} --trace");
        if self.standard {
            command += " --standard";
        }
        if let Some(millis) = self.fault_millis {
            command += &format!(" --fault-millis {millis}");
        }
        let mut without = self.without.clone();
        if !pteros_rtps::fault::COMPILED && !without.contains(&Fault::Mishap) {
            // The command's build has fault points, this one has none.
            without.push(Fault::Mishap);
        }
        if !without.is_empty() {
            let names: Vec<_> = without.iter().map(|f| f.name()).collect();
            command += &format!(" --without {}", names.join(","));
        }
        if !self.forced.is_empty() {
            let names: Vec<_> = self.forced.iter().map(|f| f.name()).collect();
            command += &format!(" --with {}", names.join(","));
        }
        if let Some(bug) = self.bug {
            command += &format!(" --bug {bug}");
        }
        command
    }
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Host of each process.
    pub hosts: Vec<u8>,
    /// The processes' lease.
    pub lease: Duration,
    /// Nanoseconds of the phase with faults.
    pub fault_span: u64,
    /// Endpoints that each process starts with.
    pub endpoints: usize,
    /// How many topics there are.
    pub topics: usize,
    /// Nanoseconds between a writer's messages.
    pub period: u64,
    /// Faults that this seed has.
    pub faults: Vec<Fault>,
    /// What is drawn for links.
    pub link: Link,
    /// Fault points that strike, and how often in 10000.
    pub mishaps: Vec<(&'static str, u32)>,
    /// Nanoseconds between an attacker's datagrams.
    pub attack_pause: u64,
    /// Writers prove their liveliness by hand, together.
    pub manual: bool,
    /// Writers promise a deadline, and most readers ask for one.
    pub timed: bool,
    /// Topics have keys, and instances end.
    pub keyed: bool,
    /// Half of the subscriptions want some of the messages only.
    pub filtered: bool,
    /// Half of the writers leave sending to a flow controller or hold small
    /// messages back.
    pub paced: bool,
    /// Writers of a process are presented as one whole and write coherent sets.
    pub coherent: bool,
    /// Their sets are of the group and in its order, nothing of them may be lost,
    /// and nobody is unheard for long.
    pub ordered: bool,
    /// Processes have clients and servers, too.
    pub services: bool,
    /// One process is taken for Cyclone DDS, and has nothing but services.
    pub foreign: bool,
}

const MILLI: u64 = 1_000_000;

impl Plan {
    /// The plan of a seed.
    pub fn new(random: &mut Rng, options: &Options) -> Self {
        let processes = random.usize(2..=5);
        let hosts = random.u8(1..=3);
        let host_of = |_| random.u8(1..=hosts);
        let hosts: Vec<u8> = (0..processes).map(host_of).collect();
        // Each seed has some of the faults, so that each is also seen alone.
        let share = random.u32(1..=4);
        let mut faults: Vec<Fault> = Fault::ALL.to_vec();
        faults.retain(|fault| !Fault::LATER.contains(fault) && *fault != Fault::Links);
        faults.retain(|_| random.u32(0..4) < share);
        // Rarely, since little can be checked then.
        let corrupts = random.u32(0..16) == 0;
        faults.retain(|fault| *fault != Fault::Corrupt || corrupts);
        let mut plan = Self {
            hosts,
            lease: Duration::from_millis(random.i64(4_000..12_000)),
            fault_span: random.u64(4_000..20_000) * MILLI,
            endpoints: random.usize(2..=6),
            topics: random.usize(1..=4),
            period: random.u64(20..400) * MILLI,
            link: link(random),
            faults,
            mishaps: Vec::new(),
            attack_pause: 20 * MILLI,
            manual: false,
            timed: false,
            keyed: false,
            filtered: false,
            paced: false,
            coherent: false,
            ordered: false,
            services: false,
            foreign: false,
        };
        plan.add_later(&mut random.clone().fork());
        plan.add_policies(random.clone().u64(..));
        if options.standard {
            plan.hosts = vec![1, 1, 2, 2, 3];
            plan.endpoints = 4;
            plan.topics = 4;
            plan.period = 200 * MILLI;
        }
        if let Some(millis) = options.fault_millis {
            plan.fault_span = millis * MILLI;
        }
        for fault in &options.forced {
            if !plan.has(*fault) {
                plan.faults.push(*fault);
            }
        }
        plan.faults.retain(|f| !options.without.contains(f));
        plan.leave_out_of_link();
        plan
    }

    /// A plan without processes, faults or chance.
    pub fn quiet() -> Self {
        Self {
            hosts: Vec::new(),
            lease: Duration::from_secs(20),
            fault_span: 0,
            endpoints: 0,
            topics: 0,
            period: 0,
            faults: Vec::new(),
            link: Link::perfect(100_000),
            mishaps: Vec::new(),
            attack_pause: 0,
            manual: false,
            timed: false,
            keyed: false,
            filtered: false,
            paced: false,
            coherent: false,
            ordered: false,
            services: false,
            foreign: false,
        }
    }

    /// Whether this seed has a fault.
    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Draws the faults of [`Fault::LATER`].
    fn add_later(&mut self, random: &mut Rng) {
        for fault in Fault::LATER {
            // One that comes back is only asked for by name: if the dead said
            // little and the newcomer says as much, peers cannot tell yet.
            let drawn = random.u32(0..4) == 0;
            if drawn && fault != Fault::Return {
                self.faults.push(fault);
            }
        }
        if random.u32(0..4) == 0 {
            self.attack_pause = 5_000 * MILLI;
        }
        self.manual = random.u32(0..6) == 0;
        for name in MISHAPS {
            if random.u32(0..4) == 0 {
                self.mishaps.push((name, random.u32(1..500)));
            }
        }
        self.timed = random.u32(0..6) == 0;
        if random.u32(0..3) == 0 {
            self.faults.push(Fault::Links);
        }
    }

    /// Draws what came last, apart from everything else. Where deadlines are
    /// counted exactly, every message has to reach everybody at once.
    fn add_policies(&mut self, seed: u64) {
        if self.timed {
            return;
        }
        let mut random = Rng::with_seed(seed ^ 0x7075_6c73_6172);
        self.keyed = random.u32(0..4) == 0;
        self.filtered = random.u32(0..4) == 0;
        self.paced = random.u32(0..4) == 0;
        // How much of each instance fits a set is the engine's affair.
        self.coherent = random.u32(0..3) == 0 && !self.keyed;
        if self.coherent {
            // Several writers of a process shall meet the same readers.
            self.topics = 1;
        }
        self.ordered = self.coherent && random.u32(0..3) == 0;
        let mut random = Rng::with_seed(seed ^ 0x7365_7276_6963_6573);
        self.services = random.u32(0..3) == 0;
        self.foreign = self.services && random.u32(0..2) == 0;
        if self.ordered {
            let quiet = [Fault::Cut, Fault::Mtu, Fault::Deaf];
            self.faults.retain(|fault| !quiet.contains(fault));
        }
    }

    /// By when after healing readers that nobody lost have everything: three
    /// heartbeat periods and round trips, and the pauses and thoughts that had
    /// begun. A sample that is refused memory takes a request more, at worst
    /// after the longest pause: as many of those as there can be.
    pub fn repair_span(&self) -> u64 {
        let refusals: u64 = match self.has(Fault::Mishap) {
            true => self.mishaps.iter().map(refusals_in_10000).sum(),
            false => 0,
        };
        let backlog = self.fault_span / self.period.max(1);
        1_500 * MILLI + 200 * MILLI * (backlog * refusals).div_ceil(10_000)
    }

    /// Longer than anything is under way or waits to be read.
    pub fn under_way_max(&self) -> u64 {
        let spans = [
            (Fault::Reorder, 1_050 * MILLI),
            (Fault::Clog, 2_250 * MILLI),
            (Fault::Pause, 300 * MILLI),
        ];
        let spans = spans.iter().filter(|(fault, _)| self.has(*fault));
        200 * MILLI + spans.map(|(_, span)| span).sum::<u64>()
    }

    /// Whether somebody may not be heard for seconds.
    pub fn interrupts(&self) -> bool {
        let faults = [Fault::Cut, Fault::Mtu, Fault::Deaf];
        faults.iter().any(|fault| self.has(*fault))
    }

    fn leave_out_of_link(&mut self) {
        let has = |fault| self.faults.contains(&fault);
        let calm = Link::perfect(self.link.delay);
        let mut link = self.link;
        if !has(Fault::Loss) {
            link.loss = 0;
        }
        if !has(Fault::Duplicate) {
            link.duplicate = 0;
        }
        if !has(Fault::Reorder) {
            link.jitter = calm.jitter;
            link.straggle = 0;
        }
        if has(Fault::Corrupt) {
            link.corrupt = 300;
        }
        self.link = link;
    }
}

/// How often a mishap refuses memory for a sample.
fn refusals_in_10000((name, chance): &(&'static str, u32)) -> u64 {
    let refuses = name.starts_with("no-room") || *name == "ready-queue-full-early";
    if refuses { u64::from(*chance) } else { 0 }
}

/// Loss to 30 %, duplicates to 50 %, delays to 50 ms, stragglers to a second.
fn link(random: &mut Rng) -> Link {
    let scale = [1, 10, 100, 1000][random.usize(0..4)];
    Link {
        loss: random.u32(0..=3 * scale),
        duplicate: random.u32(0..=5 * scale),
        delay: random.u64(20_000..20 * MILLI),
        jitter: random.u64(0..30 * MILLI),
        straggle: random.u32(0..=scale / 10),
        ..Link::perfect(0)
    }
}

/// Policies of a random endpoint. Written so that about half of all pairs fit.
pub fn qos(random: &mut Rng, is_writer: bool) -> EndpointQos {
    let mut chance = |percent: u32| random.u32(0..100) < percent;
    // Writers tend to offer much, readers to ask little.
    let (strong, weak) = if is_writer { (80, 15) } else { (60, 5) };
    let reliable = chance(strong);
    let latched = chance(if is_writer { 45 } else { 25 });
    let keep_all = chance(45);
    let limited = chance(30);
    let has_deadline = chance(weak);
    let by_topic = chance(weak);
    let by_participant = chance(weak / 2);
    let leased = chance(weak + 5);
    let expires = is_writer && chance(8);
    let depth = random.u32(1..=20);
    let span = |random: &mut Rng, low: i64, high: i64| {
        Duration::from_nanos(random.i64(low * 1_000_000..high * 1_000_000))
    };
    let infinite = Duration::INFINITE;
    EndpointQos {
        reliability: match reliable {
            true => Reliability::Reliable,
            false => Reliability::BestEffort,
        },
        durability: match latched {
            true => Durability::TransientLocal,
            false => Durability::Volatile,
        },
        history: match keep_all {
            true => History::KeepAll,
            false => History::KeepLast(depth),
        },
        resource_limits: ResourceLimits {
            max_samples: (keep_all && limited).then(|| random.u32(4..200)),
            ..ResourceLimits::default()
        },
        max_blocking_time: span(random, 1, 100),
        deadline: match has_deadline {
            true => span(random, 100, 1500),
            false => infinite,
        },
        liveliness: match (by_topic, by_participant) {
            (true, _) => Liveliness::ManualByTopic,
            (false, true) => Liveliness::ManualByParticipant,
            _ => Liveliness::Automatic,
        },
        lease_duration: match (leased || by_topic || by_participant, is_writer) {
            (true, true) => span(random, 300, 2_000),
            (true, false) => span(random, 1_000, 5_000),
            _ => infinite,
        },
        lifespan: match expires {
            true => span(random, 50, 2_000),
            false => infinite,
        },
        ..EndpointQos::default()
    }
}

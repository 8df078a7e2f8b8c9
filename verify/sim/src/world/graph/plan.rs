//! The plan that a seed stands for: processes, hosts, faults and durations.
//!
//! It also draws the QoS policies of endpoints. Everything else follows from the
//! random numbers drawn during the run.

use fastrand::Rng;
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability, ResourceLimits};
use pteros_rtps::time::Duration;

use super::networks::RECOVERY;
use crate::fault_points::tolerated_faults;
use crate::harness::options::{Fault, Options};
use crate::network::link::Link;

/// Everything that a seed decides: processes, endpoints, QoS policies and faults.
#[derive(Clone, Debug, Default)]
pub struct SeedPlan {
    /// Host of each process.
    pub hosts: Vec<u8>,
    /// Participant lease of the processes.
    pub lease: Duration,
    /// Length of the fault phase in nanoseconds.
    pub fault_span: u64,
    /// Endpoints that each process starts with.
    pub endpoints: usize,
    /// Number of topics.
    pub topics: usize,
    /// Mean nanoseconds between the messages of a writer.
    pub period: u64,
    /// Faults that this seed has.
    pub faults: Vec<Fault>,
    /// Random parameters of the links.
    pub link: Link,
    /// Tolerated faults that strike, with their chance in 1/10000.
    pub tolerated_faults: Vec<(&'static str, u32)>,
    /// Nanoseconds between an attacker's datagrams.
    pub attack_pause: u64,
    /// Writers are MANUAL_BY_PARTICIPANT.
    pub manual_liveliness: bool,
    /// Writers offer a deadline, and most readers request one.
    pub with_deadlines: bool,
    /// Topics have keys, and instances are disposed and unregistered.
    pub keyed: bool,
    /// Half of the subscriptions want some of the messages only.
    pub filtered: bool,
    /// Half of the writers leave sending to a flow controller or hold small
    /// messages back.
    pub flow_controlled: bool,
    /// Writers of a process are presented as one whole and write coherent sets.
    pub coherent: bool,
    /// Their sets are of the group and in its order, nothing of them may be lost,
    /// and no process stays silent for long.
    pub ordered: bool,
    /// Processes have clients and servers, too.
    pub services: bool,
    /// Processes that start only after the last fault.
    pub late_processes: usize,
    /// One process is taken for Cyclone DDS, and has nothing but services.
    pub cyclone_process: bool,
}

const MILLI: u64 = 1_000_000;

/// Loss in 1/10000 on networks that also change.
const LOSS_ON_NETWORKS_MAX: u32 = 200;

impl SeedPlan {
    /// The plan of a seed.
    pub fn new(random: &mut Rng, options: &Options) -> Self {
        let processes = random.usize(2..=5);
        let hosts = random.u8(1..=3);
        let host_of = |_| random.u8(1..=hosts);
        let hosts: Vec<u8> = (0..processes).map(host_of).collect();
        // Each seed has some of the faults, so that each is also seen alone.
        let share = random.u32(1..=4);
        let mut faults: Vec<Fault> = Fault::ALL.to_vec();
        let of_others = [
            Fault::SharedMemory,
            Fault::Forgery,
            Fault::SpoofedForgery,
            Fault::Networks,
        ];
        faults.retain(|fault| !Fault::ADDED_LATER.contains(fault) && !of_others.contains(fault));
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
            attack_pause: 20 * MILLI,
            ..Self::default()
        };
        plan.draw_later_faults(&mut random.clone().fork());
        let seed_of_networks = random.clone().u64(..) ^ 0x006e_6574_776f_726b;
        plan.draw_policies(random.clone().u64(..));
        if options.forced.is_empty() && !options.standard {
            plan.draw_worlds(&mut Rng::with_seed(seed_of_networks));
        }
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
        plan.leave_only_forgery();
        plan.leave_only_networks(seed_of_networks, options.fault_millis.is_some());
        plan.clear_absent_link_faults();
        plan
    }

    /// The lease of the processes in nanoseconds.
    pub fn lease_nanos(&self) -> u64 {
        u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether this seed has a fault.
    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Draws the kinds of [`Fault::ADDED_LATER`].
    fn draw_later_faults(&mut self, random: &mut Rng) {
        for fault in Fault::ADDED_LATER {
            // GUID reuse needs an explicit request. If the dead process and its
            // successor have sent equally much, peers cannot distinguish them.
            let drawn = random.u32(0..4) == 0;
            if drawn && fault != Fault::GuidReuse {
                self.faults.push(fault);
            }
        }
        if random.u32(0..4) == 0 {
            self.attack_pause = 5_000 * MILLI;
        }
        self.manual_liveliness = random.u32(0..6) == 0;
        for name in tolerated_faults() {
            if random.u32(0..4) == 0 {
                self.tolerated_faults.push((name, random.u32(1..500)));
            }
        }
        self.with_deadlines = random.u32(0..6) == 0;
        if random.u32(0..3) == 0 {
            self.faults.push(Fault::SharedMemory);
        }
    }

    /// Draws the kinds of faults that exclude most others, and forged packets.
    fn draw_worlds(&mut self, random: &mut Rng) {
        match random.u32(0..16) {
            0..=1 => self.faults.push(Fault::Networks),
            2..=3 => self.faults.push(Fault::Forgery),
            4 => self.faults.push(Fault::SpoofedForgery),
            _ => {}
        }
    }

    /// Draws the policies that were added last, from random numbers of their own.
    /// Exactly counted deadlines need every message to reach every reader at once.
    fn draw_policies(&mut self, seed: u64) {
        if self.with_deadlines {
            return;
        }
        let mut random = Rng::with_seed(seed ^ 0x7075_6c73_6172);
        self.keyed = random.u32(0..4) == 0;
        self.filtered = random.u32(0..4) == 0;
        self.flow_controlled = random.u32(0..4) == 0;
        // The engine decides how many samples of each instance fit into a set.
        self.coherent = random.u32(0..3) == 0 && !self.keyed;
        if self.coherent {
            // The writers of a process need common readers.
            self.topics = 1;
        }
        self.ordered = self.coherent && random.u32(0..3) == 0;
        let mut random = Rng::with_seed(seed ^ 0x7365_7276_6963_6573);
        self.services = random.u32(0..3) == 0;
        self.cyclone_process = self.services && random.u32(0..2) == 0;
        if self.ordered {
            let excluded = [Fault::Cut, Fault::Mtu, Fault::OneWayOutage];
            self.faults.retain(|fault| !excluded.contains(fault));
        }
    }

    /// With spoofed addresses only the rule *recovery* can be checked. Other faults that
    /// take long to repair, or withhold samples, are left out.
    fn leave_only_forgery(&mut self) {
        if !self.has(Fault::SpoofedForgery) {
            return;
        }
        let remaining = [
            Fault::SpoofedForgery,
            Fault::Networks,
            Fault::Loss,
            Fault::Duplicate,
            Fault::SharedMemory,
        ];
        self.leave_only(&remaining);
        self.services = false;
        self.cyclone_process = false;
    }

    /// Leaves only these faults, and none of the features that delay or hold back samples.
    fn leave_only(&mut self, faults: &[Fault]) {
        self.faults.retain(|fault| faults.contains(fault));
        self.keyed = false;
        self.filtered = false;
        self.flow_controlled = false;
        self.coherent = false;
        self.ordered = false;
        self.with_deadlines = false;
        self.manual_liveliness = false;
    }

    /// With networks that change, the rule *path recovery* has a bound. Other faults that
    /// interrupt a flow for longer are left out. With spoofed addresses as well, only
    /// *recovery* has one.
    fn leave_only_networks(&mut self, seed: u64, is_short: bool) {
        if !self.has(Fault::Networks) {
            return;
        }
        let remaining = [
            Fault::Networks,
            Fault::SpoofedForgery,
            Fault::Loss,
            Fault::Duplicate,
            Fault::Churn,
            Fault::WallClock,
            Fault::SharedMemory,
        ];
        self.leave_only(&remaining);
        let mut random = Rng::with_seed(seed ^ 1);
        self.link.loss = self.link.loss.min(LOSS_ON_NETWORKS_MAX);
        if !is_short {
            // Time for several changes.
            self.fault_span = self.fault_span.max(15_000 * MILLI);
        }
        self.period = self.period.min(150 * MILLI);
        if self.hosts.iter().all(|host| *host == self.hosts[0]) {
            self.hosts[0] = self.hosts[0] % 3 + 1;
        }
        if self.hosts.len() > 2 && random.bool() {
            self.late_processes = 1;
        }
    }

    /// Whether no match ends while faults are injected.
    pub fn is_calm(&self) -> bool {
        !Fault::ENDS_MATCHES.iter().any(|fault| self.has(*fault))
    }

    /// Nanoseconds after healing until readers without a lost match have every
    /// sample: three heartbeat periods and round trips, plus pauses and read delays
    /// that had begun. Each sample for which memory is refused takes one more
    /// request, in the worst case after the longest pause. To a reader whose filter rejects
    /// all samples of an outage, heartbeats come ever more rarely, up to every 2 s (seed
    /// 9001003033).
    pub fn repair_span(&self) -> u64 {
        let refusals: u64 = if self.has(Fault::FaultPoints) {
            self.tolerated_faults.iter().map(refusals_in_10000).sum()
        } else {
            0
        };
        let backlog = self.fault_span / self.period.max(1);
        let changes = match self.has(Fault::Networks) {
            true => RECOVERY + 3_000 * MILLI,
            false => 0,
        };
        let filtered = match self.filtered && self.has_long_outages() {
            true => 2_000 * MILLI,
            false => 0,
        };
        1_500 * MILLI + changes + filtered + 200 * MILLI * (backlog * refusals).div_ceil(10_000)
    }

    /// Maximum nanoseconds in flight or waiting to be read.
    pub fn in_flight_max(&self) -> u64 {
        let spans = [
            (Fault::Reorder, 1_050 * MILLI),
            (Fault::Stall, 2_250 * MILLI),
            (Fault::Pause, 300 * MILLI),
        ];
        let spans = spans.iter().filter(|(fault, _)| self.has(*fault));
        200 * MILLI + spans.map(|(_, span)| span).sum::<u64>()
    }

    /// Whether a process may be unreachable for seconds.
    pub fn has_long_outages(&self) -> bool {
        let faults = [Fault::Cut, Fault::Mtu, Fault::OneWayOutage];
        faults.iter().any(|fault| self.has(*fault))
    }

    fn clear_absent_link_faults(&mut self) {
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

/// Chance in 1/10000 that a tolerated fault refuses memory for a sample.
fn refusals_in_10000((name, chance): &(&'static str, u32)) -> u64 {
    let refuses = name.starts_with("no-memory") || *name == "ready-queue-full-early";
    if refuses { u64::from(*chance) } else { 0 }
}

/// Loss up to 30 %, duplicates up to 50 %, latency up to 50 ms, stragglers up to a
/// second.
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

/// Random policies. About half of all pairs are compatible.
pub fn random_qos(random: &mut Rng, is_writer: bool) -> EndpointQos {
    let mut chance = |percent: u32| random.u32(0..100) < percent;
    // Writers tend to offer much, and readers to request little.
    let (strong, weak) = if is_writer { (80, 15) } else { (60, 5) };
    let reliable = chance(strong);
    let transient_local = chance(if is_writer { 45 } else { 25 });
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
        reliability: if reliable {
            Reliability::Reliable
        } else {
            Reliability::BestEffort
        },
        durability: if transient_local {
            Durability::TransientLocal
        } else {
            Durability::Volatile
        },
        history: if keep_all {
            History::KeepAll
        } else {
            History::KeepLast(depth)
        },
        resource_limits: ResourceLimits {
            max_samples: (keep_all && limited).then(|| random.u32(4..200)),
            ..ResourceLimits::default()
        },
        max_blocking_time: span(random, 1, 100),
        deadline: if has_deadline {
            span(random, 100, 1500)
        } else {
            infinite
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
        lifespan: if expires {
            span(random, 50, 2_000)
        } else {
            infinite
        },
        ..EndpointQos::default()
    }
}

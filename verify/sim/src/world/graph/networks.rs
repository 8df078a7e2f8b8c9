//! Networks: hosts with several addresses on several networks. Links lose their
//! carrier, networks die unseen in one or both directions, addresses change,
//! interfaces go and come late.
//!
//! I21, path recovery: while a network connects two hosts in both directions for
//! longer than a bound, every matched flow between them makes progress, and compatible
//! endpoints find each other. After the last change all is whole (I1, I6, I12), also
//! for a process that starts only then.
//!
//! The bound is one second for the path and the repair, and 0.2 s for the round trips of
//! the simulated links: a path in use is left 0.7 s after it died
//! (`pteros_rtps::participant`, paths), and a heartbeat follows within a period. It
//! holds once a network has connected both hosts for three seconds, because the
//! documented protocol allows more after they were disconnected:
//! - Heartbeats without an answer are up to 2 s apart
//!   (`HeartbeatConfig::unanswered_period_max`).
//! - A host that got another address while no network connected it with a peer is found
//!   by the next announcement. So is one whose announcement was lost.

use std::collections::{BTreeMap, BTreeSet};

use pteros_rtps::writer::FragmentSize;

use super::model::matching::{MatchDecision, is_reliable, match_decision};
use super::model::records::{ReaderRecord, WriterRecord, is_matched};
use super::schedule::SimEvent;
use super::world::GraphWorld;
use crate::harness::options::Fault;
use crate::network::interfaces::Topology;

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

/// One second for the path, and the longest pause between two heartbeats.
pub const RECOVERY: u64 = 3 * SECOND;

/// How old a sample may be that has not arrived, after a path in use died.
const FAIL_OVER: u64 = 1_200 * MILLI;

/// Pause between two checks of all flows.
const CHECK_PERIOD: u64 = 100 * MILLI;

/// Best-effort messages within [`BEST_EFFORT_SPAN`], of which one must arrive, at least.
const BEST_EFFORT_MESSAGES: usize = 10;
/// The chance that all of as many as are expected are lost by the links alone.
const ALL_LOST: f64 = 1e-12;
const BEST_EFFORT_SPAN: u64 = SECOND;

/// Addresses that a host may get on one network.
const ADDRESSES_MAX: u8 = 200;

/// The rule's knowledge of the networks.
#[derive(Debug, Default)]
pub struct NetworkState {
    /// Number of networks.
    count: u8,
    /// Since when a network connects two hosts in both directions.
    connected: BTreeMap<(u8, u8, u8), u64>,
    /// Pairs of hosts of which one must hear an announcement of the other first.
    unaware: BTreeSet<(u8, u8)>,
    /// Last change of a host's interfaces.
    changed_at: BTreeMap<u8, u64>,
    /// Numbers the addresses.
    addresses: u8,
}

/// A change of the networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A link loses or regains its carrier.
    Carrier,
    /// A network delivers nothing any more: from all to all, or in one direction.
    Dies,
    /// It delivers again.
    Revives,
    /// An interface has another address (DHCP).
    Address,
    /// An interface is gone (a USB adapter, a VPN).
    Leaves,
    /// An interface comes.
    Comes,
}

const CHANGES: [Change; 11] = [
    Change::Carrier,
    Change::Carrier,
    Change::Dies,
    Change::Dies,
    Change::Dies,
    Change::Revives,
    Change::Revives,
    Change::Address,
    Change::Leaves,
    Change::Comes,
    Change::Comes,
];

impl NetworkState {
    /// The earliest instant since which some network connects two hosts.
    fn connected_since(&self, one: u8, other: u8) -> Option<u64> {
        if one == other {
            return Some(self.changed_at.get(&one).copied().unwrap_or(0));
        }
        let (low, high) = (one.min(other), one.max(other));
        let networks = (1..=self.count).filter_map(|n| self.connected.get(&(low, high, n)));
        networks.min().copied()
    }

    /// Notes the connections after a change; those of `(host, network)` began anew.
    fn note(
        &mut self,
        now: u64,
        hosts: &BTreeSet<u8>,
        topology: &Topology,
        anew: Option<(u8, u8)>,
    ) {
        for one in hosts {
            for other in hosts.range(one + 1..) {
                for network in 1..=self.count {
                    let key = (*one, *other, network);
                    let is_of_it = |(h, n)| (h == *one || h == *other) && n == network;
                    if anew.is_some_and(is_of_it) || !topology.connects(network, *one, *other) {
                        self.connected.remove(&key);
                    }
                    if topology.connects(network, *one, *other) {
                        self.connected.entry(key).or_insert(now);
                    }
                }
            }
        }
    }
}

impl GraphWorld {
    fn all_hosts(&self) -> BTreeSet<u8> {
        self.plan.hosts.iter().copied().collect()
    }

    /// Attaches the hosts to the networks, before any process starts.
    pub fn open_networks(&self) {
        if !self.plan.has(Fault::Networks) {
            return;
        }
        let hosts = self.all_hosts();
        let now = self.sim.now();
        let mut schedule = self.schedule.lock();
        let mut state = self.networks.lock();
        state.count = schedule.random.u8(2..=3);
        let mut network = self.sim.network();
        for host in &hosts {
            let has_all = schedule.random.u8(0..4) > 0;
            let order = schedule.random.bool();
            network.topology.interfaces_mut(*host);
            for index in 1..=state.count {
                let number = if order {
                    index
                } else {
                    state.count + 1 - index
                };
                if has_all || schedule.random.bool() {
                    network
                        .topology
                        .attach(*host, number, [10, number, 0, *host]);
                }
            }
        }
        state.note(now, &hosts, &network.topology, None);
        let first = now + schedule.around(2 * SECOND);
        schedule.add(first, SimEvent::ChangeNetworks);
        // Spoofed packets disturb every flow while they come: then only I18 holds.
        if !self.plan.has(Fault::SpoofedForgery) {
            schedule.add(now + CHECK_PERIOD, SimEvent::CheckFlows);
        }
    }

    /// Changes the networks, and schedules the next change.
    pub fn change_networks(&self) {
        let now = self.sim.now();
        let hosts: Vec<u8> = self.all_hosts().into_iter().collect();
        let mut schedule = self.schedule.lock();
        let pauses = [150 * MILLI, SECOND, 4 * SECOND];
        let mean = pauses[schedule.random.usize(0..pauses.len())];
        let next = now + schedule.around(mean);
        schedule.add(next, SimEvent::ChangeNetworks);
        let random = &mut schedule.random;
        let change = CHANGES[random.usize(0..CHANGES.len())];
        let network = random.u8(1..=self.networks.lock().count);
        let host = hosts[random.usize(0..hosts.len())];
        let other = hosts[random.usize(0..hosts.len())];
        let (is_whole, is_one_way) = (random.bool(), random.bool());
        drop(schedule);
        self.apply_network_change(change, (host, network), |topology| {
            for from in &hosts {
                for to in hosts.iter().filter(|to| *to != from) {
                    let is_way = *from == host && *to == other;
                    let is_back = *from == other && *to == host && !is_one_way;
                    if is_whole || is_way || is_back {
                        topology.set_silent(network, *from, *to, true);
                    }
                }
            }
        });
        self.sim.trace_line(format_args!(
            "{change:?} host {host} network {network}, other host {other}, whole {is_whole}, one way {is_one_way}"
        ));
    }

    fn apply_network_change(
        &self,
        change: Change,
        (host, network): (u8, u8),
        kill: impl FnOnce(&mut Topology),
    ) {
        let now = self.sim.now();
        let hosts = self.all_hosts();
        let before = self.networks.lock().connected.clone();
        let mut state = self.networks.lock();
        let mut sim = self.sim.network();
        let topology = &mut sim.topology;
        let at = topology
            .interfaces(host)
            .iter()
            .position(|i| i.network == network);
        let mut anew = None;
        match (change, at) {
            (Change::Carrier, Some(at)) => {
                let interface = &mut topology.interfaces_mut(host)[at];
                interface.has_carrier = !interface.has_carrier;
                anew = Some((host, network));
            }
            (Change::Address, Some(at)) if state.addresses < ADDRESSES_MAX => {
                state.addresses += 1;
                let ip = [10, network, state.addresses, host];
                topology.interfaces_mut(host)[at].ip = ip;
                anew = Some((host, network));
            }
            (Change::Leaves, Some(at)) => {
                topology.interfaces_mut(host).remove(at);
                anew = Some((host, network));
            }
            (Change::Comes, None) => {
                state.addresses += 1;
                let ip = [10, network, state.addresses, host];
                topology.attach(host, network, ip);
                anew = Some((host, network));
            }
            (Change::Dies, _) => kill(topology),
            (Change::Revives, _) => topology.revive(network),
            _ => return,
        }
        state.note(now, &hosts, topology, anew);
        if anew.is_some() {
            state.changed_at.insert(host, now);
            for other in hosts.iter().filter(|other| **other != host) {
                let pair = (host.min(*other), host.max(*other));
                let stays = (1..=state.count).any(|n| {
                    let key = (pair.0, pair.1, n);
                    before.contains_key(&key) && before.get(&key) == state.connected.get(&key)
                });
                if !stays || self.plan.link.loss > 0 {
                    state.unaware.insert(pair);
                }
            }
            sim.note_interfaces_changed(host);
        }
        drop(sim);
        drop(state);
        for process in 0..self.plan.hosts.len() {
            if anew.is_some() && self.plan.hosts[process] == host {
                self.sim.poll_process(process);
            }
        }
    }

    /// The last change: one network connects all hosts, the others stay as they are.
    pub fn heal_networks(&self) {
        if !self.plan.has(Fault::Networks) {
            return;
        }
        let count = self.networks.lock().count;
        let network = self.schedule.lock().random.u8(1..=count);
        self.sim
            .trace_line(format_args!("network {network} connects all hosts"));
        self.apply_network_change(Change::Revives, (0, network), |_| {});
        for host in self.all_hosts() {
            let own = {
                let network_now = self.sim.network();
                let mut own = network_now.topology.interfaces(host).iter();
                own.find(|i| i.network == network).copied()
            };
            match own {
                None => self.apply_network_change(Change::Comes, (host, network), |_| {}),
                Some(own) if !own.has_carrier => {
                    self.apply_network_change(Change::Carrier, (host, network), |_| {});
                }
                Some(_) => {}
            }
        }
        // A process that starts after the last change.
        for process in 0..self.plan.hosts.len() {
            self.apply_start(process);
        }
    }

    /// Whether a network that connects two processes came so lately that they may not
    /// have heard each other: an address must prove itself first.
    pub fn has_changed_lately(&self, one: usize, other: usize) -> bool {
        let state = self.networks.lock();
        let (one, other) = (self.plan.hosts[one], self.plan.hosts[other]);
        let bound = RECOVERY + self.announcement_period();
        let is_lately = |since| self.sim.now() < since + bound;
        let since = state.connected_since(one, other);
        state.count > 0 && since.is_none_or(is_lately)
    }

    /// The longest pause between two announcements: a quarter of the lease, at most 3 s.
    fn announcement_period(&self) -> u64 {
        (self.plan.lease_nanos() / 4).min(3 * SECOND)
    }

    /// I21: checks all flows, and schedules the next check.
    pub fn check_flows(&self) {
        let now = self.sim.now();
        self.schedule
            .lock()
            .add(now + CHECK_PERIOD, SimEvent::CheckFlows);
        let mut state = self.networks.lock();
        let mut wrong = Vec::new();
        let model = self.model.lock();
        let mut aware = BTreeSet::new();
        for (w, writer) in model.living_writers() {
            for (r, reader) in model.living_readers() {
                let decision = match_decision(&writer.endpoint.data, &reader.endpoint.data);
                let (a, b) = (writer.location.process, reader.location.process);
                if decision != Some(MatchDecision::Compatible) || a == b {
                    continue;
                }
                let (one, other) = (self.plan.hosts[a], self.plan.hosts[b]);
                let Some(since) = state.connected_since(one, other) else {
                    continue;
                };
                let pair = (one.min(other), one.max(other));
                let mut bound = RECOVERY;
                if state.unaware.contains(&pair) {
                    bound += self.announcement_period();
                    if now >= since + bound + CHECK_PERIOD {
                        aware.insert(pair);
                    }
                }
                if now < since + bound {
                    continue;
                }
                wrong.extend(
                    self.check_pair_found(now, bound, (w, writer), (r, reader), since)
                        .or_else(|| {
                            let loss = self.plan.link.loss;
                            check_progress(now, (w, writer), (r, reader), since + bound, loss)
                        }),
                );
            }
        }
        drop(model);
        for pair in aware {
            state.unaware.remove(&pair);
        }
        drop(state);
        self.sim.report(wrong);
    }

    /// I21: compatible endpoints of hosts that a network connects are matched within the
    /// bound of discovery.
    fn check_pair_found(
        &self,
        now: u64,
        bound: u64,
        (w, writer): (usize, &WriterRecord),
        (r, reader): (usize, &ReaderRecord),
        since: u64,
    ) -> Option<String> {
        let began = since.max(writer.created_at).max(reader.created_at);
        let ours = is_matched(&writer.peers, reader.endpoint.data.guid);
        let theirs = is_matched(&reader.peers, writer.endpoint.guid());
        let is_late = now >= began + bound + self.announcement_period() + SECOND;
        (is_late && !(ours && theirs)).then(|| {
            format!(
                "I21 w{w} and r{r} are connected since {began} and not matched: at the writer {ours}, at the reader {theirs}"
            )
        })
    }
}

/// I21: what was written [`FAIL_OVER`] ago has arrived, or something newer. The pair
/// must have been connected long enough by `settled_at`.
fn check_progress(
    now: u64,
    (w, writer): (usize, &WriterRecord),
    (r, reader): (usize, &ReaderRecord),
    settled_at: u64,
    loss: u32,
) -> Option<String> {
    let ours = writer.peers.get(&reader.endpoint.data.guid)?;
    let theirs = reader.peers.get(&writer.endpoint.guid())?;
    let (offered, requested) = (&writer.endpoint.data.qos, &reader.endpoint.data.qos);
    if !ours.matched || !theirs.matched || !offered.lifespan.is_infinite() {
        return None;
    }
    let taken = reader.numbers_taken_from(writer.endpoint.guid());
    let last = taken.iter().rev().take(32).max().copied().unwrap_or(0);
    let first = usize::try_from(ours.since).ok()?.checked_sub(1)?;
    let times = writer.times.get(first..)?;
    let met = theirs.at + RECOVERY;
    if is_reliable(offered, requested) {
        let due = times.partition_point(|at| at + FAIL_OVER <= now);
        let at = *times.get(due.checked_sub(1)?)?;
        let number = i64::try_from(first + due).ok()?;
        return (at >= theirs.at && now >= met.max(settled_at) && last < number).then(|| {
            format!(
                "I21 r{r} has number {last} of w{w}, and {number} was written at {at}, {} ms ago",
                (now - at) / MILLI
            )
        });
    }
    let end = now.checked_sub(300 * MILLI)?;
    let from = end.checked_sub(BEST_EFFORT_SPAN)?;
    let (from, to) = (
        times.partition_point(|at| *at < from.max(met)),
        times.partition_point(|at| *at < end),
    );
    let missing = i64::try_from(first + from).ok()?;
    let expected = messages_of_which_one_arrives(writer.bytes, loss);
    (to >= from + expected && last <= missing && now > met + BEST_EFFORT_SPAN).then(|| {
        format!(
            "I21 best-effort r{r} has number {last} of w{w}, none of {} newer ones",
            to - from
        )
    })
}

/// How many best-effort messages of so many bytes must be sent until one has arrived, where
/// `loss` of 10000 datagrams are lost. Every fragment of a large one must arrive
/// (seed 88002030).
fn messages_of_which_one_arrives(bytes: usize, loss: u32) -> usize {
    let fragment = usize::from(FragmentSize::default().network);
    let datagrams = i32::try_from(bytes.div_ceil(fragment)).unwrap_or(i32::MAX);
    let arrives = (1.0 - f64::from(loss) / 10_000.0).powi(datagrams);
    let count = ALL_LOST.ln() / (1.0 - arrives).ln();
    BEST_EFFORT_MESSAGES.max(count.ceil() as usize)
}

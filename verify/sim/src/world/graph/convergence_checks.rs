//! Convergence checks: what must hold after healing.
//!
//! Discovery is complete (I6). Reliable samples are delivered and acknowledged (I1,
//! I6). Events and counts equal those of the oracle (I2, I5). The graph is correct
//! (I12), the network is quiet (I7), and late joiners get their history (I4).

use std::collections::BTreeSet;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability, ResourceLimits};
use pteros_runtime::EndpointSpec;

use super::fault_injection::VICTIM;
use super::model::Model;
use super::model::matching::{MatchDecision, is_lossless, is_reliable, match_decision};
use super::model::records::{
    EndpointLocation, Peers, ReaderRecord, WriterRecord, is_matched, matched,
};
use super::world::GraphWorld;
use crate::harness::options::Fault;

const SECOND: u64 = 1_000_000_000;

/// Queue limit of a late joiner where limits are small.
const QUEUE_TIGHT: u32 = 3;

/// History depth of some late joiners.
const DEPTH_LATE: u32 = 4;

impl GraphWorld {
    /// I9, amplification: an address that never replied gets at most three times
    /// the bytes that were sent in its name. The spoofed address never replies.
    fn check_amplification(&self) -> Vec<String> {
        let network = self.sim.network();
        let mut wrong = Vec::new();
        for ((process, to), sent) in &network.undeliverable {
            let received = network.injected.get(process).copied().unwrap_or(0);
            let is_victim = to.address[12..] == VICTIM;
            if is_victim && *sent > 3 * received {
                wrong.push(format!(
                    "I9 p{process} sent {sent} bytes to {to}, was sent {received} in its name"
                ));
            }
        }
        wrong
    }

    /// I6: some time after healing, all compatible endpoints are matched. I9.
    pub fn check_discovery(&self) -> Vec<String> {
        let mut wrong = self.check_amplification();
        let model = self.model.lock();
        for (w, writer) in model.living_writers() {
            for (r, reader) in model.living_readers() {
                if match_decision(&writer.endpoint.data, &reader.endpoint.data)
                    != Some(MatchDecision::Compatible)
                {
                    continue;
                }
                if !is_matched(&writer.peers, reader.endpoint.data.guid)
                    || !is_matched(&reader.peers, writer.endpoint.guid())
                {
                    wrong.push(format!(
                        "I6 w{w} and r{r} are compatible and not matched: at the writer {}, at the reader {}",
                        is_matched(&writer.peers, reader.endpoint.data.guid),
                        is_matched(&reader.peers, writer.endpoint.guid())
                    ));
                }
            }
        }
        wrong
    }

    /// Goes on while these readers receive something of a flow controller, which may need
    /// longer than a phase.
    fn await_flow_controller(&self, readers: &[usize]) {
        let received = || -> u64 {
            let mut model = self.model.lock();
            model.note_late_flows(self.sim.now());
            let counts = readers.iter().map(|r| model.readers[*r].endpoint.counts());
            counts.map(|counts| counts.received).sum()
        };
        let mut before = 0;
        while self.plan.flow_controlled && !self.sim.has_failed() && received() > before {
            before = received();
            self.sim.run_until(self.sim.now() + SECOND);
        }
    }

    /// Waits for the flow controllers whose samples are not acknowledged: 120 MB for six
    /// readers take 13 s (seed 9800116535). They must make progress all the time.
    pub fn await_flow_controlled_writers(&self) -> Vec<String> {
        let readers: Vec<usize> = {
            let model = self.model.lock();
            let is_late = model.living_writers().any(|(_, w)| {
                w.flow_controlled && !w.has_attacker(&model) && !w.endpoint.is_acknowledged()
            });
            let living = model.living_readers().filter(|_| is_late);
            living.map(|(r, _)| r).collect()
        };
        self.await_flow_controller(&readers);
        Vec::new()
    }

    /// All other checks, which hold once the leases of dead processes have expired.
    pub fn check_settled_state(&self) -> Vec<String> {
        let now = self.sim.now();
        let paused: Vec<bool> = self.sim.processes().iter().map(|p| p.was_paused).collect();
        let model = self.model.lock();
        let mut wrong = Vec::new();
        for (w, writer) in model.living_writers() {
            wrong.extend(gone_peers(&model, &format!("w{w}"), &writer.peers));
            let spoofed_prefix = writer.has_attacker(&model);
            if !spoofed_prefix && !writer.endpoint.is_acknowledged() {
                wrong.push(format!("I6 w{w} is not acknowledged after healing"));
            }
            if !spoofed_prefix && !writer.stalled.is_empty() {
                wrong.push(format!(
                    "I22 w{w} still reports {:?} as stalled after healing",
                    writer.stalled
                ));
            }
            if !paused[writer.location.process] {
                wrong.extend(writer.check_watches(w, now));
            }
            for (r, reader) in model.living_readers() {
                wrong.extend(check_pair(w, writer, r, reader));
            }
        }
        for (r, reader) in model.living_readers() {
            wrong.extend(gone_peers(&model, &format!("r{r}"), &reader.peers));
            wrong.extend(reader.check_counts(r));
            wrong.extend(self.check_no_resynchronisation(r, reader));
        }
        drop(model);
        self.check_graphs(&mut wrong);
        wrong
    }

    /// I18: no reliable reader takes the state of an honest writer anew.
    fn check_no_resynchronisation(&self, r: usize, reader: &ReaderRecord) -> Option<String> {
        let lies = [
            Fault::Attack,
            Fault::MatchedAttacker,
            Fault::Corrupt,
            Fault::Forgery,
            Fault::SpoofedForgery,
            Fault::GuidReuse,
        ];
        // A best-effort reader takes late samples for a writer that it lost.
        let is_reliable = reader.endpoint.data.qos.reliability == Reliability::Reliable;
        let times = reader.endpoint.counts().resynchronised;
        (is_reliable && times > 0 && !lies.iter().any(|lie| self.plan.has(*lie)))
            .then(|| format!("I18 r{r} took the state of a writer anew, {times} times"))
    }

    /// I12: the graph cache of every context is correct.
    fn check_graphs(&self, wrong: &mut Vec<String>) {
        let mut nodes = BTreeSet::new();
        let mut endpoints = BTreeSet::new();
        let mut prefixes = BTreeSet::new();
        let of_services = self.service_endpoints();
        let model = self.model.lock();
        for (index, process) in self.sim.processes().iter().enumerate() {
            let Some(running) = &process.running else {
                continue;
            };
            let prefix = running.core.prefix();
            prefixes.insert(prefix);
            for (key, name) in &running.nodes {
                let here = |location: &EndpointLocation| {
                    location.process == index && location.node == *key
                };
                let writers = model.living_writers().filter(|(_, w)| here(&w.location));
                let readers = model.living_readers().filter(|(_, r)| here(&r.location));
                let mut writers: BTreeSet<Guid> = writers.map(|(_, w)| w.endpoint.guid()).collect();
                let mut readers: BTreeSet<Guid> =
                    readers.map(|(_, r)| r.endpoint.data.guid).collect();
                for (_, reader, writer) in
                    of_services.iter().filter(|(location, ..)| here(location))
                {
                    readers.insert(*reader);
                    writers.insert(*writer);
                }
                endpoints.extend(writers.iter().chain(&readers).copied());
                nodes.insert((prefix, name.clone(), readers, writers));
            }
        }
        let attackers = model.attackers.clone();
        drop(model);
        for (index, process) in self.sim.processes().iter().enumerate() {
            let Some(running) = &process.running else {
                continue;
            };
            let graph = running.core.graph();
            let set = |list: Vec<Guid>| list.into_iter().collect::<BTreeSet<Guid>>();
            let reported_nodes: BTreeSet<_> = graph
                .nodes()
                .into_iter()
                .filter(|n| !attackers.contains(&n.participant))
                .map(|n| (n.participant, n.name, set(n.readers), set(n.writers)))
                .collect();
            let reported: BTreeSet<Guid> = graph
                .endpoints()
                .into_iter()
                .map(|e| e.data.guid)
                .filter(|g| !attackers.contains(&g.prefix))
                .collect();
            let met: BTreeSet<_> = graph
                .participants()
                .into_iter()
                .map(|p| p.prefix)
                .chain([running.core.prefix()])
                .filter(|p| !attackers.contains(p))
                .collect();
            if reported != endpoints {
                let extra: Vec<_> = reported.difference(&endpoints).collect();
                let missing: Vec<_> = endpoints.difference(&reported).collect();
                wrong.push(format!(
                    "I12 p{index}: unknown endpoints in the graph {extra:?}, missing {missing:?}"
                ));
            }
            if reported_nodes != nodes {
                let extra: Vec<_> = reported_nodes.difference(&nodes).collect();
                let missing: Vec<_> = nodes.difference(&reported_nodes).collect();
                wrong.push(format!(
                    "I12 p{index}: unknown nodes in the graph {extra:?}, missing {missing:?}"
                ));
            }
            if met != prefixes {
                wrong.push(format!(
                    "I12 p{index}: discovered {met:?}, alive are {prefixes:?}"
                ));
            }
        }
    }

    /// I7: an idle graph sends discovery traffic only, within a budget.
    pub fn check_quiet(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let lenient = self.model.lock().lenient;
        if lenient || self.knows_attacker() {
            return wrong;
        }
        self.sim.network().user_datagrams_sent = Some(0);
        let before = self.sim.network().traffic;
        self.sim.run_until(self.sim.now() + 5 * SECOND);
        let mut network = self.sim.network();
        let of_users = network.user_datagrams_sent.take().unwrap_or(0);
        let sent = network.traffic.sent - before.sent;
        drop(network);
        if of_users > 0 {
            wrong.push(format!(
                "I7 {of_users} datagrams of user endpoints in an idle graph"
            ));
        }
        // Per process: 34 announcements a second at the shortest lease, and
        // liveliness messages to each other process.
        let processes = self.plan.hosts.len() as u64;
        let budget = 5 * processes * (2 * 34 + 12 * processes);
        if sent > budget {
            wrong.push(format!(
                "I7 {sent} datagrams in 5 s of an idle graph, expected {budget}"
            ));
        }
        wrong
    }

    /// Whether a process still has the attacker as a participant. Its lease may be
    /// infinite. User writers and the graph's writer request acknowledgements from
    /// it that never come (seed 6050).
    fn knows_attacker(&self) -> bool {
        let attackers = self.model.lock().attackers.clone();
        let processes = self.sim.processes();
        let living = processes
            .iter()
            .filter_map(|process| process.running.as_ref());
        let mut known = living.flat_map(|running| running.core.graph().participants());
        known.any(|participant| attackers.contains(&participant.prefix))
    }

    /// I4: a late joiner gets the samples that transient-local writers keep.
    pub fn check_late_joiners(&self) -> Vec<String> {
        let wanted: Vec<(usize, EndpointSpec)> = {
            let model = self.model.lock();
            let mut topics = BTreeSet::new();
            for (_, writer) in model.living_writers() {
                let data = &writer.endpoint.data;
                topics.insert((data.topic.clone(), data.type_name.clone()));
            }
            let processes = self.sim.processes();
            let live = processes
                .iter()
                .enumerate()
                .filter(|(_, p)| p.running.is_some());
            let live: Vec<usize> = live.map(|(index, _)| index).collect();
            let spec = |(n, (topic, type_name)): (usize, (String, String))| {
                let process = *live.get(n % live.len().max(1))?;
                // With several writers it is undefined which samples overwrite
                // which.
                let on_topic = |w: &WriterRecord| w.endpoint.data.topic == topic;
                let is_sole = model.living_writers().filter(|(_, w)| on_topic(w)).count() == 1;
                let history = if is_sole && self.schedule.lock().random.bool() {
                    History::KeepLast(DEPTH_LATE)
                } else {
                    History::KeepAll
                };
                let small = self.plan.has(Fault::SmallLimits) && history == History::KeepAll;
                let max_samples = small.then_some(QUEUE_TIGHT);
                let spec = EndpointSpec {
                    topic,
                    type_name,
                    qos: EndpointQos {
                        reliability: Reliability::Reliable,
                        durability: Durability::TransientLocal,
                        history,
                        resource_limits: ResourceLimits {
                            max_samples,
                            ..ResourceLimits::default()
                        },
                        ..EndpointQos::default()
                    },
                    ..EndpointSpec::default()
                };
                Some((process, spec))
            };
            topics.into_iter().enumerate().filter_map(spec).collect()
        };
        let joined: Vec<usize> = wanted
            .into_iter()
            .filter_map(|(process, spec)| {
                self.add_reader(process, self.with_random_extensions(spec, false))
            })
            .collect();
        self.sim.run_until(self.sim.now() + 3 * SECOND);
        // A flow controller may need longer for a large history (seed 1003000005).
        self.await_flow_controller(&joined);
        if self.sim.has_failed() {
            return Vec::new();
        }
        // A reader of an attacker may be matched, and acknowledges nothing.
        let is_attacked = self.knows_attacker();
        let model = self.model.lock();
        let mut wrong = Vec::new();
        for r in joined {
            for (w, writer) in model.living_writers() {
                wrong.extend(check_history(w, writer, r, &model.readers[r], is_attacked));
            }
            // Samples overwritten before it joined are not lost.
            let lost = model.readers[r].endpoint.counts().lost;
            if lost > 0 {
                wrong.push(format!(
                    "I2 late r{r} lost {lost} though nothing was written"
                ));
            }
        }
        wrong
    }
}

/// I5, I6: no endpoint is matched with a dead one.
fn gone_peers(model: &Model, name: &str, peers: &Peers) -> Vec<String> {
    let dead = matched(peers)
        .filter(|(peer, _)| !model.is_attacker(**peer) && model.is_gone(**peer).unwrap_or(true));
    dead.map(|(peer, _)| format!("I5 {name} is still matched with {peer}, which is gone"))
        .collect()
}

impl WriterRecord {
    /// The sequence numbers of its last `count` messages.
    fn last_messages(&self, count: u64) -> Vec<i64> {
        let messages = (1..=self.written).rev();
        let messages = messages.filter(|n| !self.set_ends.contains(n));
        let last = messages.take(usize::try_from(count).unwrap_or(usize::MAX));
        let mut last: Vec<i64> = last.filter_map(|n| i64::try_from(n).ok()).collect();
        last.reverse();
        last
    }

    fn has_attacker(&self, model: &Model) -> bool {
        matched(&self.peers).any(|(peer, _)| model.is_attacker(*peer))
    }

    /// I5: missed deadlines and lost liveliness equal the oracle's counts.
    fn check_watches(&self, w: usize, now: u64) -> Vec<String> {
        let qos = &self.endpoint.data.qos;
        let mut deadline = self.deadline;
        deadline.expect(now, qos.deadline, false);
        let mut liveliness = self.liveliness;
        liveliness.expect(now, qos.lease_duration, true);
        let mut wrong = Vec::new();
        if deadline.reported != deadline.expected {
            wrong.push(format!(
                "I5 w{w}: {} deadlines missed, reported {}",
                deadline.expected, deadline.reported
            ));
        }
        if liveliness.reported != liveliness.expected && !liveliness.unsure {
            wrong.push(format!(
                "I5 w{w}: liveliness lost {} times, reported {}",
                liveliness.expected, liveliness.reported
            ));
        }
        wrong
    }
}

impl ReaderRecord {
    /// I2: each received sample was taken, overwritten, expired or purged.
    fn check_counts(&self, r: usize) -> Option<String> {
        let counts = self.endpoint.counts();
        let gone = self.taken + counts.overwritten + counts.expired + counts.purged;
        if counts.received != gone {
            return Some(format!(
                "I2 r{r}: received {}, but took {}, overwrote {}, expired {}",
                counts.received, self.taken, counts.overwritten, counts.expired
            ));
        }
        (counts.lost != self.lost).then(|| {
            format!(
                "I2 r{r}: counts {} lost, reported {}",
                counts.lost, self.lost
            )
        })
    }
}

/// I1, I2: checks a pair that was matched without a break.
fn check_pair(w: usize, writer: &WriterRecord, r: usize, reader: &ReaderRecord) -> Option<String> {
    let (offered, requested) = (&writer.endpoint.data.qos, &reader.endpoint.data.qos);
    let ours = writer.peers.get(&reader.endpoint.data.guid)?;
    let theirs = reader.peers.get(&writer.endpoint.guid())?;
    let steady = ours.epochs == 1 && theirs.epochs == 1 && ours.matched && theirs.matched;
    if !steady || !is_reliable(offered, requested) || ours.since > writer.written {
        return None;
    }
    let taken_samples = reader.numbers_taken_from(writer.endpoint.guid());
    if requested.presentation.orders_group() {
        // `check_order` checks it with all its writers.
        return None;
    }
    if is_lossless(offered, requested) {
        let got: BTreeSet<i64> = taken_samples.iter().copied().collect();
        let missing: Vec<u64> = (ours.since..=writer.written)
            .filter(|n| !writer.ends.contains_key(n) && !writer.set_ends.contains(n))
            .filter(|n| !reader.holds_samples() || !writer.in_set.contains_key(n))
            .filter(|n| {
                let n = i64::try_from(*n).unwrap_or(0);
                reader.passes_filter(w, n) && !got.contains(&n)
            })
            .take(10)
            .collect();
        return (!missing.is_empty()).then(|| {
            format!(
                "I1 r{r} never got {missing:?} of w{w} (matched since {}, {} written)",
                ours.since, writer.written
            )
        });
    }
    // With a single writer, every number since the match is received or lost.
    if reader.peers.len() == 1
        && requested.durability == Durability::Volatile
        && writer.location.process != reader.location.process
        && offered.lifespan.is_infinite()
        && !writer.keyed
        && reader.filter_below.is_none()
        && writer.set_ends.is_empty()
    {
        let counts = reader.endpoint.counts();
        let reported = counts.received + counts.lost;
        // The first sample may be older than the match, if it was sent to another
        // reader of the process. It may be newer, if the reader matched the writer
        // later and some samples were overwritten meanwhile.
        let first = taken_samples.first().and_then(|n| u64::try_from(*n).ok());
        let first = first.unwrap_or(writer.written);
        // Samples that the writer kept before its first heartbeat are history, not
        // lost.
        let kept = match offered.history {
            History::KeepLast(depth) => u64::from(depth),
            History::KeepAll => 0,
        };
        // What a flow-controlled writer replaced before it was sent is irrelevant, not lost.
        let unsent = writer.endpoint.counts().replaced_before_send;
        let sure = first.max(ours.since).saturating_add(kept + unsent);
        let least = (writer.written + 1).saturating_sub(sure);
        let most = writer.written + 1 - first.min(ours.since);
        let most = if counts.overwritten > 0 {
            u64::MAX
        } else {
            most
        };
        return (!(least..=most).contains(&reported)).then(|| {
            format!(
                "I2 r{r}: {least} to {most} of w{w} since {first}, received {} and lost {}",
                counts.received, counts.lost
            )
        });
    }
    None
}

/// I4: checks a late joiner against a writer that keeps samples. `keeps_unregistered`: it
/// may keep those of unregistered instances, too (seed 900004896).
fn check_history(
    w: usize,
    writer: &WriterRecord,
    r: usize,
    reader: &ReaderRecord,
    keeps_unregistered: bool,
) -> Option<String> {
    let data = &writer.endpoint.data;
    if match_decision(data, &reader.endpoint.data) != Some(MatchDecision::Compatible) {
        return None;
    }
    if data.qos.liveliness != Liveliness::Automatic {
        return None;
    }
    let kept = match data.qos.history {
        History::KeepLast(depth) => u64::from(depth),
        History::KeepAll => u64::from(data.qos.resource_limits.max_samples.unwrap_or(5_000)),
    };
    // The last messages have exceeded their lifespan.
    let kept = if data.qos.lifespan.is_infinite() {
        kept
    } else {
        0
    };
    let limited = data.qos.resource_limits.max_samples.is_some();
    if writer.keyed && limited && !writer.ends.is_empty() {
        // The engine decides which kept samples the ends of instances remove.
        return None;
    }
    let of_each = writer.keyed && matches!(data.qos.history, History::KeepLast(_));
    let mut offered: Vec<i64> = if of_each || !writer.ends.is_empty() {
        writer.kept_per_instance(w, kept, false)
    } else {
        writer.last_messages(kept)
    };
    offered.retain(|number| reader.passes_filter(w, *number));
    let expected = reader.kept_by_reader_depth(writer, w, &offered);
    if keeps_unregistered && !writer.ends.is_empty() {
        offered.extend(writer.kept_per_instance(w, kept, true));
    }
    let taken_samples = reader.numbers_taken_from(writer.endpoint.guid());
    // Samples may have been taken before newer ones came (seed 19635). With a depth per
    // instance, or behind a filter, the depth says nothing of one take.
    let has_depth = !writer.keyed && reader.filter_below.is_none();
    let at_once = reader.samples.get(&writer.endpoint.guid());
    let at_once = at_once.map_or(0, |taken| taken.at_once_max);
    let fits = expected.iter().all(|number| taken_samples.contains(number))
        && taken_samples.iter().all(|number| offered.contains(number))
        && (!has_depth || at_once <= expected.len());
    (!fits).then(|| {
        format!(
            "I4 late r{r} of w{w}: got {} ({:?}...), expected {} ({:?}...) to {}",
            taken_samples.len(),
            &taken_samples[..taken_samples.len().min(5)],
            expected.len(),
            &expected[..expected.len().min(5)],
            writer.written
        )
    })
}

//! Invariants of single endpoints and pairs, beyond the convergence checks. An
//! invariant is a property that the simulator checks after each event.
//!
//! Volatile readers get no history, expired samples are not delivered, and the last
//! sample arrives. Deadline and liveliness events are timely, and counts add up.

use std::collections::BTreeMap;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{Durability, Liveliness, Reliability};

use super::message::INSTANCES;
use super::model::Model;
use super::model::matching::{MatchDecision, is_reliable, match_decision};
use super::model::records::{PeerMatch, ReaderRecord, WriterRecord, matched};
use super::world::GraphWorld;
use crate::harness::options::Fault;

impl ReaderRecord {
    /// I5: missed deadlines equal the oracle's count. Exact where each sample was
    /// delivered at once and none waited for an earlier one or for queue space.
    fn check_deadlines(&self, r: usize, now: u64) -> Option<String> {
        let qos = &self.endpoint.data.qos;
        let may_wait =
            qos.resource_limits.max_samples.is_some() || self.endpoint.delayed_count() > 0;
        if !self.is_watched() || self.unsure || may_wait {
            return None;
        }
        let mut deadline = self.deadline;
        deadline.expect(now, qos.deadline, false);
        (deadline.reported != deadline.expected).then(|| {
            format!(
                "I5 r{r}: {} deadlines missed, reported {}",
                deadline.expected, deadline.reported
            )
        })
    }

    /// Its writers with exactly one match that still lasts. `None` if there are
    /// others, the attacker's included.
    fn steady_writers<'c>(&self, model: &'c Model) -> Option<Vec<(&'c WriterRecord, PeerMatch)>> {
        let mut found = Vec::new();
        for (guid, peer_match) in &self.peers {
            let writer = &model.writers[*model.by_guid.get(guid)?];
            let ours = writer.peers.get(&self.endpoint.data.guid)?;
            let steady =
                peer_match.epochs == 1 && ours.epochs == 1 && peer_match.matched && ours.matched;
            if !steady {
                return None;
            }
            found.push((writer, *ours));
        }
        Some(found)
    }

    /// I1: with one steady reliable writer the newest sample always arrives,
    /// whatever was overwritten before it.
    fn check_newest(&self, model: &Model, r: usize) -> Option<String> {
        let writers = self.steady_writers(model)?;
        let [(writer, peer_match)] = writers[..] else {
            return None;
        };
        let (offered, requested) = (&writer.endpoint.data.qos, &self.endpoint.data.qos);
        let counts = is_reliable(offered, requested) && offered.lifespan.is_infinite();
        if !counts || self.holds_samples() || peer_match.since > writer.written {
            return None;
        }
        let newest = self
            .numbers_taken_from(writer.endpoint.guid())
            .last()
            .copied();
        let w = *model.by_guid.get(&writer.endpoint.guid())?;
        // An ended instance or a filtered sample may have overwritten older ones.
        let is_told = |n: i64| {
            let is_end = u64::try_from(n)
                .is_ok_and(|n| writer.ends.contains_key(&n) || writer.set_ends.contains(&n));
            !is_end && self.passes_filter(w, n)
        };
        let written = i64::try_from(writer.written).ok().filter(|n| is_told(*n))?;
        (newest != Some(written)).then(|| {
            format!("I1 r{r}: the newest sample is {newest:?}, its only writer wrote {written}")
        })
    }

    /// I2: of steady reliable writers only samples since the match can be lost.
    /// Samples kept and overwritten before are history. Of other writers any sample
    /// may be lost, once per match.
    fn check_history_is_no_loss(&self, model: &Model, r: usize, slack: u64) -> Option<String> {
        let (mut most, mut cut) = (0, 0);
        let mut undeliverable = Vec::new();
        for (guid, theirs) in &self.peers {
            let writer = &model.writers[*model.by_guid.get(guid)?];
            let taken_samples = self.numbers_taken_from(*guid);
            let ours = writer.peers.get(&self.endpoint.data.guid);
            let steady = ours.filter(|ours| ours.epochs == 1 && theirs.epochs == 1);
            let (offered, requested) = (&writer.endpoint.data.qos, &self.endpoint.data.qos);
            let is_reported =
                is_reliable(offered, requested) && writer.location.process != self.location.process;
            // A removed writer ends the instances of a keyed topic (seeds 6132, 7864).
            let ends = if writer.keyed && writer.gone {
                u64::from(INSTANCES)
            } else {
                0
            };
            let Some(ours) = steady.filter(|_| is_reported) else {
                let reported = (writer.written + ends) * u64::from(theirs.epochs);
                most += reported.saturating_sub(taken_samples.len() as u64);
                continue;
            };
            // It may have received samples that the writer sent to others before.
            let before = writer.times.partition_point(|at| at + slack < theirs.at);
            let before = ours.since.saturating_sub(1).min(before as u64);
            // What it took of the history, on its way to an older reader of its process,
            // begins its stream: a number missing behind that is a loss (seed 60677).
            let first = taken_samples.first().and_then(|n| u64::try_from(*n).ok());
            let before = first.map_or(before, |first| before.min(first.saturating_sub(1)));
            let taken_samples = taken_samples.iter();
            let taken_samples =
                taken_samples.filter(|n| u64::try_from(**n).is_ok_and(|n| n > before));
            most += (writer.written + ends).saturating_sub(before + taken_samples.count() as u64);
            // A late joiner's depth may have kept a part of a set, and the rest of
            // that set counts as lost (seed 4834). A set that its writer never ended is
            // lost as a whole (seed 9101015073), and so is one that the reader's limit cannot
            // hold (seed 9900017740).
            let mut parts = BTreeMap::<usize, u64>::new();
            for (_, set) in writer.in_set.range(..=before) {
                *parts.entry(*set).or_default() += 1;
            }
            let max_samples = requested.resource_limits.max_samples;
            let part = parts.iter().map(|(set, samples)| {
                let fits = max_samples.is_none_or(|max| *samples <= u64::from(max));
                samples - u64::from(model.sets[*set].ended && fits)
            });
            cut += part.max().unwrap_or(0);
            // A set of a group names its writers. If these have changed since, or their
            // samples have expired, a late joiner drops it (seed 990004).
            if requested.presentation.is_of_group() {
                let former = parts
                    .into_iter()
                    .filter(|(set, _)| model.is_hidden_from_late_joiners(*set));
                undeliverable.extend(former.map(|(_, samples)| samples));
            }
        }
        let counts = self.endpoint.counts();
        if counts.incomplete_sets > 0 {
            most += cut;
        }
        undeliverable.sort_unstable_by(|one, other| other.cmp(one));
        let dropped = usize::try_from(counts.incomplete_sets).unwrap_or(usize::MAX);
        most += undeliverable.iter().take(dropped).sum::<u64>();
        let lost = counts.lost;
        (lost > most).then(|| {
            format!("I2 r{r}: lost {lost}, though only {most} samples since the match are missing")
        })
    }

    /// I2: between the first and the last sample of a best-effort writer every
    /// number was received or lost.
    fn check_best_effort(&self, model: &Model, r: usize) -> Option<String> {
        let writers = self.steady_writers(model)?;
        let [(writer, _)] = writers[..] else {
            return None;
        };
        let (offered, requested) = (&writer.endpoint.data.qos, &self.endpoint.data.qos);
        let counts = self.endpoint.counts();
        let countable = !is_reliable(offered, requested)
            && requested.durability == Durability::Volatile
            && writer.location.process != self.location.process
            && offered.lifespan.is_infinite()
            && !writer.keyed
            && self.filter_below.is_none()
            && writer.set_ends.is_empty()
            && counts.overwritten == 0;
        let taken_samples = self.numbers_taken_from(writer.endpoint.guid());
        let (first, last) = (taken_samples.first()?, taken_samples.last()?);
        let reported = counts.received + counts.lost;
        let expected = last.abs_diff(*first) + 1;
        (countable && reported != expected).then(|| {
            format!(
                "I2 r{r}: {first} to {last} of a best-effort writer, received {} and lost {}",
                counts.received, counts.lost
            )
        })
    }

    /// I5: after a long pause manual writers are not alive and automatic ones are.
    fn check_alive(&self, model: &Model, r: usize) -> Option<String> {
        let known = |guid| Some(&model.writers[*model.by_guid.get(guid)?]);
        let writers = matched(&self.peers).map(|(guid, _)| known(guid));
        let writers: Vec<&WriterRecord> = writers.collect::<Option<_>>()?;
        let silent = writers.iter().filter(|writer| {
            let qos = &writer.endpoint.data.qos;
            qos.liveliness != Liveliness::Automatic && !qos.lease_duration.is_infinite()
        });
        let silent = silent.count();
        let expected = (writers.len() - silent, silent);
        (self.alive != expected).then(|| {
            let (alive, silent) = expected;
            format!(
                "I5 r{r}: {alive} writers are alive and {silent} are not, reported {:?}",
                self.alive
            )
        })
    }

    /// I5: missed deadlines are reported again and again while nothing arrives.
    fn check_deadline(&self, r: usize, now: u64) -> Option<String> {
        let deadline = self.endpoint.data.qos.deadline;
        let span = u64::try_from(deadline.as_nanos()).ok()?;
        let due = self.received > 0 && !deadline.is_infinite();
        let silence = now.saturating_sub(self.last_activity);
        (due && silence > span).then(|| {
            format!("I5 r{r}: {silence} ns of silence without a missed deadline of {span} ns")
        })
    }
}

impl GraphWorld {
    /// Runs these checks once the graph is idle.
    pub fn check_expectations(&self) -> Vec<String> {
        let now = self.sim.now();
        let paused: Vec<bool> = self.sim.processes().iter().map(|p| p.was_paused).collect();
        let slack = self.plan.in_flight_max();
        let model = self.model.lock();
        let mut wrong = Vec::new();
        for (r, reader) in model.living_readers() {
            wrong.extend(reader.check_newest(&model, r));
            wrong.extend(reader.check_best_effort(&model, r));
            wrong.extend(reader.check_history_is_no_loss(&model, r, slack));
            wrong.extend(reader.check_alive(&model, r));
            wrong.extend(reader.check_deadline(r, now));
            if !paused[reader.location.process] {
                wrong.extend(reader.check_deadlines(r, now));
            }
            for (w, writer) in model.living_writers() {
                wrong.extend(check_incompatible_pair(w, writer, r, reader));
            }
        }
        wrong
    }

    /// I11: a publish that timed out had a reader to wait for.
    pub fn check_publish_timeout(&self, w: usize) -> Option<String> {
        let model = self.model.lock();
        let writer = &model.writers[w];
        // Whatever readers are matched, the history may be full of unsent samples
        // (seed 9101010919).
        if writer.endpoint.unsent_count() > 0 {
            return None;
        }
        let waited_for = matched(&writer.peers).any(|(guid, _)| {
            let index = model
                .by_guid
                .get(guid)
                .filter(|_| !model.is_attacker(*guid));
            let reader = index.map(|index| &model.readers[*index]);
            reader.is_none_or(|r| r.endpoint.data.qos.reliability == Reliability::Reliable)
        });
        // With two processes of one GUID prefix the reader may belong to either.
        if !waited_for && !model.guid_reused {
            return Some(format!(
                "I11 w{w}: timed out, though no reliable reader is matched"
            ));
        }
        // Readers of the own process acknowledge nothing. Their queues may be full.
        let process = writer.location.process;
        let is_local = |guid: &Guid| model.location(*guid).is_some_and(|h| h.process == process);
        let is_alone = !matched(&writer.peers).any(|(guid, _)| is_local(guid));
        (is_alone && writer.endpoint.is_acknowledged())
            .then(|| format!("I11 w{w}: timed out, though everything is acknowledged"))
    }

    /// I6: after a write the heartbeat follows within the shortest heartbeat
    /// period.
    pub fn check_heartbeat_follows(&self, w: usize) -> Option<String> {
        let (endpoint, flow_controlled) = {
            let model = self.model.lock();
            (
                model.writers[w].endpoint.clone(),
                model.writers[w].flow_controlled,
            )
        };
        if flow_controlled {
            return None;
        }
        let now = pteros_rtps::time::Instant::from_nanos(self.sim.now());
        (!endpoint.heartbeat_follows(now))
            .then(|| format!("I6 w{w}: the heartbeat after a write is late"))
    }

    /// I5: no match ends if a message of its process arrived within the lease.
    pub fn check_match_end(&self, process: usize, peer: Guid) -> Option<String> {
        let lease = self.plan.lease_nanos();
        let model = self.model.lock();
        let (location, gone) = (model.location(peer)?, model.is_gone(peer)?);
        if gone || location.process == process || self.sim.processes()[process].was_paused {
            return None;
        }
        drop(model);
        let last_received = *self
            .sim
            .network()
            .last_received
            .get(&(location.process, process))?;
        if self.has_changed_lately(process, location.process) {
            return None;
        }
        // Ordinary traffic renews a lease only now and then.
        let slack = 250_000_000;
        let silence = self.sim.now().saturating_sub(last_received);
        (silence + slack < lease).then(|| {
            format!("I5 p{process}: lost {peer}, last message {silence} ns ago, lease {lease}")
        })
    }

    /// Whether the last received datagram decides if a match may end.
    pub fn can_check_match_ends(&self) -> bool {
        let blurs = [
            Fault::Pause,
            Fault::Attack,
            Fault::Crash,
            Fault::Corrupt,
            Fault::GuidReuse,
        ];
        !blurs.iter().any(|fault| self.plan.has(*fault))
    }
}

/// I5: both endpoints of an incompatible pair report it.
fn check_incompatible_pair(
    w: usize,
    writer: &WriterRecord,
    r: usize,
    reader: &ReaderRecord,
) -> Option<String> {
    let (ours, theirs) = (&writer.endpoint.data, &reader.endpoint.data);
    if match_decision(ours, theirs) != Some(MatchDecision::IncompatibleQos) {
        return None;
    }
    let reported = (
        writer.incompatible_peers.contains_key(&theirs.guid),
        reader.incompatible_peers.contains_key(&ours.guid),
    );
    (reported != (true, true)).then(|| {
        format!(
            "I5 w{w} and r{r} are incompatible: writer reported {}, reader reported {}",
            reported.0, reported.1
        )
    })
}

//! The oracle: a model of every writer and reader of a run.
//!
//! It is deliberately simpler than the engine: numbers, sets and comparisons. It
//! decides which pairs are compatible, which samples a reader may take, and which
//! events an endpoint must report.

pub mod matching;
pub mod records;
mod sets;

use std::collections::BTreeMap;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::qos::{Durability, Liveliness};
use pteros_runtime::event::EndpointEvent;
use pteros_runtime::sample::QueuedSample;

use self::matching::{MatchDecision, match_decision};
use self::records::{EndpointLocation, Group, Peers, ReaderRecord, Set, WriterRecord};
use super::message::Message;
use crate::simulation::event_loop::Violations;

/// The oracle: records of all writers and readers of a run, live and removed.
#[derive(Default)]
pub struct Model {
    /// All writers. Indices stay valid and are part of the messages.
    pub writers: Vec<WriterRecord>,
    pub readers: Vec<ReaderRecord>,
    /// Index by GUID.
    pub by_guid: BTreeMap<Guid, usize>,
    /// GUID prefixes of the attacker. Its samples are not checked.
    pub attackers: Vec<GuidPrefix>,
    /// The run's violations; each begins with the name of its invariant.
    pub violations: Violations,
    /// Fault injection has ended.
    pub healed: bool,
    /// Bytes are corrupted, so only invariants that corruption cannot break count.
    pub lenient: bool,
    /// Packets are forged with spoofed addresses, which may block a writer while they
    /// come.
    pub forged: bool,
    /// Processes may return with the GUID prefix of a dead one.
    pub guid_reused: bool,
    /// A flow controller sent a sample later than readers of ordered access wait for it.
    pub flow_was_late: bool,
    /// Publisher groups.
    pub groups: Vec<Group>,
    /// Coherent sets.
    pub sets: Vec<Set>,
    /// Messages written.
    pub orders: u64,
    /// Samples taken.
    pub taken: u64,
    /// Samples of coherent sets taken by readers that requested coherent access.
    pub in_sets: u64,
    /// Matches that writers reported.
    pub matches: u64,
}

impl Model {
    /// Whether a violation counts in this run.
    pub fn is_counted(&self, text: &str) -> bool {
        let is_of = |rules: &[&str]| rules.iter().any(|rule| text.starts_with(rule));
        // With two processes of one GUID prefix, samples cannot be assigned to
        // either.
        let is_of_one = is_of(&["I1 ", "I2", "I3", "I5", "I13", "I17"]);
        let holds_always =
            is_of(&["I7", "I8", "I9", "I10", "I18"]) || (is_of(&["I11"]) && !self.forged);
        !(self.guid_reused && is_of_one) && (holds_always || !self.lenient)
    }

    /// Records a violated invariant.
    pub fn fail(&mut self, text: String) {
        if self.is_counted(&text) {
            self.violations.lock().push(text);
        }
    }

    /// Records several violations.
    pub fn fail_all(&mut self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.fail(text);
        }
    }

    /// The announced data of a writer or reader.
    pub fn data(&self, guid: Guid) -> Option<&EndpointData> {
        let index = *self.by_guid.get(&guid)?;
        if guid.entity.is_writer() {
            self.writers.get(index).map(|w| &*w.endpoint.data)
        } else {
            self.readers.get(index).map(|r| &*r.endpoint.data)
        }
    }

    /// The location of an endpoint: process, incarnation and node.
    pub fn location(&self, guid: Guid) -> Option<EndpointLocation> {
        let index = *self.by_guid.get(&guid)?;
        if guid.entity.is_writer() {
            self.writers.get(index).map(|w| w.location)
        } else {
            self.readers.get(index).map(|r| r.location)
        }
    }

    /// Whether an endpoint was removed, or its process has died.
    pub fn is_gone(&self, guid: Guid) -> Option<bool> {
        let index = *self.by_guid.get(&guid)?;
        if guid.entity.is_writer() {
            self.writers.get(index).map(|w| w.gone)
        } else {
            self.readers.get(index).map(|r| r.gone)
        }
    }

    /// The writers that were not removed.
    pub fn living_writers(&self) -> impl Iterator<Item = (usize, &WriterRecord)> {
        self.writers.iter().enumerate().filter(|(_, w)| !w.gone)
    }

    /// The readers that were not removed.
    pub fn living_readers(&self) -> impl Iterator<Item = (usize, &ReaderRecord)> {
        self.readers.iter().enumerate().filter(|(_, r)| !r.gone)
    }

    /// Writers, then readers, that were not removed, at the locations of `is_there`.
    pub fn living_endpoints(&self, is_there: impl Fn(&EndpointLocation) -> bool) -> Vec<Guid> {
        let writers = self.living_writers().filter(|(_, w)| is_there(&w.location));
        let readers = self.living_readers().filter(|(_, r)| is_there(&r.location));
        let writers = writers.map(|(_, w)| w.endpoint.guid());
        writers
            .chain(readers.map(|(_, r)| r.endpoint.data.guid))
            .collect()
    }

    /// Records the death of a process.
    pub fn mark_gone(&mut self, process: usize) {
        for record in self.writers.iter_mut() {
            record.gone |= record.location.process == process;
        }
        for record in self.readers.iter_mut() {
            record.gone |= record.location.process == process;
        }
    }

    /// Records that the engine received datagrams inside a blocked call of a process.
    pub fn mark_unsure(&mut self, process: usize) {
        for reader in self.readers.iter_mut() {
            reader.unsure |= reader.location.process == process;
        }
    }

    /// Whether an endpoint belongs to the attacker.
    pub fn is_attacker(&self, guid: Guid) -> bool {
        self.attackers.contains(&guid.prefix)
    }

    /// Handles an event of a writer.
    pub fn writer_event(&mut self, index: usize, event: &EndpointEvent, now: u64) {
        let own = self.writers[index].endpoint.guid();
        if let Some(wrong) = self.check_event_pair(own, event) {
            self.fail(wrong);
        }
        let record = &mut self.writers[index];
        let since = record.written + 1;
        let name = format!("writer w{index}");
        let wrong = match event {
            EndpointEvent::Matched { peer, .. } => {
                self.matches += 1;
                record.peers.entry(*peer).or_default().late = self.healed;
                record_match(&mut record.peers, since, event, &name)
            }
            EndpointEvent::IncompatibleQos { peer, .. } => {
                *record.incompatible_peers.entry(*peer).or_default() += 1;
                None
            }
            EndpointEvent::DeadlineMissed { total } => {
                check_total(&mut record.deadline.reported, *total, &name)
            }
            EndpointEvent::LivelinessLost { total } => {
                check_total(&mut record.liveliness.reported, *total, &name)
            }
            EndpointEvent::IncompatibleType { .. } => None,
            EndpointEvent::ReaderStalled {
                current,
                change,
                reader,
            } => {
                let changed = match change {
                    1 => record.stalled.insert(*reader),
                    _ => {
                        record.resumed.insert(*reader, now);
                        record.stalled.remove(reader)
                    }
                };
                (!changed || *current != record.stalled.len())
                    .then(|| format!("I5 {name}: {reader} stalls by {change}, reported {current}"))
            }
            other => Some(format!("I5 {name}: an event of readers: {other:?}")),
        };
        self.fail_all(wrong);
    }

    /// Handles an event of a reader.
    pub fn reader_event(&mut self, index: usize, event: &EndpointEvent, now: u64) {
        let own = self.readers[index].endpoint.data.guid;
        if let Some(wrong) = self.check_event_pair(own, event) {
            self.fail(wrong);
        }
        let record = &mut self.readers[index];
        let name = format!("reader r{index}");
        let wrong = match event {
            EndpointEvent::Matched { peer, change, .. } => {
                let known = record.peers.entry(*peer).or_default();
                known.late = self.healed;
                if *change > 0 {
                    known.at = now;
                }
                record_match(&mut record.peers, 0, event, &name)
            }
            EndpointEvent::IncompatibleQos { peer, .. } => {
                *record.incompatible_peers.entry(*peer).or_default() += 1;
                None
            }
            EndpointEvent::DeadlineMissed { total } => {
                record.last_activity = now;
                check_total(&mut record.deadline.reported, *total, &name)
            }
            EndpointEvent::LivelinessChanged {
                alive, not_alive, ..
            } => {
                record.alive = (*alive, *not_alive);
                None
            }
            EndpointEvent::SampleLost { total, count } => {
                // More, if events overflowed while the process blocked in a
                // publish.
                let least = record.lost + count;
                record.lost = *total;
                record.lost_at = now;
                (least > *total).then(|| format!("I5 {name}: lost {total}, were {least}"))
            }
            EndpointEvent::IncompatibleType { .. } => None,
            other => Some(format!("I5 {name}: an event of writers: {other:?}")),
        };
        self.fail_all(wrong);
    }

    /// After a reader's events: alive and not-alive writers add up to the matches.
    pub fn reader_events_handled(&mut self, index: usize) {
        let record = &self.readers[index];
        let matched = record.peers.values().filter(|b| b.matched).count();
        let (alive, not_alive) = record.alive;
        if alive + not_alive != matched {
            self.fail(format!(
                "I5 reader r{index}: {alive} writers alive, {not_alive} not, but {matched} matched"
            ));
        }
    }

    /// Checks that an event about a pair agrees with the oracle of matching.
    fn check_event_pair(&self, own: Guid, event: &EndpointEvent) -> Option<String> {
        let (peer, reported) = match event {
            EndpointEvent::Matched {
                peer, change: 1, ..
            } => (*peer, MatchDecision::Compatible),
            EndpointEvent::IncompatibleQos { peer, .. } => (*peer, MatchDecision::IncompatibleQos),
            EndpointEvent::IncompatibleType { peer, .. } => {
                (*peer, MatchDecision::IncompatibleType)
            }
            _ => return None,
        };
        if self.is_attacker(peer) {
            return None;
        }
        let (Some(ours), Some(theirs)) = (self.data(own), self.data(peer)) else {
            return Some(format!(
                "I5 {own}: an event about {peer}, which never existed"
            ));
        };
        let truth = if own.entity.is_writer() {
            match_decision(ours, theirs)
        } else {
            match_decision(theirs, ours)
        };
        (truth != Some(reported))
            .then(|| format!("I5 {own} and {peer}: reported {reported:?}, is {truth:?}"))
    }

    /// Checks a sample that a reader took.
    pub fn sample(&mut self, index: usize, item: &QueuedSample, now: u64) {
        let progress = &mut self.readers[index].progress;
        progress.insert(item.meta.publisher, now);
        if item.is_end() {
            // The end of an instance is not counted as a sample.
            return;
        }
        self.taken += 1;
        let wrong = self.check_sample(index, item, now);
        self.fail_all(wrong);
    }

    fn check_sample(&mut self, index: usize, item: &QueuedSample, now: u64) -> Option<String> {
        let publisher = item.meta.publisher;
        let name = format!("reader r{index}");
        self.readers[index].taken += 1;
        if self.is_attacker(publisher) {
            self.readers[index].attacker_samples += 1;
            return None;
        }
        let Some(source) = self.by_guid.get(&publisher).copied() else {
            return Some(format!(
                "I3 {name}: a sample of {publisher}, which never existed"
            ));
        };
        let number = item.meta.sequence;
        match Message::check(&item.body) {
            Err(why) => return Some(format!("I3 {name}: {why}")),
            Ok((writer, n, _)) if writer as usize != source || i64::try_from(n) != Ok(number) => {
                return Some(format!(
                    "I3 {name}: w{source} number {number} holds w{writer} number {n}"
                ));
            }
            Ok((_, _, len)) if len != Message::len_of(self.writers[source].bytes) => {
                return Some(format!(
                    "I3 {name}: w{source} number {number} has {len} bytes"
                ));
            }
            Ok((_, n, _)) => {
                if let Some(wrong) = self.check_set_member(index, source, n) {
                    return Some(wrong);
                }
            }
        }
        let writer = &self.writers[source];
        if let Some(wrong) = self.readers[index].check_depth(writer, number) {
            return Some(format!("{wrong} (r{index})"));
        }
        if let Some(wrong) = self.readers[index].check_age(writer, source, number) {
            return Some(format!("{wrong} (r{index})"));
        }
        let record = &mut self.readers[index];
        if match_decision(&writer.endpoint.data, &record.endpoint.data)
            != Some(MatchDecision::Compatible)
        {
            return Some(format!(
                "I3 {name}: a sample of w{source}, which is not compatible"
            ));
        }
        if !record.passes_filter(source, item.meta.sequence) {
            return Some(format!(
                "I3 {name}: w{source} number {number}, which its filter rejects"
            ));
        }
        let epochs = record.peers.get(&publisher).map_or(0, |b| b.epochs);
        let taken_samples = record.samples.entry(publisher).or_default();
        taken_samples.push(number, now);
        let replays = record.endpoint.data.qos.durability >= Durability::TransientLocal;
        let allowed = if replays { epochs.saturating_sub(1) } else { 0 };
        (taken_samples.descents > allowed).then(|| {
            let tail = &taken_samples.numbers[taken_samples.numbers.len().saturating_sub(6)..];
            format!(
                "I1 {name} of w{source}: out of order or duplicate: ... {tail:?} ({epochs} matches)"
            )
        })
    }

    /// Records a write or another liveliness assertion of a writer.
    pub fn record_liveliness(&mut self, index: usize, now: u64, wrote: bool) {
        let record = &mut self.writers[index];
        let qos = &record.endpoint.data.qos;
        if wrote {
            record.deadline.expect(now, qos.deadline, false);
            record.deadline.since = Some(now);
        }
        if qos.liveliness != Liveliness::Automatic {
            record.liveliness.expect(now, qos.lease_duration, true);
            record.liveliness.since = Some(now);
        }
    }

    /// The same for every MANUAL_BY_PARTICIPANT writer of one process incarnation.
    pub fn record_participant_liveliness(&mut self, location: EndpointLocation, now: u64) {
        for index in 0..self.writers.len() {
            let record = &self.writers[index];
            let same = (record.location.process, record.location.incarnation)
                == (location.process, location.incarnation);
            let kind = record.endpoint.data.qos.liveliness;
            if same && !record.gone && kind == Liveliness::ManualByParticipant {
                self.record_liveliness(index, now, false);
            }
        }
    }
}

impl Model {
    /// Records the removal of a writer. On a keyed topic it disposes of its
    /// instances if the history has room, which asserts the liveliness of its
    /// process.
    pub fn record_removal(&mut self, index: usize) {
        let (location, keyed) = (self.writers[index].location, self.writers[index].keyed);
        for record in self.writers.iter_mut().filter(|_| keyed) {
            let same = (record.location.process, record.location.incarnation)
                == (location.process, location.incarnation);
            let kind = record.endpoint.data.qos.liveliness;
            record.liveliness.unsure |= same && kind == Liveliness::ManualByParticipant;
        }
    }
}

/// Records the begin or the end of a match.
fn record_match(
    peers: &mut Peers,
    since: u64,
    event: &EndpointEvent,
    name: &str,
) -> Option<String> {
    let EndpointEvent::Matched {
        total,
        current,
        change,
        peer,
    } = event
    else {
        return None;
    };
    let peer_match = peers.entry(*peer).or_default();
    let begins = *change > 0;
    if peer_match.matched == begins {
        let what = if begins { "begins" } else { "ends" };
        return Some(format!("I5 {name}: the match with {peer} {what} twice"));
    }
    peer_match.matched = begins;
    if begins {
        peer_match.epochs += 1;
        peer_match.since = since;
    }
    let now = peers.values().filter(|b| b.matched).count();
    let ever: u64 = peers.values().map(|b| u64::from(b.epochs)).sum();
    (now != *current || ever != *total)
        .then(|| format!("I5 {name}: reported {current} of {total} matches, are {now} of {ever}"))
}

/// Checks a total that must grow by one.
fn check_total(reported: &mut u64, total: u64, name: &str) -> Option<String> {
    *reported += 1;
    (*reported != total).then(|| format!("I5 {name}: the total {total} came as number {reported}"))
}

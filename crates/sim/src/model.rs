//! The oracle: a model of every writer and reader of a run.
//!
//! It is deliberately simpler than the engine: numbers, sets and comparisons. It
//! decides which pairs are compatible, which samples a reader may take, and which
//! events an endpoint must report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability};
use pteros_rtps::time::Duration;
use pteros_runtime::event::EndpointEvent;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::instance::InstanceEnd;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::ready_queue::Task;
use pteros_runtime::sample::QueuedSample;
use pteros_runtime::writer::WriterEndpoint;

use crate::coherent_sets::{Group, Set};
use crate::message::{Message, instance_of};

/// An entry of a process's ready queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadySource {
    /// A writer has events.
    WriterEvents(usize),
    /// A reader has events.
    ReaderEvents(usize),
    /// A reader has samples.
    Samples(usize),
    /// A service client has replies or events.
    Client(usize),
    /// A service server has requests or events.
    Server(usize),
}

/// The task behind a [`ReadySource`]. Running it records the source.
pub struct ReadyTask {
    /// The recorded source.
    pub ready: ReadySource,
    /// The list that it is recorded in.
    pub ready_sources: Arc<Mutex<Vec<ReadySource>>>,
}

impl Task for ReadyTask {
    fn run(&self) {
        self.ready_sources.lock().push(self.ready);
    }
}

/// The location of an endpoint: process, incarnation and node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointLocation {
    /// Index of the process.
    pub process: usize,
    /// Incarnation of that process.
    pub incarnation: u32,
    /// Node of the endpoint.
    pub node: NodeKey,
}

/// Matches with one peer, as one endpoint reported them.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerMatch {
    /// Number of matches so far.
    pub epochs: u32,
    /// Whether it is matched now.
    pub matched: bool,
    /// Matched after healing.
    pub late: bool,
    /// Writers: the first sequence number written during the current match.
    pub since: u64,
    /// Readers: the time of the last reported match.
    pub at: u64,
}

/// State of a writer.
pub struct WriterRecord {
    /// Where it was created.
    pub location: EndpointLocation,
    /// The endpoint of the engine.
    pub endpoint: Arc<WriterEndpoint>,
    /// Keeps the tasks of its ready slots alive.
    pub _tasks: Vec<Arc<dyn Task>>,
    /// Removed, or its process has died.
    pub gone: bool,
    /// Messages accepted by the engine.
    pub written: u64,
    /// Bytes of each message.
    pub bytes: usize,
    /// Matched readers, past and present.
    pub peers: BTreeMap<Guid, PeerMatch>,
    /// Missed deadlines, expected and reported.
    pub deadline: SilenceCounter,
    /// Lost liveliness, expected and reported.
    pub liveliness: SilenceCounter,
    /// Readers reported as incompatible, with the number of reports.
    pub incompatible_peers: BTreeMap<Guid, u64>,
    /// When each message was accepted.
    pub times: Vec<u64>,
    /// Sequence numbers that disposed or unregistered an instance.
    pub ends: BTreeMap<u64, InstanceEnd>,
    /// A flow controller or a latency budget decides when it sends.
    pub flow_controlled: bool,
    /// Its topic has a key.
    pub keyed: bool,
    /// Its publisher group (PRESENTATION), if any.
    pub group: Option<usize>,
    /// The coherent set of each message that belongs to one.
    pub in_set: BTreeMap<u64, usize>,
    /// Sequence numbers that ended a coherent set.
    pub set_ends: BTreeSet<u64>,
    /// Position of each sequence number in the order of all writes.
    pub orders: Vec<u64>,
}

/// Expected and reported counts of an event that silence causes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilenceCounter {
    /// When the silence began, if it counts.
    pub since: Option<u64>,
    /// Events that the oracle expects.
    pub expected: u64,
    /// Events that the engine reported.
    pub reported: u64,
    /// Unknown to the oracle: the change may or may not have counted.
    pub unsure: bool,
}

/// Samples that a reader took from one writer.
#[derive(Clone, Debug, Default)]
pub struct TakenSamples {
    /// Sequence numbers in the order of the takes.
    pub numbers: Vec<i64>,
    /// How often a number was not above its predecessor.
    pub descents: u32,
}

/// State of a reader.
pub struct ReaderRecord {
    /// Where it was created.
    pub location: EndpointLocation,
    /// The endpoint of the engine.
    pub endpoint: Arc<ReaderEndpoint>,
    /// Keeps the tasks of its ready slots alive.
    pub _tasks: Vec<Arc<dyn Task>>,
    /// Removed, or its process has died.
    pub gone: bool,
    /// Nanoseconds from readiness to the user's take.
    pub read_delay: u64,
    /// Matched writers, past and present.
    pub peers: BTreeMap<Guid, PeerMatch>,
    /// Its content filter passes instances below this.
    pub filter_below: Option<u32>,
    /// Highest write position taken from each publisher group.
    pub orders: BTreeMap<usize, u64>,
    /// Samples taken, by writer.
    pub samples: BTreeMap<Guid, TakenSamples>,
    /// Number of samples taken.
    pub taken: u64,
    /// Samples taken from the attacker.
    pub attacker_samples: u64,
    /// Samples reported as lost.
    pub lost: u64,
    /// Missed deadlines expected and reported.
    pub deadline: SilenceCounter,
    /// Samples arrived while no reader took them, so the expected count is not exact.
    pub unsure: bool,
    /// Writers reported as alive and as not alive.
    pub alive: (usize, usize),
    /// Writers reported as incompatible, with the number of reports.
    pub incompatible_peers: BTreeMap<Guid, u64>,
    /// When it was created.
    pub created_at: u64,
    /// Time of the last received sample or reported missed deadline.
    pub last_activity: u64,
    /// Received samples at the last check.
    pub received: u64,
}

/// The oracle: records of all writers and readers of a run, live and removed.
#[derive(Default)]
pub struct Model {
    /// All writers. Indices stay valid and are part of the messages.
    pub writers: Vec<WriterRecord>,
    /// All readers.
    pub readers: Vec<ReaderRecord>,
    /// Index by GUID.
    pub by_guid: BTreeMap<Guid, usize>,
    /// GUID prefixes of the attacker. Its samples are not checked.
    pub attackers: Vec<GuidPrefix>,
    /// Violations; each begins with the name of its invariant.
    pub violations: Vec<String>,
    /// Fault injection has ended.
    pub healed: bool,
    /// Bytes are corrupted, so only invariants that corruption cannot break count.
    pub lenient: bool,
    /// Processes may return with the GUID prefix of a dead one.
    pub guid_reused: bool,
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
    /// Records a violated invariant.
    pub fn fail(&mut self, text: String) {
        // With two processes of one GUID prefix, samples cannot be assigned to
        // either.
        let is_of_one = ["I1 ", "I2", "I3", "I5", "I13", "I17"].iter();
        if self.guid_reused && is_of_one.clone().any(|rule| text.starts_with(rule)) {
            return;
        }
        let holds_always = ["I7", "I8", "I9", "I10", "I11"]
            .iter()
            .any(|rule| text.starts_with(rule));
        if holds_always || !self.lenient {
            self.violations.push(text);
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

    /// Whether an endpoint belongs to the attacker.
    pub fn is_attacker(&self, guid: Guid) -> bool {
        self.attackers.contains(&guid.prefix)
    }

    /// Handles an event of a writer.
    pub fn writer_event(&mut self, index: usize, event: &EndpointEvent) {
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
            EndpointEvent::Matched { peer, .. } => {
                let known = record.peers.entry(*peer).or_default();
                known.late = self.healed;
                known.at = now;
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
    pub fn sample(&mut self, index: usize, item: &QueuedSample) {
        if item.is_end() {
            // The end of an instance is not counted as a sample.
            return;
        }
        self.taken += 1;
        let wrong = self.check_sample(index, item);
        self.fail_all(wrong);
    }

    fn check_sample(&mut self, index: usize, item: &QueuedSample) -> Option<String> {
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
        if taken_samples
            .numbers
            .last()
            .is_some_and(|last| *last >= number)
        {
            taken_samples.descents += 1;
        }
        taken_samples.numbers.push(number);
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

impl ReaderRecord {
    /// Whether its content filter passes a number of writer `w`.
    pub fn passes_filter(&self, w: usize, number: i64) -> bool {
        let instance = u64::try_from(number).map_or(0, |n| instance_of(w as u32, n));
        self.filter_below.is_none_or(|below| instance < below)
    }

    /// Of the numbers `offered`, those that the reader's history depth keeps,
    /// counted per instance if the topic has a key.
    pub fn kept_by_reader_depth(
        &self,
        writer: &WriterRecord,
        w: usize,
        offered: &[i64],
    ) -> Vec<i64> {
        let depth = match self.endpoint.data.qos.history {
            History::KeepAll => usize::MAX,
            History::KeepLast(depth) => usize::try_from(depth.max(1)).unwrap_or(usize::MAX),
        };
        let mut of_each: BTreeMap<u32, usize> = BTreeMap::new();
        let mut last: Vec<i64> = offered
            .iter()
            .rev()
            .filter(|number| {
                let number = u64::try_from(**number).unwrap_or(0);
                let instance = if writer.keyed {
                    instance_of(w as u32, number)
                } else {
                    0
                };
                let count = of_each.entry(instance).or_default();
                *count += 1;
                *count <= depth
            })
            .copied()
            .collect();
        last.reverse();
        last
    }
}

impl WriterRecord {
    /// The numbers that a late joiner gets if the writer keeps `kept` samples of
    /// each instance. A dispose counts as one.
    pub fn kept_per_instance(&self, w: usize, kept: u64) -> Vec<i64> {
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let mut of_each: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for number in 1..=self.written {
            let last = number.saturating_sub(1);
            let end = self.ends.get(&number);
            // A dispose ends the instance of the number before it.
            let instance = match end {
                Some(_) => instance_of(w as u32, last),
                None => instance_of(w as u32, number),
            };
            let of_it = of_each.entry(instance).or_default();
            match end {
                Some(InstanceEnd::Unregister) => of_it.clear(),
                _ => of_it.push(number),
            }
            let surplus = of_it.len().saturating_sub(kept);
            of_it.drain(..surplus);
        }
        let all = of_each.into_values().flatten();
        let mut all: Vec<i64> = all
            .filter(|number| !self.ends.contains_key(number))
            .filter_map(|number| i64::try_from(number).ok())
            .collect();
        all.sort_unstable();
        all
    }
}

impl SilenceCounter {
    /// Adds the events that `span` of silence up to `now` must cause.
    pub fn expect(&mut self, now: u64, span: Duration, only_once: bool) {
        let Some(since) = self.since else { return };
        let Ok(nanos) = u64::try_from(span.as_nanos()) else {
            return;
        };
        if span.is_infinite() || nanos == 0 {
            return;
        }
        let passed = now.saturating_sub(since) / nanos;
        self.expected += if only_once { passed.min(1) } else { passed };
    }
}

/// Whether a writer and a reader of one topic are compatible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchDecision {
    /// They match.
    Compatible,
    /// The writer offers less than the reader requests.
    IncompatibleQos,
    /// The types differ.
    IncompatibleType,
}

/// The oracle of endpoint matching. `None`: the topics differ.
pub fn match_decision(writer: &EndpointData, reader: &EndpointData) -> Option<MatchDecision> {
    if writer.topic != reader.topic {
        return None;
    }
    if writer.type_name != reader.type_name {
        return Some(MatchDecision::IncompatibleType);
    }
    let (offered, requested) = (&writer.qos, &reader.qos);
    let (ours, theirs) = (offered.presentation, requested.presentation);
    let fits = ours.access_scope >= theirs.access_scope
        && ours.coherent >= theirs.coherent
        && ours.ordered >= theirs.ordered
        && offered.reliability >= requested.reliability
        && offered.durability >= requested.durability
        && offered.deadline <= requested.deadline
        && offered.liveliness >= requested.liveliness
        && offered.lease_duration <= requested.lease_duration
        && offered.latency_budget <= requested.latency_budget;
    Some(if fits {
        MatchDecision::Compatible
    } else {
        MatchDecision::IncompatibleQos
    })
}

/// Whether no sample may be lost between two sets of policies.
pub fn is_lossless(writer: &EndpointQos, reader: &EndpointQos) -> bool {
    is_reliable(writer, reader)
        && writer.history == History::KeepAll
        && reader.history == History::KeepAll
        && writer.lifespan.is_infinite()
}

/// Whether losses are retransmitted.
pub fn is_reliable(writer: &EndpointQos, reader: &EndpointQos) -> bool {
    writer.reliability == Reliability::Reliable && reader.reliability == Reliability::Reliable
}

/// Records the begin or the end of a match.
fn record_match(
    peers: &mut BTreeMap<Guid, PeerMatch>,
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

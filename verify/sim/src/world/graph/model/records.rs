//! Records of the oracle: each writer, reader, publisher group and coherent set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{Durability, History};
use pteros_rtps::time::Duration;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::instance::InstanceEnd;
use pteros_runtime::publisher_group::PublisherGroup;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::ready_queue::Task;
use pteros_runtime::writer::WriterEndpoint;

use crate::world::graph::message::instance_of;

/// Longer than any datagram is in flight, with stragglers, stalls and pauses.
const UNDER_WAY_MAX: u64 = 6_000_000_000;

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
    ready: ReadySource,
    ready_sources: Arc<Mutex<Vec<ReadySource>>>,
}

impl ReadyTask {
    /// A task that records `ready` in `ready_sources`.
    pub fn task(ready: ReadySource, ready_sources: &Arc<Mutex<Vec<ReadySource>>>) -> Arc<dyn Task> {
        Arc::new(Self {
            ready,
            ready_sources: ready_sources.clone(),
        })
    }
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
    /// Readers: the begin of the last reported match.
    pub at: u64,
}

/// Matches by peer, past and present.
pub type Peers = BTreeMap<Guid, PeerMatch>;

/// The peers that are matched now.
pub fn matched(peers: &Peers) -> impl Iterator<Item = (&Guid, &PeerMatch)> {
    peers.iter().filter(|(_, peer_match)| peer_match.matched)
}

/// Whether a peer is matched now.
pub fn is_matched(peers: &Peers, peer: Guid) -> bool {
    peers
        .get(&peer)
        .is_some_and(|peer_match| peer_match.matched)
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
    /// When it was created.
    pub created_at: u64,
    /// Readers reported as stalled.
    pub stalled: BTreeSet<Guid>,
    /// When each was last reported to go on.
    pub resumed: BTreeMap<Guid, u64>,
    /// The first number that each matched reader has not acknowledged to it, and since when.
    pub unacknowledged: BTreeMap<Guid, (i64, u64)>,
    /// Messages accepted by the engine.
    pub written: u64,
    /// Bytes of each message.
    pub bytes: usize,
    /// Matched readers, past and present.
    pub peers: Peers,
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
    /// The last instant of a take, and how many were taken then.
    at: (u64, usize),
    /// The most that were taken at one instant.
    pub at_once_max: usize,
}

impl TakenSamples {
    /// Notes a taken sample.
    pub fn push(&mut self, number: i64, now: u64) {
        if self.numbers.last().is_some_and(|last| *last >= number) {
            self.descents += 1;
        }
        self.numbers.push(number);
        let (at, count) = self.at;
        self.at = (now, if at == now { count + 1 } else { 1 });
        self.at_once_max = self.at_once_max.max(self.at.1);
    }
}

impl WriterRecord {
    /// Notes what its matched readers have acknowledged by now.
    pub fn note_acknowledged(&mut self, now: u64) {
        for (reader, _) in matched(&self.peers) {
            let Some(first) = self.endpoint.first_unacknowledged(*reader) else {
                continue;
            };
            let known = self.unacknowledged.entry(*reader).or_default();
            if known.0 != first.0 {
                *known = (first.0, now);
            }
        }
    }
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
    pub peers: Peers,
    /// Its content filter passes instances below this.
    pub filter_below: Option<u32>,
    /// Highest write position taken from each publisher group.
    pub orders: BTreeMap<usize, u64>,
    /// Samples taken, by writer.
    pub samples: BTreeMap<Guid, TakenSamples>,
    /// When it last took a sample, by writer.
    pub progress: BTreeMap<Guid, u64>,
    /// Number of samples taken.
    pub taken: u64,
    /// Samples taken from the attacker.
    pub attacker_samples: u64,
    /// Samples reported as lost.
    pub lost: u64,
    /// When it last reported a loss.
    pub lost_at: u64,
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

/// A publisher group: writers of one process with common PRESENTATION.
pub struct Group {
    /// The process of its writers.
    pub location: EndpointLocation,
    /// The group of the engine.
    pub engine: Arc<PublisherGroup>,
    /// Its open set.
    pub open: Option<usize>,
}

/// A coherent set: the messages between a begin and an end.
#[derive(Debug, Default)]
pub struct Set {
    /// Writers and sequence numbers in the order of writing.
    pub messages: Vec<(usize, u64)>,
    /// Whether it has ended.
    pub ended: bool,
    /// The writers of the group when it ended.
    pub members: Vec<usize>,
}

impl Set {
    /// The messages of one writer.
    pub fn of(&self, w: usize) -> impl Iterator<Item = u64> + '_ {
        let of_it = self.messages.iter().filter(move |(of, _)| *of == w);
        of_it.map(|(_, number)| *number)
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
    /// each instance. A dispose counts as one. `unregistered`: with those of unregistered
    /// instances, which it keeps until all matched readers know of their end.
    pub fn kept_per_instance(&self, w: usize, kept: u64, unregistered: bool) -> Vec<i64> {
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
                Some(InstanceEnd::Unregister) if !unregistered => of_it.clear(),
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

impl ReaderRecord {
    /// I3: a volatile reader gets nothing from long before its creation.
    pub fn check_age(&self, writer: &WriterRecord, w: usize, number: i64) -> Option<String> {
        if self.endpoint.data.qos.durability >= Durability::TransientLocal {
            return None;
        }
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let written = *writer.times.get(index)?;
        (written + UNDER_WAY_MAX < self.created_at).then(|| {
            format!(
                "I3 a volatile reader created at {} got w{w} number {number} of {written}",
                self.created_at
            )
        })
    }

    /// I2: with a single writer, in its own process, a KEEP_LAST reader takes
    /// nothing older than its depth keeps.
    pub fn check_depth(&self, writer: &WriterRecord, number: i64) -> Option<String> {
        let History::KeepLast(depth) = self.endpoint.data.qos.history else {
            return None;
        };
        let is_plain = !writer.keyed && self.filter_below.is_none() && writer.group.is_none();
        let is_local = writer.location.process == self.location.process;
        if !is_plain || !is_local || self.peers.len() > 1 {
            return None;
        }
        let behind = writer.written.saturating_sub(u64::try_from(number).ok()?);
        (behind >= u64::from(depth)).then(|| {
            format!(
                "I2 number {number} was kept at depth {depth}, though {behind} newer ones exist"
            )
        })
    }

    /// Records the samples that a call into the engine delivered.
    pub fn record_activity(&mut self, now: u64) {
        let received = self.endpoint.counts().received;
        if received != self.received {
            self.received = received;
            self.last_activity = now;
            let span = self.endpoint.data.qos.deadline;
            self.deadline.expect(now, span, false);
            self.deadline.since = Some(now);
        }
    }

    /// Whether its deadline is counted.
    pub fn is_watched(&self) -> bool {
        !self.gone && !self.endpoint.data.qos.deadline.is_infinite()
    }

    /// The sequence numbers that it took from a writer, in the order of the takes.
    pub fn numbers_taken_from(&self, writer: Guid) -> &[i64] {
        self.samples
            .get(&writer)
            .map_or(&[], |taken_samples| &taken_samples.numbers)
    }

    /// Whether it holds samples back until their set is complete.
    pub fn holds_samples(&self) -> bool {
        self.endpoint.data.qos.presentation.holds_samples()
    }

    /// Whether it has been matched with a writer without a break since before
    /// number `first`. `None`: it was never matched.
    pub fn steadily_matched(&self, writer: &WriterRecord, first: i64) -> Option<bool> {
        let ours = writer.peers.get(&self.endpoint.data.guid)?;
        let theirs = self.peers.get(&writer.endpoint.guid())?;
        let steady = [ours, theirs]
            .iter()
            .all(|peer_match| peer_match.epochs == 1 && peer_match.matched);
        Some(steady && i64::try_from(ours.since).is_ok_and(|since| since <= first))
    }
}

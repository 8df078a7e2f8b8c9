//! Who plays: every writer and reader that a run has seen, with what happened
//! to it. The oracle is deliberately simpler than the engine: numbers, sets and
//! plain comparisons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_rmw::event::EndpointEvent;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::instance::Ending;
use pteros_rmw::reader::ReaderEndpoint;
use pteros_rmw::ready::Task;
use pteros_rmw::sample::Item;
use pteros_rmw::writer::WriterEndpoint;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability};
use pteros_rtps::time::Duration;

use crate::coherence::{Group, Set};
use crate::message::{Message, instance_of};

/// What has something to do: an entry of a process's ready queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A writer has events.
    WriterEvents(usize),
    /// A reader has events.
    ReaderEvents(usize),
    /// A reader has samples.
    Samples(usize),
    /// A service's client has replies or news.
    Client(usize),
    /// A service's server has requests or news.
    Server(usize),
}

/// The task behind a [`Ready`]: notes it.
pub struct Mark {
    /// What is noted.
    pub ready: Ready,
    /// Where.
    pub marks: Arc<Mutex<Vec<Ready>>>,
}

impl Task for Mark {
    fn run(&self) {
        self.marks.lock().push(self.ready);
    }
}

/// Where an endpoint lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The process's place.
    pub place: usize,
    /// Which life of that process.
    pub life: u32,
    /// Its node.
    pub node: NodeKey,
}

/// What one end of a pair was told of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bond {
    /// How often it was matched.
    pub epochs: u32,
    /// Whether it is.
    pub matched: bool,
    /// It came after healing.
    pub late: bool,
    /// Writers: the first number written while it is.
    pub since: u64,
    /// Readers: when it was told last.
    pub at: u64,
}

/// A writer.
pub struct WriterRole {
    /// Where it lives.
    pub home: Home,
    /// The engine's.
    pub endpoint: Arc<WriterEndpoint>,
    /// Keeps the tasks of its slots alive.
    pub _tasks: Vec<Arc<dyn Task>>,
    /// Removed, or its process is dead.
    pub gone: bool,
    /// Messages accepted.
    pub written: u64,
    /// Bytes of its messages.
    pub bytes: usize,
    /// Its readers.
    pub bonds: BTreeMap<Guid, Bond>,
    /// Expected and told events.
    pub deadline: Watch,
    /// The same for proofs of life.
    pub liveliness: Watch,
    /// Readers it was told not to fit.
    pub misfits: BTreeMap<Guid, u64>,
    /// When each message was accepted.
    pub times: Vec<u64>,
    /// Numbers that ended an instance instead.
    pub ends: BTreeMap<u64, Ending>,
    /// A flow controller or a latency budget decides when it sends.
    pub paced: bool,
    /// Its topic has a key.
    pub keyed: bool,
    /// The writers that it is presented with.
    pub group: Option<usize>,
    /// The set of each message that is of one.
    pub in_set: BTreeMap<u64, usize>,
    /// Numbers that ended a set instead.
    pub set_ends: BTreeSet<u64>,
    /// Which one of all messages each number is.
    pub orders: Vec<u64>,
}

/// Expected and told counts of an event that comes of silence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    /// When silence began, if it counts at all.
    pub since: Option<u64>,
    /// Events that the oracle expects.
    pub expected: u64,
    /// Events told.
    pub told: u64,
    /// Something happened of which the oracle cannot say whether it counts.
    pub unsure: bool,
}

/// What a reader took from one writer.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Numbers, in the order they were taken.
    pub numbers: Vec<i64>,
    /// How often a number was not above its predecessor.
    pub descents: u32,
}

/// A reader.
pub struct ReaderRole {
    /// Where it lives.
    pub home: Home,
    /// The engine's.
    pub endpoint: Arc<ReaderEndpoint>,
    /// Keeps the tasks of its slots alive.
    pub _tasks: Vec<Arc<dyn Task>>,
    /// Removed, or its process is dead.
    pub gone: bool,
    /// Nanoseconds until its user looks.
    pub think: u64,
    /// Its writers.
    pub bonds: BTreeMap<Guid, Bond>,
    /// It wants messages of the instances below this.
    pub wants: Option<u32>,
    /// The last that it took of each group, by the order of writing.
    pub orders: BTreeMap<usize, u64>,
    /// What it took.
    pub heard: BTreeMap<Guid, Heard>,
    /// Samples taken.
    pub taken: u64,
    /// Samples of strangers taken.
    pub strange: u64,
    /// Samples told to be lost.
    pub lost: u64,
    /// Missed deadlines expected and told.
    pub deadline: Watch,
    /// Samples came while nobody looked, so what is expected is not exact.
    pub unsure: bool,
    /// Writers told to be alive, and not.
    pub alive: (usize, usize),
    /// Writers it was told not to fit.
    pub misfits: BTreeMap<Guid, u64>,
    /// When it was made.
    pub born: u64,
    /// When a missed deadline was told last, or samples were received.
    pub stirred: u64,
    /// Samples received when it was last looked at.
    pub received: u64,
}

/// See the module's description.
#[derive(Default)]
pub struct Cast {
    /// Writers; indices stay valid and are in their messages.
    pub writers: Vec<WriterRole>,
    /// Readers.
    pub readers: Vec<ReaderRole>,
    /// Endpoints by identity.
    pub by_guid: BTreeMap<Guid, usize>,
    /// Prefixes of an attacker, whose samples count for nothing.
    pub strangers: Vec<GuidPrefix>,
    /// What went wrong, with the invariant's name first.
    pub violations: Vec<String>,
    /// The faults are over.
    pub healed: bool,
    /// Bytes change under way: only rules that garbage cannot break count.
    pub lenient: bool,
    /// Processes come back with the GUID of the dead.
    pub blurred: bool,
    /// Writers that are presented as one whole.
    pub groups: Vec<Group>,
    /// What they wrote between a begin and an end.
    pub sets: Vec<Set>,
    /// Messages written.
    pub orders: u64,
    /// Messages taken.
    pub taken: u64,
    /// Of these, messages of sets by readers that asked for sets.
    pub in_sets: u64,
    /// Matches told.
    pub matches: u64,
}

impl Cast {
    /// Notes a broken invariant.
    pub fn fail(&mut self, text: String) {
        // Of two processes with one GUID nobody can say what is whose.
        let is_of_one = ["I1 ", "I2", "I3", "I5", "I13", "I17"].iter();
        if self.blurred && is_of_one.clone().any(|rule| text.starts_with(rule)) {
            return;
        }
        let holds_always = ["I7", "I8", "I9", "I10", "I11"]
            .iter()
            .any(|rule| text.starts_with(rule));
        if holds_always || !self.lenient {
            self.violations.push(text);
        }
    }

    /// Notes several.
    pub fn fail_all(&mut self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.fail(text);
        }
    }

    /// What is announced of an endpoint, whichever kind.
    pub fn data(&self, guid: Guid) -> Option<&EndpointData> {
        let index = *self.by_guid.get(&guid)?;
        match guid.entity.is_writer() {
            true => self.writers.get(index).map(|w| &*w.endpoint.data),
            false => self.readers.get(index).map(|r| &*r.endpoint.data),
        }
    }

    /// Where an endpoint lives.
    pub fn home(&self, guid: Guid) -> Option<Home> {
        let index = *self.by_guid.get(&guid)?;
        match guid.entity.is_writer() {
            true => self.writers.get(index).map(|w| w.home),
            false => self.readers.get(index).map(|r| r.home),
        }
    }

    /// Whether an endpoint belongs to the attacker.
    pub fn is_stranger(&self, guid: Guid) -> bool {
        self.strangers.contains(&guid.prefix)
    }

    /// Takes in an event of a writer.
    pub fn writer_event(&mut self, index: usize, event: &EndpointEvent) {
        let own = self.writers[index].endpoint.guid();
        if let Some(wrong) = self.judge_pair(own, event) {
            self.fail(wrong);
        }
        let role = &mut self.writers[index];
        let since = role.written + 1;
        let name = format!("writer w{index}");
        let wrong = match event {
            EndpointEvent::Matched { peer, .. } => {
                self.matches += 1;
                role.bonds.entry(*peer).or_default().late = self.healed;
                bond(&mut role.bonds, since, event, &name)
            }
            EndpointEvent::IncompatibleQos { peer, .. } => {
                *role.misfits.entry(*peer).or_default() += 1;
                None
            }
            EndpointEvent::DeadlineMissed { total } => step(&mut role.deadline.told, *total, &name),
            EndpointEvent::LivelinessLost { total } => {
                step(&mut role.liveliness.told, *total, &name)
            }
            EndpointEvent::IncompatibleType { .. } => None,
            other => Some(format!("I5 {name}: an event of readers: {other:?}")),
        };
        self.fail_all(wrong);
    }

    /// Takes in an event of a reader.
    pub fn reader_event(&mut self, index: usize, event: &EndpointEvent, now: u64) {
        let own = self.readers[index].endpoint.data.guid;
        if let Some(wrong) = self.judge_pair(own, event) {
            self.fail(wrong);
        }
        let role = &mut self.readers[index];
        let name = format!("reader r{index}");
        let wrong = match event {
            EndpointEvent::Matched { peer, .. } => {
                let known = role.bonds.entry(*peer).or_default();
                known.late = self.healed;
                known.at = now;
                bond(&mut role.bonds, 0, event, &name)
            }
            EndpointEvent::IncompatibleQos { peer, .. } => {
                *role.misfits.entry(*peer).or_default() += 1;
                None
            }
            EndpointEvent::DeadlineMissed { total } => {
                role.stirred = now;
                step(&mut role.deadline.told, *total, &name)
            }
            EndpointEvent::LivelinessChanged {
                alive, not_alive, ..
            } => {
                role.alive = (*alive, *not_alive);
                None
            }
            EndpointEvent::SampleLost { total, count } => {
                // More, if events overflowed while the process was inside a
                // publish.
                let least = role.lost + count;
                role.lost = *total;
                (least > *total).then(|| format!("I5 {name}: lost {total}, were {least}"))
            }
            EndpointEvent::IncompatibleType { .. } => None,
            other => Some(format!("I5 {name}: an event of writers: {other:?}")),
        };
        self.fail_all(wrong);
    }

    /// After a reader's events: the living and the silent are the matched.
    pub fn reader_events_told(&mut self, index: usize) {
        let role = &self.readers[index];
        let matched = role.bonds.values().filter(|b| b.matched).count();
        let (alive, not_alive) = role.alive;
        if alive + not_alive != matched {
            self.fail(format!(
                "I5 reader r{index}: {alive} writers alive, {not_alive} not, but {matched} matched"
            ));
        }
    }

    /// Whether an event tells of a pair what is not so.
    fn judge_pair(&self, own: Guid, event: &EndpointEvent) -> Option<String> {
        let (peer, told) = match event {
            EndpointEvent::Matched {
                peer, change: 1, ..
            } => (*peer, Verdict::Fits),
            EndpointEvent::IncompatibleQos { peer, .. } => (*peer, Verdict::OtherQos),
            EndpointEvent::IncompatibleType { peer, .. } => (*peer, Verdict::OtherType),
            _ => return None,
        };
        if self.is_stranger(peer) {
            return None;
        }
        let (Some(ours), Some(theirs)) = (self.data(own), self.data(peer)) else {
            return Some(format!("I5 {own}: an event about {peer}, which never was"));
        };
        let truth = match own.entity.is_writer() {
            true => verdict(ours, theirs),
            false => verdict(theirs, ours),
        };
        (truth != Some(told)).then(|| format!("I5 {own} and {peer}: told {told:?}, is {truth:?}"))
    }

    /// Takes in a sample that a reader took.
    pub fn sample(&mut self, index: usize, item: &Item) {
        if item.is_end() {
            // Without number of its own in what is counted.
            return;
        }
        self.taken += 1;
        let wrong = self.judge_sample(index, item);
        self.fail_all(wrong);
    }

    fn judge_sample(&mut self, index: usize, item: &Item) -> Option<String> {
        let publisher = item.meta.publisher;
        let name = format!("reader r{index}");
        self.readers[index].taken += 1;
        if self.is_stranger(publisher) {
            self.readers[index].strange += 1;
            return None;
        }
        let Some(source) = self.by_guid.get(&publisher).copied() else {
            return Some(format!(
                "I3 {name}: a sample of {publisher}, which never was"
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
                if let Some(wrong) = self.judge_set(index, source, n) {
                    return Some(wrong);
                }
            }
        }
        let writer = &self.writers[source];
        if let Some(wrong) = self.readers[index].judge_depth(writer, number) {
            return Some(format!("{wrong} (r{index})"));
        }
        if let Some(wrong) = self.readers[index].judge_age(writer, source, number) {
            return Some(format!("{wrong} (r{index})"));
        }
        let role = &mut self.readers[index];
        if verdict(&writer.endpoint.data, &role.endpoint.data) != Some(Verdict::Fits) {
            return Some(format!(
                "I3 {name}: a sample of w{source}, which does not fit"
            ));
        }
        if !role.is_wanted(source, item.meta.sequence) {
            return Some(format!(
                "I3 {name}: w{source} number {number}, which its filter does not want"
            ));
        }
        let epochs = role.bonds.get(&publisher).map_or(0, |b| b.epochs);
        let heard = role.heard.entry(publisher).or_default();
        if heard.numbers.last().is_some_and(|last| *last >= number) {
            heard.descents += 1;
        }
        heard.numbers.push(number);
        let replays = role.endpoint.data.qos.durability >= Durability::TransientLocal;
        let allowed = if replays { epochs.saturating_sub(1) } else { 0 };
        (heard.descents > allowed).then(|| {
            let tail = &heard.numbers[heard.numbers.len().saturating_sub(6)..];
            format!(
                "I1 {name} of w{source}: not in order, or twice: ... {tail:?} ({epochs} matches)"
            )
        })
    }

    /// A writer has written, or proved itself alive otherwise.
    pub fn note_life(&mut self, index: usize, now: u64, wrote: bool) {
        let role = &mut self.writers[index];
        let qos = &role.endpoint.data.qos;
        if wrote {
            role.deadline.expect(now, qos.deadline, false);
            role.deadline.since = Some(now);
        }
        if qos.liveliness != Liveliness::Automatic {
            role.liveliness.expect(now, qos.lease_duration, true);
            role.liveliness.since = Some(now);
        }
    }

    /// The same for every manual writer of a process's life that is proved
    /// alive with the participant.
    pub fn note_participant_life(&mut self, home: Home, now: u64) {
        for index in 0..self.writers.len() {
            let role = &self.writers[index];
            let same = (role.home.place, role.home.life) == (home.place, home.life);
            let kind = role.endpoint.data.qos.liveliness;
            if same && !role.gone && kind == Liveliness::ManualByParticipant {
                self.note_life(index, now, false);
            }
        }
    }
}

impl Cast {
    /// A writer of a keyed topic goes. If there is room it disposes of what it
    /// wrote, which proves the other manual writers of its process alive.
    pub fn note_leaving(&mut self, index: usize) {
        let (home, keyed) = (self.writers[index].home, self.writers[index].keyed);
        for role in self.writers.iter_mut().filter(|_| keyed) {
            let same = (role.home.place, role.home.life) == (home.place, home.life);
            let kind = role.endpoint.data.qos.liveliness;
            role.liveliness.unsure |= same && kind == Liveliness::ManualByParticipant;
        }
    }
}

impl ReaderRole {
    /// Whether its filter lets a number of writer `w` pass.
    pub fn is_wanted(&self, w: usize, number: i64) -> bool {
        let instance = u64::try_from(number).map_or(0, |n| instance_of(w as u32, n));
        self.wants.is_none_or(|below| instance < below)
    }

    /// Of the numbers that a writer has for it, those that its own depth keeps,
    /// of each instance if the topic has a key.
    pub fn last_of(&self, writer: &WriterRole, w: usize, offered: &[i64]) -> Vec<i64> {
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
                let instance = match writer.keyed {
                    true => instance_of(w as u32, number),
                    false => 0,
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

impl WriterRole {
    /// The numbers that a late joiner of any depth gets, of `kept` of each
    /// instance; what was disposed of counts as one.
    pub fn kept_of_each(&self, w: usize, kept: u64) -> Vec<i64> {
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let mut of_each: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for number in 1..=self.written {
            let last = number.saturating_sub(1);
            let end = self.ends.get(&number);
            // An instance is ended by the number after its last.
            let instance = match end {
                Some(_) => instance_of(w as u32, last),
                None => instance_of(w as u32, number),
            };
            let of_it = of_each.entry(instance).or_default();
            match end {
                Some(Ending::Unregister) => of_it.clear(),
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

impl Watch {
    /// Counts what `span` of silence up to `now` has brought.
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

/// How a writer and a reader of one topic stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Data flows.
    Fits,
    /// The writer offers too little.
    OtherQos,
    /// Another type.
    OtherType,
}

/// The oracle of matching; `None`: different topics.
pub fn verdict(writer: &EndpointData, reader: &EndpointData) -> Option<Verdict> {
    if writer.topic != reader.topic {
        return None;
    }
    if writer.type_name != reader.type_name {
        return Some(Verdict::OtherType);
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
        Verdict::Fits
    } else {
        Verdict::OtherQos
    })
}

/// Whether nothing may be lost between two sets of policies.
pub fn is_lossless(writer: &EndpointQos, reader: &EndpointQos) -> bool {
    is_reliable(writer, reader)
        && writer.history == History::KeepAll
        && reader.history == History::KeepAll
        && writer.lifespan.is_infinite()
}

/// Whether losses are repaired.
pub fn is_reliable(writer: &EndpointQos, reader: &EndpointQos) -> bool {
    writer.reliability == Reliability::Reliable && reader.reliability == Reliability::Reliable
}

/// Takes a match or its end in.
fn bond(
    bonds: &mut BTreeMap<Guid, Bond>,
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
    let bond = bonds.entry(*peer).or_default();
    let begins = *change > 0;
    if bond.matched == begins {
        let what = if begins { "begins" } else { "ends" };
        return Some(format!("I5 {name}: the match with {peer} {what} twice"));
    }
    bond.matched = begins;
    if begins {
        bond.epochs += 1;
        bond.since = since;
    }
    let now = bonds.values().filter(|b| b.matched).count();
    let ever: u64 = bonds.values().map(|b| u64::from(b.epochs)).sum();
    (now != *current || ever != *total)
        .then(|| format!("I5 {name}: told {current} of {total} matches, are {now} of {ever}"))
}

/// Takes a total in that must grow by one.
fn step(told: &mut u64, total: u64, name: &str) -> Option<String> {
    *told += 1;
    (*told != total).then(|| format!("I5 {name}: the total {total} came as number {told}"))
}

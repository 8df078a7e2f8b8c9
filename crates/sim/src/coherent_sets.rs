//! Coherent sets and ordered access (PRESENTATION, DDS 1.4 §2.2.3.6).
//!
//! This part of the oracle decides which writers form a publisher group, when
//! coherent sets begin and end, and what readers with coherent access may see.
//!
//! I17: a reader sees a set after its end, whole or not at all, and a missing set
//! is counted. With ordered group access the samples of a group come in the order
//! of writing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pteros_rtps::qos::{Durability, History, Presentation, Reliability};
use pteros_rtps::time::Duration;
use pteros_runtime::EndpointSpec;
use pteros_runtime::publisher_group::PublisherGroup;

use crate::convergence_checks::living_readers;
use crate::model::{EndpointLocation, Model, ReaderRecord, WriterRecord, is_lossless, is_reliable};
use crate::world::SimWorld;

/// RTPS 2.5 §9.6.2.2.2, access scopes.
const TOPIC: u8 = 1;
const GROUP: u8 = 2;

/// A publisher group: writers of one process with common PRESENTATION.
pub struct Group {
    location: EndpointLocation,
    engine: Arc<PublisherGroup>,
    open: Option<usize>,
}

/// A coherent set: the messages between a begin and an end.
#[derive(Debug, Default)]
pub struct Set {
    /// Writers and sequence numbers in the order of writing.
    messages: Vec<(usize, u64)>,
    ended: bool,
}

impl Group {
    /// The group of the engine.
    pub fn engine(&self) -> Arc<PublisherGroup> {
        self.engine.clone()
    }
}

impl Set {
    fn of(&self, w: usize) -> impl Iterator<Item = u64> + '_ {
        let of_it = self.messages.iter().filter(move |(of, _)| *of == w);
        of_it.map(|(_, number)| *number)
    }
}

impl SimWorld {
    /// Gives a subscription a random PRESENTATION. A writer gets that of its group.
    pub(crate) fn with_random_presentation(
        &self,
        mut spec: EndpointSpec,
        is_writer: bool,
    ) -> EndpointSpec {
        if !self.plan.coherent {
            return spec;
        }
        // A sample that waits for its set counts for the deadline when the set is
        // seen.
        spec.qos.deadline = Duration::INFINITE;
        let mut schedule = self.schedule.lock();
        if !is_writer && schedule.random.u8(0..4) > 0 {
            spec.qos.presentation = random_presentation(&mut schedule.random, 2);
        }
        if self.plan.ordered && schedule.random.u8(0..4) > 0 {
            let qos = &mut spec.qos;
            qos.reliability = Reliability::Reliable;
            qos.history = History::KeepAll;
            qos.lifespan = Duration::INFINITE;
            if !is_writer {
                qos.durability = Durability::Volatile;
                qos.presentation = random_presentation(&mut schedule.random, 0);
            }
        }
        spec
    }

    /// The publisher group of a new writer, if any.
    pub(crate) fn random_group(&self, location: EndpointLocation) -> Option<usize> {
        if !self.plan.coherent || self.schedule.lock().random.u8(0..4) == 0 {
            return None;
        }
        let same = |group: &Group| {
            (group.location.process, group.location.incarnation)
                == (location.process, location.incarnation)
        };
        let known = self.model.lock().groups.iter().position(same);
        if let Some(group) = known {
            self.end_set(group);
            return known;
        }
        let less = u8::from(!self.plan.ordered);
        let presentation = random_presentation(&mut self.schedule.lock().random, less);
        let core = self.core(location.process)?;
        let engine = core.create_publisher_group(presentation);
        let mut model = self.model.lock();
        model.groups.push(Group {
            location,
            engine,
            open: None,
        });
        Some(model.groups.len() - 1)
    }

    /// Begins a coherent set before a write now and then.
    pub(crate) fn maybe_begin_set(&self, group: Option<usize>) {
        let Some(group) = group else { return };
        let begins = self.schedule.lock().random.u8(0..3) == 0;
        let mut model = self.model.lock();
        if !begins || model.groups[group].open.is_some() {
            return;
        }
        let set = model.sets.len();
        model.sets.push(Set::default());
        model.groups[group].open = Some(set);
        let engine = model.groups[group].engine.clone();
        drop(model);
        if let Err(error) = engine.begin_coherent_changes() {
            self.fail(format!("I11 a coherent set cannot begin: {error}"));
        }
    }

    /// Ends the open coherent set after a write now and then.
    pub(crate) fn maybe_end_set(&self, group: Option<usize>) {
        let Some(group) = group else { return };
        if self.schedule.lock().random.u8(0..3) == 0 {
            self.end_set(group);
        }
    }

    /// Ends all open sets of running processes.
    pub(crate) fn end_sets(&self) {
        let groups = self.model.lock().groups.len();
        (0..groups).for_each(|group| self.end_set(group));
    }

    /// Ends the open set of a writer's group before the writer is removed.
    pub(crate) fn end_set_of(&self, writer: usize) {
        let group = self.model.lock().writers[writer].group;
        if let Some(group) = group {
            self.end_set(group);
        }
    }

    fn end_set(&self, index: usize) {
        let now = self.now();
        let mut guard = self.model.lock();
        let model = &mut *guard;
        let group = &mut model.groups[index];
        let location = group.location;
        let incarnations = self.processes()[location.process].incarnations == location.incarnation;
        let Some(core) = self.core(location.process).filter(|_| incarnations) else {
            return;
        };
        let Some(set) = group.open.take() else { return };
        let engine = group.engine.clone();
        let set = &mut model.sets[set];
        set.ended = true;
        let of_group = engine.presentation().is_of_group() && !set.messages.is_empty();
        let mut ending = Vec::new();
        let members = model.writers.iter_mut().enumerate();
        for (w, writer) in members.filter(|(_, w)| w.group == Some(index) && !w.gone) {
            // The end of a set takes a sequence number of each writer with messages
            // in it.
            if of_group || set.of(w).next().is_some() {
                writer.written += 1;
                writer.set_ends.insert(writer.written);
                writer.times.push(now);
                writer.orders.push(model.orders);
                ending.push(w);
            }
        }
        // The end of a set asserts liveliness like a message.
        for w in ending {
            model.record_liveliness(w, now, false);
        }
        drop(guard);
        if let Err(error) = engine.end_coherent_changes(&core) {
            self.fail(format!("I11 a coherent set cannot end: {error}"));
        }
        self.trace_line(format_args!("a coherent set of p{} ends", location.process));
        self.drain_ready(location.process);
        self.poll_process(location.process);
    }

    /// I17: checks all running readers after everything was taken.
    pub(crate) fn check_sets(&self) {
        if self.has_failed() || !self.plan.coherent {
            return;
        }
        let mut model = self.model.lock();
        let mut wrong = Vec::new();
        for (r, reader) in living_readers(&model).filter(|(_, r)| r.holds_samples()) {
            wrong.extend(model.check_completeness(r, reader));
            wrong.extend(model.check_order(r, reader, self.plan.has_long_outages()));
        }
        model.fail_all(wrong);
        self.record_failure(&model);
    }
}

/// A random presentation. The higher `less`, the more often it has topic scope or
/// no ordered access.
fn random_presentation(random: &mut fastrand::Rng, less: u8) -> Presentation {
    let mut is_less = || random.u8(0..4) < less;
    Presentation {
        access_scope: if is_less() { TOPIC } else { GROUP },
        coherent: true,
        ordered: !is_less(),
    }
}

impl Model {
    /// Records an accepted message in the open set of its writer.
    pub fn record_in_set(&mut self, w: usize, number: u64) {
        self.orders += 1;
        self.writers[w].orders.push(self.orders);
        let group = self.writers[w].group.map(|group| &self.groups[group]);
        if let Some(set) = group.and_then(|group| group.open) {
            self.sets[set].messages.push((w, number));
            self.writers[w].in_set.insert(number, set);
        }
    }

    /// I17: the set of a taken message has ended, and no later message of its group
    /// was taken before.
    pub fn check_set_member(&mut self, r: usize, w: usize, number: u64) -> Option<String> {
        let (reader, writer) = (&self.readers[r], &self.writers[w]);
        if !reader.holds_samples() {
            return None;
        }
        let set = writer.in_set.get(&number).map(|set| &self.sets[*set]);
        self.in_sets += u64::from(set.is_some());
        if set.is_some_and(|set| !set.ended) {
            return Some(format!(
                "I17 r{r}: w{w} number {number} of a set that is still open"
            ));
        }
        let group = writer.group?;
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let order = *writer.orders.get(index)?;
        let is_of_group = |guid| {
            let of = self.by_guid.get(guid).map(|w| self.writers[*w].group);
            of == Some(Some(group))
        };
        // After a new match a writer may start over.
        let again = reader
            .peers
            .iter()
            .any(|(guid, peer_match)| peer_match.epochs > 1 && is_of_group(guid));
        let ordered = reader.endpoint.data.qos.presentation.orders_group() && !again;
        let last = self.readers[r].orders.entry(group).or_default();
        let before = std::mem::replace(last, (*last).max(order));
        (ordered && order < before)
            .then(|| format!("I17 r{r}: w{w} number {number} after a later message of its group"))
    }

    /// I17: a reader got each set completely or not at all, and counted every set
    /// that it missed.
    fn check_completeness(&self, r: usize, reader: &ReaderRecord) -> Option<String> {
        let of_group = reader.endpoint.data.qos.presentation.is_of_group();
        let limited = reader
            .endpoint
            .data
            .qos
            .resource_limits
            .max_samples
            .is_some();
        let mut missed = 0;
        for set in &self.sets {
            // Per writer, or for the group together with group access.
            let mut seen = BTreeSet::new();
            let writers: BTreeSet<usize> = set.messages.iter().map(|(w, _)| *w).collect();
            let mut is_due = set.ended;
            for w in writers {
                let writer = &self.writers[w];
                let wanted: Vec<i64> = set
                    .of(w)
                    .filter_map(|n| i64::try_from(n).ok())
                    .filter(|n| reader.passes_filter(w, *n))
                    .collect();
                let Some(first) = wanted.first() else {
                    continue;
                };
                let Some(steady) = reader.steadily_matched(writer, *first) else {
                    continue;
                };
                let taken_samples = reader.samples.get(&writer.endpoint.guid());
                let taken_samples =
                    taken_samples.map_or(&[][..], |taken_samples| &taken_samples.numbers[..]);
                let came = wanted.iter().filter(|n| taken_samples.contains(n)).count();
                if came > 0 && came < wanted.len() {
                    return Some(format!("I17 r{r}: {came} of the set {wanted:?} of w{w}"));
                }
                let offered = &writer.endpoint.data.qos;
                let lossless = is_lossless(offered, &reader.endpoint.data.qos);
                if steady {
                    seen.insert(came > 0);
                }
                is_due &= steady && lossless;
                if set.ended && steady && lossless && came == 0 && !of_group {
                    if !limited {
                        return Some(format!("I17 r{r}: never got the set {wanted:?} of w{w}"));
                    }
                    missed += 1;
                }
            }
            if of_group && seen.len() > 1 {
                return Some(format!(
                    "I17 r{r}: got a part of the set {:?}",
                    set.messages
                ));
            }
            missed += u64::from(of_group && is_due && seen.contains(&false));
        }
        let counted = reader.endpoint.counts().incomplete_sets;
        (missed > counted)
            .then(|| format!("I17 r{r}: {missed} sets are missing, {counted} are counted"))
    }
}

impl Model {
    /// I17: ordered access loses no message outside of sets, unless a writer was
    /// unreachable for longer than the reader waits.
    fn check_order(
        &self,
        r: usize,
        reader: &ReaderRecord,
        has_long_outages: bool,
    ) -> Option<String> {
        let requested = &reader.endpoint.data.qos;
        if !requested.presentation.orders_group() {
            return None;
        }
        let mut missed = 0;
        for (w, writer) in self.writers.iter().enumerate().filter(|(_, w)| !w.gone) {
            let Some(peer_match) = writer.peers.get(&reader.endpoint.data.guid) else {
                continue;
            };
            let since = i64::try_from(peer_match.since).unwrap_or(i64::MAX);
            let has_only_live_readers = reader.steadily_matched(writer, since) == Some(true);
            if !has_only_live_readers || !is_lossless(&writer.endpoint.data.qos, requested) {
                continue;
            }
            let taken_samples = reader.samples.get(&writer.endpoint.guid());
            let taken_samples =
                taken_samples.map_or(&[][..], |taken_samples| &taken_samples.numbers[..]);
            let is_loose = |n: &u64| !writer.in_set.contains_key(n) && !writer.set_ends.contains(n);
            let loose = (peer_match.since..=writer.written).filter(is_loose);
            let loose = loose.filter_map(|n| i64::try_from(n).ok());
            let is_missed = |n: &i64| reader.passes_filter(w, *n) && !taken_samples.contains(n);
            missed += loose.filter(is_missed).count() as u64;
        }
        let late = reader.endpoint.counts().late;
        let in_time = !has_long_outages && self.has_timely_order_info(reader);
        if late > 0 && in_time {
            return Some(format!("I17 r{r}: {late} samples came too late"));
        }
        let excused = if in_time { 0 } else { late };
        (missed > excused).then(|| {
            format!("I17 r{r}: never got {missed} messages outside of sets, {late} came too late")
        })
    }
}

impl Model {
    /// Whether all writers of a reader announce their position in the group's
    /// order, and no old sample arrives, as after a late match within the group
    /// (seed 3168).
    fn has_timely_order_info(&self, reader: &ReaderRecord) -> bool {
        let requested = &reader.endpoint.data.qos;
        let mut met = BTreeMap::new();
        let mut writers = reader.peers.iter().map(|(guid, peer_match)| {
            let writer = self.by_guid.get(guid).map(|w| &self.writers[*w]);
            let group = writer.and_then(|writer| writer.group);
            let is_met_at_once = *met.entry(group).or_insert(peer_match.at) == peer_match.at;
            let is_told = |w: &WriterRecord| is_reliable(&w.endpoint.data.qos, requested);
            peer_match.epochs == 1 && is_met_at_once && writer.is_some_and(is_told)
        });
        requested.durability == Durability::Volatile && writers.all(|reported| reported)
    }
}

impl ReaderRecord {
    /// Whether it holds samples back until their set is complete.
    pub fn holds_samples(&self) -> bool {
        self.endpoint.data.qos.presentation.holds_samples()
    }

    /// Whether it has been matched with a writer without a break since before
    /// number `first`. `None`: it was never matched.
    fn steadily_matched(&self, writer: &WriterRecord, first: i64) -> Option<bool> {
        let ours = writer.peers.get(&self.endpoint.data.guid)?;
        let theirs = self.peers.get(&writer.endpoint.guid())?;
        let steady = [ours, theirs]
            .iter()
            .all(|peer_match| peer_match.epochs == 1 && peer_match.matched);
        Some(steady && i64::try_from(ours.since).is_ok_and(|since| since <= first))
    }
}

//! Coherent sets (PRESENTATION): which writers are presented as one whole, when
//! their sets begin and end, and what readers that ask for it may see of them.
//!
//! I17: a set is seen once it has ended, whole or not at all, and a set that is
//! not seen is counted. Where ordered access to a group is asked, what its
//! writers wrote comes in the order of their writing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pteros_rmw::EndpointSpec;
use pteros_rmw::publisher_group::PublisherGroup;
use pteros_rtps::qos::{Durability, History, Presentation, Reliability};
use pteros_rtps::time::Duration;

use crate::cast::{Cast, Home, ReaderRole, WriterRole, is_lossless, is_reliable};
use crate::check::living_readers;
use crate::world::World;

/// RTPS 2.5 §9.6.2.2.2, access scopes.
const TOPIC: u8 = 1;
const GROUP: u8 = 2;

/// Writers of one process that are presented as one whole.
pub struct Group {
    home: Home,
    engine: Arc<PublisherGroup>,
    open: Option<usize>,
}

/// What was written between a begin and an end.
#[derive(Debug, Default)]
pub struct Set {
    /// Writers and numbers, in the order of writing.
    messages: Vec<(usize, u64)>,
    ended: bool,
}

impl Group {
    /// The engine's.
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

impl World {
    /// A subscription that may ask for sets; those of writers are their group's.
    pub(crate) fn presented(&self, mut spec: EndpointSpec, is_writer: bool) -> EndpointSpec {
        if !self.plan.coherent {
            return spec;
        }
        // What waits for its set counts for a deadline when it is seen.
        spec.qos.deadline = Duration::INFINITE;
        let mut script = self.script.lock();
        if !is_writer && script.random.u8(0..4) > 0 {
            spec.qos.presentation = drawn(&mut script.random, 2);
        }
        if self.plan.ordered && script.random.u8(0..4) > 0 {
            let qos = &mut spec.qos;
            qos.reliability = Reliability::Reliable;
            qos.history = History::KeepAll;
            qos.lifespan = Duration::INFINITE;
            if !is_writer {
                qos.durability = Durability::Volatile;
                qos.presentation = drawn(&mut script.random, 0);
            }
        }
        spec
    }

    /// The group that a new writer of a process is made in, if any.
    pub(crate) fn drawn_group(&self, home: Home) -> Option<usize> {
        if !self.plan.coherent || self.script.lock().random.u8(0..4) == 0 {
            return None;
        }
        let same = |group: &Group| (group.home.place, group.home.life) == (home.place, home.life);
        let known = self.cast.lock().groups.iter().position(same);
        if let Some(group) = known {
            self.end_set(group);
            return known;
        }
        let less = u8::from(!self.plan.ordered);
        let presentation = drawn(&mut self.script.lock().random, less);
        let core = self.core(home.place)?;
        let engine = core.create_publisher_group(presentation);
        let mut cast = self.cast.lock();
        cast.groups.push(Group {
            home,
            engine,
            open: None,
        });
        Some(cast.groups.len() - 1)
    }

    /// A writer is about to write: now and then a set begins before.
    pub(crate) fn begin_set_sometimes(&self, group: Option<usize>) {
        let Some(group) = group else { return };
        let begins = self.script.lock().random.u8(0..3) == 0;
        let mut cast = self.cast.lock();
        if !begins || cast.groups[group].open.is_some() {
            return;
        }
        let set = cast.sets.len();
        cast.sets.push(Set::default());
        cast.groups[group].open = Some(set);
        let engine = cast.groups[group].engine.clone();
        drop(cast);
        if let Err(error) = engine.begin_coherent_changes() {
            self.fail(format!("I11 no set begins: {error}"));
        }
    }

    /// A writer has written: an open set ends now and then.
    pub(crate) fn end_set_sometimes(&self, group: Option<usize>) {
        let Some(group) = group else { return };
        if self.script.lock().random.u8(0..3) == 0 {
            self.end_set(group);
        }
    }

    /// Ends all sets of the living.
    pub(crate) fn end_sets(&self) {
        let groups = self.cast.lock().groups.len();
        (0..groups).for_each(|group| self.end_set(group));
    }

    /// Ends the set that a writer's group has open, as before it goes.
    pub(crate) fn end_set_of(&self, writer: usize) {
        let group = self.cast.lock().writers[writer].group;
        if let Some(group) = group {
            self.end_set(group);
        }
    }

    fn end_set(&self, index: usize) {
        let now = self.now();
        let mut guard = self.cast.lock();
        let cast = &mut *guard;
        let group = &mut cast.groups[index];
        let home = group.home;
        let lives = self.places()[home.place].lives == home.life;
        let Some(core) = self.core(home.place).filter(|_| lives) else {
            return;
        };
        let Some(set) = group.open.take() else { return };
        let engine = group.engine.clone();
        let set = &mut cast.sets[set];
        set.ended = true;
        let of_group = engine.presentation().is_of_group() && !set.messages.is_empty();
        let mut ending = Vec::new();
        let members = cast.writers.iter_mut().enumerate();
        for (w, writer) in members.filter(|(_, w)| w.group == Some(index) && !w.gone) {
            // The end has a number of each writer that it ends something of.
            if of_group || set.of(w).next().is_some() {
                writer.written += 1;
                writer.set_ends.insert(writer.written);
                writer.times.push(now);
                writer.orders.push(cast.orders);
                ending.push(w);
            }
        }
        // It is a sign of life like a message.
        for w in ending {
            cast.note_life(w, now, false);
        }
        drop(guard);
        if let Err(error) = engine.end_coherent_changes(&core) {
            self.fail(format!("I11 no set ends: {error}"));
        }
        self.say(format_args!("a set of p{} ends", home.place));
        self.settle(home.place);
        self.turn(home.place);
    }

    /// I17 of everybody who lives, when all has been taken.
    pub(crate) fn check_sets(&self) {
        if self.has_failed() || !self.plan.coherent {
            return;
        }
        let mut cast = self.cast.lock();
        let mut wrong = Vec::new();
        for (r, reader) in living_readers(&cast).filter(|(_, r)| r.holds_samples()) {
            wrong.extend(cast.check_whole(r, reader));
            wrong.extend(cast.check_order(r, reader, self.plan.interrupts()));
        }
        cast.fail_all(wrong);
        self.note_failure(&cast);
    }
}

/// Sets for a group, in order, or less than that: each the more often, the higher
/// `less` is.
fn drawn(random: &mut fastrand::Rng, less: u8) -> Presentation {
    let mut is_less = || random.u8(0..4) < less;
    Presentation {
        access_scope: if is_less() { TOPIC } else { GROUP },
        coherent: true,
        ordered: !is_less(),
    }
}

impl Cast {
    /// A message was accepted; it is part of its writer's open set.
    pub fn note_in_set(&mut self, w: usize, number: u64) {
        self.orders += 1;
        self.writers[w].orders.push(self.orders);
        let group = self.writers[w].group.map(|group| &self.groups[group]);
        if let Some(set) = group.and_then(|group| group.open) {
            self.sets[set].messages.push((w, number));
            self.writers[w].in_set.insert(number, set);
        }
    }

    /// I17: a message may be seen now, and not after one that was written later.
    pub fn judge_set(&mut self, r: usize, w: usize, number: u64) -> Option<String> {
        let (reader, writer) = (&self.readers[r], &self.writers[w]);
        if !reader.holds_samples() {
            return None;
        }
        let set = writer.in_set.get(&number).map(|set| &self.sets[*set]);
        self.in_sets += u64::from(set.is_some());
        if set.is_some_and(|set| !set.ended) {
            return Some(format!(
                "I17 r{r}: w{w} number {number} of a set that has not ended"
            ));
        }
        let group = writer.group?;
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let order = *writer.orders.get(index)?;
        let is_of_group = |guid| {
            let of = self.by_guid.get(guid).map(|w| self.writers[*w].group);
            of == Some(Some(group))
        };
        // Who is matched again may begin again.
        let again = reader
            .bonds
            .iter()
            .any(|(guid, bond)| bond.epochs > 1 && is_of_group(guid));
        let ordered = reader.endpoint.data.qos.presentation.orders_group() && !again;
        let last = self.readers[r].orders.entry(group).or_default();
        let before = std::mem::replace(last, (*last).max(order));
        (ordered && order < before)
            .then(|| format!("I17 r{r}: w{w} number {number} after what its group wrote later"))
    }

    /// I17: of each set all that concerns a reader was seen, or nothing, and what
    /// should have been and was not is counted.
    fn check_whole(&self, r: usize, reader: &ReaderRole) -> Option<String> {
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
            // Per writer; those of one group together where that is asked.
            let mut seen = BTreeSet::new();
            let writers: BTreeSet<usize> = set.messages.iter().map(|(w, _)| *w).collect();
            let mut is_due = set.ended;
            for w in writers {
                let writer = &self.writers[w];
                let wanted: Vec<i64> = set
                    .of(w)
                    .filter_map(|n| i64::try_from(n).ok())
                    .filter(|n| reader.is_wanted(w, *n))
                    .collect();
                let Some(first) = wanted.first() else {
                    continue;
                };
                let Some(steady) = reader.meets(writer, *first) else {
                    continue;
                };
                let heard = reader.heard.get(&writer.endpoint.guid());
                let heard = heard.map_or(&[][..], |heard| &heard.numbers[..]);
                let came = wanted.iter().filter(|n| heard.contains(n)).count();
                if came > 0 && came < wanted.len() {
                    return Some(format!(
                        "I17 r{r}: {came} of w{w}'s {wanted:?}, which are one set"
                    ));
                }
                let offered = &writer.endpoint.data.qos;
                let lossless = is_lossless(offered, &reader.endpoint.data.qos);
                if steady {
                    seen.insert(came > 0);
                }
                is_due &= steady && lossless;
                if set.ended && steady && lossless && came == 0 && !of_group {
                    if !limited {
                        return Some(format!("I17 r{r}: never got w{w}'s set {wanted:?}"));
                    }
                    missed += 1;
                }
            }
            if of_group && seen.len() > 1 {
                return Some(format!("I17 r{r}: a part of the set {:?}", set.messages));
            }
            missed += u64::from(of_group && is_due && seen.contains(&false));
        }
        let counted = reader.endpoint.counts().incomplete_sets;
        (missed > counted)
            .then(|| format!("I17 r{r}: {missed} sets were not seen, and {counted} counted"))
    }
}

impl Cast {
    /// I17: of what is of no set nothing is lost for the sake of order, unless a
    /// writer could not be heard for longer than others wait for it.
    fn check_order(&self, r: usize, reader: &ReaderRole, interrupted: bool) -> Option<String> {
        let requested = &reader.endpoint.data.qos;
        if !requested.presentation.orders_group() {
            return None;
        }
        let mut missed = 0;
        for (w, writer) in self.writers.iter().enumerate().filter(|(_, w)| !w.gone) {
            let Some(bond) = writer.bonds.get(&reader.endpoint.data.guid) else {
                continue;
            };
            let since = i64::try_from(bond.since).unwrap_or(i64::MAX);
            let is_steady = reader.meets(writer, since) == Some(true);
            if !is_steady || !is_lossless(&writer.endpoint.data.qos, requested) {
                continue;
            }
            let heard = reader.heard.get(&writer.endpoint.guid());
            let heard = heard.map_or(&[][..], |heard| &heard.numbers[..]);
            let is_loose = |n: &u64| !writer.in_set.contains_key(n) && !writer.set_ends.contains(n);
            let loose = (bond.since..=writer.written).filter(is_loose);
            let loose = loose.filter_map(|n| i64::try_from(n).ok());
            let is_missed = |n: &i64| reader.is_wanted(w, *n) && !heard.contains(n);
            missed += loose.filter(is_missed).count() as u64;
        }
        let late = reader.endpoint.counts().late;
        let in_time = !interrupted && self.is_told_in_time(reader);
        if late > 0 && in_time {
            return Some(format!("I17 r{r}: {late} came too late"));
        }
        let excused = if in_time { 0 } else { late };
        (missed > excused).then(|| {
            format!("I17 r{r}: never got {missed} that are of no set, {late} came too late")
        })
    }
}

impl Cast {
    /// Whether all writers of a reader tell where they are, and nothing is old
    /// when it comes, as of a writer that is met after others of its group
    /// (seed 3168).
    fn is_told_in_time(&self, reader: &ReaderRole) -> bool {
        let requested = &reader.endpoint.data.qos;
        let mut met = BTreeMap::new();
        let mut writers = reader.bonds.iter().map(|(guid, bond)| {
            let writer = self.by_guid.get(guid).map(|w| &self.writers[*w]);
            let group = writer.and_then(|writer| writer.group);
            let is_met_at_once = *met.entry(group).or_insert(bond.at) == bond.at;
            let is_told = |w: &WriterRole| is_reliable(&w.endpoint.data.qos, requested);
            bond.epochs == 1 && is_met_at_once && writer.is_some_and(is_told)
        });
        requested.durability == Durability::Volatile && writers.all(|told| told)
    }
}

impl ReaderRole {
    /// Whether it sees samples when their set is whole.
    pub fn holds_samples(&self) -> bool {
        self.endpoint.data.qos.presentation.holds_samples()
    }

    /// Whether it is matched with a writer since before a number, without a
    /// break; `None`: it never was matched.
    fn meets(&self, writer: &WriterRole, first: i64) -> Option<bool> {
        let ours = writer.bonds.get(&self.endpoint.data.guid)?;
        let theirs = self.bonds.get(&writer.endpoint.guid())?;
        let steady = [ours, theirs]
            .iter()
            .all(|bond| bond.epochs == 1 && bond.matched);
        Some(steady && i64::try_from(ours.since).is_ok_and(|since| since <= first))
    }
}

//! What came of what: a message, the callback that took it, what that published.

use std::collections::{BTreeMap, HashSet};

use pteros_rmw::trace::Step;

use super::hops::Hop;
use super::load::{Place, Sample, ThreadOf, Trace};

/// Topics of one chain at most; what goes on after that is cut off. Two nodes
/// that answer each other would never end.
pub const TOPICS_MAX: usize = 64;

/// Chains that are told apart at most.
const CHAINS_MAX: usize = 256;

/// Publishers whose messages come of one sample that was taken without a callback,
/// at most.
const CHILDREN_MAX: usize = 64;

/// One time that a chain of topics was run through: a message on the first, a
/// message on the second that came of it, and so on: was published in the first one's
/// callback, or after the first was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<'t> {
    /// The hops, in order; at least one.
    pub hops: Vec<Hop<'t>>,
}

impl Run<'_> {
    /// From the first publish call to the last callback.
    pub fn latency(&self) -> u64 {
        match (self.hops.first(), self.hops.last()) {
            (Some(first), Some(last)) => last.callback.began.saturating_sub(first.began),
            _ => 0,
        }
    }

    /// How long after the callback of a hop, from 0 on, began what the next hop
    /// carried was published. 0 for the last.
    pub fn processing(&self, hop: usize) -> u64 {
        match (self.hops.get(hop), self.hops.get(hop + 1)) {
            (Some(this), Some(next)) => next.began.saturating_sub(this.callback.began),
            _ => 0,
        }
    }
}

impl Trace {
    /// The runs of a chain of topics, by when they began. Runs of which a record is
    /// missing are left out; of more than [`TOPICS_MAX`] topics there are none.
    pub fn runs(&self, topics: &[&str]) -> Vec<Run<'_>> {
        let mut found = Vec::new();
        let Some(first) = topics.first().filter(|_| topics.len() <= TOPICS_MAX) else {
            return found;
        };
        for at in 0..self.called.len() {
            if let Some(hop) = self.hop(at).filter(|hop| hop.topic == *first) {
                self.follow(vec![hop], topics.get(1..).unwrap_or_default(), &mut found);
            }
        }
        found.sort_by_key(|run| run.hops.first().map(|hop| hop.began));
        found
    }

    fn follow<'t>(&'t self, hops: Vec<Hop<'t>>, topics: &[&str], found: &mut Vec<Run<'t>>) {
        let Some((next, rest)) = topics.split_first() else {
            found.push(Run { hops });
            return;
        };
        for hop in hops.last().into_iter().flat_map(|hop| self.after(hop)) {
            if hop.topic == *next {
                let mut longer = hops.clone();
                longer.push(hop);
                self.follow(longer, rest, found);
            }
        }
    }

    /// The hops of what came of one.
    fn after(&self, hop: &Hop<'_>) -> Vec<Hop<'_>> {
        let of_it = self.came_of(hop.at).into_iter();
        of_it.flat_map(|sample| self.hops_of(sample)).collect()
    }

    /// What was published in a callback; of a sample that was taken without one, what
    /// the callback around that, or the thread, published afterwards.
    fn came_of(&self, at: usize) -> Vec<Sample> {
        let Some((context, record)) = self.called.get(at) else {
            return Vec::new();
        };
        let process = self.process(*context);
        let in_span = |span| {
            let children = self.children.get(&(process, span));
            children.into_iter().flatten().copied()
        };
        if record.span != 0 {
            return in_span(record.span).collect();
        }
        let taken = self.absolute(*context, record.at);
        if record.cause != 0 {
            return in_span(record.cause)
                .filter(|sample| self.published_at(sample) >= taken)
                .collect();
        }
        self.published_after((process, record.thread), (*context, record.of), taken)
    }

    /// The first message of each publisher after a thread took a sample, until it
    /// takes the next one of that reader.
    fn published_after(&self, thread: ThreadOf, reader: Place, taken: u64) -> Vec<Sample> {
        let polls = self
            .polls
            .get(&(thread, reader))
            .map_or(&[][..], Vec::as_slice);
        let next = polls.get(polls.partition_point(|at| *at <= taken));
        let alone = self.alone.get(&thread).map_or(&[][..], Vec::as_slice);
        let from = alone.partition_point(|(at, _)| *at < taken);
        let mut first: Vec<Sample> = Vec::new();
        for (at, sample) in alone.get(from..).unwrap_or_default() {
            if next.is_some_and(|next| at >= next) || first.len() >= CHILDREN_MAX {
                break;
            }
            if !first.iter().any(|(writer, _)| *writer == sample.0) {
                first.push(*sample);
            }
        }
        first
    }

    fn published_at(&self, sample: &Sample) -> u64 {
        let published = self.published.get(sample);
        published.map_or(0, |(context, record)| self.absolute(*context, record.at))
    }

    fn hops_of(&self, sample: Sample) -> impl Iterator<Item = Hop<'_>> {
        let takers = self.takers.get(&sample).map_or(&[][..], Vec::as_slice);
        takers.iter().filter_map(|at| self.hop(*at))
    }

    /// Every chain of two or more topics that was run through to its end, and how
    /// often; the longest first. Chains beyond the first 256 found are left out.
    pub fn chains(&self) -> Vec<(Vec<&str>, usize)> {
        let mut counts: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        // One that came of a message is in the middle of a chain.
        let polled = self.called.iter().enumerate();
        let polled = polled.filter(|(_, (_, record))| record.step == Step::Taken);
        let came: HashSet<Sample> = polled.flat_map(|(at, _)| self.came_of(at)).collect();
        for at in 0..self.called.len() {
            let Some(hop) = self.hop(at) else { continue };
            let sample = (hop.writer, hop.sequence);
            let Some((context, published)) = self.published.get(&sample) else {
                continue;
            };
            let cause = (self.process(*context), published.cause);
            if !self.spans.contains(&cause) && !came.contains(&sample) {
                self.walk(&hop, &mut vec![hop.topic], &mut counts);
            }
        }
        let mut chains: Vec<_> = counts
            .into_iter()
            .filter(|(topics, _)| topics.len() > 1)
            .collect();
        chains.sort_by_key(|(topics, count)| (usize::MAX - topics.len(), usize::MAX - count));
        chains
    }

    fn walk<'t>(
        &'t self,
        hop: &Hop<'t>,
        topics: &mut Vec<&'t str>,
        counts: &mut BTreeMap<Vec<&'t str>, usize>,
    ) {
        let after = self.after(hop);
        if after.is_empty() || topics.len() >= TOPICS_MAX {
            if counts.len() < CHAINS_MAX || counts.contains_key(topics) {
                *counts.entry(topics.clone()).or_default() += 1;
            }
            return;
        }
        for next in after {
            topics.push(self.topic_of(&next));
            self.walk(&next, topics, counts);
            topics.pop();
        }
    }

    fn topic_of(&self, hop: &Hop<'_>) -> &str {
        self.hop(hop.at).map_or("", |hop| hop.topic)
    }
}

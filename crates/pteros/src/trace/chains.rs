//! What came of what: a message, the callback that took it, what that published.

use std::collections::BTreeMap;

use super::hops::Hop;
use super::load::{Sample, Trace};

/// Topics of one chain at most; what goes on after that is cut off. Two nodes
/// that answer each other would never end.
pub const TOPICS_MAX: usize = 64;

/// Chains that are told apart at most.
const CHAINS_MAX: usize = 256;

/// One time that a chain of topics was run through: a message on the first, a
/// message on the second that was published in the first one's callback, and so
/// on.
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

    /// How long the callback after a hop, from 0 on, ran before it published what
    /// the next hop carried. 0 for the last.
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

    /// The hops of what was published in the callback of one.
    fn after(&self, hop: &Hop<'_>) -> Vec<Hop<'_>> {
        // What was taken without a callback is the cause of nothing.
        let taken = self.called.get(hop.at).filter(|_| hop.callback.span != 0);
        let process = taken.map(|(context, _)| self.process(*context));
        let children = process.and_then(|process| self.children.get(&(process, hop.callback.span)));
        let children = children.map_or(&[][..], Vec::as_slice);
        children
            .iter()
            .flat_map(|sample| self.hops_of(*sample))
            .collect()
    }

    fn hops_of(&self, sample: Sample) -> impl Iterator<Item = Hop<'_>> {
        let takers = self.takers.get(&sample).map_or(&[][..], Vec::as_slice);
        takers.iter().filter_map(|at| self.hop(*at))
    }

    /// Every chain of two or more topics that was run through to its end, and how
    /// often; the longest first. Chains beyond the first 256 found are left out.
    pub fn chains(&self) -> Vec<(Vec<&str>, usize)> {
        let mut counts: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        for at in 0..self.called.len() {
            let Some(hop) = self.hop(at) else { continue };
            let Some((context, published)) = self.published.get(&(hop.writer, hop.sequence)) else {
                continue;
            };
            // One that came of a message is in the middle of a chain.
            let cause = (self.process(*context), published.cause);
            if !self.spans.contains(&cause) {
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

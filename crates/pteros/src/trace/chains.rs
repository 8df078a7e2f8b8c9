//! Causal chains: a message, the callback that took it, and what that published.
//!
//! Chains are reconstructed from trace records after the fact; nothing runs while a
//! context is traced.

use std::collections::{BTreeMap, HashSet};

use pteros_runtime::trace::TraceEvent;

use super::hops::Hop;
use super::trace_file::{CallbackKey, EndpointKey, SampleKey, ThreadKey, Trace};

/// The most topics of one chain.
///
/// A longer chain is cut off: two nodes that respond to each other would never end.
pub const TOPICS_MAX: usize = 64;

/// The most distinct chains.
const CHAINS_MAX: usize = 256;

/// The most publishers whose messages follow from one sample taken without a
/// callback.
const CHILDREN_MAX: usize = 64;

/// One run through a chain of topics.
///
/// A message on the first topic caused one on the second, and so on.
///
/// A message causes those that its callback publishes, or that its thread publishes
/// after taking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRun<'t> {
    /// The hops, in order; at least one.
    pub hops: Vec<Hop<'t>>,
}

impl ChainRun<'_> {
    /// Nanoseconds from the first publish call to the last callback.
    pub fn latency(&self) -> u64 {
        match (self.hops.first(), self.hops.last()) {
            (Some(first), Some(last)) => last.callback.began.saturating_sub(first.began),
            _ => 0,
        }
    }

    /// Nanoseconds from the callback of a hop (from 0) to the publish call of the
    /// next hop.
    ///
    /// 0 for the last.
    pub fn processing(&self, hop: usize) -> u64 {
        match (self.hops.get(hop), self.hops.get(hop + 1)) {
            (Some(this), Some(next)) => next.began.saturating_sub(this.callback.began),
            _ => 0,
        }
    }
}

impl Trace {
    /// The runs of a chain of topics, by start time.
    ///
    /// Runs with a missing record are left out. There are none for more than
    /// [`TOPICS_MAX`] topics.
    pub fn runs(&self, topics: &[&str]) -> Vec<ChainRun<'_>> {
        let mut found = Vec::new();
        let Some(first) = topics.first().filter(|_| topics.len() <= TOPICS_MAX) else {
            return found;
        };
        for at in 0..self.callback_records.len() {
            if let Some(hop) = self.hop_at(at).filter(|hop| hop.topic == *first) {
                self.follow(vec![hop], topics.get(1..).unwrap_or_default(), &mut found);
            }
        }
        found.sort_by_key(|run| run.hops.first().map(|hop| hop.began));
        found
    }

    fn follow<'t>(&'t self, hops: Vec<Hop<'t>>, topics: &[&str], found: &mut Vec<ChainRun<'t>>) {
        let Some((next, rest)) = topics.split_first() else {
            found.push(ChainRun { hops });
            return;
        };
        for hop in hops.last().into_iter().flat_map(|hop| self.next_hops(hop)) {
            if hop.topic == *next {
                let mut longer = hops.clone();
                longer.push(hop);
                self.follow(longer, rest, found);
            }
        }
    }

    /// The hops of the samples that a hop caused.
    fn next_hops(&self, hop: &Hop<'_>) -> Vec<Hop<'_>> {
        let of_it = self.caused_samples(hop.at).into_iter();
        of_it.flat_map(|sample| self.hops_of(sample)).collect()
    }

    /// Samples published in a callback. For a sample taken without one: what the
    /// enclosing callback, or else the thread, published afterwards.
    fn caused_samples(&self, at: usize) -> Vec<SampleKey> {
        let Some((context, record)) = self.callback_records.get(at) else {
            return Vec::new();
        };
        let process = self.process(*context);
        let in_span = |span| {
            let children = self.children.get(&CallbackKey { process, span });
            children.into_iter().flatten().copied()
        };
        if record.span != 0 {
            return in_span(record.span).collect();
        }
        let taken = self.absolute(*context, record.first_time);
        if record.cause != 0 {
            return in_span(record.cause)
                .filter(|sample| self.published_at(sample) >= taken)
                .collect();
        }
        let thread = ThreadKey {
            process,
            thread: record.thread,
        };
        let reader = EndpointKey {
            context: *context,
            entity: record.entity,
        };
        self.published_after(thread, reader, taken)
    }

    /// The first message of each publisher after a thread took a sample, until it
    /// takes the next one of that reader.
    fn published_after(
        &self,
        thread: ThreadKey,
        reader: EndpointKey,
        taken: u64,
    ) -> Vec<SampleKey> {
        let polls = self
            .polls
            .get(&(thread, reader))
            .map_or(&[][..], Vec::as_slice);
        let next = polls.get(polls.partition_point(|at| *at <= taken));
        let outside_callbacks = self
            .outside_callbacks
            .get(&thread)
            .map_or(&[][..], Vec::as_slice);
        let from = outside_callbacks.partition_point(|(at, _)| *at < taken);
        let mut first: Vec<SampleKey> = Vec::new();
        for (at, sample) in outside_callbacks.get(from..).unwrap_or_default() {
            if next.is_some_and(|next| at >= next) || first.len() >= CHILDREN_MAX {
                break;
            }
            if !first.iter().any(|known| known.writer == sample.writer) {
                first.push(*sample);
            }
        }
        first
    }

    fn published_at(&self, sample: &SampleKey) -> u64 {
        let published = self.published.get(sample);
        published.map_or(0, |(context, record)| {
            self.absolute(*context, record.first_time)
        })
    }

    fn hops_of(&self, sample: SampleKey) -> impl Iterator<Item = Hop<'_>> {
        let taken_by = self.taken_by.get(&sample).map_or(&[][..], Vec::as_slice);
        taken_by.iter().filter_map(|at| self.hop_at(*at))
    }

    /// Every chain of two or more topics that ran to its end, and how often; the
    /// longest first.
    ///
    /// Chains beyond the first 256 found are left out.
    pub fn chains(&self) -> Vec<(Vec<&str>, usize)> {
        let mut counts: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        // A sample caused by another one is in the middle of a chain.
        let polled = self.callback_records.iter().enumerate();
        let polled = polled.filter(|(_, (_, record))| record.event == TraceEvent::Taken);
        let caused: HashSet<SampleKey> =
            polled.flat_map(|(at, _)| self.caused_samples(at)).collect();
        for at in 0..self.callback_records.len() {
            let Some(hop) = self.hop_at(at) else { continue };
            let sample = SampleKey {
                writer: hop.writer,
                sequence: hop.sequence,
            };
            let Some((context, published)) = self.published.get(&sample) else {
                continue;
            };
            let cause = CallbackKey {
                process: self.process(*context),
                span: published.cause,
            };
            if !self.callbacks.contains(&cause) && !caused.contains(&sample) {
                self.count_chains(&hop, &mut vec![hop.topic], &mut counts);
            }
        }
        let mut chains: Vec<_> = counts
            .into_iter()
            .filter(|(topics, _)| topics.len() > 1)
            .collect();
        chains.sort_by_key(|(topics, count)| (usize::MAX - topics.len(), usize::MAX - count));
        chains
    }

    fn count_chains<'t>(
        &'t self,
        hop: &Hop<'t>,
        topics: &mut Vec<&'t str>,
        counts: &mut BTreeMap<Vec<&'t str>, usize>,
    ) {
        let next_hops = self.next_hops(hop);
        if next_hops.is_empty() || topics.len() >= TOPICS_MAX {
            if counts.len() < CHAINS_MAX || counts.contains_key(topics) {
                *counts.entry(topics.clone()).or_default() += 1;
            }
            return;
        }
        for next in next_hops {
            topics.push(self.topic_of(&next));
            self.count_chains(&next, topics, counts);
            topics.pop();
        }
    }

    fn topic_of(&self, hop: &Hop<'_>) -> &str {
        self.hop_at(hop.at).map_or("", |hop| hop.topic)
    }
}

//! Slop time: sets of messages whose stamps are closer together than a span.

use super::stamp_queue::{StampQueue, admit_into};
use super::{MessageSets, SyncPolicy};

/// Joins messages whose stamps are closer together than a span (the rule of Python's
/// `ApproximateTimeSynchronizer`).
///
/// Each message completes one set at most: the first one of messages that are within the
/// span, the closest message of the first input before others, then that of the second
/// input. The difference of its stamps is smaller than the span.
#[derive(Debug)]
pub struct SlopTime<M> {
    queues: Vec<StampQueue<M>>,
    slop: u64,
}

impl<M> SlopTime<M> {
    /// A synchronizer of that many inputs. Each keeps up to `queue_size` messages, at
    /// least one. `slop` is the span in nanoseconds.
    pub fn new(inputs: usize, queue_size: usize, slop: i64) -> Self {
        Self {
            queues: StampQueue::of_inputs(inputs, queue_size),
            slop: slop.max(0).unsigned_abs(),
        }
    }

    /// The stamps of the set that a message of that stamp completes.
    fn set_around(&self, input: usize, stamp: i64) -> Option<Vec<i64>> {
        let near = |(index, queue): (usize, &StampQueue<M>)| {
            if index == input {
                return vec![stamp];
            }
            let (from, to) = (
                stamp.saturating_sub_unsigned(self.slop),
                stamp.saturating_add_unsigned(self.slop),
            );
            queue.stamps_around(stamp, from, to)
        };
        let each = self.queues.iter().enumerate().map(near);
        let candidates = each.map(|stamps| (!stamps.is_empty()).then_some(stamps));
        // Most messages find none in some input.
        let candidates = candidates.collect::<Option<Vec<_>>>()?;
        let mut set = Vec::with_capacity(candidates.len());
        let mut span = Span {
            first: stamp,
            last: stamp,
        };
        for (index, stamps) in candidates.iter().enumerate() {
            let rest = candidates.get(index + 1..).unwrap_or_default();
            let fits = |each: &&i64| self.can_be_completed(span.with(**each), rest);
            let chosen = *stamps.iter().find(fits)?;
            span = span.with(chosen);
            set.push(chosen);
        }
        Some(set)
    }

    /// Whether each of the other inputs has a stamp, all in one span with those chosen.
    fn can_be_completed(&self, chosen: Span, others: &[Vec<i64>]) -> bool {
        let starts = others.iter().flatten().copied().chain([chosen.first]);
        let mut starts = starts.filter(|start| *start <= chosen.first);
        starts.any(|start| {
            let is_within = |each: i64| start <= each && each.abs_diff(start) < self.slop;
            let has_one = |stamps: &Vec<i64>| stamps.iter().any(|each| is_within(*each));
            is_within(chosen.last) && others.iter().all(has_one)
        })
    }
}

#[derive(Clone, Copy)]
struct Span {
    first: i64,
    last: i64,
}

impl Span {
    fn with(self, stamp: i64) -> Self {
        Self {
            first: self.first.min(stamp),
            last: self.last.max(stamp),
        }
    }
}

impl<M: Send> SyncPolicy<M> for SlopTime<M> {
    fn add(&mut self, input: usize, stamp: i64, message: M) -> MessageSets<M> {
        if !admit_into(&mut self.queues, input, stamp, message) {
            return Vec::new();
        }
        let Some(stamps) = self.set_around(input, stamp) else {
            return Vec::new();
        };
        let queues = self.queues.iter_mut().zip(stamps);
        vec![
            queues
                .filter_map(|(queue, stamp)| queue.remove(stamp))
                .collect(),
        ]
    }

    fn visit(&self, visit: &mut dyn FnMut(&M)) {
        self.queues
            .iter()
            .flat_map(StampQueue::messages)
            .for_each(visit);
    }

    fn clear(&mut self) {
        self.queues.iter_mut().for_each(StampQueue::clear);
    }
}

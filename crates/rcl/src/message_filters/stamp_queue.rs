//! Queue of messages by stamp, with a limit.

use std::collections::BTreeMap;

use super::LateRun;

/// The messages of one input that wait for those of others.
#[derive(Debug)]
pub(super) struct StampQueue<M> {
    messages: BTreeMap<i64, Arrival<M>>,
    arrivals: u64,
    size_max: usize,
    late: LateRun,
}

#[derive(Debug)]
struct Arrival<M> {
    number: u64,
    message: M,
}

/// Whether a queue takes a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    Accepted,
    /// The queue is full of later messages.
    Late,
    /// More messages in a row were older than the newest than the queue holds.
    TimeWentBack,
}

impl<M> StampQueue<M> {
    /// A queue of at least one message.
    pub(super) fn new(size_max: usize) -> Self {
        Self {
            messages: BTreeMap::new(),
            arrivals: 0,
            size_max: size_max.max(1),
            late: LateRun::default(),
        }
    }

    /// Queues of all inputs.
    pub(super) fn of_inputs(inputs: usize, size_max: usize) -> Vec<Self> {
        (0..inputs).map(|_| Self::new(size_max)).collect()
    }

    /// Decides about a message of that stamp.
    pub(super) fn admit(&mut self, stamp: i64) -> Admission {
        let first = self.messages.first_key_value();
        let is_first = first.is_none_or(|(first, _)| stamp < *first);
        let last = self.messages.last_key_value();
        if last.is_none_or(|(last, _)| stamp >= *last) {
            self.late.end();
            Admission::Accepted
        } else if self.late.has_time_gone_back(self.size_max) {
            Admission::TimeWentBack
        } else if is_first && self.messages.len() >= self.size_max {
            Admission::Late
        } else {
            Admission::Accepted
        }
    }

    /// Adds a message in place of one with the same stamp. A full queue drops its oldest.
    pub(super) fn insert(&mut self, stamp: i64, message: M) {
        self.arrivals += 1;
        let known = self.messages.get(&stamp).map(|arrival| arrival.number);
        let number = known.unwrap_or(self.arrivals);
        self.messages.insert(stamp, Arrival { number, message });
        if self.messages.len() > self.size_max {
            self.messages.pop_first();
        }
    }

    pub(super) fn contains(&self, stamp: i64) -> bool {
        self.messages.contains_key(&stamp)
    }

    pub(super) fn remove(&mut self, stamp: i64) -> Option<M> {
        self.messages.remove(&stamp).map(|arrival| arrival.message)
    }

    /// Drops the messages that are older.
    pub(super) fn drop_before(&mut self, stamp: i64) {
        self.messages = self.messages.split_off(&stamp);
    }

    /// Drops the messages that are newer. The next older one begins a new run.
    fn drop_after(&mut self, stamp: i64) {
        if let Some(next) = stamp.checked_add(1) {
            drop(self.messages.split_off(&next));
        }
        self.late.end();
    }

    /// The stamps of a span with both ends, the closest to `middle` first. Of two at the
    /// same distance that is the one that arrived first.
    pub(super) fn stamps_around(&self, middle: i64, from: i64, to: i64) -> Vec<i64> {
        let arrivals = self.messages.range(from..=to);
        let mut arrivals: Vec<_> = arrivals
            .map(|(stamp, arrival)| (stamp.abs_diff(middle), arrival.number, *stamp))
            .collect();
        arrivals.sort_unstable();
        arrivals.into_iter().map(|(_, _, stamp)| stamp).collect()
    }

    /// The messages, the oldest first.
    pub(super) fn messages(&self) -> impl Iterator<Item = &M> {
        self.messages.values().map(|arrival| &arrival.message)
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.late.end();
    }
}

/// Adds a message to the queue of an input. If time has gone back, what is newer is dropped
/// from all queues before. Returns whether the message was accepted.
pub(super) fn admit_into<M>(
    queues: &mut [StampQueue<M>],
    input: usize,
    stamp: i64,
    message: M,
) -> bool {
    let Some(queue) = queues.get_mut(input) else {
        return false;
    };
    match queue.admit(stamp) {
        Admission::Accepted => queue.insert(stamp, message),
        Admission::Late => return false,
        Admission::TimeWentBack => {
            queues.iter_mut().for_each(|queue| queue.drop_after(stamp));
            queues[input].insert(stamp, message);
        }
    }
    true
}

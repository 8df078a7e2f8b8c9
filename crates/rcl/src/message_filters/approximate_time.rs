//! Approximate time: sets of the best fitting messages, without a span to choose (the
//! adaptive algorithm of ROS, <https://wiki.ros.org/message_filters/ApproximateTime>).
//!
//! A set covers the interval from its oldest to its newest stamp. The newest head of all
//! queues becomes the pivot: each set that may follow the last one contains a message as new
//! as it. The search moves the oldest head aside until the pivot itself is the oldest. The
//! smallest interval wins, where a later end counts with a penalty. It ends before that,
//! when no message that may still come could make a smaller one.

use std::collections::VecDeque;

use super::{LateRun, MessageSets, SyncPolicy};

/// Weight of a later end against a later start, as in rclcpp.
const AGE_PENALTY: f64 = 0.1;

/// Joins the best fitting messages (`ApproximateTime` of rclcpp).
///
/// Each message is in one set at most, and sets do not cross: time never goes back in the
/// output. A set waits until it is clear that no better one can come, mostly for the next
/// message of an input; [`ApproximateTime::min_period`] shortens that. A message older than
/// an earlier one of its input is late and is dropped.
#[derive(Debug)]
pub struct ApproximateTime<M> {
    inputs: Vec<Input<M>>,
    queue_size: usize,
    age_penalty: f64,
    interval_max: i64,
    search: Option<Search>,
}

#[derive(Debug)]
struct Input<M> {
    /// Heads and what follows.
    queue: VecDeque<Entry<M>>,
    /// What the search has moved aside, the candidate's message first.
    aside: VecDeque<Entry<M>>,
    /// The queue was full, so that a better message may have been dropped.
    has_dropped: bool,
    period_min: i64,
    last: Option<i64>,
    late: LateRun,
}

#[derive(Debug)]
struct Entry<M> {
    stamp: i64,
    message: M,
}

/// The search for the best set of a pivot. The candidate has the first message of each
/// input, those aside counted.
#[derive(Clone, Copy, Debug)]
struct Search {
    start: i64,
    end: i64,
    pivot: usize,
    pivot_stamp: i64,
}

/// Oldest and newest head.
#[derive(Clone, Copy, Debug)]
struct Heads {
    start: i64,
    start_input: usize,
    end: i64,
    end_input: usize,
}

impl Heads {
    /// Among equal stamps the first input is the oldest, and the last one the newest.
    fn of(stamps: impl Iterator<Item = i64>) -> Option<Self> {
        let mut heads: Option<Self> = None;
        for (input, stamp) in stamps.enumerate() {
            let heads = heads.get_or_insert(Self {
                start: stamp,
                start_input: input,
                end: stamp,
                end_input: input,
            });
            if stamp < heads.start {
                (heads.start, heads.start_input) = (stamp, input);
            }
            if stamp >= heads.end {
                (heads.end, heads.end_input) = (stamp, input);
            }
        }
        heads
    }
}

impl<M> Input<M> {
    fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            aside: VecDeque::new(),
            has_dropped: false,
            period_min: 0,
            last: None,
            late: LateRun::default(),
        }
    }

    fn move_head_aside(&mut self) {
        self.aside.extend(self.queue.pop_front());
    }

    fn bring_back(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(entry) = self.aside.pop_back() {
                self.queue.push_front(entry);
            }
        }
    }

    fn bring_all_back(&mut self) {
        self.bring_back(self.aside.len());
    }

    /// The oldest stamp that the next head can have.
    fn next_stamp(&self, pivot_stamp: i64) -> i64 {
        match (self.queue.front(), self.aside.back()) {
            (Some(head), _) => head.stamp,
            (None, Some(last)) => last.stamp.saturating_add(self.period_min).max(pivot_stamp),
            (None, None) => pivot_stamp,
        }
    }
}

impl<M> ApproximateTime<M> {
    /// A synchronizer of that many inputs. Each keeps up to `queue_size` messages, at
    /// least one; two or more make sense.
    pub fn new(inputs: usize, queue_size: usize) -> Self {
        Self {
            inputs: (0..inputs).map(|_| Input::new()).collect(),
            queue_size: queue_size.max(1),
            age_penalty: AGE_PENALTY,
            interval_max: i64::MAX,
            search: None,
        }
    }

    /// Weight of a later end against a later start; 0.1 unless set. The larger it is, the
    /// more often the earlier of two sets wins. Negative numbers count as 0.
    pub fn age_penalty(mut self, penalty: f64) -> Self {
        self.age_penalty = if penalty > 0.0 { penalty } else { 0.0 };
        self
    }

    /// The longest interval of a set in nanoseconds; any unless set.
    pub fn max_interval(mut self, nanos: i64) -> Self {
        self.interval_max = nanos.max(0);
        self
    }

    /// The shortest time in nanoseconds between two messages of an input, if that is
    /// known. A set is then passed on earlier.
    pub fn min_period(mut self, input: usize, nanos: i64) -> Self {
        if let Some(input) = self.inputs.get_mut(input) {
            input.period_min = nanos.max(0);
        }
        self
    }

    #[expect(clippy::cast_precision_loss, reason = "compares spans")]
    fn weighs_as_much(&self, later_end: i64, later_start: i64) -> bool {
        later_end as f64 * (1.0 + self.age_penalty) >= later_start as f64
    }

    fn has_all_heads(&self) -> bool {
        self.inputs.iter().all(|input| !input.queue.is_empty())
    }

    /// Stamps of the heads, or those that they can have at the earliest.
    fn heads(&self, pivot_stamp: i64) -> Option<Heads> {
        Heads::of(
            self.inputs
                .iter()
                .map(|input| input.next_stamp(pivot_stamp)),
        )
    }

    fn process(&mut self) -> MessageSets<M> {
        let mut sets = Vec::new();
        while self.has_all_heads() {
            let Some(heads) = self.heads(i64::MIN) else {
                break;
            };
            for (index, input) in self.inputs.iter_mut().enumerate() {
                // A dropped message could not have been better than a head that is older
                // than the newest.
                input.has_dropped &= index == heads.end_input;
            }
            let Some(search) = self.step(heads) else {
                continue;
            };
            let is_exhausted = heads.start_input == search.pivot;
            let span = search.pivot_stamp.saturating_sub(search.start);
            let later_end = heads.end.saturating_sub(search.end);
            if is_exhausted
                || self.weighs_as_much(later_end, span)
                || (!self.has_all_heads() && self.is_best(search))
            {
                sets.push(self.take_candidate());
            }
        }
        sets
    }

    /// Looks at the set of all heads and moves the oldest one. Returns the search, if
    /// there is a candidate.
    fn step(&mut self, heads: Heads) -> Option<Search> {
        let is_better = match self.search {
            Some(search) => !self.weighs_as_much(
                heads.end.saturating_sub(search.end),
                heads.start.saturating_sub(search.start),
            ),
            None => {
                let is_wide = heads.end.saturating_sub(heads.start) > self.interval_max;
                if is_wide || self.inputs[heads.end_input].has_dropped {
                    self.inputs[heads.start_input].queue.pop_front();
                    return None;
                }
                true
            }
        };
        if is_better {
            self.inputs.iter_mut().for_each(|input| input.aside.clear());
            let (pivot, pivot_stamp) = match self.search {
                Some(search) => (search.pivot, search.pivot_stamp),
                None => (heads.end_input, heads.end),
            };
            self.search = Some(Search {
                start: heads.start,
                end: heads.end,
                pivot,
                pivot_stamp,
            });
        }
        self.inputs[heads.start_input].move_head_aside();
        self.search
    }

    /// Whether no message that may still come makes a better set. Plays on with the
    /// earliest stamps that are possible.
    fn is_best(&mut self, search: Search) -> bool {
        let mut moved = vec![0; self.inputs.len()];
        let span = search.pivot_stamp.saturating_sub(search.start);
        let is_best = loop {
            let Some(heads) = self.heads(search.pivot_stamp) else {
                break false;
            };
            let later_end = heads.end.saturating_sub(search.end);
            if self.weighs_as_much(later_end, span) {
                break true;
            }
            let later_start = heads.start.saturating_sub(search.start);
            let is_worse = self.weighs_as_much(later_end, later_start);
            let oldest = &mut self.inputs[heads.start_input];
            if !is_worse || oldest.queue.is_empty() {
                break false;
            }
            oldest.move_head_aside();
            moved[heads.start_input] += 1;
        };
        for (input, count) in self.inputs.iter_mut().zip(moved) {
            input.bring_back(count);
        }
        is_best
    }

    fn take_candidate(&mut self) -> Vec<M> {
        self.search = None;
        let first = self.inputs.iter_mut().filter_map(|input| {
            input.bring_all_back();
            input.queue.pop_front()
        });
        first.map(|entry| entry.message).collect()
    }

    /// Drops the oldest message of an input, and the search with it.
    fn drop_oldest(&mut self, input: usize) -> MessageSets<M> {
        self.inputs.iter_mut().for_each(Input::bring_all_back);
        self.inputs[input].queue.pop_front();
        self.inputs[input].has_dropped = true;
        if self.search.take().is_some() {
            return self.process();
        }
        Vec::new()
    }
}

impl<M: Send> SyncPolicy<M> for ApproximateTime<M> {
    fn add(&mut self, input: usize, stamp: i64, message: M) -> MessageSets<M> {
        let queue_size = self.queue_size;
        let Some(of_input) = self.inputs.get_mut(input) else {
            return Vec::new();
        };
        if of_input.last.is_some_and(|last| stamp < last) {
            if !of_input.late.has_time_gone_back(queue_size) {
                return Vec::new();
            }
            self.clear();
        }
        let of_input = &mut self.inputs[input];
        of_input.late.end();
        of_input.last = Some(stamp);
        of_input.queue.push_back(Entry { stamp, message });
        let mut sets = if of_input.queue.len() == 1 {
            self.process()
        } else {
            Vec::new()
        };
        let of_input = &self.inputs[input];
        if of_input.queue.len() + of_input.aside.len() > queue_size {
            sets.extend(self.drop_oldest(input));
        }
        sets
    }

    fn visit(&self, visit: &mut dyn FnMut(&M)) {
        for input in &self.inputs {
            let entries = input.aside.iter().chain(&input.queue);
            entries.for_each(|entry| visit(&entry.message));
        }
    }

    fn clear(&mut self) {
        self.search = None;
        for input in &mut self.inputs {
            let period_min = input.period_min;
            *input = Input::new();
            input.period_min = period_min;
        }
    }
}

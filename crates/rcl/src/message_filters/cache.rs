//! Cache: the last messages of an input, by time.

use std::collections::VecDeque;

use super::LateRun;
use super::chain::MessageFilter;

/// The last messages of an input, ordered by stamp. A full cache drops its oldest message.
#[derive(Debug)]
pub struct Cache<M> {
    messages: VecDeque<(i64, M)>,
    size_max: usize,
    late: LateRun,
}

impl<M> Cache<M> {
    /// A cache of up to `size_max` messages, at least one.
    pub fn new(size_max: usize) -> Self {
        Self {
            messages: VecDeque::new(),
            size_max: size_max.max(1),
            late: LateRun::default(),
        }
    }

    /// Adds a message behind those of the same stamp. One that is older than all of a full
    /// cache is late and is dropped. When more in a row than the cache holds are older than
    /// the newest, what is newer than the last one is dropped.
    pub fn add(&mut self, stamp: i64, message: M) {
        let index = self.messages.partition_point(|(each, _)| *each <= stamp);
        if index == self.messages.len() {
            self.late.end();
        } else if self.late.has_time_gone_back(self.size_max) {
            self.messages.truncate(index);
            self.late.end();
        } else if index == 0 && self.messages.len() >= self.size_max {
            return;
        }
        self.messages.insert(index, (stamp, message));
        if self.messages.len() > self.size_max {
            self.messages.pop_front();
        }
    }

    /// The messages of a span of time with both ends, the oldest first.
    pub fn interval(&self, from: i64, to: i64) -> impl Iterator<Item = &M> {
        let messages = self.messages.iter();
        let messages = messages.filter(move |(stamp, _)| (from..=to).contains(stamp));
        messages.map(|(_, message)| message)
    }

    /// The last message at a time or before.
    pub fn before(&self, time: i64) -> Option<&M> {
        let count = self.messages.partition_point(|(stamp, _)| *stamp <= time);
        let index = count.checked_sub(1)?;
        self.messages.get(index).map(|(_, message)| message)
    }

    /// The first message at a time or after.
    pub fn after(&self, time: i64) -> Option<&M> {
        let index = self.messages.partition_point(|(stamp, _)| *stamp < time);
        self.messages.get(index).map(|(_, message)| message)
    }

    /// All stamps with their messages, the oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = (i64, &M)> {
        let messages = self.messages.iter();
        messages.map(|(stamp, message)| (*stamp, message))
    }

    /// Drops all messages.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.late.end();
    }
}

/// Passes each message on.
impl<M: Clone + Send> MessageFilter<M> for Cache<M> {
    fn pass(&mut self, stamp: i64, message: M) -> Vec<(i64, M)> {
        self.add(stamp, message.clone());
        vec![(stamp, message)]
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

//! Exact time: sets of messages with equal stamps.

use super::stamp_queue::{StampQueue, admit_into};
use super::{MessageSets, SyncPolicy};

/// Joins messages whose stamps are equal (`ExactTime` of rclcpp, `TimeSynchronizer`).
///
/// Messages that are older than a set are dropped with it: time goes back in the output
/// only if all inputs send older messages again. Of two messages with one stamp the later
/// one counts.
#[derive(Debug)]
pub struct ExactTime<M> {
    queues: Vec<StampQueue<M>>,
}

impl<M> ExactTime<M> {
    /// A synchronizer of that many inputs. Each keeps up to `queue_size` messages, at
    /// least one.
    pub fn new(inputs: usize, queue_size: usize) -> Self {
        Self {
            queues: StampQueue::of_inputs(inputs, queue_size),
        }
    }
}

impl<M: Send> SyncPolicy<M> for ExactTime<M> {
    fn add(&mut self, input: usize, stamp: i64, message: M) -> MessageSets<M> {
        if !admit_into(&mut self.queues, input, stamp, message)
            || !self.queues.iter().all(|queue| queue.contains(stamp))
        {
            return Vec::new();
        }
        let set = self.queues.iter_mut().filter_map(|queue| {
            queue.drop_before(stamp);
            queue.remove(stamp)
        });
        vec![set.collect()]
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

//! Flow controllers of a context: each with its queue of asynchronous writers, and the
//! timeout that resumes it.
//!
//! Publishing threads queue writers, and the driver takes them. It never locks a writer
//! and never sends.

use std::sync::Arc;

use pteros_rtps::id::EntityId;
use pteros_rtps::time::Instant;

use super::flow_controller::{FlowController, FlowMembership, FlowState};
use crate::lock::{Mutex, rank};
use crate::scheduler::Scheduler;
use crate::scheduler::timeout_queue::TimeoutOwner;

/// In the order of the options.
pub(crate) struct FlowControllers {
    queues: Vec<Mutex<FlowState, rank::FlowController>>,
    scheduler: Arc<Scheduler>,
}

impl FlowControllers {
    pub(crate) fn new(options: &[FlowController], scheduler: Arc<Scheduler>) -> Self {
        let queue = |controller| Mutex::new(FlowState::new(controller));
        Self {
            queues: options.iter().map(queue).collect(),
            scheduler,
        }
    }

    /// Queues a writer that has something to send.
    pub(crate) fn enqueue(&self, now: Instant, membership: &FlowMembership) {
        if let Some(queue) = self.queues.get(membership.controller) {
            let mut flow = queue.lock();
            flow.enqueue(membership);
            self.schedule(now, membership.controller, &flow);
        }
    }

    /// Takes the writer that may send one datagram now.
    pub(crate) fn next(&self, now: Instant, controller: usize) -> Option<EntityId> {
        self.queues.get(controller)?.lock().next(now)
    }

    /// Subtracts what a writer has sent, and queues it again if it has more.
    pub(crate) fn note_sent(&self, membership: &FlowMembership, bytes: u64, has_more: bool) {
        if let Some(queue) = self.queues.get(membership.controller) {
            let mut flow = queue.lock();
            flow.charge(membership, bytes);
            if has_more {
                flow.enqueue(membership);
            }
        }
    }

    /// Removes a writer.
    pub(crate) fn remove(&self, controller: usize, writer: EntityId) {
        if let Some(queue) = self.queues.get(controller) {
            queue.lock().remove(writer);
        }
    }

    /// Schedules the next run, no earlier than `from`.
    pub(crate) fn resume_at(&self, from: Instant, controller: usize) {
        if let Some(queue) = self.queues.get(controller) {
            self.schedule(from, controller, &queue.lock());
        }
    }

    /// Under the queue's lock: a later timeout must not be overwritten.
    fn schedule(&self, now: Instant, controller: usize, flow: &FlowState) {
        self.scheduler.schedule(
            TimeoutOwner::FlowController(controller),
            flow.next_send_at(now),
        );
    }
}

//! Event callbacks: DDS status changes of an endpoint (matched, deadline,
//! liveliness, QoS).

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::event::EndpointEvents;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::ready_queue::Task;

use crate::executor_queue::ExecutorQueue;
use crate::node::CallbackGroupCore;

pub use pteros_runtime::event::EndpointEvent;
pub use pteros_runtime::rtps::qos::PolicyId;

/// Callback for each event.
pub(crate) type EventCallback = Box<dyn FnMut(&EndpointEvent) + Send>;

/// Task that passes the events of an endpoint to its callback, one per run.
pub(crate) struct EventTask {
    events: Arc<EndpointEvents>,
    callback: Mutex<EventCallback>,
    callback_group: Arc<CallbackGroupCore>,
    /// Description of the entity.
    entity: String,
}

impl EventTask {
    pub(crate) fn new(
        events: &Arc<EndpointEvents>,
        callback: EventCallback,
        callback_group: &Arc<CallbackGroupCore>,
        entity: String,
    ) -> Arc<Self> {
        let task = Arc::new(Self {
            events: events.clone(),
            callback: Mutex::new(callback),
            callback_group: callback_group.clone(),
            entity,
        });
        let weak: Weak<Self> = Arc::downgrade(&task);
        events.slot.set_task(weak);
        task
    }

    /// Moves to the executor that spins the group now, or to none.
    pub(crate) fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        let queue = executor_queue.map(|executor_queue| executor_queue.ready.clone());
        self.events.slot.attach(queue, || !self.events.is_empty());
    }
}

impl Task for EventTask {
    fn run(&self) {
        self.events.slot.begin_take();
        // Locked if the callback itself spins, or still runs on the node's previous
        // executor. The holder checks for more work afterwards.
        let Some(mut callback) = self.callback.try_lock() else {
            return;
        };
        if let Some(event) = self.events.take() {
            callback(&event);
        }
        drop(callback);
        if !self.events.is_empty() {
            self.events.slot.mark_ready();
        }
    }

    fn gate(&self) -> Option<&MutualExclusionGate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        format!("event callback of {}", self.entity)
    }
}

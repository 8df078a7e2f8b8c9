//! The callback for what happens to an endpoint besides data.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_rmw::event::{EndpointEvent, Events};
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::ready::Task;

use crate::callback_group::GroupCore;
use crate::executor::Home;

/// What is called for each event.
pub(crate) type EventCallback = Box<dyn FnMut(&EndpointEvent) + Send>;

/// Hands an endpoint's events to its callback, one per run.
pub(crate) struct EventTask {
    events: Arc<Events>,
    callback: Mutex<EventCallback>,
    callback_group: Arc<GroupCore>,
    /// Of which entity.
    what: String,
}

impl EventTask {
    pub(crate) fn new(
        events: &Arc<Events>,
        callback: EventCallback,
        callback_group: &Arc<GroupCore>,
        what: String,
    ) -> Arc<Self> {
        let task = Arc::new(Self {
            events: events.clone(),
            callback: Mutex::new(callback),
            callback_group: callback_group.clone(),
            what,
        });
        let weak: Weak<Self> = Arc::downgrade(&task);
        events.slot.set_task(weak);
        task
    }

    /// Moves to the executor that spins the node now, or to none.
    pub(crate) fn attach(&self, home: Option<&Arc<Home>>) {
        let queue = home.map(|home| home.queue.clone());
        self.events.slot.attach(queue, || !self.events.is_empty());
    }
}

impl Task for EventTask {
    fn run(&self) {
        self.events.slot.taken();
        // Locked when the callback itself spins, or runs on the executor that
        // had the node before: whoever holds it looks for more afterwards.
        let Some(mut callback) = self.callback.try_lock() else {
            return;
        };
        if let Some(event) = self.events.take() {
            callback(&event);
        }
        drop(callback);
        if !self.events.is_empty() {
            self.events.slot.ready();
        }
    }

    fn gate(&self) -> Option<&Gate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        format!("event callback of {}", self.what)
    }
}

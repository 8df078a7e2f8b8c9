//! One side of a bridge: context, queue of its thread, and nodes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_runtime::Core;
use pteros_runtime::event::EndpointEvents;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::ready_queue::{ReadyQueue, Task};

use crate::bridge_path::BridgePath;

/// See the module documentation. Thread-safe.
pub struct Network {
    /// Context of this side.
    pub core: Arc<Core>,
    /// Tasks of this side's thread.
    pub queue: Arc<ReadyQueue>,
    nodes: Mutex<BTreeMap<BridgePath, Node>>,
}

struct Node {
    key: NodeKey,
    endpoints: usize,
}

impl Network {
    /// Creates the side of a context.
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            queue: core.ready_queue(),
            nodes: Mutex::default(),
            core,
        }
    }

    /// Announces an endpoint with the node of a path.
    pub fn attach(&self, path: &BridgePath, endpoint: &Arc<EndpointData>) {
        let mut nodes = self.nodes.lock();
        let node = nodes.entry(path.clone()).or_insert_with(|| Node {
            key: self.core.discovery().add_node(&path.node_name(), "/"),
            endpoints: 0,
        });
        node.endpoints += 1;
        let key = node.key;
        drop(nodes);
        self.core.discovery().attach_endpoint(key, endpoint);
    }

    /// Removes an endpoint from its node, and removes a node without endpoints.
    pub fn detach(&self, path: &BridgePath, endpoint: Guid) {
        let mut nodes = self.nodes.lock();
        let Some(node) = nodes.get_mut(path) else {
            return;
        };
        node.endpoints = node.endpoints.saturating_sub(1);
        let (key, is_empty) = (node.key, node.endpoints == 0);
        if is_empty {
            nodes.remove(path);
        }
        drop(nodes);
        self.core.discovery().detach_endpoint(key, endpoint);
        if is_empty {
            self.core.discovery().remove_node(key);
        }
    }

    /// Announces the bridge itself. Its node exists also without endpoints.
    pub fn announce(&self, own: &BridgePath) {
        let key = self.core.discovery().add_node(&own.node_name(), "/");
        let node = Node { key, endpoints: 1 };
        self.nodes.lock().insert(own.clone(), node);
    }

    /// Withdraws the bridge itself.
    pub fn withdraw(&self, own: &BridgePath) {
        if let Some(node) = self.nodes.lock().remove(own) {
            self.core.discovery().remove_node(node.key);
        }
    }
}

/// Flag: endpoints of the bridge have gained or lost matches.
#[derive(Default)]
pub struct Changed(AtomicBool);

impl Changed {
    /// Raises the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns and clears the flag.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

/// Task of an endpoint whose matches the bridge follows. It drains the events.
pub struct MatchWatch {
    events: Arc<EndpointEvents>,
    changed: Arc<Changed>,
}

impl MatchWatch {
    /// Watches an endpoint on its side's thread, as long as the value exists.
    pub fn new(
        network: &Network,
        events: &Arc<EndpointEvents>,
        changed: &Arc<Changed>,
    ) -> Arc<Self> {
        let watch = Arc::new(Self {
            events: events.clone(),
            changed: changed.clone(),
        });
        let task: Weak<Self> = Arc::downgrade(&watch);
        events.slot.set_task(task);
        let is_pending = || !events.is_empty();
        events.slot.attach(Some(network.queue.clone()), is_pending);
        watch
    }
}

impl Task for MatchWatch {
    fn run(&self) {
        self.events.slot.begin_take();
        while self.events.take().is_some() {}
        self.changed.set();
    }
}

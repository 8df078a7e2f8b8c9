//! Nodes of a topology as components. All nodes of one container form one process
//! of the run. Its parent controls it through standard input and output, as it does
//! a worker.

use std::fs;

use parking_lot::Mutex;
use pteros::component::{Component, ComponentError};
use pteros::lifecycle::LifecycleNode;
use pteros::prelude::*;
use pteros_lab::topology::{HostedProcess, activate, library};

/// The process of the run, until its last node is loaded.
static HOSTED: Mutex<Option<HostedProcess>> = Mutex::new(None);

/// A node of a topology on the container's executor.
///
/// Parameters: `task`, the file with the process's task; `index`, the node's number
/// in it. After the last node the process waits for discovery, and follows its
/// parent.
pub struct TopologyNode(Node);

impl Component for TopologyNode {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("topology_node"))?;
        add_node_entities(context, &node)?;
        Ok(Self(node))
    }

    fn node(&self) -> &Node {
        &self.0
    }
}

/// The same as a lifecycle node, active from the beginning.
pub struct ManagedTopologyNode(LifecycleNode);

impl Component for ManagedTopologyNode {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let managed = LifecycleNode::new(context, options.name("topology_node"), ())?;
        activate(&managed).map_err(|e| format!("{e:#}"))?;
        add_node_entities(context, managed.node())?;
        Ok(Self(managed))
    }

    fn node(&self) -> &Node {
        self.0.node()
    }
}

/// Creates the endpoints of the node. The last node starts the run.
fn add_node_entities(context: &Context, node: &Node) -> Result<(), ComponentError> {
    let task = node.declare_parameter("task", String::new())?.value();
    let index = node.declare_parameter("index", 0_i64)?.value();
    let index = usize::try_from(index).map_err(|_| format!("index = {index}: from 0 on"))?;
    let mut slot = HOSTED.lock();
    let mut hosted = match slot.take() {
        Some(hosted) => hosted,
        None => {
            let text = fs::read_to_string(&task).map_err(|e| format!("task {task}: {e}"))?;
            HostedProcess::read(&text, library()).map_err(|e| format!("{e:#}"))?
        }
    };
    hosted
        .add_node_entities(node, index)
        .map_err(|e| format!("{e:#}"))?;
    if !hosted.is_complete() {
        *slot = Some(hosted);
        return Ok(());
    }
    let own = context.clone();
    let run = move || {
        if let Err(error) = hosted.run_to_end(&own) {
            eprintln!("{error:#}");
            own.shutdown();
        }
    };
    Ok(context.spawn_thread("conductor", run)?)
}

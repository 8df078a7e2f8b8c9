//! A node of a topology. All that one container has loaded are one process of the run,
//! whose parent talks with it as with the worker: over standard input and output.

use std::fs;

use parking_lot::Mutex;
use pteros::LifecycleNode;
use pteros::component::{Component, ComponentError};
use pteros::prelude::*;
use pteros_lab::topology::{Hosted, activate, library};

/// The process's part of the run until its last node is there.
static HOSTED: Mutex<Option<Hosted>> = Mutex::new(None);

/// One node of a process of a topology, on the container's executor. Parameters:
/// `task`, the file that says what this process is; `index`, the node's number in it. With
/// the last of them the process meets its peers, and does what its parent says.
pub struct TopologyNode(Node);

impl Component for TopologyNode {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.node_with(options.name("topology_node"))?;
        adopt(context, &node)?;
        Ok(Self(node))
    }

    fn node(&self) -> &Node {
        &self.0
    }
}

/// The same as a managed node, active from the beginning.
pub struct ManagedTopologyNode(LifecycleNode);

impl Component for ManagedTopologyNode {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let managed = LifecycleNode::new(context, options.name("topology_node"), ())?;
        activate(&managed).map_err(|e| format!("{e:#}"))?;
        adopt(context, managed.node())?;
        Ok(Self(managed))
    }

    fn node(&self) -> &Node {
        self.0.node()
    }
}

/// Makes what the task says on the node; the last one begins the run.
fn adopt(context: &Context, node: &Node) -> Result<(), ComponentError> {
    let task = node.declare_parameter("task", String::new())?.value();
    let index = node.declare_parameter("index", 0_i64)?.value();
    let index = usize::try_from(index).map_err(|_| format!("index = {index}: from 0 on"))?;
    let mut place = HOSTED.lock();
    let mut hosted = match place.take() {
        Some(hosted) => hosted,
        None => {
            let text = fs::read_to_string(&task).map_err(|e| format!("task {task}: {e}"))?;
            Hosted::read(&text, library()).map_err(|e| format!("{e:#}"))?
        }
    };
    hosted.adopt(node, index).map_err(|e| format!("{e:#}"))?;
    if !hosted.is_whole() {
        *place = Some(hosted);
        return Ok(());
    }
    let own = context.clone();
    let conduct = move || {
        if let Err(error) = hosted.conduct(&own) {
            eprintln!("{error:#}");
            own.shutdown();
        }
    };
    Ok(context.spawn_thread("conductor", conduct)?)
}

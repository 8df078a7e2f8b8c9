//! A built-in node that runs.

use std::any::Any;

use pteros::Node;

/// A started node. It leaves the graph when dropped.
#[must_use = "the node leaves the graph when this is dropped"]
pub struct RunningNode {
    node: Node,
    _parts: Box<dyn Any + Send>,
}

impl RunningNode {
    /// A node and what must live as long: its endpoints, timers and callbacks.
    pub(crate) fn new(node: Node, parts: impl Any + Send) -> Self {
        Self {
            node,
            _parts: Box::new(parts),
        }
    }

    /// The node, for an executor to spin.
    pub fn node(&self) -> &Node {
        &self.node
    }
}

//! A built-in node that runs.

use std::any::Any;
use std::error::Error;
use std::fmt;

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

/// A command line that asks for something else than a node. It is an error of the start, but
/// no failure of the program.
pub enum CommandRequest {
    /// To print this usage.
    Usage(String),
    /// To run `pteros view` with these arguments.
    View(Vec<String>),
}

impl fmt::Display for CommandRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(usage) => f.write_str(usage),
            Self::View(words) => write!(f, "pteros view {}", words.join(" ")),
        }
    }
}

pteros::msg::debug_as_display!(CommandRequest);

impl Error for CommandRequest {}

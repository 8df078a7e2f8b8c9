//! The lab's nodes as components, which `pteros lab run c23` has a container load: the
//! same that its worker composes by hand.
#![deny(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "a process of a run waits for its parent on a thread of its own"
)]

mod crowd;
mod topology;

// Shares Pteros with the container instead of bringing a copy along.
use pteros_dylib as _;

pub use crowd::CrowdNode;
pub use topology::{ManagedTopologyNode, TopologyNode};

pteros::register_components!(CrowdNode, TopologyNode, ManagedTopologyNode);

//! The lab's nodes as components. `pteros lab run c23` loads them into a component
//! container; its worker composes the same nodes without one.
#![deny(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "a thread of the process waits for its parent"
)]

mod scale_test;
mod topology;

// Shares the Pteros library with the container instead of linking a copy.
use pteros_dylib as _;

pub use scale_test::ScaleTestNode;
pub use topology::{ManagedTopologyNode, TopologyNode};

pteros::register_components!(ScaleTestNode, TopologyNode, ManagedTopologyNode);

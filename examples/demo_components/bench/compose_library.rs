//! The benchmark nodes as a component library.
#![allow(missing_docs, reason = "a library of the benchmark")]

mod nodes;

use nodes::{Bare, Empty, GraphNode};
use pteros_dylib as _;

pteros::register_components!(Empty, Bare, GraphNode);

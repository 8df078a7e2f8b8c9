//! The worlds that the harness runs: graphs of endpoints and services, whole nodes,
//! and scenarios.

pub mod graph;
mod message_type;
pub mod nodes;
pub mod scenario;

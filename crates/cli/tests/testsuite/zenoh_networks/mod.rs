//! The command with Zenoh on several hosts, as network namespaces: networks that only
//! routers join, a NAT, a link with loss and delay, links that are cut,
//! and the bridge. The processes are those that users run, in both directions.
//!
//! Where namespaces do not work, each test is skipped with a sentence.
#![allow(clippy::disallowed_methods, reason = "real processes")]

mod bridge;
mod certificates;
mod cut;
mod host;
mod hundred_nodes;
mod lossy;
mod nat;
mod parts;
mod reports;
mod routed;
mod stopped;

//! The Zenoh transport between contexts, with a router in the middle, and with peers that
//! are not of Pteros.
//!
//! Every test has a router at a port of its own and a domain of its own.
#![allow(clippy::disallowed_methods, reason = "real sessions")]

mod access;
mod actions;
mod both_transports;
mod bridge;
mod forged;
mod graph;
mod harness;
mod password;
mod peers;
mod proxy;
mod reconnection;
mod rendezvous;
mod router_kills;
mod rust_peers;
mod services;
mod slow_link;
mod tls;
mod topics;

//! View: a ROS 2 graph in a browser. One TCP port serves a web page and the Foxglove
//! WebSocket protocol, which Foxglove, Lichtblick and the page speak.
//!
//! [`View::start`] opens the port. The caller spins the node, whose executor runs the
//! subscriptions' callbacks. Nothing is subscribed to, and the graph is not read, while no
//! viewer is connected. Messages are passed on as they arrived: nothing is decoded.
//! `docs/internals/view.md` describes the requests and the protocol.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "a leaf with threads for sockets, deadlines of requests and a random token"
)]

mod assets;
mod channel;
mod client;
mod connection;
mod connection_graph;
mod error;
mod feed;
mod graph_snapshot;
mod graph_watch;
mod http;
mod incoming;
mod options;
mod outbox;
mod page;
mod parameter_updates;
mod parameters;
mod protocol;
mod publishing;
mod requests;
mod rviz;
mod server;
mod service_calls;
mod services;
mod statistics;
mod token;
mod view;
mod wanted_parameters;

pub use error::ViewError;
pub use options::{Allowed, NameFilter, PackageFinder, ViewOptions};
pub use view::{View, ViewCounts};

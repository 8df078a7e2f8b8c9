//! Where protocol, sockets, clock and threads meet, type-erased.
//!
//! Above it users see nodes and messages (`pteros`); below it the protocol is
//! a value (`pteros-rtps`) and sockets are plain (`pteros-net`). A [`Core`] is
//! one RTPS participant: it moves datagrams to machines and samples to ready
//! queues. It knows no message type and runs no user code.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod as_bytes;
mod aside;
mod backlog;
mod bound;
mod changeable;
mod coherent;
pub mod config;
pub mod content_filter;
mod core;
mod deadline;
mod departure;
mod dispatch;
mod driver;
mod durable;
pub mod env;
pub mod error;
pub mod event;
pub mod flow;
pub mod foreign;
pub mod gate;
pub mod graph;
mod helper;
pub mod instance;
mod intake;
mod latch;
mod lending;
pub mod limits;
mod linking;
pub mod links;
mod local;
mod matching;
mod memory;
mod mismatch;
pub mod names;
mod neighbours;
mod originals;
mod ownership;
mod pacing;
mod publish;
pub mod publisher_group;
pub mod qos;
pub mod reader;
pub mod ready;
mod room;
pub mod sample;
mod security;
mod separation;
pub mod service;
pub mod shared_memory;
mod source_order;
pub mod spin;
pub mod subscription_group;
pub mod trace;
mod type_objects;
pub mod udp;
mod volley;
mod waiters;
mod waiting;
mod warm;
pub mod writer;

pub use crate::core::{Core, CoreCounts, CoreOptions};
pub use crate::driver::DriverState;
pub use crate::durable::StoreOptions;
pub use crate::limits::Limits;
pub use crate::linking::PeerPath;
pub use crate::matching::EndpointSpec;
pub use crate::security::SecurityOptions;
pub use crate::shared_memory::SharedMemoryOptions;
pub use pteros_net::thread;
pub use pteros_rtps as rtps;
pub use pteros_store as store;

//! The runtime of a context: sockets, threads, clocks and the protocol, with
//! messages type-erased.
//!
//! It is the layer between `pteros` (nodes and messages), the sans-IO crates
//! `pteros-dcps` (history caches, QoS) and `pteros-rtps` (protocol), and `pteros-net`
//! (sockets). A [`Core`] is one RTPS participant. It passes datagrams to protocol
//! machines and samples to ready queues. It knows no message type and runs no user code.
//!
//! Modules: `core` connects the parts: publishing (`core/publish`), receiving
//! (`core/dispatch`), driving (`core/driver`) and matching. The parts are `endpoints`
//! (readers, writers, tables), `send` (from outboxes to sockets), `scheduler` (timeouts,
//! wake-ups, the background I/O thread), `same_host`, `security`, `graph` and `trace`.
//! `transport` is the interface to transports beside RTPS. `lock` defines the order of the locks.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(feature = "security"),
    allow(
        dead_code,
        unreachable_code,
        reason = "what only `security` uses or makes"
    )
)]

pub mod config;
mod config_error;
mod core;
mod endpoints;
pub mod error;
pub mod graph;
mod interfaces;
mod ip_versions;
pub mod lock;
mod log_limiter;
mod node_key;
mod node_list;
pub mod outbound;
pub mod platform;
mod same_host;
mod scheduler;
#[cfg(feature = "security")]
mod security;
#[cfg(not(feature = "security"))]
#[path = "security/disabled.rs"]
mod security;
pub mod security_settings;
mod send;
pub mod service;
pub mod shared_memory;
mod shm_connections;
pub mod shm_transport;
pub mod static_peers;
mod thread_buffer;
pub mod trace;
pub mod transport;
pub mod udp;
mod zenoh_settings;

pub use crate::core::driver::DriverState;
pub use crate::core::external_event_loop;
pub use crate::core::matching::EndpointSpec;
pub use crate::core::peers::{DiscoveryServerStatus, SilentParticipant};
pub use crate::core::publish_path::PublishPath;
pub use crate::core::table_fill::TableUse;
pub use crate::core::take_path::TakePath;
pub use crate::core::{Core, CoreCounts, CoreOptions, TRANSPORTS_MAX};
pub use crate::endpoints::durable_store::StoreOptions;
pub use crate::endpoints::{
    content_filter, event, publisher_group, reader, subscription_group, writer,
};
pub use crate::limits::Limits;
pub use crate::scheduler::{busy_poll, mutual_exclusion, ready_queue};
pub use crate::security::SecurityOptions;
pub use crate::send::flow_controller;
pub use crate::shared_memory::SharedMemoryOptions;
pub use crate::shm_connections::PeerDelivery;
pub use pteros_dcps::{instance, limits, names, printable, qos, sample, user_data};
pub use pteros_net::thread;
pub use pteros_rtps as rtps;
pub use pteros_rtps::participant::{MemoryHolder, ReceiveMemoryUse};
pub use pteros_store as store;

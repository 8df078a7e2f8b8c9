//! The runtime of a context: sockets, threads, clocks and the protocol, with
//! messages type-erased.
//!
//! It sits between `pteros` (nodes and messages), the sans-IO crates `pteros-dcps`
//! (history caches, QoS) and `pteros-rtps` (protocol), and `pteros-net` (sockets). A [`Core`] is one RTPS participant.
//! It moves datagrams to protocol machines and samples to ready queues. It knows no
//! message type and runs no user code.
//!
//! Where to look: send path `publish` and `segmented_send` (GSO); receive path
//! `dispatch`, `reader` and `intra_process`; threads `driver` and
//! `background_io`; shared memory `shm_transport` and `shm_connections`; discovery
//! results `matching` and `same_host_peers`; security `security`.
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

mod back_pressure;
mod background_io;
mod bound_port_probe;
pub mod busy_poll;
mod changeable_qos;
mod coherent_delivery;
pub mod config;
mod config_error;
pub mod content_filter;
mod core;
mod deferred_send;
mod dispatch;
mod driver;
mod durable_store;
pub mod error;
pub mod event;
pub mod external_event_loop;
mod flow_controlled_send;
pub mod flow_controller;
pub mod graph;
mod instance_end;
mod intra_process;
mod linger;
mod loan;
pub mod lock;
mod matching;
mod memory_bound;
mod mismatch;
pub mod mutual_exclusion;
pub mod platform;
mod prefault;
mod publish;
pub mod publisher_group;
pub mod reader;
mod reader_queue_stats;
pub mod ready_queue;
mod same_host_peers;
#[cfg(feature = "security")]
mod security;
#[cfg(not(feature = "security"))]
#[path = "security/disabled.rs"]
mod security;
pub mod security_settings;
mod segmented_send;
mod serialize_only;
pub mod service;
pub mod shared_memory;
mod shm_connections;
pub mod shm_transport;
pub mod subscription_group;
mod timeout_queue;
pub mod trace;
mod type_objects;
pub mod udp;
mod waiters;
pub mod writer;

pub use crate::core::{Core, CoreCounts, CoreOptions};
pub use crate::driver::DriverState;
pub use crate::durable_store::StoreOptions;
pub use crate::limits::Limits;
pub use crate::matching::EndpointSpec;
pub use crate::security::SecurityOptions;
pub use crate::shared_memory::SharedMemoryOptions;
pub use crate::shm_connections::PeerDelivery;
pub use pteros_dcps::{instance, limits, names, qos, sample, user_data};
pub use pteros_net::thread;
pub use pteros_rtps as rtps;
pub use pteros_store as store;

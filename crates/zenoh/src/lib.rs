//! The Zenoh wire: Pteros contexts speak Zenoh as rmw_zenoh_cpp of ROS 2 does.
//!
//! [`wire`] opens it with a context: `ContextOptions::wires`, instead of RTPS with the
//! discovery range `OFF`, else beside it. The command line `--wire zenoh` or
//! `--wire rtps,zenoh` and the environment `RMW_IMPLEMENTATION=rmw_zenoh_cpp` do so where
//! `pteros` is built with its feature `zenoh`. [`Router`] is a router of Zenoh with the
//! defaults of rmw_zenoh_cpp.
//!
//! Keys, tokens, QoS texts and attachments are pure functions of text (`key`, `token`,
//! `qos_text`, `attachment`). `peers` turns tokens into participants and endpoints;
//! `suppressed_sessions` keeps those of contexts that RTPS reaches, too.
//! `local` has the local ones, `links` declares them on the thread of `declarer`,
//! `readiness` tells when they may be used, `inbox` holds what has arrived, `wire` joins
//! them.
#![forbid(unsafe_code)]

mod attachment;
pub mod bridge;
mod bridge_path;
mod certificate_dates;
mod certificate_watch;
mod declarer;
mod error_text;
mod gid;
mod history_order;
mod inbox;
mod key;
mod links;
mod local;
mod ordered_history;
mod own_access;
mod peers;
mod position;
mod qos_text;
mod readiness;
mod requests;
mod session;
mod session_id;
mod suppressed_sessions;
mod token;
mod undeclared_publishers;
mod unsupported;
mod wire;

use std::sync::Arc;

use pteros_runtime::config::ZenohSettings;
use pteros_runtime::wire::OpenWire;

pub use session::{RENDEZVOUS_PORT, ROUTER_PORT, Router, connected_routers, rtps_reach};

use crate::session_id::SessionId;
use crate::wire::ZenohWire;

/// The name of the wire in messages and on the command line.
pub const NAME: &str = "zenoh";

/// Opens the wire with a context. If RTPS joins the context, too, it has both wires: a
/// peer that both reach is left to RTPS.
///
/// Opening blocks until the session is open, 200 ms if neither a router nor another
/// session is found.
///
/// While Zenoh's transmission queue is full, these calls block for up to 60 s, after
/// which Zenoh closes the connection: requests, replies and samples of a reliable
/// KEEP_ALL publisher. Samples of every other publisher wait 1 ms, large ones in
/// fragments 50 ms, and are then dropped. The first
/// `publish` of a transient-local publisher waits until Zenoh has declared it, at most 2 s:
/// who joins later gets its samples from the history alone. A thread of the wire declares and withdraws
/// nodes and endpoints. A context that closes then blocks for 10 s, after which Zenoh
/// drops the connection. Graph queries are answered from memory.
pub fn wire(settings: ZenohSettings) -> OpenWire {
    OpenWire::new(NAME, move |setup| {
        let id = SessionId::of_context(setup.prefix);
        let opened = session::open_session(&settings, id)?;
        Ok(Arc::new(ZenohWire::new(opened, setup)?))
    })
}

//! The Zenoh transport: Pteros contexts speak Zenoh as rmw_zenoh_cpp of ROS 2 does.
//!
//! [`transport`] opens it with a context (`ContextOptions::transports`). With the discovery range
//! `OFF` it replaces RTPS, otherwise it runs beside it. If `pteros` is built with its
//! feature `zenoh`, the command line `--wire zenoh` or `--wire rtps,zenoh` selects it,
//! and so does the environment variable `RMW_IMPLEMENTATION=rmw_zenoh_cpp`. [`Router`] is
//! a Zenoh router with the defaults of rmw_zenoh_cpp.
//!
//! Keys, tokens, QoS texts and attachments are pure functions of text (`key`, `token`,
//! `qos_text`, `attachment`). `peers` maps tokens to participants and endpoints,
//! `suppressed_sessions` keeps the tokens of contexts that RTPS reaches. `local` holds
//! the local nodes and endpoints, `links` declares them on the thread of `declarer`.
//! `readiness` delays their use until peers know them, `inbox` holds arrivals, `transport`
//! joins all of them.
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
mod transport;
mod undeclared_publishers;
mod unsupported;

use std::sync::Arc;

use pteros_runtime::config::ZenohSettings;
use pteros_runtime::transport::OpenTransport;

pub use session::{RENDEZVOUS_PORT, ROUTER_PORT, Router, connected_routers, rtps_reach};

use crate::session_id::SessionId;
use crate::transport::ZenohTransport;

/// Name of the transport in messages and on the command line.
pub const NAME: &str = "zenoh";

/// Opens the transport with a context. If the context has RTPS, too, RTPS serves the peers
/// that both transports reach.
///
/// Blocks until the session is open: 200 ms if it finds neither a router nor another
/// session.
///
/// While Zenoh's transmission queue is full, three kinds of calls block for up to 60 s:
/// requests, replies, and samples of a reliable KEEP_ALL publisher. After that Zenoh
/// closes the connection. Samples of other publishers wait 1 ms, fragmented ones 50 ms,
/// and are then dropped.
///
/// The first `publish` of a transient-local publisher waits up to 2 s until Zenoh has
/// declared it. Late joiners then get its samples only from the history. A thread of
/// the transport declares nodes and endpoints. Closing a context blocks for up to 10 s while
/// the queue is full, after which Zenoh drops the connection. Graph queries are answered
/// from memory.
pub fn transport(settings: ZenohSettings) -> OpenTransport {
    OpenTransport::new(NAME, move |setup| {
        let id = SessionId::of_context(setup.prefix);
        let opened = session::open_session(&settings, id)?;
        Ok(Arc::new(ZenohTransport::new(opened, setup)?))
    })
}

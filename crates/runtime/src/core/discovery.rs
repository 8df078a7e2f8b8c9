//! Discovery of a context: who is there, and who is matched.
//!
//! It owns the participant with its transports, the endpoint tables, the graph, the
//! peers of this host and security. It applies what they report: matches of local
//! endpoints, and the ends of matches. It serves the writers and readers that a match
//! concerns by the publish path and the take path, which it contains. It never waits
//! and never reads a socket.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::participant::Participant;

use crate::core::publish_path::PublishPath;
use crate::core::security_hooks::SecurityHooks;
use crate::core::socket_report::SocketReport;
use crate::core::take_path::TakePath;
use crate::endpoints::Endpoints;
use crate::endpoints::writer::WriterEndpoint;
use crate::graph::Graph;
use crate::lock::{Mutex, rank};
use crate::platform::{DatagramSockets, Platform};
use crate::same_host::SameHostPeers;
use crate::scheduler::Scheduler;
use crate::shm_connections::ShmConnections;
use crate::trace::Tracer;
use crate::transport::transports::Transports;

/// See the module documentation. Thread-safe.
pub struct Discovery {
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) datagrams: Arc<dyn DatagramSockets>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) prefix: GuidPrefix,
    pub(crate) domain_id: u32,
    pub(crate) sockets: SocketReport,
    /// RTPS, and the transports that were added to it.
    pub(crate) transports: Arc<Transports>,
    pub(crate) endpoints: Endpoints,
    pub(crate) graph: Arc<Graph>,
    /// Announces the local nodes.
    pub(crate) graph_writer: OnceLock<Arc<WriterEndpoint>>,
    pub(crate) same_host: SameHostPeers,
    pub(crate) shm_connections: ShmConnections,
    /// Participants discovered, changed or lost: when checks of sources become invalid.
    pub(crate) peers_changed: AtomicU64,
    /// [`has_refused_writers`](pteros_rtps::participant::endpoints::Endpoints::has_refused_writers).
    pub(crate) refuses_writers: AtomicBool,
    pub(crate) security: SecurityHooks,
    pub(crate) publishing: PublishPath,
    pub(crate) taking: TakePath,
    pub(crate) tracer: Option<Arc<Tracer>>,
}

impl Discovery {
    /// The participant: discovery by RTPS.
    pub(crate) fn participant(&self) -> &Mutex<Participant, rank::Participant> {
        &self.transports.rtps.participant
    }
}

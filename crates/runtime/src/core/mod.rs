//! The core of a context: the wiring of one RTPS participant and its further transports.
//!
//! A [`Core`] contains one type per verb, each with its own fields: [`Driver`] polls and
//! waits, [`ReceivePath`] passes what arrives to protocol machines, [`Discovery`] applies
//! matches, [`PublishPath`] sends, [`TakePath`] gives received samples to the user. Each
//! calls only those after it. Below them are the parts of a context, each in its own folder
//! with its own locks: endpoints, send path, scheduler, transports, shared-memory
//! connections, same-host peers, graph, security. A part never accesses the core. An
//! operation on one part is a method of that part.
//!
//! `docs/internals/drive_contract.md` lists the owners, the calling threads and the order
//! of calls.

mod bound_port_probe;
mod changeable_qos;
mod coherent_sets;
mod content_filter;
mod deferred_send;
mod descriptor_check;
pub(crate) mod discovery;
pub mod dispatch;
pub mod driver;
mod durable_store;
pub(crate) mod ends;
pub mod external_event_loop;
mod flow_controlled_send;
mod graph;
mod instances;
mod interfaces;
mod intra_process;
mod linger;
mod loan;
pub mod matching;
mod memory_bound;
pub(crate) mod peers;
mod prefault;
mod publish;
pub(crate) mod publish_path;
mod publisher_group;
mod rate_limiter;
pub(crate) mod receive_path;
mod security;
mod security_hooks;
pub(crate) mod shared_parts;
pub(crate) mod socket_report;
mod source_check;
mod stalled_readers;
mod subscription_group;
pub(crate) mod table_fill;
pub(crate) mod take_path;
mod trace_writing;
mod traced_publish;
mod transport;
mod type_objects;
mod undecodable;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use pteros_rtps::id::{GuidPrefix, VendorId};
use pteros_rtps::locator::{IpAddress, Locator, NetworkScope};
use pteros_rtps::participant::{DiscoveryServers, Participant, ParticipantConfig};
use pteros_rtps::time::{Duration, Instant};

use crate::core::discovery::Discovery;
use crate::core::driver::Driver;
use crate::core::publish_path::PublishPath;
use crate::core::receive_path::ReceivePath;
use crate::core::security_hooks::SecurityHooks;
use crate::core::shared_parts::SharedParts;
use crate::core::socket_report::SocketReport;
use crate::core::take_path::TakePath;
use crate::endpoints::Endpoints;
use crate::endpoints::durable_store::StoreOptions;
use crate::error::OpenError;
use crate::graph::{DISCOVERY_TOPIC, Graph};
use crate::limits::Limits;
use crate::lock::Mutex;
use crate::platform::{
    DatagramSockets, IpVersions, OpenedSockets, Platform, SocketPlan, UndrivenContext, unicast_port,
};
use crate::same_host::SameHostPeers;
use crate::scheduler::Scheduler;
use crate::scheduler::background_io::BackgroundIo;
use crate::scheduler::ready_queue::ReadyQueue;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::security::{Credentials, SecurityOptions, SecurityParts};
use crate::send::SendPath;
use crate::send::datagram_protection::{CryptoTransform, peer_authenticator};
use crate::send::flow_controller::FlowController;
use crate::shared_memory::SharedMemoryOptions;
use crate::shm_connections::{ShmConnections, announced_property};
use crate::shm_transport::ShmTransport;
use crate::static_peers::{DiscoveryServer, NamedPeers, StaticPeer};
use crate::trace::{self, TraceOptions, Tracer};
use crate::transport::rtps::RtpsTransport;
use crate::transport::transports::{Transports, open_transports};
use crate::transport::{
    OpenTransport, RtpsReach, SampleTransport, TransportScheduler, TransportSetup,
};

pub use crate::transport::transports::TRANSPORTS_MAX;

/// Participant indices of this host that receive unicast announcements, so that
/// processes find each other without multicast. Only bound ports are used. ROS 2's
/// LOCALHOST range probes as many.
pub(crate) const LOCAL_PEERS_MAX: u32 = 33;

/// Largest fragment to other hosts: with all headers it fits into an Ethernet frame.
const FRAGMENT_BYTES_NETWORK: u16 = 1_344;
/// The same with IPv6, whose header is 20 bytes longer.
const FRAGMENT_BYTES_NETWORK_V6: u16 = FRAGMENT_BYTES_NETWORK - 20;

/// Participant indices that are probed on each static peer.
const STATIC_PEER_INDICES: u32 = 10;

/// How a context is set up; [`crate::config`] reads it from the environment.
#[derive(Clone, Debug)]
pub struct CoreOptions {
    /// ROS_DOMAIN_ID.
    pub domain_id: u32,
    /// Whether to stay on this host.
    pub local_only: bool,
    /// Which processes RTPS reaches.
    pub rtps_reach: RtpsReach,
    /// Whether to use the SPDP multicast group.
    pub multicast: bool,
    /// Static peers and discovery servers.
    pub named_peers: NamedPeers<StaticPeer, DiscoveryServer>,
    /// The versions of IP that RTPS uses.
    pub ip_versions: IpVersions,
    /// Names of the only interfaces to use; empty means all.
    pub interfaces: Vec<String>,
    /// Requested send and receive buffers of the kernel in bytes: receive, then
    /// send. A send buffer above the kernel's default only fills the queues behind
    /// it, which drop silently. With the default, the publisher blocks instead.
    pub buffer_bytes: (usize, usize),
    /// Largest fragment of a sample per datagram on this host, bytes.
    pub fragment_bytes_same_host: u16,
    /// Largest fragment of a sample per datagram to other hosts, bytes.
    pub fragment_bytes_network: u16,
    /// The security enclave, `/` without one.
    pub enclave: String,
    /// Participant lease: how long peers keep this participant without hearing from
    /// it.
    pub lease: Duration,
    /// Flow controllers that asynchronous writers may use; see
    /// [`FlowController::validate`].
    pub flow_controllers: Vec<FlowController>,
    /// Where transient and persistent publishers store their samples.
    pub store: StoreOptions,
    /// Limits on memory and work that peers can cause; see [`Limits::validate`].
    pub limits: Limits,
    /// How long the driver busy-polls before it sleeps, at most
    /// [`BUSY_POLL_MAX`](crate::scheduler::busy_poll::BUSY_POLL_MAX). Zero means never.
    pub busy_poll: Duration,
    /// Shared-memory connections to processes of this host.
    pub shared_memory: SharedMemoryOptions,
    /// The identity of a secured context. It matches no peer before authentication.
    pub security: Option<SecurityOptions>,
    /// Whether and where the context is traced, see [`crate::trace`].
    pub trace: Option<TraceOptions>,
    /// Transports beside RTPS, at most [`TRANSPORTS_MAX`].
    pub transports: Vec<OpenTransport>,
}

impl Default for CoreOptions {
    fn default() -> Self {
        Self {
            domain_id: 0,
            local_only: false,
            rtps_reach: RtpsReach::Network,
            multicast: true,
            named_peers: NamedPeers::default(),
            ip_versions: IpVersions::Automatic,
            interfaces: Vec::new(),
            // Space for a 4 MiB sample in 64 KB datagrams on either side.
            buffer_bytes: (8 << 20, 208 << 10),
            fragment_bytes_same_host: 63_000,
            fragment_bytes_network: FRAGMENT_BYTES_NETWORK,
            enclave: "/".into(),
            // The same as Fast DDS in ROS 2.
            lease: Duration::from_secs(20),
            flow_controllers: Vec::new(),
            store: StoreOptions::default(),
            limits: Limits::default(),
            busy_poll: Duration::ZERO,
            shared_memory: SharedMemoryOptions::default(),
            security: None,
            trace: None,
            transports: Vec::new(),
        }
    }
}

/// Counters of a context since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounts {
    /// UDP datagrams received from all peers.
    pub datagrams_received: u64,
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Datagrams that the kernel refused.
    pub send_errors: u64,
    /// How often a publishing thread waited for space in the socket.
    pub send_waits: u64,
    /// Datagrams that are not RTPS.
    pub malformed: u64,
    /// Datagrams and discovery messages dropped because they name a participant from an
    /// address that it has not proven. Most of them are forged.
    pub foreign_sources: u64,
    /// Participants that answered after a dispose or a restart in their name. Most such
    /// messages are forged.
    pub returned_participants: u64,
    /// Datagrams with discovery data that the rate limiter dropped.
    pub rate_limited: u64,
    /// The address with most rate-limited datagrams, and their number; `0.0.0.0` without
    /// any.
    pub most_rate_limited: (IpAddress, u64),
}

/// See the module documentation.
pub struct Core {
    /// Clock, random seed and network.
    pub platform: Arc<dyn Platform>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) prefix: GuidPrefix,
    pub(crate) options: CoreOptions,
    pub(crate) send: Arc<SendPath>,
    pub(crate) driver: Driver,
    pub(crate) tracer: Option<Arc<Tracer>>,
}

impl Core {
    /// Opens the sockets and starts discovery.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        platform: Arc<dyn Platform>,
        mut options: CoreOptions,
    ) -> Result<Arc<Self>, OpenError> {
        if options.security.is_some() && !options.named_peers.discovery_servers.is_empty() {
            return Err(OpenError::SecuredDiscoveryServer);
        }
        let candidate = guid_prefix(platform.guid_seed());
        let credentials = options.security.as_ref().map(|security| {
            Credentials::load(
                security,
                options.domain_id,
                candidate,
                platform.wall_clock(),
            )
        });
        let credentials = credentials.transpose()?;
        let prefix = credentials.as_ref().map_or(candidate, |own| own.prefix);
        let crypto_transform = credentials
            .as_ref()
            .map(Credentials::crypto_transform)
            .transpose()?;
        let plan = socket_plan(&options, prefix, crypto_transform.as_ref());
        let tracer = match &options.trace {
            Some(trace) => Tracer::open(&platform, prefix, trace)?,
            None => None,
        };
        let mut opened = platform.open(&plan)?;
        if let Some(tracer) = &tracer {
            opened = trace::with_tracing(opened, tracer);
        }
        report_sockets(&plan, &opened);
        let is_default = options.fragment_bytes_network == FRAGMENT_BYTES_NETWORK;
        if is_default && opened.own_addresses.iter().any(|own| own.ip.is_v6()) {
            options.fragment_bytes_network = FRAGMENT_BYTES_NETWORK_V6;
        }
        let config = participant_config(&options, prefix, credentials.as_ref(), &opened);
        let now = platform.now();
        let participant = Arc::new(Mutex::new(Participant::new(now, config)));
        let datagrams: Arc<dyn DatagramSockets> = opened.sockets.into();
        let send = Arc::new(SendPath::new(
            platform.clone(),
            datagrams.clone(),
            opened.shm.as_ref().ok().cloned(),
            crypto_transform.clone(),
        ));
        let mut failure = None;
        let core = Arc::new_cyclic(|me: &Weak<Self>| {
            let context: Weak<dyn UndrivenContext> = me.clone();
            let drives_itself = platform.drives_undriven(&context);
            let background_io = (!drives_itself).then(BackgroundIo::for_process).flatten();
            let scheduler = Arc::new(Scheduler::new(datagrams.clone(), background_io));
            let used = SecurityParts {
                domain_id: options.domain_id,
                platform: platform.clone(),
                participant: participant.clone(),
                scheduler: scheduler.clone(),
                send: send.clone(),
            };
            let own = credentials.zip(crypto_transform);
            let security = own.map(|(own, transform)| own.into_security(transform, used));
            let rtps = RtpsTransport {
                participant: participant.clone(),
                send: send.clone(),
                scheduler: TransportScheduler::new(scheduler.clone(), TimeoutOwner::Participant),
            };
            let added =
                open_added_transports(&options, prefix, &scheduler).unwrap_or_else(|error| {
                    failure = Some(error);
                    Vec::new()
                });
            let transports = Arc::new(Transports::new(rtps, added));
            let parts = SharedParts {
                prefix,
                platform,
                datagrams,
                scheduler,
                send,
                tracer,
            };
            let sockets = SocketReport::new(opened.advice);
            let security = SecurityHooks(security.map(Box::new));
            let discovery =
                new_discovery(&options, &parts, sockets, opened.shm, transports, security);
            let receiving = ReceivePath::new(&parts, discovery);
            Self {
                prefix,
                driver: Driver::new(
                    &parts,
                    options.busy_poll,
                    options.shared_memory.latency_budget.into(),
                    receiving,
                ),
                platform: parts.platform,
                scheduler: parts.scheduler,
                send: parts.send,
                tracer: parts.tracer,
                options,
            }
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        core.start(now);
        Ok(core)
    }

    fn start(self: &Arc<Self>, now: Instant) {
        self.discovery().same_host.connect_to_all(now);
        self.create_graph_endpoints();
        self.discovery().serve_participant(now);
        let context: Arc<dyn UndrivenContext> = self.clone();
        self.scheduler.watch(Arc::downgrade(&context));
    }

    /// The GUID prefix of the participant.
    pub fn prefix(&self) -> GuidPrefix {
        self.prefix
    }

    /// The options with which the context was opened.
    pub fn options(&self) -> &CoreOptions {
        &self.options
    }

    /// Hints for the operator about the sockets, such as clamped buffers.
    pub fn advice(&self) -> &[String] {
        &self.discovery().sockets.advice
    }

    /// RTPS, and the transports beside it.
    pub fn transports(&self) -> &Transports {
        &self.discovery().transports
    }

    /// Diagnostics of the participant.
    pub fn rtps(&self) -> &RtpsTransport {
        &self.discovery().transports.rtps
    }

    /// The writers' side: from written samples to datagrams.
    pub fn publishing(&self) -> &PublishPath {
        &self.discovery().publishing
    }

    /// The readers' side: from received samples to the user.
    pub fn taking(&self) -> &TakePath {
        &self.discovery().taking
    }

    /// The participants and endpoints that are known, and their matches.
    pub fn discovery(&self) -> &Discovery {
        self.driver.discovery()
    }

    /// Polls the sockets, and waits.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The decisions of security.
    pub fn security(&self) -> &SecurityHooks {
        &self.discovery().security
    }

    /// The graph cache: the known nodes and endpoints.
    pub fn graph(&self) -> &Graph {
        &self.discovery().graph
    }

    /// The totals.
    pub fn counts(&self) -> CoreCounts {
        let (received, sent) = (&self.driver.receiving.counters, &self.send.counters);
        let discovery = *self.discovery().participant().lock().stats();
        CoreCounts {
            datagrams_received: received.received.load(Ordering::Relaxed),
            datagrams_sent: sent.sent.load(Ordering::Relaxed),
            send_errors: sent.errors.load(Ordering::Relaxed),
            send_waits: sent.waits.load(Ordering::Relaxed),
            malformed: received.malformed.load(Ordering::Relaxed),
            foreign_sources: received
                .foreign_sources
                .load(Ordering::Relaxed)
                .saturating_add(discovery.foreign_sources),
            returned_participants: discovery.returned,
            rate_limited: received.rate_limited.load(Ordering::Relaxed),
            most_rate_limited: *received.most_limited.lock(),
        }
    }

    /// A ready queue for an executor of this context.
    pub fn ready_queue(&self) -> Arc<ReadyQueue> {
        self.scheduler.ready_queue()
    }

    /// Wakes threads in `Driver::wait_until`, whose condition may hold for reasons
    /// outside of the network.
    pub fn wake_waiters(&self) {
        self.scheduler.wake_waiters();
    }

    /// When `Driver::poll_now` has work even if no datagram arrives;
    /// [`Instant::FAR_FUTURE`] if never.
    pub fn next_deadline(&self) -> Instant {
        self.scheduler.next_timeout()
    }

    /// Whether executors should stop spinning.
    pub fn is_shut_down(&self) -> bool {
        self.scheduler.is_shut_down()
    }

    /// Ends every spin of this context. Thread-safe and does not block.
    pub fn request_shutdown(&self) {
        self.scheduler.request_shutdown();
    }

    /// Announces the end of the participant to all peers. Called once, by the last
    /// user.
    pub fn close(&self) {
        if !self.scheduler.close() {
            return;
        }
        self.driver.send_deferred();
        self.request_shutdown();
        let now = self.platform.now();
        for transport in self.discovery().transports.iter() {
            transport.close(now);
        }
        // The background I/O thread may still hold the core for a moment, and the process
        // may be about to end.
        self.driver.write_trace_file();
    }
}

impl UndrivenContext for Core {
    fn drive_undriven(&self, rounds: usize) -> bool {
        self.driver.drive_undriven(rounds)
    }

    fn next_deadline(&self) -> Instant {
        self.scheduler.next_timeout()
    }

    fn begin_background_sleep(&self) -> Instant {
        self.scheduler.begin_background_sleep()
    }

    fn poll_counter(&self) -> (u64, bool) {
        self.scheduler.poll_counter()
    }

    fn is_closed(&self) -> bool {
        self.scheduler.is_closed()
    }

    fn now(&self) -> Instant {
        self.platform.now()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.discovery().datagrams.descriptor()
    }

    fn memory_bytes(&self) -> (usize, usize) {
        (
            Self::memory_bytes(self),
            self.discovery().endpoints.worst_case_bytes(),
        )
    }

    fn exceeded_limit(&self) -> Option<String> {
        Self::exceeded_limit(self)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.close();
    }
}

fn guid_prefix(unique: [u8; 10]) -> GuidPrefix {
    let mut bytes = [0; 12];
    bytes[..2].copy_from_slice(&VendorId::PTEROS.0);
    bytes[2..].copy_from_slice(&unique);
    GuidPrefix(bytes)
}

/// Configuration of the participant's announcements.
fn participant_config(
    options: &CoreOptions,
    prefix: GuidPrefix,
    credentials: Option<&Credentials>,
    opened: &OpenedSockets,
) -> ParticipantConfig {
    let user_data = format!("enclave={};", options.enclave).into_bytes();
    let mut config = ParticipantConfig {
        security: credentials.map(|own| own.announced(user_data.clone())),
        network: NetworkScope {
            addresses: opened.own_addresses.clone(),
            local_only: options.local_only,
            ..NetworkScope::default()
        },
        metatraffic_unicast: opened.unicast.clone(),
        default_unicast: opened.unicast.clone(),
        metatraffic_multicast: opened.multicast.clone(),
        announce_to: announcement_locators(options, opened),
        discovery_servers: discovery_servers(options, opened),
        ignores_announcements: options.rtps_reach != RtpsReach::Network,
        user_data,
        entity_name: Some(options.enclave.clone()),
        lease: options.lease,
        announces_on_host: opened.sockets.discovery_log().is_some(),
        topics_not_announced_on_host: vec![DISCOVERY_TOPIC.into()],
        limits: options.limits.participant_limits(),
        properties: vec![announced_property(&opened.shm)],
        ..ParticipantConfig::new(prefix, options.domain_id)
    };
    if config.security.is_some() {
        // Only authenticated peers receive it.
        config.user_data = Vec::new();
        config.entity_name = None;
    }
    config
}

/// Logs warnings about the sockets.
fn report_sockets(plan: &SocketPlan, opened: &OpenedSockets) {
    for advice in &opened.advice {
        tracing::warn!("{advice}");
    }
    if let Err(reason) = &opened.shm
        && plan.shared_memory.enabled
    {
        tracing::warn!("{reason}; processes of this host communicate by UDP");
    }
}

/// Discovery of a context that has just been opened.
fn new_discovery(
    options: &CoreOptions,
    parts: &SharedParts,
    sockets: SocketReport,
    shm: Result<Arc<dyn ShmTransport>, String>,
    transports: Arc<Transports>,
    security: SecurityHooks,
) -> Discovery {
    let prefix = parts.prefix;
    let participant = transports.rtps.participant.clone();
    let enclave = options.enclave.clone();
    let graph = Arc::new(Graph::new(prefix, transports.clone(), enclave));
    Discovery {
        platform: parts.platform.clone(),
        datagrams: parts.datagrams.clone(),
        scheduler: parts.scheduler.clone(),
        prefix,
        domain_id: options.domain_id,
        sockets,
        shm_connections: ShmConnections::new(
            shm,
            prefix,
            participant.clone(),
            parts.scheduler.clone(),
            parts.send.clone(),
        ),
        same_host: SameHostPeers::new(
            options.lease,
            parts.datagrams.clone(),
            participant,
            graph.clone(),
            parts.scheduler.clone(),
        ),
        publishing: PublishPath::new(parts, &options.flow_controllers),
        taking: TakePath::new(parts),
        graph,
        graph_writer: OnceLock::new(),
        transports,
        endpoints: Endpoints::new(prefix),
        peers_changed: AtomicU64::new(0),
        refuses_writers: AtomicBool::new(false),
        security,
        tracer: parts.tracer.clone(),
    }
}

/// Opens the transports beside RTPS.
fn open_added_transports(
    options: &CoreOptions,
    prefix: GuidPrefix,
    scheduler: &Arc<Scheduler>,
) -> Result<Vec<Arc<dyn SampleTransport>>, OpenError> {
    let is_secured = options.security.is_some();
    open_transports(&options.transports, is_secured, scheduler, |scheduler| {
        TransportSetup {
            domain_id: options.domain_id,
            prefix,
            enclave: options.enclave.clone(),
            local_only: options.local_only,
            rtps_reach: options.rtps_reach,
            limits: options.limits,
            scheduler,
        }
    })
}

/// The sockets and the shared memory that the context needs from the platform.
fn socket_plan(
    options: &CoreOptions,
    prefix: GuidPrefix,
    crypto_transform: Option<&Arc<CryptoTransform>>,
) -> SocketPlan {
    SocketPlan {
        domain_id: options.domain_id,
        discovery_group: match options.rtps_reach {
            RtpsReach::Host { group } => group,
            RtpsReach::Network if !options.named_peers.discovery_servers.is_empty() => {
                server_group(options)
            }
            RtpsReach::Network | RtpsReach::Off => options.domain_id,
        },
        local_only: options.local_only || options.rtps_reach != RtpsReach::Network,
        ip_versions: match options.ip_versions {
            IpVersions::Automatic
                if options
                    .named_peers
                    .static_peers
                    .iter()
                    .any(StaticPeer::needs_v6)
                    || options
                        .named_peers
                        .discovery_servers
                        .iter()
                        .any(DiscoveryServer::needs_v6) =>
            {
                IpVersions::Both
            }
            wanted => wanted,
        },
        multicast: options.multicast
            && options.rtps_reach == RtpsReach::Network
            && options.named_peers.discovery_servers.is_empty(),
        interfaces: options.interfaces.clone(),
        buffer_bytes: options.buffer_bytes,
        prefix,
        shared_memory: SharedMemoryOptions {
            enabled: options.shared_memory.enabled
                && options.rtps_reach != RtpsReach::Off
                && crypto_transform
                    .is_none_or(|crypto_transform| crypto_transform.allows_shared_memory()),
            ..options.shared_memory
        },
        peer_authenticator: crypto_transform.map(peer_authenticator),
    }
}

/// The processes of this host that discover each other without the servers: those with
/// the same ones. Such groups are above all domains.
fn server_group(options: &CoreOptions) -> u32 {
    let mut servers: Vec<String> = options
        .named_peers
        .discovery_servers
        .iter()
        .map(|server| format!("{:?}:{}", server.addresses, server.port))
        .collect();
    servers.sort_unstable();
    let mut hash = 0x811c_9dc5_u32;
    for byte in servers.concat().bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash | 1 << 31
}

/// Whether the host has an address of this version of IP.
fn has_version(opened: &OpenedSockets, is_v6: bool) -> bool {
    let mut own = opened.own_addresses.iter();
    own.any(|own| own.ip.is_v6() == is_v6)
}

fn discovery_servers(options: &CoreOptions, opened: &OpenedSockets) -> Option<DiscoveryServers> {
    let servers = options.named_peers.discovery_servers.iter().map(|server| {
        let addresses = server.addresses.iter();
        let usable = addresses.filter(|at| has_version(opened, at.is_v6()));
        usable.map(|at| Locator::udp(*at, server.port)).collect()
    });
    let is_used = options.rtps_reach == RtpsReach::Network
        && !options.named_peers.discovery_servers.is_empty();
    is_used.then(|| DiscoveryServers {
        servers: servers.collect(),
        is_super_client: options.named_peers.is_super_client,
    })
}

fn announcement_locators(options: &CoreOptions, opened: &OpenedSockets) -> Vec<Locator> {
    if options.rtps_reach != RtpsReach::Network {
        return Vec::new();
    }
    let domain = options.domain_id;
    let has_version = |is_v6| has_version(opened, is_v6);
    let here = match has_version(true) && !has_version(false) {
        true => IpAddr::from(Ipv6Addr::LOCALHOST),
        false => Ipv4Addr::LOCALHOST.into(),
    };
    let ports = |indices: u32| (0..indices).map(move |index| unicast_port(domain, index));
    let local_indices = match options.named_peers.discovery_servers.is_empty() {
        true => LOCAL_PEERS_MAX,
        false => 0,
    };
    let local = ports(local_indices).map(|port| Locator::udp(here.into(), port));
    let named = options.named_peers.static_peers.iter().flat_map(|peer| {
        let addresses = peer.addresses.iter().copied();
        let addresses = addresses.filter(|at| has_version(at.is_v6()));
        addresses.flat_map(move |at| {
            let indices = if peer.port.is_none() {
                STATIC_PEER_INDICES
            } else {
                0
            };
            let all = peer.port.into_iter().chain(ports(indices));
            all.map(move |port| Locator::udp(at, port))
        })
    });
    let groups = opened.multicast.iter().copied();
    groups.chain(local).chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_discovery_servers_there_is_no_multicast_and_a_group_of_the_host_for_each_set() {
        let server = |port| DiscoveryServer {
            addresses: vec![IpAddr::from(Ipv4Addr::LOCALHOST).into()],
            port,
        };
        let group = |discovery_servers: Vec<DiscoveryServer>| {
            let options = CoreOptions {
                domain_id: 7,
                named_peers: NamedPeers {
                    discovery_servers,
                    ..NamedPeers::default()
                },
                ..CoreOptions::default()
            };
            let plan = socket_plan(&options, GuidPrefix([1; 12]), None);
            assert_eq!(
                plan.multicast,
                options.named_peers.discovery_servers.is_empty()
            );
            plan.discovery_group
        };
        assert_eq!(group(vec![]), 7);
        let one = group(vec![server(1)]);
        assert!(one > 232 && one != group(vec![server(2)]));
        let both = [server(1), server(2)];
        assert_eq!(
            group(both.to_vec()),
            group(both.into_iter().rev().collect())
        );
    }

    #[test]
    fn a_context_whose_rtps_stays_on_the_host_joins_no_network() {
        let plan = |rtps_reach: RtpsReach| {
            let options = CoreOptions {
                domain_id: 7,
                rtps_reach,
                ..CoreOptions::default()
            };
            socket_plan(&options, GuidPrefix([1; 12]), None)
        };
        let network = plan(RtpsReach::Network);
        assert!(network.multicast && !network.local_only && network.shared_memory.enabled);
        assert_eq!(network.discovery_group, 7);
        let host = plan(RtpsReach::Host { group: 99 });
        assert!(!host.multicast && host.local_only && host.shared_memory.enabled);
        assert_eq!((host.domain_id, host.discovery_group), (7, 99));
        let off = plan(RtpsReach::Off);
        assert!(!off.multicast && off.local_only && !off.shared_memory.enabled);
    }
}

//! The core of a context: one RTPS participant with its sockets and endpoints.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};

use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::{Locator, NetworkScope};
use pteros_rtps::outbox::{Datagram, Outbox};
use pteros_rtps::participant::{Participant, ParticipantConfig};
use pteros_rtps::time::{Duration, Instant};

use crate::back_pressure::BlockingBudget;
use crate::background_io::BackgroundIo;
use crate::deferred_send::DeferredSends;
use crate::driver::DriverState;
use crate::durable_store::StoreOptions;
use crate::error::OpenError;
use crate::flow_controller::{FlowController, FlowState};
use crate::graph::{DISCOVERY_TOPIC, Graph};
use crate::limits::Limits;
use crate::lock::{Mutex, RwLock, rank};
use crate::platform::{
    DISCOVERY_GROUP, Platform, SocketPlan, Transport, multicast_port, unicast_port,
};
use crate::reader::ReaderEndpoint;
use crate::ready_queue::ReadyQueue;
use crate::same_host_peers::SameHostPeers;
use crate::security::{self, Credentials, CryptoTransform, Security, SecurityOptions};
use crate::segmented_send::SegmentedSend;
use crate::shared_memory::SharedMemoryOptions;
use crate::shm_connections::ShmConnections;
use crate::timeout_queue::TimeoutQueue;
use crate::trace::{self, TraceOptions, Tracer};
use crate::waiters::Waiters;
use crate::writer::WriterEndpoint;

/// Participant indices of this host that receive unicast announcements, so that
/// processes find each other without multicast. Only bound ports are used. ROS 2's
/// LOCALHOST range probes as many.
pub(crate) const LOCAL_PEERS_MAX: u32 = 33;

/// How long the closing announcement may wait for space in the socket.
pub(crate) const GOODBYE_WAIT: Duration = Duration::from_millis(20);

/// Participant indices that are probed on each static peer.
const STATIC_PEER_INDICES: u32 = 10;

/// How a context is set up; [`crate::config`] reads it from the environment.
#[derive(Clone, Debug)]
pub struct CoreOptions {
    /// ROS_DOMAIN_ID.
    pub domain_id: u32,
    /// Whether to stay on this host.
    pub local_only: bool,
    /// Whether to switch discovery off.
    pub isolated: bool,
    /// Whether to use the SPDP multicast group.
    pub multicast: bool,
    /// Addresses of peers that receive unicast announcements.
    pub static_peers: Vec<std::net::Ipv4Addr>,
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
    /// [`BUSY_POLL_MAX`](crate::busy_poll::BUSY_POLL_MAX). Zero means never.
    pub busy_poll: Duration,
    /// Shared-memory connections to processes of this host.
    pub shared_memory: SharedMemoryOptions,
    /// The identity of a secured context. It matches no peer before authentication.
    pub security: Option<SecurityOptions>,
    /// Whether and where the context is traced, see [`crate::trace`].
    pub trace: Option<TraceOptions>,
}

impl Default for CoreOptions {
    fn default() -> Self {
        Self {
            domain_id: 0,
            local_only: false,
            isolated: false,
            multicast: true,
            static_peers: Vec::new(),
            interfaces: Vec::new(),
            // Space for a 4 MiB sample in 64 KB datagrams on either side.
            buffer_bytes: (8 << 20, 208 << 10),
            fragment_bytes_same_host: 63_000,
            fragment_bytes_network: 1_344,
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
        }
    }
}

/// Totals of a context since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounts {
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Datagrams that the kernel refused.
    pub send_errors: u64,
    /// How often a publishing thread waited for space in the socket.
    pub send_waits: u64,
    /// Datagrams that are not RTPS.
    pub malformed: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) send_errors: AtomicU64,
    pub(crate) send_waits: AtomicU64,
    pub(crate) malformed: AtomicU64,
}

/// The endpoints of a context. Iterated in order, so that the output does not
/// depend on chance.
#[derive(Default)]
pub(crate) struct EndpointTable {
    pub(crate) writers: BTreeMap<EntityId, Arc<WriterEndpoint>>,
    pub(crate) readers: BTreeMap<EntityId, Arc<ReaderEndpoint>>,
    /// Local readers that are matched with each remote writer.
    pub(crate) readers_of_writer: BTreeMap<Guid, Vec<Arc<ReaderEndpoint>>>,
}

/// See the module documentation.
pub struct Core {
    /// Clock, random seed and network.
    pub platform: Arc<dyn Platform>,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) prefix: GuidPrefix,
    pub(crate) options: CoreOptions,
    pub(crate) participant_index: u32,
    pub(crate) advice: Vec<String>,
    pub(crate) participant: Arc<Mutex<Participant, rank::Participant>>,
    pub(crate) match_order: Mutex<(), rank::MatchOrder>,
    pub(crate) endpoints: RwLock<EndpointTable, rank::EndpointTable>,
    pub(crate) timeouts: TimeoutQueue,
    pub(crate) driver: Mutex<DriverState, rank::Driver>,
    /// The instant until which the driver sleeps, nanoseconds; 0 while it is awake.
    pub(crate) sleeping_until: AtomicU64,
    pub(crate) followers: Mutex<Vec<Arc<ReadyQueue>>, rank::Followers>,
    /// A weak reference to itself, for holders that must not keep the context
    /// alive.
    weak_self: Weak<Self>,
    /// A queue that never has work, for polls that serve no executor.
    pub(crate) idle_queue: ReadyQueue,
    pub(crate) graph: Graph,
    pub(crate) shm_connections: ShmConnections,
    pub(crate) counters: Counters,
    /// It is unknown whether the socket has space for a burst.
    pub(crate) socket_may_be_full: AtomicBool,
    background_io: Option<BackgroundIo>,
    polls: AtomicU64,
    in_poll: AtomicBool,
    next_entity: AtomicU32,
    shut_down: AtomicBool,
    closed: AtomicBool,
    pub(crate) waiters: Waiters,
    /// Remote sends that are deferred until waiting callbacks have run.
    pub(crate) deferred: DeferredSends,
    pub(crate) same_host_peers: Mutex<SameHostPeers, rank::SameHostPeers>,
    pub(crate) security: Option<Box<Security>>,
    /// The crypto transform between protocol and sockets, in a secured context.
    pub(crate) crypto_transform: Option<Arc<CryptoTransform>>,
    /// Whether removals reported by same-host peers are deferred.
    pub(crate) has_deferred_removals: AtomicBool,
    /// The flow controllers at work, in the order of the options.
    pub(crate) flow_controllers: Vec<Mutex<FlowState, rank::FlowController>>,
    pub(crate) tracer: Option<Arc<Tracer>>,
}

impl Core {
    /// Opens the sockets and starts discovery.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(platform: Arc<dyn Platform>, options: CoreOptions) -> Result<Arc<Self>, OpenError> {
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
        for advice in &opened.advice {
            tracing::warn!("{advice}");
        }
        if let Err(reason) = &opened.shm
            && plan.shared_memory.enabled
        {
            tracing::warn!("{reason}; processes of this host communicate by UDP");
        }
        let shm_connections = ShmConnections::new(opened.shm);
        let user_data = format!("enclave={};", options.enclave).into_bytes();
        let security = credentials.as_ref();
        let mut config = ParticipantConfig {
            security: security.map(|own| own.announced(user_data.clone())),
            network: NetworkScope {
                addresses: opened.own_addresses.clone(),
                local_only: options.local_only,
            },
            metatraffic_unicast: opened.unicast.clone(),
            default_unicast: opened.unicast.clone(),
            metatraffic_multicast: opened.multicast.into_iter().collect(),
            announce_to: announcement_locators(&options, opened.multicast),
            user_data,
            entity_name: Some(options.enclave.clone()),
            lease: options.lease,
            announces_on_host: opened.transport.discovery_log().is_some(),
            topics_not_announced_on_host: vec![DISCOVERY_TOPIC.into()],
            limits: options.limits.participant_limits(),
            properties: vec![shm_connections.property()],
            ..ParticipantConfig::new(prefix, options.domain_id)
        };
        if config.security.is_some() {
            // Only authenticated peers receive it.
            config.user_data = Vec::new();
            config.entity_name = None;
        }
        let now = platform.now();
        let participant = Participant::new(now, config);
        let security = match (credentials, &crypto_transform) {
            (Some(own), Some(crypto_transform)) => {
                Some(own.into_security(crypto_transform.clone(), participant.data()))
            }
            _ => None,
        };
        let participant = Arc::new(Mutex::new(participant));
        let core = Arc::new_cyclic(|me| Self {
            background_io: if platform.drives_undriven(me) {
                None
            } else {
                BackgroundIo::for_process()
            },
            platform,
            transport: opened.transport,
            prefix,
            participant_index: opened.participant_index,
            advice: opened.advice,
            graph: Graph::new(participant.clone(), options.enclave.clone()),
            participant,
            match_order: Mutex::default(),
            endpoints: RwLock::default(),
            timeouts: TimeoutQueue::new(),
            driver: Mutex::new(DriverState::new(options.busy_poll)),
            sleeping_until: AtomicU64::new(0),
            followers: Mutex::default(),
            weak_self: me.clone(),
            idle_queue: ReadyQueue::new(|| {}),
            shm_connections,
            counters: Counters::default(),
            socket_may_be_full: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            in_poll: AtomicBool::new(false),
            next_entity: AtomicU32::new(1),
            shut_down: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waiters: Waiters::default(),
            deferred: DeferredSends::default(),
            same_host_peers: Mutex::default(),
            security: security.map(Box::new),
            crypto_transform,
            has_deferred_removals: AtomicBool::new(false),
            flow_controllers: options
                .flow_controllers
                .iter()
                .map(|controller| Mutex::new(FlowState::new(controller)))
                .collect(),
            tracer,
            options,
        });
        core.start(now);
        Ok(core)
    }

    fn start(self: &Arc<Self>, now: Instant) {
        self.connect_same_host_peers(now);
        self.create_graph_endpoints();
        self.serve_participant(now);
        if let Some(background_io) = &self.background_io {
            background_io.adopt(self);
        }
    }

    /// The GUID prefix of the participant.
    pub fn prefix(&self) -> GuidPrefix {
        self.prefix
    }

    /// The options with which the context was opened.
    pub fn options(&self) -> &CoreOptions {
        &self.options
    }

    /// The participant index on this host, which determines the ports (RTPS 2.5
    /// §9.6.1.1).
    pub fn participant_index(&self) -> u32 {
        self.participant_index
    }

    /// Hints for the operator about the sockets, such as clamped buffers.
    pub fn advice(&self) -> &[String] {
        &self.advice
    }

    /// The graph cache: the known nodes and endpoints.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The totals.
    pub fn counts(&self) -> CoreCounts {
        let c = &self.counters;
        CoreCounts {
            datagrams_received: c.received.load(Ordering::Relaxed),
            datagrams_sent: c.sent.load(Ordering::Relaxed),
            send_errors: c.send_errors.load(Ordering::Relaxed),
            send_waits: c.send_waits.load(Ordering::Relaxed),
            malformed: c.malformed.load(Ordering::Relaxed),
        }
    }

    /// A ready queue for an executor of this context.
    pub fn ready_queue(&self) -> Arc<ReadyQueue> {
        let weak = self.weak_self.clone();
        Arc::new(ReadyQueue::new(move || {
            if let Some(core) = weak.upgrade() {
                core.transport.wake();
            }
        }))
    }

    /// Whether executors should stop spinning.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Acquire) || self.transport.shutdown_requested()
    }

    /// Ends every spin of this context. Thread-safe and does not block.
    pub fn request_shutdown(&self) {
        if self.shut_down.swap(true, Ordering::AcqRel) {
            return;
        }
        self.transport.wake();
        for follower in self.followers.lock().iter() {
            follower.wake();
        }
        self.waiters.wake_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn next_entity_key(&self) -> [u8; 3] {
        let [_, a, b, c] = self
            .next_entity
            .fetch_add(1, Ordering::Relaxed)
            .to_be_bytes();
        [a, b, c]
    }

    pub(crate) fn writer(&self, id: EntityId) -> Option<Arc<WriterEndpoint>> {
        self.endpoints.read().writers.get(&id).cloned()
    }

    pub(crate) fn reader(&self, id: EntityId) -> Option<Arc<ReaderEndpoint>> {
        self.endpoints.read().readers.get(&id).cloned()
    }

    /// Sends every datagram of `outbox`. A `code_point` other than 0 marks them
    /// (DSCP).
    ///
    /// Waits for space in the socket within `budget`. Takes no lock. Returns false
    /// if a shared-memory connection refused a datagram.
    pub(crate) fn send(&self, outbox: &Outbox, code_point: u8, budget: &BlockingBudget) -> bool {
        let mut taken = true;
        let may_join = self.crypto_transform.is_none() && code_point == 0;
        let mut datagrams = outbox.iter().peekable();
        while let Some(datagram) = datagrams.next() {
            if may_join && let Some(segments) = SegmentedSend::collect(&datagram, &mut datagrams) {
                self.send_segmented_batch(&segments, budget);
                continue;
            }
            let parts = datagram.parts.map(IoSlice::new);
            for locator in datagram.to {
                if let Some(connection) = locator.to_connection() {
                    taken &= self.send_by_shm(connection, &datagram);
                } else if self.crypto_transform.is_none() {
                    self.send_to(&parts, locator, code_point, budget);
                }
            }
            if let Some(crypto_transform) = &self.crypto_transform {
                self.send_sealed(crypto_transform, &datagram, code_point, budget);
            }
        }
        taken
    }

    /// Passes one datagram to the sockets.
    pub(crate) fn send_to(
        &self,
        parts: &[IoSlice<'_>],
        to: &Locator,
        code_point: u8,
        budget: &BlockingBudget,
    ) {
        let sent = self.send_within_budget(budget, || match code_point {
            0 => self.transport.send(parts, to),
            _ => self.transport.send_with_dscp(parts, to, code_point),
        });
        let counter = match sent {
            Ok(()) => &self.counters.sent,
            Err(error) => {
                tracing::trace!(%error, locator = %to, "send");
                &self.counters.send_errors
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn send_by_shm(&self, connection: u32, datagram: &Datagram<'_>) -> bool {
        let shm = self.shm_connections.get();
        let sent = shm.map(|shm| shm.send(connection, datagram));
        if let Some(Err(refused)) = sent {
            tracing::trace!(%refused, connection, "send");
        }
        sent == Some(Ok(()))
    }

    // --- polls, as the background I/O thread sees them ---

    pub(crate) fn poll_counter(&self) -> (u64, bool) {
        // Acquire pairs with the stores in `enter_poll` and `leave_poll`.
        let turns = self.polls.load(Ordering::Acquire);
        (turns, self.in_poll.load(Ordering::Acquire))
    }

    pub(crate) fn enter_poll(&self) {
        self.in_poll.store(true, Ordering::Release);
    }

    pub(crate) fn leave_poll(&self) {
        self.polls.fetch_add(1, Ordering::AcqRel);
        self.in_poll.store(false, Ordering::Release);
        if let Some(background_io) = &self.background_io {
            background_io.note_poll_finished();
        }
    }

    /// Notes that a thread sleeps within its poll, so the background I/O thread can
    /// rest.
    pub(crate) fn note_poll_sleeping(&self, slept: Duration) {
        if let Some(background_io) = &self.background_io {
            background_io.note_poll_sleeping(slept);
        }
    }

    /// Polls a context that no executor spins: at most `rounds` times, without
    /// sleeping. Returns false when another thread drives it.
    pub fn drive_undriven(&self, rounds: usize) -> bool {
        let Some(mut state) = self.driver.try_lock() else {
            return false;
        };
        self.send_all_deferred(false);
        for _ in 0..rounds {
            let handled = self.poll_now(&mut state);
            let rests = || {
                self.shm_connections
                    .get()
                    .is_none_or(|shm| shm.arm_doorbell())
            };
            // The doorbell stays armed while the background I/O thread sleeps,
            // until the next poll.
            if handled == 0 && rests() {
                break;
            }
        }
        drop(state);
        if let Some(follower) = self.followers.lock().first() {
            follower.wake();
        }
        true
    }

    /// When [`Core::poll_now`] has work even if no datagram arrives;
    /// [`Instant::FAR_FUTURE`] if never.
    pub fn next_deadline(&self) -> Instant {
        self.timeouts.next()
    }

    /// Notes that the background I/O thread sleeps for this context. Returns until
    /// when.
    pub(crate) fn begin_background_sleep(&self) -> Instant {
        self.sleeping_until.store(u64::MAX, Ordering::SeqCst);
        // Pairs with the fence in `schedule`.
        fence(Ordering::SeqCst);
        let next = self.timeouts.next();
        self.sleeping_until.store(next.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        next.min(self.timeouts.next())
    }

    /// Announces the end of the participant to all peers. Called once, by the last
    /// user.
    pub fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.send_deferred();
        self.request_shutdown();
        let mut outbox = Outbox::new();
        let now = self.platform.now();
        self.participant.lock().shut_down(now, &mut outbox);
        // A peer that misses it keeps the participant until its lease expires.
        self.send(&outbox, 0, &BlockingBudget::for_publish(GOODBYE_WAIT));
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

/// The sockets and the shared memory that the context needs from the platform.
fn socket_plan(
    options: &CoreOptions,
    prefix: GuidPrefix,
    crypto_transform: Option<&Arc<CryptoTransform>>,
) -> SocketPlan {
    SocketPlan {
        domain_id: options.domain_id,
        local_only: options.local_only,
        multicast: options.multicast && !options.isolated,
        interfaces: options.interfaces.clone(),
        buffer_bytes: options.buffer_bytes,
        prefix,
        shared_memory: SharedMemoryOptions {
            enabled: options.shared_memory.enabled
                && !options.isolated
                && crypto_transform
                    .is_none_or(|crypto_transform| crypto_transform.allows_shared_memory()),
            ..options.shared_memory
        },
        peer_authenticator: crypto_transform.map(security::peer_authenticator),
    }
}

fn announcement_locators(options: &CoreOptions, group: Option<Locator>) -> Vec<Locator> {
    if options.isolated {
        return Vec::new();
    }
    let domain = options.domain_id;
    let local = (0..LOCAL_PEERS_MAX)
        .map(|index| Locator::udp_v4([127, 0, 0, 1], unicast_port(domain, index)));
    let named = options.static_peers.iter().flat_map(|peer| {
        (0..STATIC_PEER_INDICES)
            .map(move |index| Locator::udp_v4(peer.octets(), unicast_port(domain, index)))
    });
    debug_assert!(
        group
            .is_none_or(|g| g == Locator::udp_v4(DISCOVERY_GROUP.octets(), multicast_port(domain)))
    );
    group.into_iter().chain(local).chain(named).collect()
}

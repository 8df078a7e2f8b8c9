//! The heart of a context: one RTPS participant, its sockets, its endpoints.
//!
//! Lock order, outermost first: a service client's `calls`, `match_order`,
//! `table`, a writer's `state`, a reader's `machine`, a reader's `intake`;
//! `participant` is never held together with an endpoint's lock. The flow
//! controllers', the deadlines' and the ready queues' own locks come last and are
//! held for a few instructions. User code runs under none.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::{Locator, Reach};
use pteros_rtps::outbox::{Datagram, Outbox};
use pteros_rtps::participant::{Participant, ParticipantConfig};
use pteros_rtps::time::{Duration, Instant};
use pteros_security::shield::Shield;

use crate::aside::Aside;
use crate::deadline::Deadlines;
use crate::driver::DriverState;
use crate::durable::StoreOptions;
use crate::env::{Env, GROUP, SocketPlan, Transport, multicast_port, unicast_port};
use crate::error::OpenError;
use crate::flow::{Flow, FlowController};
use crate::graph::{DISCOVERY_TOPIC, Graph};
use crate::helper::Helper;
use crate::limits::Limits;
use crate::linking::Linking;
use crate::neighbours::Neighbours;
use crate::reader::ReaderEndpoint;
use crate::ready::ReadyQueue;
use crate::room::Patience;
use crate::security::{self, Credentials, Security, SecurityOptions};
use crate::shared_memory::SharedMemoryOptions;
use crate::trace::{self, TraceOptions, Tracer};
use crate::volley::Volley;
use crate::waiters::Waiters;
use crate::writer::WriterEndpoint;

/// Participant indices of this host that announcements are sent to, so that
/// processes find each other without multicast, as far as somebody is bound to
/// them. ROS 2's LOCALHOST range probes as many.
pub(crate) const LOCAL_PEERS_MAX: u32 = 33;

/// How long a goodbye may wait for room in the socket.
pub(crate) const GOODBYE_WAIT: Duration = Duration::from_millis(20);

/// Participant indices probed on each static peer.
const STATIC_PEER_INDICES: u32 = 10;

/// How a context is set up; [`crate::config`] reads it from the environment.
#[derive(Clone, Debug)]
pub struct CoreOptions {
    /// ROS_DOMAIN_ID.
    pub domain_id: u32,
    /// Stay on this host.
    pub local_only: bool,
    /// No discovery at all.
    pub isolated: bool,
    /// Use the discovery group.
    pub multicast: bool,
    /// Addresses of peers to announce to.
    pub static_peers: Vec<std::net::Ipv4Addr>,
    /// Names of the only interfaces to use; empty means all.
    pub interfaces: Vec<String>,
    /// Wanted kernel buffers in bytes, receive and send. More room to send than
    /// the kernel gives by itself only fills queues behind it, which drop without a
    /// word; who publishes waits instead.
    pub buffer_bytes: (usize, usize),
    /// Largest piece of a sample per datagram on this host, bytes.
    pub fragment_bytes_same_host: u16,
    /// Largest piece of a sample per datagram to other hosts, bytes.
    pub fragment_bytes_network: u16,
    /// The security enclave, `/` without one.
    pub enclave: String,
    /// How long peers keep us when they hear nothing of us.
    pub lease: Duration,
    /// What asynchronous writers may be paced by; see
    /// [`FlowController::validate`].
    pub flow_controllers: Vec<FlowController>,
    /// Where publishers of durability transient and persistent store.
    pub store: StoreOptions,
    /// What peers can make us keep and do; see [`Limits::validate`].
    pub limits: Limits,
    /// How long the thread that drives polls before it sleeps, at most
    /// [`SPIN_MAX`](crate::spin::SPIN_MAX); zero is never.
    pub spin: Duration,
    /// Links to processes of this host.
    pub shared_memory: SharedMemoryOptions,
    /// The identity of a secured context. It authenticates others and is not met
    /// by, and does not meet, anybody before that.
    pub security: Option<SecurityOptions>,
    /// Whether and where it is traced, see [`crate::trace`].
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
            // Room for a 4 MiB sample in 64 KB datagrams on either side.
            buffer_bytes: (8 << 20, 208 << 10),
            fragment_bytes_same_host: 63_000,
            fragment_bytes_network: 1_344,
            enclave: "/".into(),
            // As Fast DDS in ROS 2.
            lease: Duration::from_secs(20),
            flow_controllers: Vec::new(),
            store: StoreOptions::default(),
            limits: Limits::default(),
            spin: Duration::ZERO,
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
    /// Times a publishing thread waited for room in the socket.
    pub send_waits: u64,
    /// Datagrams that are not RTPS.
    pub malformed: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) send_errors: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) malformed: AtomicU64,
}

/// The endpoints of a context. Walked in order, so that what is sent does not
/// depend on chance.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) writers: BTreeMap<EntityId, Arc<WriterEndpoint>>,
    pub(crate) readers: BTreeMap<EntityId, Arc<ReaderEndpoint>>,
    /// Local readers matched with each remote writer.
    pub(crate) readers_of: BTreeMap<Guid, Vec<Arc<ReaderEndpoint>>>,
}

/// See the module's description.
pub struct Core {
    /// Clock, seed and network.
    pub env: Arc<dyn Env>,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) prefix: GuidPrefix,
    pub(crate) options: CoreOptions,
    pub(crate) participant_index: u32,
    pub(crate) advice: Vec<String>,
    pub(crate) participant: Arc<Mutex<Participant>>,
    pub(crate) match_order: Mutex<()>,
    pub(crate) table: RwLock<Table>,
    pub(crate) deadlines: Deadlines,
    pub(crate) driver: Mutex<DriverState>,
    /// Nanoseconds of the instant the driver sleeps to; 0 while it is awake.
    pub(crate) sleeping_until: AtomicU64,
    pub(crate) followers: Mutex<Vec<Arc<ReadyQueue>>>,
    /// Ours, for those who must not keep us alive.
    me: Weak<Self>,
    /// Never has work: for turns on nobody's behalf.
    pub(crate) no_queue: ReadyQueue,
    pub(crate) graph: Graph,
    pub(crate) linking: Linking,
    pub(crate) counters: Counters,
    /// It is not known whether the socket has room for a burst.
    pub(crate) room_in_doubt: AtomicBool,
    helper: Option<Helper>,
    turns: AtomicU64,
    in_turn: AtomicBool,
    next_entity: AtomicU32,
    shut_down: AtomicBool,
    closed: AtomicBool,
    pub(crate) waiters: Waiters,
    /// Messages that go to other processes in a moment.
    pub(crate) aside: Aside,
    pub(crate) neighbours: Mutex<Neighbours>,
    pub(crate) security: Option<Box<Security>>,
    /// Between its protocol and its sockets, where it is secured.
    pub(crate) shield: Option<Arc<Shield>>,
    /// Some of their ends wait to be heeded.
    pub(crate) ends_wait: AtomicBool,
    /// At work, in the order of the options' controllers.
    pub(crate) flows: Vec<Mutex<Flow>>,
    pub(crate) tracer: Option<Arc<Tracer>>,
}

impl Core {
    /// Opens the sockets and starts discovery.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(env: Arc<dyn Env>, options: CoreOptions) -> Result<Arc<Self>, OpenError> {
        let candidate = guid_prefix(env.unique());
        let credentials = options
            .security
            .as_ref()
            .map(|security| Credentials::load(security, options.domain_id, candidate, env.wall()));
        let credentials = credentials.transpose()?;
        let prefix = credentials.as_ref().map_or(candidate, |own| own.prefix);
        let shield = credentials.as_ref().map(Credentials::shield).transpose()?;
        let plan = socket_plan(&options, prefix, shield.as_ref());
        let tracer = match &options.trace {
            Some(trace) => Tracer::open(&env, prefix, trace)?,
            None => None,
        };
        let mut opened = env.open(&plan)?;
        if let Some(tracer) = &tracer {
            opened = trace::stamped(opened, tracer);
        }
        for advice in &opened.advice {
            tracing::warn!("{advice}");
        }
        if let Err(reason) = &opened.links
            && plan.shared_memory.on
        {
            tracing::warn!("{reason}; processes of this host are reached by UDP");
        }
        let linking = Linking::new(opened.links);
        let user_data = format!("enclave={};", options.enclave).into_bytes();
        let security = credentials.as_ref();
        let mut config = ParticipantConfig {
            security: security.map(|own| own.announced(user_data.clone())),
            reach: Reach {
                own: opened.own.clone(),
                local_only: options.local_only,
            },
            metatraffic_unicast: opened.unicast.clone(),
            default_unicast: opened.unicast.clone(),
            metatraffic_multicast: opened.multicast.into_iter().collect(),
            announce_to: announce_to(&options, opened.multicast),
            user_data,
            entity_name: Some(options.enclave.clone()),
            lease: options.lease,
            posts_notices: opened.transport.board().is_some(),
            unposted_topics: vec![DISCOVERY_TOPIC.into()],
            limits: options.limits.of_participant(),
            properties: vec![linking.property()],
            ..ParticipantConfig::new(prefix, options.domain_id)
        };
        if config.security.is_some() {
            // Those who are authenticated hear of it.
            config.user_data = Vec::new();
            config.entity_name = None;
        }
        let now = env.now();
        let participant = Participant::new(now, config);
        let security = match (credentials, &shield) {
            (Some(own), Some(shield)) => {
                Some(own.into_security(shield.clone(), participant.data()))
            }
            _ => None,
        };
        let participant = Arc::new(Mutex::new(participant));
        let core = Arc::new_cyclic(|me| Self {
            helper: match env.looks_after(me) {
                true => None,
                false => Helper::of_process(),
            },
            env,
            transport: opened.transport,
            prefix,
            participant_index: opened.participant_index,
            advice: opened.advice,
            graph: Graph::new(participant.clone(), options.enclave.clone()),
            participant,
            match_order: Mutex::default(),
            table: RwLock::default(),
            deadlines: Deadlines::new(),
            driver: Mutex::new(DriverState::new(options.spin)),
            sleeping_until: AtomicU64::new(0),
            followers: Mutex::default(),
            me: me.clone(),
            no_queue: ReadyQueue::new(|| {}),
            linking,
            counters: Counters::default(),
            room_in_doubt: AtomicBool::new(false),
            turns: AtomicU64::new(0),
            in_turn: AtomicBool::new(false),
            next_entity: AtomicU32::new(1),
            shut_down: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            waiters: Waiters::default(),
            aside: Aside::default(),
            neighbours: Mutex::default(),
            security: security.map(Box::new),
            shield,
            ends_wait: AtomicBool::new(false),
            flows: options
                .flow_controllers
                .iter()
                .map(|controller| Mutex::new(Flow::new(controller)))
                .collect(),
            tracer,
            options,
        });
        core.start(now);
        Ok(core)
    }

    fn start(self: &Arc<Self>, now: Instant) {
        self.greet_neighbours(now);
        self.open_graph();
        self.serve_participant(now);
        if let Some(helper) = &self.helper {
            helper.adopt(self);
        }
    }

    /// The participant's identity.
    pub fn prefix(&self) -> GuidPrefix {
        self.prefix
    }

    /// The options it was opened with.
    pub fn options(&self) -> &CoreOptions {
        &self.options
    }

    /// Its index on this host, which chose its ports.
    pub fn participant_index(&self) -> u32 {
        self.participant_index
    }

    /// What the operator should know about the sockets (clamped buffers …).
    pub fn advice(&self) -> &[String] {
        &self.advice
    }

    /// What is known of the ROS graph.
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
            send_waits: c.waits.load(Ordering::Relaxed),
            malformed: c.malformed.load(Ordering::Relaxed),
        }
    }

    /// A ready queue for an executor of this context.
    pub fn ready_queue(&self) -> Arc<ReadyQueue> {
        let weak = self.me.clone();
        Arc::new(ReadyQueue::new(move || {
            if let Some(core) = weak.upgrade() {
                core.transport.wake();
            }
        }))
    }

    /// Whether spinning should end.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Acquire) || self.transport.shutdown_requested()
    }

    /// Ends every spin of this context. Thread-safe; returns at once.
    pub fn request_shutdown(&self) {
        if self.shut_down.swap(true, Ordering::AcqRel) {
            return;
        }
        self.transport.wake();
        for follower in self.followers.lock().iter() {
            follower.nudge();
        }
        self.waiters.nudge();
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
        self.table.read().writers.get(&id).cloned()
    }

    pub(crate) fn reader(&self, id: EntityId) -> Option<Arc<ReaderEndpoint>> {
        self.table.read().readers.get(&id).cloned()
    }

    /// Sends every datagram of `outbox`, marked with a code point unless that
    /// is 0, waiting for room as far as `patience` goes. No lock is needed or
    /// taken. False if a link has refused one.
    pub(crate) fn send(&self, outbox: &Outbox, code_point: u8, patience: &Patience) -> bool {
        let mut taken = true;
        let may_join = self.shield.is_none() && code_point == 0;
        let mut datagrams = outbox.iter().peekable();
        while let Some(datagram) = datagrams.next() {
            if may_join && let Some(volley) = Volley::gather(&datagram, &mut datagrams) {
                self.send_volley(&volley, patience);
                continue;
            }
            let parts = datagram.parts.map(IoSlice::new);
            for locator in datagram.to {
                if let Some(link) = locator.to_link() {
                    taken &= self.send_by_link(link, &datagram);
                } else if self.shield.is_none() {
                    self.send_to(&parts, locator, code_point, patience);
                }
            }
            if let Some(shield) = &self.shield {
                self.send_sealed(shield, &datagram, code_point, patience);
            }
        }
        taken
    }

    /// Hands one datagram to the sockets.
    pub(crate) fn send_to(
        &self,
        parts: &[IoSlice<'_>],
        to: &Locator,
        code_point: u8,
        patience: &Patience,
    ) {
        let sent = self.send_when_roomy(patience, || match code_point {
            0 => self.transport.send(parts, to),
            _ => self.transport.send_marked(parts, to, code_point),
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

    fn send_by_link(&self, link: u32, datagram: &Datagram<'_>) -> bool {
        let links = self.linking.get();
        let sent = links.map(|links| links.send(link, datagram));
        if let Some(Err(refused)) = sent {
            tracing::trace!(%refused, link, "send");
        }
        sent == Some(Ok(()))
    }

    // --- turns, as the helper sees them ---

    pub(crate) fn turns(&self) -> (u64, bool) {
        // Acquire pairs with the stores in `enter_turn` and `leave_turn`.
        let turns = self.turns.load(Ordering::Acquire);
        (turns, self.in_turn.load(Ordering::Acquire))
    }

    pub(crate) fn enter_turn(&self) {
        self.in_turn.store(true, Ordering::Release);
    }

    pub(crate) fn leave_turn(&self) {
        self.turns.fetch_add(1, Ordering::AcqRel);
        self.in_turn.store(false, Ordering::Release);
        if let Some(helper) = &self.helper {
            helper.turn_left();
        }
    }

    /// Nobody needs to look after a thread that sleeps in its turn.
    pub(crate) fn rest_in_turn(&self, slept: Duration) {
        if let Some(helper) = &self.helper {
            helper.turn_rests(slept);
        }
    }

    /// The turn of whoever looks after a context that nobody spins: at most so
    /// many rounds of emptying the sockets, without sleeping. False when another
    /// thread drives.
    pub fn drive_for_others(&self, rounds: usize) -> bool {
        let Some(mut state) = self.driver.try_lock() else {
            return false;
        };
        self.send_all_aside(false);
        for _ in 0..rounds {
            let handled = self.turn_now(&mut state);
            let rests = || self.linking.get().is_none_or(|links| links.before_sleep());
            // Armed for the helper's sleep, until somebody's turn.
            if handled == 0 && rests() {
                break;
            }
        }
        drop(state);
        if let Some(follower) = self.followers.lock().first() {
            follower.nudge();
        }
        true
    }

    /// When [`Core::turn_now`] has something to do even if no datagram comes;
    /// [`Instant::FAR_FUTURE`] when never.
    pub fn next_deadline(&self) -> Instant {
        self.deadlines.next()
    }

    /// Notes that the helper sleeps for this context; returns until when.
    pub(crate) fn sleep_on_behalf(&self) -> Instant {
        self.sleeping_until.store(u64::MAX, Ordering::SeqCst);
        // Pairs with the fence in `schedule`.
        fence(Ordering::SeqCst);
        let next = self.deadlines.next();
        self.sleeping_until.store(next.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        next.min(self.deadlines.next())
    }

    /// Says goodbye to every peer. Called once, when the last user is gone.
    pub fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.send_aside();
        self.request_shutdown();
        let mut outbox = Outbox::new();
        let now = self.env.now();
        self.participant.lock().farewell(now, &mut outbox);
        // Who does not hear it keeps us for the length of our lease.
        self.send(&outbox, 0, &Patience::of(GOODBYE_WAIT));
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

/// What the context asks of the machine's sockets and memory.
fn socket_plan(
    options: &CoreOptions,
    prefix: GuidPrefix,
    shield: Option<&Arc<Shield>>,
) -> SocketPlan {
    SocketPlan {
        domain_id: options.domain_id,
        local_only: options.local_only,
        multicast: options.multicast && !options.isolated,
        interfaces: options.interfaces.clone(),
        buffer_bytes: options.buffer_bytes,
        prefix,
        shared_memory: SharedMemoryOptions {
            on: options.shared_memory.on
                && !options.isolated
                && shield.is_none_or(|shield| shield.permits_memory()),
            ..options.shared_memory
        },
        warrant: shield.map(security::warrant),
    }
}

fn announce_to(options: &CoreOptions, group: Option<Locator>) -> Vec<Locator> {
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
        group.is_none_or(|g| g == Locator::udp_v4(GROUP.octets(), multicast_port(domain)))
    );
    group.into_iter().chain(local).chain(named).collect()
}

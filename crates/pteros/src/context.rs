//! Context: one DDS domain participant, shared by the nodes of a process.
//!
//! [`Context`] opens the sockets, the shared-memory transport and discovery, and
//! holds what nodes share: logging outputs, simulated time, known types. Options
//! come from [`ContextOptions`], then the command line, then the environment, then
//! defaults.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pteros_runtime::busy_poll::BUSY_POLL_MAX;
use pteros_runtime::config::{Config, DOMAIN_ID_MAX, DiscoveryRange, LEASE_MIN, ZenohSettings};
use pteros_runtime::flow_controller::FlowController;
use pteros_runtime::names::validate_enclave;
use pteros_runtime::platform::Platform;
use pteros_runtime::rtps::id::{EntityId, Guid};
use pteros_runtime::rtps::participant::PathInfo;
use pteros_runtime::shm_transport::{ConnectionCounts, ConnectionTotals};
use pteros_runtime::static_peers::{DiscoveryServer, NamedPeers, StaticPeer};
use pteros_runtime::thread::ThreadSettings;
use pteros_runtime::trace::{BYTES_DEFAULT, Recording, TraceOptions, Tracer};
use pteros_runtime::transport::{OpenTransport, RtpsReach};
use pteros_runtime::udp::SystemPlatform;
use pteros_runtime::{
    Core, CoreCounts, CoreOptions, DiscoveryServerStatus, Limits, PeerDelivery, ReceiveMemoryUse,
    SecurityOptions, SharedMemoryOptions, SilentParticipant, StoreOptions, TableUse,
};

use crate::args::Arguments;
use crate::error::ContextError;
use crate::graph::Graph;
use crate::known_types::KnownTypes;
use crate::log::LogFileOptions;
use crate::log_outputs::{ConsoleSettings, LogOutputs};
use crate::parameter::ParameterFile;
use crate::time_source::SimTime;

/// Options of a context. An unset field takes its value from the environment if
/// `use_environment` is true, else its default.
///
/// ```no_run
/// use pteros::config::DiscoveryRange;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = ContextOptions {
///     domain_id: Some(42),
///     discovery_range: Some(DiscoveryRange::Localhost),
///     ..ContextOptions::from_process()?
/// };
/// let context = Context::with_options(options)?;
/// assert_eq!(context.domain_id(), 42);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    /// The command line's ROS arguments. None by default.
    pub arguments: Arguments,
    /// Whether ROS_DOMAIN_ID and the other environment variables are read. False by
    /// default.
    pub use_environment: bool,
    /// ROS_DOMAIN_ID, 0 to 232; 0 unless set.
    pub domain_id: Option<u32>,
    /// ROS_AUTOMATIC_DISCOVERY_RANGE; the subnet unless set.
    ///
    /// With localhost and no static peers, sockets are bound to 127.0.0.1.
    pub discovery_range: Option<DiscoveryRange>,
    /// Host names or addresses, in addition to those of ROS_STATIC_PEERS, in its format.
    pub static_peers: Vec<String>,
    /// Whether the discovery servers of ROS_DISCOVERY_SERVER relay all participants and
    /// endpoints, as with ROS_SUPER_CLIENT=TRUE: for tools that show the whole graph.
    pub is_super_client: bool,
    /// The security enclave. `--enclave` and ROS_SECURITY_ENCLAVE_OVERRIDE take
    /// precedence.
    pub enclave: Option<String>,
    /// Participant lease duration (RTPS 2.5 §8.5.3.3.2): how long peers wait after
    /// the last announcement before they drop this participant, for example after a
    /// crash. 20 s unless set, at least 100 ms.
    pub participant_lease: Option<Duration>,
    /// Flow controllers for asynchronous publishers, 64 at most; see
    /// [`PublisherOptions::asynchronous`](crate::PublisherOptions::asynchronous).
    pub flow_controllers: Vec<FlowController>,
    /// Folder of the durability stores of transient and persistent publishers.
    ///
    /// If unset and the environment is read: PTEROS_STORE_DIR, else ROS_HOME/store,
    /// else pteros/store in XDG_STATE_HOME or ~/.local/state. Otherwise there is
    /// none.
    pub store_folder: Option<PathBuf>,
    /// The most bytes of samples in one store, PTEROS_STORE_BYTES; 256 MiB unless
    /// set.
    ///
    /// When full, a keep-last store drops its oldest sample; a keep-all store
    /// refuses new ones and reports it.
    pub store_bytes_max: Option<u64>,
    /// Busy polling: how long the thread that serves the sockets polls before it
    /// sleeps.
    ///
    /// `--busy-poll` and PTEROS_BUSY_POLL_US, in microseconds. Off unless set, at
    /// most 100 ms.
    ///
    /// A message that arrives while polling is received without a wake-up, which
    /// saves 10 to 50 µs, more the deeper an idle CPU sleeps. The price is CPU
    /// time. While messages keep coming within the span, polling takes a whole
    /// core. Otherwise it takes nearly none: each fruitless poll halves the span
    /// down to zero, and only a sleep shorter than the span restores it. On a
    /// machine with fewer free cores than polling threads everything becomes
    /// slower.
    pub busy_poll: Option<Duration>,
    /// Scheduling and memory settings of the thread that opens the context:
    /// `--thread-priority`, `--thread-cpus` and `--lock-memory`, where unset here.
    ///
    /// They are applied before anything is opened, so that the background I/O
    /// thread, and threads that the caller starts later, inherit priority and CPUs.
    /// A thread that was started earlier, or needs other settings, calls
    /// [`ThreadSettings::apply`] itself.
    ///
    /// ```no_run
    /// use pteros::prelude::*;
    /// use pteros::thread::{CpuList, Priority};
    /// use pteros::thread::ThreadSettings;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let control = ThreadSettings {
    ///     priority: Some(Priority::new(80)?),
    ///     cpus: Some(CpuList::new([2, 3])?),
    ///     lock_memory: true,
    /// };
    /// let context = Context::new()?;
    /// let node = context.create_node("arm")?;
    /// std::thread::spawn(move || control.apply().map(|()| node.spin()));
    /// # Ok(())
    /// # }
    /// ```
    pub thread: ThreadSettings,
    /// Default of the parameter `use_sim_time` of this context's nodes. False
    /// unless set.
    pub use_sim_time: bool,
    /// Log files of the loggers of its nodes.
    pub log_files: LogFileOptions,
    /// Resource limits: how much peers can make this context store and do, and what
    /// happens beyond.
    ///
    /// The defaults suit robots of some hundred participants.
    pub limits: Limits,
    /// Shared-memory transport to processes of the same user and host.
    ///
    /// They are discovered through it, and messages use it instead of UDP.
    ///
    /// On by default. `--shared-memory off` turns it off; if the command line says
    /// nothing, PTEROS_SHARED_MEMORY=off in the environment does.
    pub shared_memory: SharedMemoryOptions,
    /// Tracing: whether messages are time-stamped at layer boundaries, and where
    /// the records are kept; see [`crate::trace`].
    ///
    /// If unset, `--trace` or, if the environment is read, PTEROS_TRACE names the
    /// folder, with at most PTEROS_TRACE_BYTES per context. Otherwise tracing is
    /// off.
    pub trace: Option<TraceOptions>,
    /// Transports beside RTPS and shared memory, four at most; see [`crate::transport`].
    ///
    /// None by default. With [`DiscoveryRange::Off`] they are the only way out of the
    /// process.
    pub transports: Vec<OpenTransport>,
}

impl ContextOptions {
    /// Options from the environment and the process's `--ros-args`, as used by
    /// [`Context::new`].
    ///
    /// # Errors
    /// When an argument after `--ros-args` is invalid.
    pub fn from_process() -> Result<Self, ContextError> {
        let (arguments, _) = Arguments::from_process()?;
        Ok(Self {
            arguments,
            use_environment: true,
            ..Self::default()
        })
    }

    /// Options for this host only, without the environment: for demos and tests.
    pub fn local(domain_id: u32) -> Self {
        Self {
            domain_id: Some(domain_id),
            discovery_range: Some(DiscoveryRange::Localhost),
            ..Self::default()
        }
    }
}

/// A participant of the ROS graph with its sockets. Cheap to clone, thread-safe.
///
/// Usually one per process. The participant announces its departure to peers when
/// the last clone, node and endpoint is dropped.
#[derive(Clone)]
pub struct Context {
    pub(crate) inner: Arc<ContextCore>,
}

pub(crate) struct ContextCore {
    pub(crate) core: Arc<Core>,
    pub(crate) arguments: Arguments,
    /// Parameter overrides from the command line and its parameter files.
    pub(crate) parameters: ParameterFile,
    pub(crate) sim_time: Arc<SimTime>,
    /// Types of its endpoints, for type descriptions.
    pub(crate) known_types: Arc<KnownTypes>,
    /// Logging outputs that its nodes' loggers share.
    pub(crate) log_outputs: Arc<LogOutputs>,
    pub(crate) use_sim_time: bool,
    /// The state that its transform listeners share. Only [`crate::tf`] knows the type.
    pub(crate) transform_receivers: OnceLock<Box<dyn Any + Send + Sync>>,
    /// Number of the next goal that an action client sends.
    pub(crate) next_goal_number: AtomicU32,
}

impl Drop for ContextCore {
    /// Announces the departure now: the background I/O thread may hold the core a
    /// moment longer, and the process may be about to end.
    fn drop(&mut self) {
        self.core.close();
    }
}

impl Context {
    /// Opens a context from environment and command line.
    ///
    /// Also installs the Ctrl-C handler that ends spinning.
    ///
    /// # Errors
    /// See [`ContextError`].
    pub fn new() -> Result<Self, ContextError> {
        Self::with_options(ContextOptions::from_process()?)
    }

    /// Opens a context. Blocks while the system resolves the names of static peers.
    ///
    /// # Errors
    /// See [`ContextError`].
    pub fn with_options(options: ContextOptions) -> Result<Self, ContextError> {
        Self::with_platform(Arc::new(SystemPlatform::new()), options)
    }

    /// Opens a context on another platform (clock, network, random numbers).
    ///
    /// For simulations, and for tests that count system calls.
    ///
    /// # Errors
    /// See [`ContextError`].
    pub fn with_platform(
        platform: Arc<dyn Platform>,
        options: ContextOptions,
    ) -> Result<Self, ContextError> {
        let config = if options.use_environment {
            Config::from_environment()?
        } else {
            Config::default()
        };
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let parameters = ParameterFile::from_arguments(&options.arguments)?;
        let log = LogOutputs::new(
            platform.clone(),
            &options.arguments.log,
            &ConsoleSettings::from(&config),
            &options.log_files,
            config.log_folder.clone(),
        )?;
        let core_options = core_options(&options, config)?;
        thread_settings(&options).apply()?;
        let core = Core::open(platform, core_options)?;
        Ok(Self {
            inner: Arc::new(ContextCore {
                core,
                arguments: options.arguments,
                parameters,
                sim_time: Arc::default(),
                known_types: Arc::default(),
                log_outputs: log,
                use_sim_time: options.use_sim_time,
                transform_receivers: OnceLock::new(),
                next_goal_number: AtomicU32::new(1),
            }),
        })
    }

    /// The runtime, for client libraries of other languages.
    #[doc(hidden)]
    pub fn runtime(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// The command line's ROS arguments, for client libraries of other languages.
    #[doc(hidden)]
    pub fn arguments(&self) -> &Arguments {
        &self.inner.arguments
    }

    /// The outputs of its loggers, for client libraries of other languages.
    #[doc(hidden)]
    pub fn log_outputs(&self) -> &Arc<LogOutputs> {
        &self.inner.log_outputs
    }

    /// The graph cache: nodes, topics and endpoints discovered so far.
    pub fn graph(&self) -> Graph {
        Graph::new(self.inner.core.clone(), self.inner.clone())
    }

    /// Its DDS domain id.
    pub fn domain_id(&self) -> u32 {
        self.inner.core.options().domain_id
    }

    /// Runs `work` on a new thread with that name.
    ///
    /// In a simulation, the simulation schedules the thread with all others. Code
    /// that is to be simulated starts its threads here.
    ///
    /// # Errors
    /// The operating system's, when it cannot create a thread.
    pub fn spawn_thread(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        self.core().platform.spawn(name, Box::new(work))
    }

    /// Ends every spin and every wait of this context, permanently.
    ///
    /// Publishing goes on. Thread-safe; returns at once.
    pub fn shutdown(&self) {
        self.inner.core.request_shutdown();
    }

    /// Whether [`Context::shutdown`] was called or Ctrl-C was pressed.
    pub fn is_shut_down(&self) -> bool {
        self.inner.core.is_shut_down()
    }

    /// Socket buffers that are smaller than requested, as warnings.
    ///
    /// Each names the system setting that helps.
    pub fn socket_buffer_warnings(&self) -> &[String] {
        self.inner.core.advice()
    }

    /// How full the tables of remote participants and endpoints are, and which host
    /// fills them. Counts all entries: for diagnostics. Locks discovery shortly.
    pub fn table_uses(&self) -> Vec<TableUse> {
        self.inner.core.rtps().table_uses()
    }

    /// The participants that have announced themselves for some seconds and answer
    /// nothing. Nothing is exchanged with them: the network carries packets in one
    /// direction only, or they do not understand ours. For diagnostics. Locks discovery
    /// shortly.
    pub fn silent_participants(&self) -> Vec<SilentParticipant> {
        self.inner.core.rtps().silent_participants()
    }

    /// The discovery servers of ROS_DISCOVERY_SERVER, in their order. For diagnostics. Locks
    /// discovery shortly.
    pub fn discovery_servers(&self) -> Vec<DiscoveryServerStatus> {
        self.inner.core.rtps().discovery_servers()
    }

    /// The number of participants that announced themselves and have not answered yet.
    /// For diagnostics. Locks discovery shortly.
    pub fn unvalidated_participants(&self) -> usize {
        self.inner.core.rtps().unvalidated_participants()
    }

    /// The receive memory that remote participants fill: fragments, samples that were
    /// not taken, and what discovery stores of them. Counts all participants: for
    /// diagnostics. Locks discovery shortly.
    pub fn receive_memory_use(&self) -> ReceiveMemoryUse {
        self.inner.core.rtps().receive_memory_use()
    }

    /// Datagrams sent and received since the context was opened.
    pub fn counts(&self) -> CoreCounts {
        self.inner.core.counts()
    }

    /// Drops and refusals of its transports beside RTPS: transport, counter, total. For
    /// diagnostics. Locks a transport's discovery shortly.
    pub fn transport_counters(&self) -> Vec<(String, &'static str, u64)> {
        self.inner.core.transports().counters()
    }

    /// Counters of its shared-memory connections: carried and refused messages.
    ///
    /// `None` without a shared-memory transport.
    pub fn connection_counts(&self) -> Option<ConnectionCounts> {
        self.inner.core.discovery().connection_counts()
    }

    /// Counters of another process's shared-memory connections.
    ///
    /// They are those that the process publishes itself, up to four seconds old.
    ///
    /// `None` unless it is a Pteros process of this user and host, with shared
    /// memory on both sides.
    pub fn connection_totals(&self, participant: Guid) -> Option<ConnectionTotals> {
        self.inner
            .core
            .discovery()
            .connection_totals(participant.prefix)
    }

    /// Copy of the trace recorded so far, without overwritten records.
    ///
    /// `None` if the context is not [traced](ContextOptions::trace). Copies the
    /// whole trace; recording goes on meanwhile.
    pub fn trace_recording(&self) -> Option<Recording> {
        self.inner.core.tracer().map(Tracer::recording)
    }

    /// The GUID of its participant.
    pub fn guid(&self) -> Guid {
        self.inner.core.prefix().with(EntityId::PARTICIPANT)
    }

    /// How messages travel between this context and that of an endpoint, and why
    /// not through shared memory.
    pub fn delivery_path_to(&self, endpoint: Guid) -> PeerDelivery {
        self.inner.core.discovery().delivery_path_to(endpoint)
    }

    /// The network addresses of the participant of an endpoint, as seen from this
    /// context: which one its traffic uses, and what is known of the others, the
    /// preferred first. Empty for participants of this host.
    pub fn paths_to(&self, endpoint: Guid) -> Vec<PathInfo> {
        self.inner.core.discovery().paths_to(endpoint.prefix)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("domain_id", &self.domain_id())
            .field("participant", &self.core().prefix())
            .finish()
    }
}

fn core_options(options: &ContextOptions, config: Config) -> Result<CoreOptions, ContextError> {
    let domain_id = options.domain_id.unwrap_or(config.domain_id);
    if domain_id > DOMAIN_ID_MAX {
        return Err(ContextError::DomainId(domain_id));
    }
    if let Some(lease) = options.participant_lease.filter(|lease| *lease < LEASE_MIN) {
        return Err(ContextError::Lease(lease));
    }
    let range = options.discovery_range.unwrap_or(config.discovery_range);
    let wire = options.arguments.wire.or(config.wire).unwrap_or_default();
    let default = pteros_rcl::core_options(&config, !wire.has_rtps());
    let shared_memory = options.shared_memory.enabled
        && options
            .arguments
            .shared_memory
            .or(config.shared_memory)
            .unwrap_or(true);
    let mut transports = options.transports.clone();
    let zenoh = wire.has_zenoh().then(|| config.zenoh()).transpose()?;
    let has_discovery = range != DiscoveryRange::Off;
    let rtps_reach = RtpsReach::of(wire, has_discovery, shared_memory, || {
        let beside = |settings| reach_beside_zenoh(settings, domain_id);
        zenoh.as_ref().map_or(RtpsReach::Off, beside)
    });
    if let Some(settings) = zenoh {
        transports.push(zenoh_transport(settings)?);
    }
    let mut peers = config.named_peers.static_peers;
    peers.extend(options.static_peers.iter().cloned());
    let mut static_peers = Vec::new();
    if range.uses_static_peers() {
        for peer in &peers {
            let resolved = StaticPeer::resolve(peer);
            static_peers.push(resolved.map_err(|reason| ContextError::StaticPeer {
                peer: peer.clone(),
                reason,
            })?);
        }
    }
    let mut discovery_servers = Vec::new();
    if range != DiscoveryRange::Off {
        for server in &config.named_peers.discovery_servers {
            let resolved = DiscoveryServer::resolve(server);
            discovery_servers.push(resolved.map_err(|reason| ContextError::DiscoveryServer {
                server: server.clone(),
                reason,
            })?);
        }
    }
    let enclave = config
        .enclave_override
        .or_else(|| options.arguments.enclave.clone())
        .or_else(|| options.enclave.clone())
        .unwrap_or_else(|| "/".into());
    validate_enclave(&enclave)?;
    let security = match &config.security {
        Some(settings) => SecurityOptions::from_environment(settings, &enclave)?,
        None => None,
    };
    if security.is_some() && wire.has_zenoh() {
        return Err(ContextError::SecuredZenoh);
    }
    let spin = options
        .busy_poll
        .or(options.arguments.busy_poll)
        .or(config.busy_poll);
    if let Some(spin) =
        spin.filter(|spin| pteros_runtime::platform::Duration::from(*spin) > BUSY_POLL_MAX)
    {
        return Err(ContextError::Spin(spin));
    }
    FlowController::validate(&options.flow_controllers)?;
    options.limits.validate()?;
    options.shared_memory.validate()?;
    let store_bytes = options.store_bytes_max.or(config.store_bytes);
    let trace_folder = options.arguments.trace.clone().or(config.trace_folder);
    let trace = options
        .trace
        .clone()
        .or(trace_folder.map(|folder| TraceOptions {
            folder: Some(folder),
            bytes_max: config.trace_bytes.unwrap_or(BYTES_DEFAULT),
        }));
    Ok(CoreOptions {
        store: StoreOptions {
            folder: options.store_folder.clone().or(config.store_folder),
            bytes_max: store_bytes.unwrap_or(default.store.bytes_max),
        },
        domain_id,
        local_only: range == DiscoveryRange::Localhost
            && static_peers.is_empty()
            && discovery_servers.is_empty(),
        rtps_reach,
        multicast: matches!(
            range,
            DiscoveryRange::Subnet | DiscoveryRange::SystemDefault
        ),
        named_peers: NamedPeers {
            static_peers,
            discovery_servers,
            is_super_client: options.is_super_client || config.named_peers.is_super_client,
        },
        enclave,
        transports,
        lease: options.participant_lease.map_or(default.lease, Into::into),
        flow_controllers: options.flow_controllers.clone(),
        limits: options.limits,
        busy_poll: spin.map_or(default.busy_poll, Into::into),
        shared_memory: SharedMemoryOptions {
            enabled: shared_memory,
            ..options.shared_memory
        },
        security,
        trace,
        ..default
    })
}

#[cfg(feature = "zenoh")]
fn zenoh_transport(settings: ZenohSettings) -> Result<OpenTransport, ContextError> {
    Ok(pteros_zenoh::transport(settings))
}

#[cfg(feature = "zenoh")]
fn reach_beside_zenoh(settings: &ZenohSettings, domain_id: u32) -> RtpsReach {
    pteros_zenoh::rtps_reach(settings, domain_id)
}

#[cfg(not(feature = "zenoh"))]
fn reach_beside_zenoh(_: &ZenohSettings, _: u32) -> RtpsReach {
    RtpsReach::Off
}

#[cfg(not(feature = "zenoh"))]
fn zenoh_transport(_: ZenohSettings) -> Result<OpenTransport, ContextError> {
    Err(ContextError::NoZenoh)
}

fn thread_settings(options: &ContextOptions) -> ThreadSettings {
    let (own, given) = (&options.thread, &options.arguments.thread);
    ThreadSettings {
        priority: own.priority.or(given.priority),
        cpus: own.cpus.clone().or_else(|| given.cpus.clone()),
        lock_memory: own.lock_memory || given.lock_memory,
    }
}

//! A context: one participant in the graph, shared by the nodes of a process.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use pteros_rmw::config::{Config, DOMAIN_ID_MAX, DiscoveryRange, LEASE_MIN};
use pteros_rmw::env::Env;
use pteros_rmw::flow::FlowController;
use pteros_rmw::links::{LinkCounts, LinkTotals};
use pteros_rmw::names::validate_enclave;
use pteros_rmw::rtps::id::{EntityId, Guid};
use pteros_rmw::spin::SPIN_MAX;
use pteros_rmw::thread::ThreadSettings;
use pteros_rmw::trace::{BYTES_DEFAULT, Recording, TraceOptions, Tracer};
use pteros_rmw::udp::SystemEnv;
use pteros_rmw::{
    Core, CoreCounts, CoreOptions, Limits, PeerPath, SecurityOptions, SharedMemoryOptions,
    StoreOptions,
};

use crate::args::Arguments;
use crate::clock::SimTime;
use crate::error::{ContextError, NodeError};
use crate::graph::Graph;
use crate::log::LogFileOptions;
use crate::logger::{ConsoleSettings, LogHub};
use crate::node::{Node, NodeOptions};
use crate::parameter::ParameterFile;
use crate::tf::TransformEars;
use crate::type_description::TypesInUse;

/// How a context is set up. Every unset field takes its value from the
/// environment if `use_environment` is true, else its default.
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
    /// What the command line says. Nothing by default.
    pub arguments: Arguments,
    /// Whether ROS_DOMAIN_ID and its kin are read. False by default.
    pub use_environment: bool,
    /// ROS_DOMAIN_ID, 0 to 232; 0 unless set.
    pub domain_id: Option<u32>,
    /// ROS_AUTOMATIC_DISCOVERY_RANGE; the subnet unless set. On this host alone,
    /// without static peers, sockets are bound to 127.0.0.1.
    pub discovery_range: Option<DiscoveryRange>,
    /// Host names or IPv4 addresses beside those of ROS_STATIC_PEERS.
    pub static_peers: Vec<String>,
    /// The security enclave; `--enclave` and ROS_SECURITY_ENCLAVE_OVERRIDE go
    /// before it.
    pub enclave: Option<String>,
    /// How long peers keep us without hearing of us: after a crash they notice
    /// that late. 20 s unless set, at least 100 ms.
    pub lease: Option<Duration>,
    /// What asynchronous publishers may be paced by, 64 at most; see
    /// [`PublisherOptions::asynchronous`](crate::PublisherOptions::asynchronous).
    pub flow_controllers: Vec<FlowController>,
    /// The folder of the stores of transient and persistent publishers. Unset:
    /// PTEROS_STORE_DIR, else ROS_HOME/store, else pteros/store in
    /// XDG_STATE_HOME or ~/.local/state, if the environment is read; else
    /// there is none.
    pub store_folder: Option<PathBuf>,
    /// The most bytes of samples in one store, PTEROS_STORE_BYTES; 256 MiB
    /// unless set. Beyond it a store that keeps the last samples drops its
    /// oldest, one that keeps all takes no new one and says so.
    pub store_bytes_max: Option<u64>,
    /// How long the thread that serves the sockets polls them before it sleeps,
    /// for messages that come within that time of each other: `--spin` and
    /// PTEROS_SPIN_US, in microseconds. Never unless set, at most 100 ms.
    ///
    /// A message that comes meanwhile is received without a wake-up, which
    /// spares some 10 to 50 µs, the more the deeper an idle CPU sleeps. The price
    /// is CPU: while messages keep coming within the span, the whole of a core;
    /// else nearly none, since polling in vain halves the span until it is over
    /// and only a sleep shorter than the span begins it anew. On a machine with
    /// fewer free cores than polling threads it makes everything slower.
    pub spin: Option<Duration>,
    /// What the thread that opens the context asks of the scheduler, and the
    /// process of its memory: `--thread-priority`, `--thread-cpus` and
    /// `--lock-memory`, where unset here. Applied before anything is opened, so
    /// that the process's helper thread, and whatever the caller starts later,
    /// inherits priority and CPUs. A thread that was started before, or is to
    /// have others, calls [`ThreadSettings::apply`] itself.
    ///
    /// ```no_run
    /// use pteros::prelude::*;
    /// use pteros::thread::{Cpus, Priority};
    /// use pteros::ThreadSettings;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let control = ThreadSettings {
    ///     priority: Some(Priority::new(80)?),
    ///     cpus: Some(Cpus::new([2, 3])?),
    ///     lock_memory: true,
    /// };
    /// let context = Context::new()?;
    /// let node = context.node("arm")?;
    /// std::thread::spawn(move || control.apply().map(|()| node.spin()));
    /// # Ok(())
    /// # }
    /// ```
    pub thread: ThreadSettings,
    /// What the parameter `use_sim_time` of this context's nodes is unless somebody
    /// gives it a value. False by default.
    pub use_sim_time: bool,
    /// Log files of its nodes' loggers.
    pub log_files: LogFileOptions,
    /// What peers can make this context keep and do, and what happens beyond;
    /// the defaults suit robots of some hundred participants.
    pub limits: Limits,
    /// Shared memory with processes of this user and host, which are met by it
    /// and which messages go through instead of UDP. On unless the command line says
    /// `--shared-memory off` or, if it says nothing, PTEROS_SHARED_MEMORY=off is
    /// read from the environment.
    pub shared_memory: SharedMemoryOptions,
    /// Whether time stamps are taken at the boundaries of the layers that messages
    /// pass, and where they are kept; see [`crate::trace`]. Unset: in the folder that
    /// `--trace` or, if the environment is read, PTEROS_TRACE names, with at most
    /// PTEROS_TRACE_BYTES a context; else nothing is traced.
    pub trace: Option<TraceOptions>,
}

impl ContextOptions {
    /// Environment and the process's `--ros-args`, as [`Context::new`] uses.
    ///
    /// # Errors
    /// When something after `--ros-args` is wrong.
    pub fn from_process() -> Result<Self, ContextError> {
        let (arguments, _) = Arguments::from_process()?;
        Ok(Self {
            arguments,
            use_environment: true,
            ..Self::default()
        })
    }

    /// This host only and nothing from the environment: for demos and tests.
    pub fn local(domain_id: u32) -> Self {
        Self {
            domain_id: Some(domain_id),
            discovery_range: Some(DiscoveryRange::Localhost),
            ..Self::default()
        }
    }
}

/// One participant of the ROS graph with its sockets. Cheap to clone,
/// thread-safe; the participant says goodbye when the last clone, node and
/// endpoint is gone. Usually one per process.
#[derive(Clone)]
pub struct Context {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) core: Arc<Core>,
    pub(crate) arguments: Arguments,
    /// What those say about parameters.
    pub(crate) parameters: ParameterFile,
    pub(crate) sim_time: Arc<SimTime>,
    /// The types of its endpoints.
    pub(crate) types: Arc<TypesInUse>,
    /// What its nodes' loggers share.
    pub(crate) log: Arc<LogHub>,
    pub(crate) use_sim_time: bool,
    /// What its transform listeners share.
    pub(crate) transforms: TransformEars,
    /// Goals that its action clients have asked for.
    pub(crate) goals_asked: AtomicU32,
}

impl Drop for Inner {
    /// Says goodbye now, though the helper thread may hold the core a moment
    /// longer: the process may be about to end.
    fn drop(&mut self) {
        self.core.close();
    }
}

impl Context {
    /// Opens a context as the environment and the command line say, and
    /// installs the handler that ends spinning on Ctrl-C.
    ///
    /// # Errors
    /// See [`ContextError`].
    pub fn new() -> Result<Self, ContextError> {
        Self::with_options(ContextOptions::from_process()?)
    }

    /// Opens a context. Blocks while the system resolves the names of static
    /// peers, if there are any.
    ///
    /// # Errors
    /// See [`ContextError`].
    pub fn with_options(options: ContextOptions) -> Result<Self, ContextError> {
        Self::with_env(Arc::new(SystemEnv::new()), options)
    }

    /// Opens a context on another clock and network than this machine's: for
    /// simulations, and for tests that count.
    ///
    /// # Errors
    /// See [`ContextError`].
    pub fn with_env(env: Arc<dyn Env>, options: ContextOptions) -> Result<Self, ContextError> {
        let config = match options.use_environment {
            true => Config::from_environment()?,
            false => Config::default(),
        };
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let parameters = ParameterFile::of_arguments(&options.arguments)?;
        let console = ConsoleSettings {
            format: config.console_format.clone(),
            colours: config.console_colours,
            to_stdout: config.console_to_stdout,
        };
        let log = LogHub::new(
            env.clone(),
            &options.arguments.log,
            &console,
            &options.log_files,
            config.log_folder.clone(),
        )?;
        let core_options = core_options(&options, config)?;
        thread_settings(&options).apply()?;
        let core = Core::open(env, core_options)?;
        Ok(Self {
            inner: Arc::new(Inner {
                core,
                arguments: options.arguments,
                parameters,
                sim_time: Arc::default(),
                types: Arc::default(),
                log,
                use_sim_time: options.use_sim_time,
                transforms: TransformEars::default(),
                goals_asked: AtomicU32::new(1),
            }),
        })
    }

    /// A node in the root namespace, remapped as the command line says.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub fn node(&self, name: &str) -> Result<Node, NodeError> {
        self.node_with(NodeOptions::new(name))
    }

    /// A node with options.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub fn node_with(&self, options: NodeOptions) -> Result<Node, NodeError> {
        Node::new(self, options)
    }

    /// What is known of the graph.
    pub fn graph(&self) -> Graph {
        Graph::new(self.clone())
    }

    /// The domain it is in.
    pub fn domain_id(&self) -> u32 {
        self.inner.core.options().domain_id
    }

    /// Runs `work` on a thread of its own, which is called `name`. In a simulation it
    /// takes turns with the others there, so whoever wants to be simulated starts its
    /// threads here.
    ///
    /// # Errors
    /// The operating system's, when it has no thread to give.
    pub fn spawn_thread(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        self.core().env.spawn(name, Box::new(work))
    }

    /// Ends every spin and every wait of this context, for good; publishing goes
    /// on. Thread-safe; returns at once.
    pub fn shutdown(&self) {
        self.inner.core.request_shutdown();
    }

    /// Whether [`Context::shutdown`] was called or Ctrl-C was pressed.
    pub fn is_shut_down(&self) -> bool {
        self.inner.core.is_shut_down()
    }

    /// What keeps the sockets below what was asked for, each with the setting
    /// that mends it.
    pub fn advice(&self) -> &[String] {
        self.inner.core.advice()
    }

    /// Datagrams sent and received since the start.
    pub fn counts(&self) -> CoreCounts {
        self.inner.core.counts()
    }

    /// What links of shared memory have carried and refused; `None` where this
    /// context has none.
    pub fn link_counts(&self) -> Option<LinkCounts> {
        self.inner.core.link_counts()
    }

    /// What the links of another process have carried and refused, as it says
    /// itself, up to four seconds ago; `None` unless it is a process of this user
    /// and host, of this stack, with shared memory on both sides.
    pub fn link_totals(&self, participant: Guid) -> Option<LinkTotals> {
        self.inner.core.link_totals(participant.prefix)
    }

    /// What has been recorded of its messages, as far as it is still there; `None`
    /// if it is not [traced](ContextOptions::trace). Copies the whole trace;
    /// recording goes on meanwhile.
    pub fn recording(&self) -> Option<Recording> {
        self.inner.core.tracer().map(Tracer::recording)
    }

    /// The identity of its participant.
    pub fn guid(&self) -> Guid {
        self.inner.core.prefix().with(EntityId::PARTICIPANT)
    }

    /// How messages travel between this context and the one of an endpoint, and
    /// why not by shared memory.
    pub fn path_to(&self, endpoint: Guid) -> PeerPath {
        self.inner.core.path_to(endpoint.prefix)
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
    let default = CoreOptions::default();
    let domain_id = options.domain_id.unwrap_or(config.domain_id);
    if domain_id > DOMAIN_ID_MAX {
        return Err(ContextError::DomainId(domain_id));
    }
    if let Some(lease) = options.lease.filter(|lease| *lease < LEASE_MIN) {
        return Err(ContextError::Lease(lease));
    }
    let range = options.discovery_range.unwrap_or(config.discovery_range);
    let mut peers = config.static_peers;
    peers.extend(options.static_peers.iter().cloned());
    let mut static_peers = Vec::new();
    if range.uses_static_peers() {
        for peer in &peers {
            static_peers.extend(resolve(peer)?);
        }
    }
    let enclave = config
        .enclave_override
        .or_else(|| options.arguments.enclave.clone())
        .or_else(|| options.enclave.clone())
        .unwrap_or_else(|| "/".into());
    validate_enclave(&enclave)?;
    let security = match &config.security {
        Some(settings) => SecurityOptions::of_environment(settings, &enclave)?,
        None => None,
    };
    let spin = options.spin.or(options.arguments.spin).or(config.spin);
    if let Some(spin) = spin.filter(|spin| pteros_rmw::env::Duration::from(*spin) > SPIN_MAX) {
        return Err(ContextError::Spin(spin));
    }
    FlowController::validate(&options.flow_controllers)?;
    options.limits.validate()?;
    options.shared_memory.validate()?;
    let (receive_bytes, send_bytes) = default.buffer_bytes;
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
        local_only: range == DiscoveryRange::Localhost && static_peers.is_empty(),
        isolated: range == DiscoveryRange::Off,
        multicast: matches!(
            range,
            DiscoveryRange::Subnet | DiscoveryRange::SystemDefault
        ),
        static_peers,
        interfaces: config.interfaces.iter().map(ToString::to_string).collect(),
        buffer_bytes: (
            config.receive_buffer_bytes.unwrap_or(receive_bytes),
            config.send_buffer_bytes.unwrap_or(send_bytes),
        ),
        fragment_bytes_same_host: config
            .local_fragment_bytes
            .unwrap_or(default.fragment_bytes_same_host),
        fragment_bytes_network: config
            .fragment_bytes
            .unwrap_or(default.fragment_bytes_network),
        enclave,
        lease: options.lease.map_or(default.lease, Into::into),
        flow_controllers: options.flow_controllers.clone(),
        limits: options.limits,
        spin: spin.map_or(default.spin, Into::into),
        shared_memory: SharedMemoryOptions {
            on: options.shared_memory.on
                && options
                    .arguments
                    .shared_memory
                    .or(config.shared_memory)
                    .unwrap_or(true),
            ..options.shared_memory
        },
        security,
        trace,
    })
}

fn thread_settings(options: &ContextOptions) -> ThreadSettings {
    let (own, given) = (&options.thread, &options.arguments.thread);
    ThreadSettings {
        priority: own.priority.or(given.priority),
        cpus: own.cpus.clone().or_else(|| given.cpus.clone()),
        lock_memory: own.lock_memory || given.lock_memory,
    }
}

/// The IPv4 addresses of a peer. Blocks while the system's resolver works.
fn resolve(peer: &str) -> Result<Vec<Ipv4Addr>, ContextError> {
    let failed = |reason: String| ContextError::StaticPeer {
        peer: peer.into(),
        reason,
    };
    let addresses = (peer, 0)
        .to_socket_addrs()
        .map_err(|error| failed(error.to_string()))?;
    let found: Vec<Ipv4Addr> = addresses
        .filter_map(|address| match address {
            SocketAddr::V4(v4) => Some(*v4.ip()),
            SocketAddr::V6(_) => None,
        })
        .collect();
    if found.is_empty() {
        return Err(failed("it has no IPv4 address".into()));
    }
    Ok(found)
}

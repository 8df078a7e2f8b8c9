//! Session of a verb: a context, a hidden node, and the wait for discovery.
//!
//! There is no daemon. On a healthy network every participant replies to a new one
//! within a few milliseconds, so a session waits until no more changes arrive. A
//! fixed time would be too long for a small graph and too short for a large one.

use crate::cli_context::CliContext;
use crate::exit_errors::Interrupted;
use anyhow::{Context as _, Result};
use clap::Args;
use pteros::NamedQosExt;
use pteros::args::{Arguments, resolve_name};
use pteros::interfaces::rcl_interfaces::msg::{Log, ParameterEvent};
use pteros::names::{NameKind, validate_dds_topic};
use pteros::network::{DiscoveryServerStatus, SilentParticipant};
use pteros::qos::QosProfile;
use pteros::{
    Context, ContextOptions, Graph, Node, NodeOptions, Publisher,
    executors::SingleThreadedExecutor, graph::TopicInfo,
};
use std::time::{Duration, Instant};

/// Discovery flags of every verb that reads the graph.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct DiscoveryFlags {
    /// Wait exactly this long for discovery, in seconds
    /// [default: until no changes arrive, at most 0.4; over Zenoh or by a discovery server 3]
    #[arg(long, value_name = "SECONDS", value_parser = crate::value_parsers::positive_seconds)]
    spin_time: Option<Duration>,
    /// Accepted for compatibility with ros2: there is no daemon
    #[arg(long)]
    no_daemon: bool,
    /// Accepted for compatibility with ros2: the verb does not use the graph's time
    #[arg(short = 's', long)]
    use_sim_time: bool,
}

/// ros2's discovery flags of a verb that does not read the graph.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct UnusedGraphFlags {
    /// Accepted for compatibility with ros2: the verb does not wait for discovery
    #[arg(long, value_name = "SECONDS", value_parser = crate::value_parsers::positive_seconds)]
    spin_time: Option<Duration>,
    /// Accepted for compatibility with ros2: there is no daemon
    #[arg(long)]
    no_daemon: bool,
    /// Accepted for compatibility with ros2: give the component -p use_sim_time:=true
    #[arg(short = 's', long)]
    use_sim_time: bool,
}

/// Discovery is complete when nothing has changed for this long. It is several
/// times the response time of a busy host and of a Wi-Fi round trip.
const QUIET_PERIOD: Duration = Duration::from_millis(120);
/// How long a participant may take to answer before it counts as silent, and how often
/// that is checked.
const ANSWER_WAIT: Duration = Duration::from_millis(1_500);
const ANSWER_CHECK_PERIOD: Duration = Duration::from_millis(100);
/// Largest wait, so that an empty network is reported within half a second.
const WAIT_MAX: Duration = Duration::from_millis(400);
/// The same over another transport, as Zenoh, or by discovery servers. Zenoh waits 0.3 s for RTPS to reach a peer, and its
/// router may be far away.
const QUIET_PERIOD_OF_TRANSPORTS: Duration = Duration::from_millis(500);
const FIRST_WAIT_OF_TRANSPORTS: Duration = Duration::from_secs(1);
const WAIT_MAX_OF_TRANSPORTS: Duration = Duration::from_secs(3);

/// One verb's participation in the graph. Dropping it leaves the graph.
pub struct Session {
    /// The participant.
    pub context: Context,
    /// The node, hidden unless the user gave its name.
    pub node: Node,
    executor: SingleThreadedExecutor,
    arguments: Arguments,
    dds_names: bool,
    standard_topics: Option<StandardTopics>,
}

/// Publishers of the topics that every ROS 2 node has. Nothing is published: they
/// are listed, as those of ros2's own node are.
struct StandardTopics {
    _parameter_events: Publisher<ParameterEvent>,
    _rosout: Publisher<Log>,
}

impl StandardTopics {
    fn create(node: &Node) -> Result<Self> {
        let events = "/parameter_events".qos(QosProfile::preset("parameter_events")?);
        Ok(Self {
            _parameter_events: node.create_publisher(events)?,
            _rosout: node.create_publisher("/rosout".qos(QosProfile::rosout()))?,
        })
    }
}

impl Session {
    /// Joins the graph with the environment and `--ros-args`, as the named node or
    /// a hidden one.
    pub fn open(cli: &CliContext, node_name: Option<&str>) -> Result<Self> {
        Self::open_with(cli, node_name, Ok)
    }

    /// As [`Session::open`], with the topics that every ROS 2 node has: `ros2 topic
    /// list` shows `/parameter_events` and `/rosout` on an empty graph too. Access
    /// control may forbid them; then the graph is shown without.
    pub fn open_with_standard_topics(cli: &CliContext) -> Result<Self> {
        let mut session = Self::open(cli, None)?;
        if !session.dds_names {
            match StandardTopics::create(&session.node) {
                Ok(topics) => session.standard_topics = Some(topics),
                Err(error) => tracing::debug!("/parameter_events and /rosout: {error:#}"),
            }
        }
        Ok(session)
    }

    /// Joins the graph as an ordinary node with parameters.
    pub fn open_visible(cli: &CliContext, node_name: &str) -> Result<Self> {
        Self::create(cli, NodeOptions::new(node_name), Ok)
    }

    /// As [`Session::open`], with other context options.
    pub fn open_with(
        cli: &CliContext,
        node_name: Option<&str>,
        more: impl FnOnce(ContextOptions) -> Result<ContextOptions>,
    ) -> Result<Self> {
        let hidden = format!("_pteros_cli_{}", std::process::id());
        // Its parameters are of no use to other nodes, as with ros2's command.
        let node = NodeOptions::new(node_name.unwrap_or(&hidden))
            .start_parameter_services(false)
            .start_type_description_service(false)
            .start_parameter_event_publisher(false);
        Self::create(cli, node, more)
    }

    fn create(
        cli: &CliContext,
        node: NodeOptions,
        more: impl FnOnce(ContextOptions) -> Result<ContextOptions>,
    ) -> Result<Self> {
        let options = more(ContextOptions {
            arguments: cli.arguments.clone(),
            use_environment: true,
            // The commands show what other nodes have.
            is_super_client: true,
            ..ContextOptions::default()
        })?;
        let context = Context::with_options(options).context("joining the graph")?;
        let node = context.create_node(node)?;
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node)?;
        Ok(Self {
            context,
            node,
            executor,
            arguments: cli.arguments.clone(),
            dds_names: cli.dds_names,
            standard_topics: None,
        })
    }

    /// The QoS profile for an endpoint on a topic of the command line.
    pub fn qos(&self, mut qos: QosProfile) -> QosProfile {
        qos.avoid_ros_namespace_conventions = self.dds_names;
        qos
    }

    /// The topics under their ROS or DDS names, as the user chose.
    pub fn topics(&self, graph: &Graph) -> Vec<TopicInfo> {
        if self.dds_names {
            graph.dds_topics()
        } else {
            graph.topics()
        }
    }

    /// Serves the network and at most one callback. Blocks for at most `timeout`.
    pub fn spin_once(&self, timeout: Duration) {
        self.executor.spin_once(timeout);
    }

    /// Serves the network and runs callbacks for that long, or until Ctrl-C.
    pub fn spin_for(&self, span: Duration) {
        self.executor.spin_until(|| false, span);
    }

    /// Waits for discovery and returns the graph.
    pub fn discover(&self, flags: &DiscoveryFlags) -> Graph {
        let graph = self.context.graph();
        match flags.spin_time {
            Some(time) => self.wait_until_quiet(&graph, time, time, time),
            // Each other transport has counters.
            None if self.context.transport_counters().is_empty()
                && self.context.discovery_servers().is_empty() =>
            {
                self.wait_until_quiet(&graph, WAIT_MAX, WAIT_MAX, QUIET_PERIOD);
            }
            None => self.wait_until_quiet(
                &graph,
                WAIT_MAX_OF_TRANSPORTS,
                FIRST_WAIT_OF_TRANSPORTS,
                QUIET_PERIOD_OF_TRANSPORTS,
            ),
        }
        for server in self.silent_discovery_servers() {
            tracing::warn!("{server}; start it, or correct ROS_DISCOVERY_SERVER");
        }
        graph
    }

    /// The discovery servers that do not answer.
    pub fn silent_discovery_servers(&self) -> Vec<DiscoveryServerStatus> {
        let mut servers = self.context.discovery_servers();
        servers.retain(|server| server.prefix.is_none());
        servers
    }

    /// Whether the session goes on. What was not found by its end may be there.
    ///
    /// # Errors
    /// [`Interrupted`] if Ctrl-C or SIGTERM has ended it.
    pub fn check_interrupted(&self) -> Result<()> {
        if self.context.is_shut_down() {
            return Err(Interrupted::now().into());
        }
        Ok(())
    }

    /// The participants that announce themselves and answer nothing. Waits for a second
    /// while one has not answered.
    pub fn silent_participants(&self) -> Vec<SilentParticipant> {
        let graph = self.context.graph();
        let end = Instant::now() + ANSWER_WAIT;
        while self.context.unvalidated_participants() > 0
            && self.context.silent_participants().is_empty()
            && Instant::now() < end
            && !self.context.is_shut_down()
        {
            graph.wait_for_change(graph.revision(), ANSWER_CHECK_PERIOD);
        }
        self.context.silent_participants()
    }

    /// Waits until the graph has changed and then not changed for `quiet`; at most
    /// for `wait_max`, and for `first_wait` while nothing changes.
    fn wait_until_quiet(
        &self,
        graph: &Graph,
        wait_max: Duration,
        first_wait: Duration,
        quiet: Duration,
    ) {
        let end = Instant::now() + wait_max;
        let mut revision = graph.revision();
        let mut next_wait = first_wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.context.is_shut_down() {
                return;
            }
            let now = graph.wait_for_change(revision, next_wait.min(left));
            if now == revision {
                return;
            }
            revision = now;
            next_wait = quiet;
        }
    }

    /// The full name of a service, with remaps applied.
    pub fn service(&self, name: &str) -> Result<String> {
        self.resolve(NameKind::Service, name)
    }

    fn resolve(&self, kind: NameKind, name: &str) -> Result<String> {
        let (node, namespace) = (self.node.name(), self.node.namespace());
        let arguments = [&self.arguments];
        Ok(resolve_name(&arguments, kind, name, node, namespace)?)
    }

    /// The full name of a topic, with the remaps of `--ros-args` applied. Endpoints
    /// are created with the original name, since a name must be remapped only once.
    pub fn topic(&self, name: &str) -> Result<String> {
        if self.dds_names {
            validate_dds_topic(name)?;
            return Ok(name.into());
        }
        self.resolve(NameKind::Topic, name)
    }
}

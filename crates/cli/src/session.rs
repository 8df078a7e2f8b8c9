//! A verb's own place in the graph: a context, a hidden node, and the wait
//! until the graph has told what it knows.
//!
//! There is no daemon. A participant that joins is answered by every other one
//! within a few milliseconds on a healthy network, so waiting until the answers
//! stop coming is enough; a fixed time would be too long on a small graph and
//! too short on a large one.

use crate::shared::Shared;
use anyhow::{Context as _, Result};
use clap::Args;
use pteros::args::{Arguments, resolve_name};
use pteros::names::{NameKind, validate_dds_topic};
use pteros::qos::QosProfile;
use pteros::{
    Context, ContextOptions, Graph, Node, NodeOptions, SingleThreadedExecutor, TopicInfo,
};
use std::time::{Duration, Instant};

/// Flags of every verb that asks the graph.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct DiscoveryFlags {
    /// Collect answers for exactly this long, in seconds [default: until they
    /// stop coming, at most 0.4]
    #[arg(long, value_name = "SECONDS", value_parser = crate::values::positive_seconds)]
    spin_time: Option<Duration>,
    /// Accepted for the sake of ros2 scripts: there is no daemon
    #[arg(long)]
    no_daemon: bool,
    /// Accepted for the sake of ros2 scripts: nothing here looks at the graph's time
    #[arg(short = 's', long)]
    use_sim_time: bool,
}

/// The graph counts as known when nothing has changed for this long: several
/// times the answer time of a busy host, and of a Wi-Fi round trip.
const QUIET: Duration = Duration::from_millis(120);
/// The longest wait, so that an empty network is reported within half a second.
const WAIT_MAX: Duration = Duration::from_millis(400);

/// One verb's participation in the graph. Says goodbye when dropped.
pub struct Session {
    /// The participant.
    pub context: Context,
    /// The node, hidden unless the user named it.
    pub node: Node,
    executor: SingleThreadedExecutor,
    arguments: Arguments,
    dds_names: bool,
}

impl Session {
    /// Joins the graph as the environment and `--ros-args` say, with the node
    /// name given or a hidden one.
    pub fn open(shared: &Shared, node_name: Option<&str>) -> Result<Self> {
        Self::open_with(shared, node_name, Ok)
    }

    /// Joins the graph as a node like those of programs, with its parameters.
    pub fn open_as(shared: &Shared, node_name: &str) -> Result<Self> {
        Self::begin(shared, NodeOptions::new(node_name), Ok)
    }

    /// As [`Session::open`], with more options of the context.
    pub fn open_with(
        shared: &Shared,
        node_name: Option<&str>,
        more: impl FnOnce(ContextOptions) -> Result<ContextOptions>,
    ) -> Result<Self> {
        let hidden = format!("_pteros_cli_{}", std::process::id());
        // As the nodes of ros2's command: others need not know its parameters.
        let node = NodeOptions::new(node_name.unwrap_or(&hidden))
            .start_parameter_services(false)
            .start_parameter_event_publisher(false);
        Self::begin(shared, node, more)
    }

    fn begin(
        shared: &Shared,
        node: NodeOptions,
        more: impl FnOnce(ContextOptions) -> Result<ContextOptions>,
    ) -> Result<Self> {
        let options = more(ContextOptions {
            arguments: shared.arguments.clone(),
            use_environment: true,
            ..ContextOptions::default()
        })?;
        let context = Context::with_options(options).context("joining the graph")?;
        let node = context.node_with(node)?;
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node)?;
        Ok(Self {
            context,
            node,
            executor,
            arguments: shared.arguments.clone(),
            dds_names: shared.dds_names,
        })
    }

    /// The profile of an endpoint on a topic that the user named.
    pub fn qos(&self, mut qos: QosProfile) -> QosProfile {
        qos.avoid_ros_namespace_conventions = self.dds_names;
        qos
    }

    /// The topics by the names that the user works with.
    pub fn topics(&self, graph: &Graph) -> Vec<TopicInfo> {
        match self.dds_names {
            true => graph.dds_topics(),
            false => graph.topics(),
        }
    }

    /// Serves the network and at most one callback; blocks for at most
    /// `timeout`.
    pub fn spin_once(&self, timeout: Duration) {
        self.executor.spin_once(timeout);
    }

    /// Waits as `flags` say and returns the graph.
    pub fn discover(&self, flags: &DiscoveryFlags) -> Graph {
        let graph = self.context.graph();
        match flags.spin_time {
            Some(time) => self.collect(&graph, time, time),
            None => self.collect(&graph, WAIT_MAX, QUIET),
        }
        graph
    }

    /// Waits until the graph has changed and then been quiet for `quiet`, at
    /// most for `wait_max`.
    fn collect(&self, graph: &Graph, wait_max: Duration, quiet: Duration) {
        let end = Instant::now() + wait_max;
        let mut revision = graph.revision();
        let mut patience = wait_max;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.context.is_shut_down() {
                return;
            }
            let now = graph.wait_for_change(revision, patience.min(left));
            if now == revision {
                return;
            }
            revision = now;
            patience = quiet;
        }
    }

    /// The full name of a service as the user wrote it, remapped likewise.
    pub fn service(&self, name: &str) -> Result<String> {
        self.resolved(NameKind::Service, name)
    }

    fn resolved(&self, kind: NameKind, name: &str) -> Result<String> {
        let (node, namespace) = (self.node.name(), self.node.namespace());
        let arguments = [&self.arguments];
        Ok(resolve_name(&arguments, kind, name, node, namespace)?)
    }

    /// The full name of a topic as the user wrote it, remapped as `--ros-args`
    /// say. Endpoints are created with the name as written: a name is remapped
    /// once.
    pub fn topic(&self, name: &str) -> Result<String> {
        if self.dds_names {
            validate_dds_topic(name)?;
            return Ok(name.into());
        }
        self.resolved(NameKind::Topic, name)
    }
}

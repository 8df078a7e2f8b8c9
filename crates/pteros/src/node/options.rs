//! How a node is set up.

use std::time::Duration;

use crate::args::Arguments;
use crate::parameter::NodeParameterOptions;

/// How a node is set up. By default it has no name yet, is in the root namespace
/// and hears what the command line says.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) arguments: Arguments,
    pub(super) use_global_arguments: bool,
    pub(super) use_intra_process_comms: bool,
    pub(super) tasks_max: usize,
    pub(super) unique_within: Option<Duration>,
    pub(crate) parameters: NodeParameterOptions,
    pub(crate) logger_services: bool,
    pub(crate) type_description_service: bool,
}

/// Spawned futures of one node, unless told otherwise: far more than a node
/// waits for at once, and few enough that one that leaks them hears of it.
const TASKS_MAX: usize = 1_000;

impl NodeOptions {
    /// A node of that name in the root namespace.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: "/".into(),
            arguments: Arguments::default(),
            use_global_arguments: true,
            use_intra_process_comms: true,
            tasks_max: TASKS_MAX,
            unique_within: None,
            parameters: NodeParameterOptions::default(),
            logger_services: false,
            type_description_service: false,
        }
    }

    /// Calls the node so. A component says so of its own node; a remap of
    /// `__node` overrides it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Puts the node into a namespace, `/robot1`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Arguments of this node alone; they go before the process's.
    pub fn arguments(mut self, arguments: Arguments) -> Self {
        self.arguments = arguments;
        self
    }

    /// Whether the process's `--ros-args` apply to the node. On by default.
    pub fn use_global_arguments(mut self, yes: bool) -> Self {
        self.use_global_arguments = yes;
        self
    }

    /// Whether its messages go as shared pointers within the process. On by
    /// default, unlike ROS 2's option of that name. Off, what it publishes, asks
    /// and answers is serialized, once for all of the process that read it, and
    /// what it receives is decoded by each subscription, as between processes;
    /// QoS is the same either way. It costs time and gives each subscription a
    /// message of its own, which may be changed or kept without a copy.
    pub fn use_intra_process_comms(mut self, yes: bool) -> Self {
        self.use_intra_process_comms = yes;
        self
    }

    /// Refuses the name if another node of the graph has it. `span` is how long to
    /// look for one before the node is made, and once more after, in case two came
    /// at the same time: some 200 ms on one host, more on a slow network. Making
    /// the node blocks for both. Without it a second node of a name is warned of,
    /// at both ends, and works.
    pub fn unique_name(mut self, span: Duration) -> Self {
        self.unique_within = Some(span);
        self
    }

    /// How many futures of [`Node::spawn`](crate::Node::spawn) may be there at once; 1000 by default.
    pub fn tasks_max(mut self, count: usize) -> Self {
        self.tasks_max = count;
        self
    }
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self::new(String::new())
    }
}

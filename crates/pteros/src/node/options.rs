//! Node options: name, namespace, arguments and services of a node.

use std::time::Duration;

use crate::args::Arguments;
use crate::parameter::{NodeParameterOptions, Parameter};

/// Options of a node.
///
/// By default it has no name yet, is in the root namespace and follows the
/// process's `--ros-args`.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) arguments: Arguments,
    pub(crate) use_global_arguments: bool,
    pub(crate) use_intra_process_comms: bool,
    pub(crate) tasks_max: usize,
    pub(crate) unique_within: Option<Duration>,
    pub(crate) parameters: NodeParameterOptions,
    pub(crate) logger_services: bool,
    /// `None`: if no other node of the context offers it.
    pub(crate) type_description_service: Option<bool>,
}

/// Default limit of spawned futures per node. It is far more than a node waits for
/// at once, and low enough that a leak of futures is reported.
const TASKS_MAX: usize = 1_000;

impl NodeOptions {
    /// Options of a node of that name in the root namespace.
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
            type_description_service: None,
        }
    }

    /// Sets the node's name.
    ///
    /// A component sets the name of its own node; a remapping of `__node` overrides
    /// it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the node's namespace, for example `/robot1`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets arguments for this node alone. They take precedence over the process's.
    pub fn arguments(mut self, arguments: Arguments) -> Self {
        self.arguments = arguments;
        self
    }

    /// Whether the process's `--ros-args` apply to the node. On by default.
    pub fn use_global_arguments(mut self, yes: bool) -> Self {
        self.use_global_arguments = yes;
        self
    }

    /// Whether intra-process messages are passed as shared pointers.
    ///
    /// On by default, unlike ROS 2's option of that name.
    ///
    /// When off, published messages, requests and responses are serialized once for
    /// all readers of the process, and each subscription decodes its own copy, as
    /// between processes. QoS is the same either way. Off costs time, and gives
    /// each subscription a message of its own, to modify or keep without a copy.
    pub fn use_intra_process_comms(mut self, yes: bool) -> Self {
        self.use_intra_process_comms = yes;
        self
    }

    /// Refuses to create the node if another node of the graph has its name.
    ///
    /// `span` is how long discovery is observed before the node is created, and
    /// once more afterwards, in case two nodes start at the same time. About 200 ms
    /// suffice on one host, more on a slow network. Creation blocks for both spans.
    /// Without this option a second node of the same name works, and both sides log
    /// a warning.
    pub fn unique_name(mut self, span: Duration) -> Self {
        self.unique_within = Some(span);
        self
    }

    /// Sets parameter overrides. They take precedence over the command line and its
    /// files. May be called several times; the last value for a parameter counts.
    #[must_use]
    pub fn parameter_overrides(mut self, values: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.overrides.extend(values);
        self
    }

    /// Sets whether undeclared parameters can be set, which declares them with
    /// dynamic type, and read, as not set. Off by default.
    #[must_use]
    pub fn allow_undeclared_parameters(mut self, yes: bool) -> Self {
        self.parameters.rules.allow_undeclared = yes;
        self
    }

    /// Sets whether every parameter with an override is declared at once, with
    /// dynamic type. Off by default.
    #[must_use]
    pub fn automatically_declare_parameters_from_overrides(mut self, yes: bool) -> Self {
        self.parameters.rules.declare_from_overrides = yes;
        self
    }

    /// Sets whether the node offers the parameter services `~/get_parameters`,
    /// `~/get_parameter_types`, `~/set_parameters`, `~/set_parameters_atomically`,
    /// `~/describe_parameters` and `~/list_parameters`. On by default, as in ROS 2.
    /// Without them the node has twelve endpoints less.
    #[must_use]
    pub fn start_parameter_services(mut self, yes: bool) -> Self {
        self.parameters.services = yes;
        self
    }

    /// Sets whether the node publishes parameter events on `/parameter_events`. On
    /// by default.
    #[must_use]
    pub fn start_parameter_event_publisher(mut self, yes: bool) -> Self {
        self.parameters.events = yes;
        self
    }

    /// The most futures of [`Node::spawn`](crate::Node::spawn) at once; 1000 by
    /// default.
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

/// Options of a node of that name in the root namespace.
impl From<&str> for NodeOptions {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// Options of a node of that name in the root namespace.
impl From<&String> for NodeOptions {
    fn from(name: &String) -> Self {
        Self::new(name)
    }
}

/// Options of a node of that name in the root namespace.
impl From<String> for NodeOptions {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

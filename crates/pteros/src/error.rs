//! What can go wrong when a context, a node or an endpoint is made.

use std::time::Duration;

use pteros_rmw::config::{ConfigError, DOMAIN_ID_MAX, LEASE_MIN};
use pteros_rmw::error::{EndpointError, OpenError};
use pteros_rmw::flow::FlowError;
use pteros_rmw::limits::LimitError;
use pteros_rmw::links::ShmError;
use pteros_rmw::names::NameError;
use pteros_rmw::qos::QosError;
use pteros_rmw::thread::ThreadError;
use thiserror::Error;

use crate::args::ArgumentsError;
use crate::log::LogFileError;
use crate::parameter::{ParameterError, ParameterFileError};

/// Why there is no context.
#[derive(Debug, Error)]
pub enum ContextError {
    /// Something after `--ros-args` is wrong.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// A parameter after `--ros-args`, or in a file named there, is wrong.
    #[error(transparent)]
    Parameters(#[from] ParameterFileError),
    /// An environment variable is wrong.
    #[error(transparent)]
    Environment(#[from] ConfigError),
    /// Log files cannot be as somebody wants them.
    #[error(transparent)]
    LogFiles(#[from] LogFileError),
    /// The enclave's name is wrong.
    #[error(transparent)]
    Enclave(#[from] NameError),
    /// A static peer has no address.
    #[error(
        "static peer \"{peer}\" cannot be resolved ({reason}); use an IPv4 address or a name that resolves to one, separated by ';' in ROS_STATIC_PEERS"
    )]
    StaticPeer {
        /// As it was given.
        peer: String,
        /// The resolver's word.
        reason: String,
    },
    /// [`ContextOptions::domain_id`](crate::ContextOptions::domain_id) is too
    /// large.
    #[error(
        "domain {0}: its UDP ports would lie above 65535; use 0 to {DOMAIN_ID_MAX} (0 to 101 is always safe)"
    )]
    DomainId(u32),
    /// [`ContextOptions::lease`](crate::ContextOptions::lease) is too short.
    #[error(
        "lease of {0:?}: peers would forget this context between two announcements; use at least {LEASE_MIN:?}"
    )]
    Lease(Duration),
    /// [`ContextOptions::spin`](crate::ContextOptions::spin) is too long.
    #[error(
        "spin of {0:?}: a thread that polls for longer before it sleeps is busy for good; use at most 100 ms"
    )]
    Spin(Duration),
    /// The kernel refuses what
    /// [`ContextOptions::thread`](crate::ContextOptions::thread) asks for.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The flow controllers do not go together.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// [`ContextOptions::limits`](crate::ContextOptions::limits) has a limit that
    /// cannot be kept.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// [`ContextOptions::shared_memory`](crate::ContextOptions::shared_memory) has
    /// an option out of its range.
    #[error(transparent)]
    SharedMemory(#[from] ShmError),
    /// The sockets could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Why there is no node.
#[derive(Debug, Error)]
pub enum NodeError {
    /// Its name or namespace is wrong, after remapping.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A parameter of the node's own arguments is wrong.
    #[error(transparent)]
    ParameterArguments(#[from] ParameterFileError),
    /// A parameter that every node has cannot begin with the value it is given.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Its parameters cannot be served.
    #[error("the node's parameter services: {0}")]
    ParameterServices(#[from] CreateError),
    /// Another node has its name, which is to be its own
    /// ([`NodeOptions::unique_name`](crate::NodeOptions::unique_name)).
    #[error(
        "node \"{node}\": the name is taken by {holder}; start one of them with --ros-args -r __node:=another_name, or -r __ns:=/another_place"
    )]
    NameTaken {
        /// The name.
        node: String,
        /// Who has it, and where.
        holder: String,
    },
    /// The context has been shut down.
    #[error("node \"{0}\": the context is shut down; create a new one")]
    ShutDown(String),
    /// A part of it that is made with it cannot be made.
    #[error("node \"{node}\": {source}")]
    Part {
        /// The node.
        node: String,
        /// Why.
        #[source]
        source: Box<CreateError>,
    },
}

/// Why there is no publisher, subscription or timer.
#[derive(Debug, Error)]
pub enum CreateError {
    /// The library that a service's types come from does not have the type of its
    /// events.
    #[error(
        "service \"{service}\": type {service_type} has no event type: service_msgs/msg/ServiceEventInfo is not among the definitions; load the package service_msgs, or merge pteros::interfaces::library()"
    )]
    NoEventType {
        /// The service.
        service: String,
        /// Its type.
        service_type: String,
    },
    /// The topic's name is wrong, after remapping.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The profile contradicts itself.
    #[error("topic \"{topic}\": {source}")]
    Qos {
        /// The topic.
        topic: String,
        /// Which policy.
        #[source]
        source: QosError,
    },
    /// A parameter for its QoS, or the profile that comes of them, is refused.
    #[error("topic \"{topic}\": QoS overrides: {reason}")]
    QosOverrides {
        /// The topic.
        topic: String,
        /// Which parameter, and why.
        reason: String,
    },
    /// The runtime refused.
    #[error("topic \"{topic}\": {source}")]
    Endpoint {
        /// The topic.
        topic: String,
        /// Why.
        #[source]
        source: EndpointError,
    },
    /// The runtime refused a client or a server.
    #[error("service \"{service}\": {source}")]
    Service {
        /// The service.
        service: String,
        /// Why.
        #[source]
        source: Box<EndpointError>,
    },
    /// A type's name is neither of the form `package/msg/Name` nor, without
    /// slashes, one of DDS's.
    #[error(
        "type \"{0}\" is not of the form package/msg/Name; for example std_msgs/msg/String, or a name of DDS's without slashes"
    )]
    TypeName(String),
    /// An async callback of a member of a
    /// [`SubscriptionGroup`](crate::SubscriptionGroup).
    #[error(
        "topic \"{topic}\": a subscription group calls its members in order and waits for none; give it a plain callback, which may spawn a future"
    )]
    AsyncInGroup {
        /// The topic.
        topic: String,
    },
    /// A timer needs a positive period.
    #[error("a timer's period must be longer than zero")]
    ZeroPeriod,
}

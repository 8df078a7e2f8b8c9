//! Errors of contexts, of nodes and of their entities.

use std::time::Duration;

use pteros_runtime::config::{ConfigError, DOMAIN_ID_MAX, LEASE_MIN};
use pteros_runtime::flow_controller::FlowControllerError;
use pteros_runtime::limits::LimitError;
use pteros_runtime::names::NameError;
use pteros_runtime::qos::QosError;
use pteros_runtime::shm_transport::ShmError;
use pteros_runtime::thread::ThreadError;
use thiserror::Error;

pub use pteros_runtime::error::{
    ContentFilterError, EndpointError, GroupError, OpenError, PublishError, QosChangeError,
};

use crate::parameter::ParameterError;

pub use crate::arguments_error::ArgumentsError;

/// Why a context could not be opened.
#[derive(Error)]
pub enum ContextError {
    /// An argument after `--ros-args`, a parameter file, or a log file option is
    /// invalid.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// An environment variable is invalid.
    #[error(transparent)]
    Environment(#[from] ConfigError),
    /// The enclave's name is invalid.
    #[error(transparent)]
    Enclave(#[from] NameError),
    /// A static peer has no address.
    #[error("static peer \"{peer}\" cannot be used: {reason}")]
    StaticPeer {
        /// The peer, as it was given.
        peer: String,
        /// The resolver's error.
        reason: String,
    },
    /// A discovery server of `ROS_DISCOVERY_SERVER` has no address.
    #[error("discovery server \"{server}\" (ROS_DISCOVERY_SERVER) cannot be used: {reason}")]
    DiscoveryServer {
        /// The server, as it was given.
        server: String,
        /// The fault and the remedy.
        reason: String,
    },
    /// `ContextOptions::domain_id` is too
    /// large.
    #[error(
        "domain {0}: its UDP ports would lie above 65535; use 0 to {DOMAIN_ID_MAX} (0 to 101 is always safe)"
    )]
    DomainId(u32),
    /// `ContextOptions::participant_lease`
    /// is too short.
    #[error(
        "participant lease of {0:?}: peers would drop this participant between two announcements; use at least {LEASE_MIN:?}"
    )]
    Lease(Duration),
    /// `ContextOptions::busy_poll` is too long.
    #[error(
        "busy poll of {0:?}: a thread that polls for longer before it sleeps is always busy; use at most 100 ms"
    )]
    Spin(Duration),
    /// The kernel refused the settings of
    /// `ContextOptions::thread`.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The flow controllers are invalid.
    #[error(transparent)]
    Flow(#[from] FlowControllerError),
    /// `ContextOptions::limits` has a limit out of
    /// its range.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// `ContextOptions::shared_memory` has
    /// an option out of its range.
    #[error(transparent)]
    SharedMemory(#[from] ShmError),
    /// The Zenoh transport was chosen, and this program is built without it.
    #[error(
        "the Zenoh transport (RMW_IMPLEMENTATION=rmw_zenoh_cpp, PTEROS_WIRE or --wire) is not in this program; build it with the feature \"zenoh\" of pteros or pteros-cli, or choose RTPS by --ros-args --wire rtps"
    )]
    NoZenoh,
    /// The Zenoh transport was chosen for a context with the security of SROS 2, which
    /// protects RTPS alone.
    #[error(
        "ROS_SECURITY_ENABLE=true protects RTPS, not Zenoh; for Zenoh, write configuration files for the same keystore by `pteros security create_zenoh_config`, name that of the enclave in ZENOH_SESSION_CONFIG_URI and unset ROS_SECURITY_ENABLE, or choose RTPS by --ros-args --wire rtps"
    )]
    SecuredZenoh,
    /// The sockets could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

pteros_msg::debug_as_display!(ContextError);

/// Why a node, or an entity of a node, could not be created or changed.
#[derive(Error)]
#[allow(missing_docs, reason = "the names without a comment say it all")]
pub enum CreateError {
    /// The library of a service's types does not define introspection events.
    #[error(
        "service \"{service}\": type {service_type} has no event type: service_msgs/msg/ServiceEventInfo is not among the definitions; load the package service_msgs, or merge pteros::interfaces::library()"
    )]
    NoEventType {
        service: String,
        service_type: String,
    },
    /// The topic's name is invalid, after remapping.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The QoS profile contradicts itself.
    #[error("topic \"{topic}\": {source}")]
    Qos {
        topic: String,
        /// Which policy.
        #[source]
        source: QosError,
    },
    /// A QoS override parameter, or the resulting profile, was refused.
    #[error("topic \"{topic}\": QoS overrides: {reason}")]
    QosOverrides {
        topic: String,
        /// Which parameter, and why.
        reason: String,
    },
    /// The runtime refused the endpoint.
    #[error("topic \"{topic}\": {source}")]
    Endpoint {
        topic: String,
        /// Why.
        #[source]
        source: EndpointError,
    },
    /// The runtime refused a client or a server.
    #[error("service \"{service}\": {source}")]
    Service {
        service: String,
        /// Why.
        #[source]
        source: Box<EndpointError>,
    },
    /// A type's name is neither `package/msg/Name` nor a DDS name without slashes.
    #[error(
        "type \"{0}\" is not of the form package/msg/Name; use for example std_msgs/msg/String, or a DDS type name without slashes"
    )]
    TypeName(String),
    /// A member of a `SubscriptionGroup` has an async
    /// callback.
    #[error(
        "topic \"{topic}\": a subscription group runs its callbacks in order and awaits none; give it a plain callback, which may spawn a future"
    )]
    AsyncInGroup { topic: String },
    /// The QoS of an existing endpoint was not changed.
    #[error("topic \"{topic}\": {source}")]
    QosChange {
        topic: String,
        /// Which policies, and what to do.
        #[source]
        source: QosChangeError,
    },
    /// A parameter in the node's own arguments is invalid.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// A parameter that every node has refused its initial value.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Another node has the name that this node requires for itself
    /// (`NodeOptions::unique_name`).
    #[error(
        "node \"{node}\": the name is taken by {holder}; start one of them with --ros-args -r __node:=another_name, or -r __ns:=/another_place"
    )]
    NameTaken {
        /// The name.
        node: String,
        /// The node that has it, and where it runs.
        holder: String,
    },
    /// The context has been shut down.
    #[error("node \"{0}\": the context is shut down; create a new one")]
    ShutDown(String),
    /// A service or timer that is created with the node failed.
    #[error("node \"{node}\": {source}")]
    Part {
        node: String,
        /// Why.
        #[source]
        source: Box<CreateError>,
    },
    /// Supervised nodes are listed twice, or their dependencies cannot be met.
    #[error("{0}")]
    Supervision(String),
    /// A clock server needs a speed that is finite and not negative.
    #[error("speed = {0}; use a finite speed of 0 or more, or pause the clock")]
    ClockSpeed(f64),
    /// A timer needs a positive period.
    #[error("a timer's period must be longer than zero")]
    ZeroPeriod,
}

pteros_msg::debug_as_display!(CreateError);

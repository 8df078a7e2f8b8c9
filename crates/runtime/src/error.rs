//! Errors of this crate: one enum per operation.

use std::io;
use std::path::PathBuf;

pub use pteros_dcps::coherent::GroupError;
pub use pteros_dcps::filter::ContentFilterError;
use thiserror::Error;

use crate::qos::{ImmutablePolicy, QosError};

/// Why the sockets of a participant could not be opened.
#[derive(Error)]
pub enum OpenError {
    /// The list of interfaces could not be read.
    #[error("list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// No network interface is up.
    #[error(
        "no network interface is up, not even loopback; bring one up, for this host alone with `ip link set lo up`"
    )]
    NoInterface,
    /// A named interface does not exist or is down.
    #[error(
        "network interface \"{name}\" is not usable (usable: {usable}); name one of those in PTEROS_INTERFACES, or leave it unset"
    )]
    NoSuchInterface {
        /// The requested interface.
        name: String,
        /// The usable interfaces.
        usable: String,
    },
    /// Every unicast port of the domain is in use.
    #[error(
        "domain {domain_id} has no free participant port (tried {first} to {last}); stop other ROS processes of this host or choose another ROS_DOMAIN_ID"
    )]
    NoFreePort {
        /// Domain whose ports are taken.
        domain_id: u32,
        /// First port tried.
        first: u16,
        /// Last port tried.
        last: u16,
    },
    /// Another program holds the discovery port exclusively.
    #[error(
        "UDP port {port}, on which domain {domain_id} is discovered, is held by a program that does not share it; stop that program (`ss -ulpn sport = {port}` names it) or choose another ROS_DOMAIN_ID"
    )]
    DiscoveryPortTaken {
        /// Domain whose discovery port is taken.
        domain_id: u32,
        /// Discovery port of the domain.
        port: u16,
    },
    /// The trace could not be created.
    #[error(
        "record a trace in {}: {source}; name a folder that can be written and has room for {bytes} bytes in PTEROS_TRACE, or leave it unset",
        path.display()
    )]
    Trace {
        /// Path of the folder, or of the file in it.
        path: PathBuf,
        /// Requested size, bytes.
        bytes: usize,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The size of a trace is out of range.
    #[error(
        "a trace of {given} bytes: a context's trace has {} to {} bytes",
        crate::trace::ring::BYTES_MIN,
        crate::trace::ring::BYTES_MAX
    )]
    TraceBytes {
        /// Requested size, bytes.
        given: usize,
    },
    /// A transport beside RTPS did not open.
    #[error("open the transport \"{name}\": {reason}")]
    Transport {
        /// The transport that did not open.
        name: &'static str,
        /// Reason and remedy.
        reason: String,
    },
    /// More transports than a context supports.
    #[error("{given} transports beside RTPS; a context has at most {max}")]
    TooManyTransports {
        /// Number of requested transports.
        given: usize,
        /// Largest number of transports.
        max: usize,
    },
    /// A secured context cannot use a transport without protection.
    #[error(
        "the transport \"{name}\" does not protect messages, and this context is secured; leave out the transport, or open the context without security"
    )]
    UnprotectedTransport {
        /// The transport without protection.
        name: &'static str,
    },
    /// Discovery servers relay nothing that is authenticated.
    #[error(
        "a secured context cannot use discovery servers (ROS_DISCOVERY_SERVER); name hosts in ROS_STATIC_PEERS instead, or open the context without security"
    )]
    SecuredDiscoveryServer,
    /// The enclave of a secured context is invalid.
    ///
    /// One text per problem, with file, line and remedy.
    #[error("the enclave is unusable: {}", .0.join("; "))]
    Enclave(Vec<String>),
    /// Security is requested, but the program was built without it.
    #[error(
        "security is requested (ROS_SECURITY_ENABLE or the context's options), and this program was built without feature `security` of crate pteros (feature `full` of pteros-cli); build it with that feature, or unset ROS_SECURITY_ENABLE"
    )]
    SecurityNotBuilt,
    /// The subject of its certificate is unusable.
    #[error("the enclave's certificate is unusable: {0}")]
    Identity(String),
    /// The permissions do not allow it in the domain.
    #[error("may not join domain {domain_id}: {rule}")]
    JoinDenied {
        /// Domain that the context was to join.
        domain_id: u32,
        /// The rule that denies it, with file and line.
        rule: String,
    },
    /// A socket could not be created.
    #[error("open {what}: {source}")]
    Socket {
        /// Purpose of the socket.
        what: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

pteros_msg::debug_as_display!(OpenError);

/// Why an endpoint could not be created.
#[derive(Error, PartialEq, Eq)]
pub enum EndpointError {
    /// The context has been shut down.
    #[error("the context is shut down; create a new one")]
    ShutDown,
    /// The context has as many endpoints as a participant can have.
    #[error(
        "this process has {max} endpoints, its limit; drop publishers or subscriptions, or share them between nodes"
    )]
    TooMany {
        /// Largest number of endpoints.
        max: usize,
    },
    /// The context lacks the flow controller of an asynchronous writer.
    #[error(
        "the context has no flow controller \"{name}\" (it has: {known}); define it in the \
         context's options or ask for one of those"
    )]
    NoSuchFlowController {
        /// The requested flow controller.
        name: String,
        /// The flow controllers of the context.
        known: String,
    },
    /// The permissions of a secured context deny it.
    #[error(
        "{0}; add a rule to the enclave's permissions.xml and sign it again, or do not create the endpoint"
    )]
    Denied(String),
    /// No keys could be created for it.
    #[error("no keys for the endpoint: {0}")]
    Keys(String),
    /// The store of a transient or persistent publisher is unusable.
    #[error(transparent)]
    Store(#[from] pteros_store::StoreError),
    /// The publisher group does not accept another publisher now.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The content filter of the subscription is invalid.
    #[error(transparent)]
    Filter(#[from] ContentFilterError),
}

pteros_msg::debug_as_display!(EndpointError);

/// Why a QoS change was refused.
#[derive(Clone, Error, PartialEq)]
pub enum QosChangeError {
    /// Policies that are immutable after creation (RETCODE_IMMUTABLE_POLICY).
    #[error(
        "QoS {} is immutable after creation; keep it, or create another endpoint",
        crate::qos::change::format_immutable(.0)
    )]
    Immutable(Vec<ImmutablePolicy>),
    /// The profile is inconsistent (RETCODE_INCONSISTENT_POLICY).
    #[error(transparent)]
    Contradiction(#[from] QosError),
    /// The permissions of a secured context deny the partition.
    #[error(
        "{0}; add the partition to the rule in the enclave's permissions.xml and sign it again"
    )]
    Denied(String),
    /// A publisher cannot change its partition while a coherent set of its group is open.
    #[error(
        "QoS PARTITION cannot change while a coherent set is open; change it before the set begins or after it has ended"
    )]
    SetOpen,
    /// The context has been shut down.
    #[error("the context is shut down; its endpoints cannot change any more")]
    ShutDown,
}

pteros_msg::debug_as_display!(QosChangeError);

/// Why a message was not accepted for publication.
#[derive(Error, PartialEq, Eq)]
pub enum PublishError {
    /// The context has been shut down.
    #[error("the context is shut down; nothing was published")]
    ShutDown,
    /// A KEEP_ALL writer had no space within its `max_blocking_time`.
    #[error(
        "topic \"{topic}\": no space for another sample within {waited_ms} ms: a reliable subscription has not taken the earlier ones, or a flow controller has not sent them; \
         read faster, allow more in resource_limits, or use keep_last or best_effort"
    )]
    TimedOut {
        /// DDS topic name.
        topic: String,
        /// How long the call waited, milliseconds.
        waited_ms: u64,
    },
    /// An instance operation on a topic without key.
    #[error(
        "topic \"{topic}\" has no key, so it has no instances to register, dispose of or unregister; mark the key fields of its type, or publish the state in a message"
    )]
    NoKey {
        /// DDS topic name.
        topic: String,
    },
    /// The publisher does not write the instance that is to be unregistered.
    #[error(
        "topic \"{topic}\": this publisher does not write that instance; it was never published or registered here, or is already unregistered"
    )]
    UnknownInstance {
        /// DDS topic name.
        topic: String,
    },
    /// The publisher has reached its instance limit.
    #[error(
        "topic \"{topic}\": this publisher writes {max} instances, its limit; unregister finished ones, or allow more in resource_limits"
    )]
    TooManyInstances {
        /// DDS topic name.
        topic: String,
        /// Largest number of instances.
        max: usize,
    },
    /// The message exceeds the size limit for other processes.
    #[error(
        "topic \"{topic}\": the message has {size} bytes, more than the {max} that may leave the process; split it into several"
    )]
    TooLarge {
        /// DDS topic name.
        topic: String,
        /// Serialized size, bytes.
        size: usize,
        /// Largest size, bytes.
        max: usize,
    },
    /// No shared-memory chunk became free within `max_blocking_time`, or the
    /// message is larger than any chunk.
    #[error("topic \"{topic}\": {reason} (waited {waited_ms} ms)")]
    NoSharedMemory {
        /// DDS topic name.
        topic: String,
        /// The pool, its limit and the remedy.
        reason: crate::shm_transport::PoolExhausted,
        /// How long the call waited, milliseconds.
        waited_ms: u64,
    },
    /// A bounded string or sequence is too long, or a dynamic message has another
    /// type than its publisher.
    #[error("topic \"{topic}\": {reason}")]
    Invalid {
        /// DDS topic name.
        topic: String,
        /// The field, its length and bound, or both types.
        reason: String,
    },
}

pteros_msg::debug_as_display!(PublishError);

//! What callers of this crate may be told: one small enum per operation.

use std::io;
use std::path::PathBuf;

use pteros_msg::filter::FilterError;
use pteros_security::fault::Fault;
use thiserror::Error;

use crate::qos::{FixedPolicy, QosError};

/// Why the sockets of a participant could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The list of interfaces could not be read.
    #[error("list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// No interface at all is up.
    #[error(
        "no network interface is up, not even loopback; bring one up, for this host alone with `ip link set lo up`"
    )]
    NoInterface,
    /// A named interface does not exist or is down.
    #[error(
        "network interface \"{name}\" is not usable (usable: {usable}); name one of those in PTEROS_INTERFACES, or leave it unset"
    )]
    NoSuchInterface {
        /// As it was asked for.
        name: String,
        /// The names that would do.
        usable: String,
    },
    /// Every unicast port of the domain is taken.
    #[error(
        "domain {domain_id} has no free participant port (tried {first} to {last}); stop other ROS processes of this host or choose another ROS_DOMAIN_ID"
    )]
    NoFreePort {
        /// The domain.
        domain_id: u32,
        /// First port tried.
        first: u16,
        /// Last port tried.
        last: u16,
    },
    /// A program holds the domain's discovery port for itself alone.
    #[error(
        "UDP port {port}, on which domain {domain_id} is discovered, is held by a program that does not share it; stop that program (`ss -ulpn sport = {port}` names it) or choose another ROS_DOMAIN_ID"
    )]
    DiscoveryPortTaken {
        /// The domain.
        domain_id: u32,
        /// Its discovery port.
        port: u16,
    },
    /// The trace could not be made.
    #[error(
        "record a trace in {}: {source}; name a folder that can be written and has room for {bytes} bytes in PTEROS_TRACE, or leave it unset",
        path.display()
    )]
    Trace {
        /// The folder, or the file in it.
        path: PathBuf,
        /// How large it is to be.
        bytes: usize,
        /// The operating system's word.
        #[source]
        source: io::Error,
    },
    /// The trace is to have a size that it cannot have.
    #[error(
        "a trace of {given} bytes: a context's trace has {} to {} bytes",
        crate::trace::BYTES_MIN,
        crate::trace::BYTES_MAX
    )]
    TraceBytes {
        /// The size asked for.
        given: usize,
    },
    /// The enclave of a secured context cannot be used.
    #[error("the enclave cannot be used: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Enclave(Vec<Fault>),
    /// Its certificate has no name.
    #[error("the enclave's certificate cannot be used: {0}")]
    Identity(String),
    /// Its permissions do not let it be in the domain.
    #[error("may not join domain {domain_id}: {verdict}")]
    MayNotJoin {
        /// The domain.
        domain_id: u32,
        /// The rule that says so, with its file and line.
        verdict: String,
    },
    /// A socket could not be made.
    #[error("open {what}: {source}")]
    Socket {
        /// Which socket.
        what: String,
        /// The operating system's word.
        #[source]
        source: io::Error,
    },
}

/// Why an endpoint could not be created.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EndpointError {
    /// The context has been shut down.
    #[error("the context is shut down; create a new one")]
    ShutDown,
    /// The participant's own limit is reached.
    #[error(
        "this process has {max} endpoints, its limit; drop publishers or subscriptions, or share them between nodes"
    )]
    TooMany {
        /// The limit.
        max: usize,
    },
    /// An asynchronous writer asks for a flow controller that the context does
    /// not have.
    #[error(
        "the context has no flow controller \"{name}\" (it has: {known}); define it in the \
         context's options or ask for one of those"
    )]
    NoSuchFlowController {
        /// As it was asked for.
        name: String,
        /// The names that would do.
        known: String,
    },
    /// The permissions of a secured context do not let it be.
    #[error("{0}; add a rule to the enclave's permissions.xml and sign it anew, or leave it")]
    Denied(String),
    /// No keys could be made for it.
    #[error("no keys for the endpoint: {0}")]
    Keys(String),
    /// The store of a transient or persistent publisher cannot be used.
    #[error(transparent)]
    Store(#[from] pteros_store::StoreError),
    /// The publisher group does not take another publisher now.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The subscription's content filter.
    #[error(transparent)]
    Filter(#[from] FilterProblem),
}

/// Why a subscription cannot be filtered so.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FilterProblem {
    /// The filter does not fit the type, or is no filter.
    #[error(transparent)]
    Wrong(FilterError),
    /// Nothing is known of the type but its name.
    #[error(
        "a content filter needs the message type, of which only the name is known here; subscribe \
         with a generated or dynamic type, or look into the bytes yourself"
    )]
    UnknownType,
}

/// Why the policies of a living endpoint stay what they are.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum QosChangeError {
    /// Policies that DDS fixes for an endpoint's life (its
    /// RETCODE_IMMUTABLE_POLICY).
    #[error(
        "QoS {} cannot change while the endpoint lives; leave it as it is, or create another endpoint",
        crate::qos::change::list(.0)
    )]
    Immutable(Vec<FixedPolicy>),
    /// The profile contradicts itself (RETCODE_INCONSISTENT_POLICY).
    #[error(transparent)]
    Contradiction(#[from] QosError),
    /// The permissions of a secured context do not let it be in that partition.
    #[error("{0}; add the partition to the rule in the enclave's permissions.xml and sign it anew")]
    Denied(String),
    /// A publisher stays where it is while a set of its group is open.
    #[error(
        "QoS PARTITION cannot change while a set of coherent changes is open; change it before the set begins or after it has ended"
    )]
    SetOpen,
    /// The context has been shut down.
    #[error("the context is shut down; its endpoints change no more")]
    ShutDown,
}

/// What a group of publishers, or its presentation, does not allow.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum GroupError {
    /// The group has no coherent access.
    #[error("the group is not coherent, so it has no sets; create it with presentation.coherent")]
    NotCoherent,
    /// More ends than begins.
    #[error("no set of coherent changes has been begun; begin one first")]
    NothingBegun,
    /// Sets within sets within sets.
    #[error("sets of coherent changes are begun {max} times within each other; end some")]
    TooDeep {
        /// How often they may be.
        max: usize,
    },
    /// A group's publishers stay what they are while a set is open.
    #[error(
        "a set of coherent changes is open; create publishers before it is begun or after it has ended"
    )]
    SetOpen,
}

/// Why a message was not accepted for publication.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PublishError {
    /// The context has been shut down.
    #[error("the context is shut down; nothing was published")]
    ShutDown,
    /// A reliable KEEP_ALL writer found no room within its
    /// `max_blocking_time`.
    #[error(
        "topic \"{topic}\": no room for another sample within {waited_ms} ms, as a reliable subscription has not taken the earlier ones, or a flow controller has not sent them; \
         read faster, allow more in resource_limits, or use keep_last or best_effort"
    )]
    TimedOut {
        /// The topic.
        topic: String,
        /// How long the call waited, milliseconds.
        waited_ms: u64,
    },
    /// Something of an instance was asked of a topic without key.
    #[error(
        "topic \"{topic}\" has no key, so it has no instances to register, dispose of or unregister; mark the key fields of its type, or publish a message that says so"
    )]
    NoKey {
        /// The topic.
        topic: String,
    },
    /// An instance is unregistered that this publisher does not write.
    #[error(
        "topic \"{topic}\": this publisher does not write that instance; it was never published or registered here, or is unregistered already"
    )]
    UnknownInstance {
        /// The topic.
        topic: String,
    },
    /// The publisher writes as many instances as it may.
    #[error(
        "topic \"{topic}\": this publisher writes {max} instances, its limit; unregister those that are done, or allow more in resource_limits"
    )]
    TooManyInstances {
        /// The topic.
        topic: String,
        /// The limit.
        max: usize,
    },
    /// The message is larger than the writer may send to other processes.
    #[error(
        "topic \"{topic}\": the message has {size} bytes, more than the {max} that may leave the process; split it into several"
    )]
    TooLarge {
        /// The topic.
        topic: String,
        /// Serialized size in bytes.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// No shared memory was left for a subscription of another process within
    /// `max_blocking_time`, or the message is larger than any of it.
    #[error("topic \"{topic}\": {reason} (waited {waited_ms} ms)")]
    NoSharedMemory {
        /// The topic.
        topic: String,
        /// The pool, its limit and the way out.
        reason: crate::links::Exhausted,
        /// How long the call waited, milliseconds.
        waited_ms: u64,
    },
    /// A bounded string or sequence is too long, or a dynamic message is of
    /// another type than its publisher.
    #[error("topic \"{topic}\": {reason}")]
    Invalid {
        /// The topic.
        topic: String,
        /// Which field, how long, what bound; or both types.
        reason: String,
    },
}

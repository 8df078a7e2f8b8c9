//! ROS 2 client library: nodes, publishers, subscriptions, services, executors.
//!
//! A node in ten lines:
//!
//! ```no_run
//! use pteros::prelude::*;
//! use pteros::interfaces::std_msgs::msg::String as Text;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let context = Context::new()?;
//!     let node = context.create_node("talker")?;
//!     let publisher = node.create_publisher::<Text>("chatter".keep_last(10))?;
//!     let mut count = 0;
//!     let _timer = node.create_timer(std::time::Duration::from_secs(1), move || {
//!         count += 1;
//!         let _ = publisher.publish_owned(Text { data: format!("Hello World: {count}") });
//!     })?;
//!     node.spin();
//!     Ok(())
//! }
//! ```
//!
//! The thread that spins is also the receive loop: it polls the sockets, runs the
//! RTPS protocol and calls the callbacks. While no thread spins, the process's
//! background I/O thread serves the sockets. Intra-process messages travel as
//! shared pointers, messages of the same host through a shared-memory transport,
//! all others as RTPS over UDP. Every path is compatible with ROS 2's QoS and wire
//! format.
//!
//! Start with [`Context`] (the DDS participant), [`Node`] and [`QosProfile`].
//! [`Graph`] is the graph cache, [`SubscriptionOptions`] holds content filter and
//! callback group, [`executors`] run callbacks, [`tf`] is the tf buffer.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod action;
pub mod callback_groups;
pub mod clock;
pub mod component;
mod context;
mod create_node;
pub mod diagnostics;
pub mod error;
pub mod event_handler;
mod executor_queue;
pub mod executors;
pub mod guard_condition;
pub mod instance;
pub mod lifecycle;
mod loan;
mod logger;
pub mod message_filters;
mod named_qos;
mod node;
mod node_parameters;
pub mod publisher;
mod publisher_group;
mod publisher_store;
mod sample;
pub mod service;
mod set_qos;
mod sleep;
pub mod subscription;
mod subscription_group;
pub mod task;
pub mod tf;
pub mod timer;
pub mod trace;
pub mod type_description;
mod unique_name;
mod view;
pub mod wait_set;
mod waitable;

pub use pteros_rcl::{args, graph, local_time, log};
pub use pteros_runtime::{config, limits, names, platform, qos, store, thread, transport};

use pteros_rcl::{
    clock as ros_clock, known_types, log_outputs, message_type_info, outbound_message, payload,
    payload_memory, qos_overrides, rate, time, time_source, timer_heap, timer_schedule,
};

pub use context::{Context, ContextOptions};
pub use executors::{spin, spin_until_future_complete};
pub use graph::Graph;
pub use logger::Logger;
#[doc(hidden)]
pub use logger::SourceLocation as LoggerSourceLocation;
pub use named_qos::{NamedQos, NamedQosExt};
pub use node::{Node, NodeOptions};
pub use publisher::{Publisher, PublisherOptions};
pub use qos::QosProfile;
pub use sample::{Sample, SampleInfo};
pub use service::{Client, ClientOptions, Service, ServiceOptions};
pub use subscription::{Subscription, SubscriptionOptions};
pub use timer::{Timer, TimerOptions};

/// Parameters: named, typed values of a node, set from outside.
///
/// A node [declares](crate::Node::declare_parameter) its parameters with defaults
/// and reads them through a [`ParameterHandle`](parameter::ParameterHandle), which follows
/// changes. At start-up, parameter overrides replace the defaults (`-p`, `--params-file`,
/// [`NodeOptions::parameter_overrides`]). Other nodes read and set parameters through the
/// six parameter services, and receive parameter events on `/parameter_events`. Types,
/// reasons and events are those of rclcpp; `docs/tutorials/parameters.md` lists the
/// extensions.
pub mod parameter {
    pub use crate::node_parameters::{ParameterClient, SetParameterResult};
    pub use pteros_rcl::parameter::{
        IntoParameter, PARAMETER_FILE_BYTES_MAX, Parameter, ParameterCallbackHandle,
        ParameterDescriptor, ParameterError, ParameterFile, ParameterHandle, ParameterKind,
        ParameterText, ParameterType, ParameterValue, QosOverridingOptions, QosPolicyKind,
        SetParameterError, TypingRule, tagged_scalar,
    };
    pub(crate) use pteros_rcl::parameter::{
        NodeParameterOptions, ParameterDeclaration, ParameterEventSink, ParameterObserver,
        ParameterStore, merge_thread_settings, services,
    };
}

// Modules and not renamed crates: the compiler then names a type by the path that users
// write, as `pteros::interfaces::std_msgs::msg::String`.

/// The standard interface packages as Rust types, and their definitions.
pub mod interfaces {
    pub use pteros_interfaces::*;
}

/// Serialization, type hashes, definitions and types known at run time.
pub mod msg {
    pub use pteros_msg::*;
}

/// Shared memory between processes of one host: its options and counters.
pub mod shared_memory {
    pub use pteros_runtime::shm_transport::{ConnectionCounts, ConnectionTotals, ShmError};
    pub use pteros_runtime::{PeerDelivery, SharedMemoryOptions};
}

/// Paths to other hosts: which address of a participant is in use, and why. The
/// receive memory of remote participants, and the counts of dropped packets.
pub mod network {
    pub use pteros_runtime::rtps::locator::{IpAddress, Locator};
    pub use pteros_runtime::rtps::participant::{PathInfo, PathReason, PathState};
    pub use pteros_runtime::{
        CoreCounts, DiscoveryServerStatus, MemoryHolder, ReceiveMemoryUse, SilentParticipant,
        TableUse,
    };
}

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The types that most programs need.
pub mod prelude {
    pub use crate::{
        Client, Context, ContextOptions, NamedQosExt, Node, NodeOptions, Publisher, QosProfile,
        Sample, Service, Subscription, Timer, executors::SingleThreadedExecutor,
    };
    pub use pteros_msg::message::Message;
}

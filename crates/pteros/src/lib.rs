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
//! callback group, [`executor`] runs callbacks, [`tf`] is the tf buffer.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod action;
pub mod args;
mod callback_group;
pub mod clock;
pub mod component;
mod context;
mod error;
mod event;
pub mod executor;
mod graph;
mod guard_condition;
mod instance;
mod lifecycle;
mod loan;
pub mod log;
mod logger;
mod named_qos;
mod node;
pub mod parameter;
mod payload;
mod payload_memory;
mod publisher;
mod publisher_group;
mod publisher_store;
mod sample;
mod service;
mod set_qos;
mod subscription;
mod subscription_group;
pub mod suggest;
mod task;
pub mod tf;
mod timer;
pub mod trace;
mod type_description;
mod unique_name;
mod view;
mod wait_set;

pub use pteros_interfaces as interfaces;
pub use pteros_msg as msg;
pub use pteros_runtime::content_filter::FilterSpec as ContentFilter;
pub use pteros_runtime::error::{
    ContentFilterError, EndpointError, GroupError, OpenError, PublishError, QosChangeError,
};
pub use pteros_runtime::event::EndpointEvent;
pub use pteros_runtime::flow_controller::{AsyncPublishMode, FlowController, FlowControllerError};
pub use pteros_runtime::limits::{LimitError, Limits};
pub use pteros_runtime::reader::ReaderCounts;
pub use pteros_runtime::rtps::content_filter::ContentFilterProperty;
pub use pteros_runtime::rtps::discovery::data::ProductVersion;
#[doc(hidden)]
pub use pteros_runtime::rtps::fault;
pub use pteros_runtime::rtps::id::{Guid, VendorId};
pub use pteros_runtime::rtps::qos::PolicyId;
pub use pteros_runtime::sample::DeliveryPath;
pub use pteros_runtime::service::ServiceServerCounts;
pub use pteros_runtime::shm_transport::{ConnectionCounts, ConnectionTotals, ShmError};
pub use pteros_runtime::thread::{self, ThreadSettings};
pub use pteros_runtime::writer::WriterCounts;
pub use pteros_runtime::{PeerDelivery, SharedMemoryOptions};
pub use pteros_runtime::{config, names, platform, qos, store};

pub use action::{
    ActionClient, ActionClientOptions, ActionError, ActionServer, ActionServerOptions,
    ClientGoalHandle, GoalError, GoalResponse, GoalStatus, ServerGoalHandle, WrappedResult,
};
pub use callback_group::{CallbackGroup, CallbackGroupType};
pub use context::{Context, ContextOptions};
pub use error::{ContextError, CreateError, NodeError};
pub use executor::{
    Chain, ChainError, ChainExecutor, ChainGraph, ChainReport, ChainReports, DataSemantics,
    ExecutorError, ExecutorHandle, IsolatedExecutor, MultiThreadedExecutor, PanicPolicy,
    PolledExecutor, Readiness, RoundOutput, SingleThreadedExecutor, StaticExecutor,
    StaticExecutorHandle, StepKey, Trigger,
};
pub use graph::{
    AnnouncedTypeError, EndpointInfo, EndpointKind, Graph, MatchOutcome, MatchReport, NodeInfo,
    ParticipantInfo, TopicInfo,
};
pub use guard_condition::{GuardCondition, TriggerHandle};
pub use instance::{EndedInstance, ReceivedChange};
pub use lifecycle::{
    CallbackReturn, CallbackReturnSender, DeferredReturn, LifecycleCallbacks, LifecycleNode,
    LifecyclePublisher, LifecycleState, LifecycleSupervisor, LifecycleTransition, LossPolicy,
    NodeCondition, NodeReport, SupervisedNode, SupervisorError, SupervisorEvent, SupervisorReport,
    TransitionError,
};
pub use loan::LoanedMessage;
pub use logger::Logger;
#[doc(hidden)]
pub use logger::SourceLocation as LoggerSourceLocation;
pub use named_qos::{NamedQos, NamedQosExt};
pub use node::{Node, NodeOptions};
pub use pteros_runtime::instance::{InstanceInfo, InstanceState, KeyHash, ViewState};
pub use publisher::{Publisher, PublisherOptions};
pub use publisher_group::{CoherentSet, PublisherGroup};
pub use qos::QosProfile;
pub use sample::{Sample, SampleInfo};
pub use service::{
    CallError, Client, ClientOptions, DeferredCallback, PendingRequest, ResponseFuture, Service,
    ServiceIntrospectionState, ServiceOptions,
};
pub use set_qos::SetQosError;
pub use subscription::{
    SerializedMessage, SerializedType, Subscription, SubscriptionCallback, SubscriptionMessage,
    SubscriptionOptions,
};
pub use subscription_group::{GroupAccess, GroupChange, SubscriptionGroup};
pub use task::{CallbackOutput, NextMessage, Sleep, SpawnError, TaskHandle};
pub use timer::{Timer, TimerCallback, TimerOptions};
pub use type_description::{RemoteTypeDescription, TypeDescriptionError};
pub use view::{InPlaceMessage, MessageView};
pub use wait_set::{WaitKey, WaitSet, WaitSetError, Waitable};

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The types that most programs need.
pub mod prelude {
    pub use crate::{
        Client, Context, ContextOptions, NamedQosExt, Node, NodeOptions, Publisher, QosProfile,
        Sample, Service, SingleThreadedExecutor, Subscription, Timer,
    };
    pub use pteros_msg::message::Message;
}

/// Spins one node until the context shuts down. Blocks.
pub fn spin(node: &Node) {
    node.spin();
}

//! ROS 2 without the weight: nodes, publishers, subscriptions, executors.
//!
//! A node in ten lines:
//!
//! ```no_run
//! use pteros::prelude::*;
//! use pteros::interfaces::std_msgs::msg::String as Text;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let context = Context::new()?;
//!     let node = context.node("talker")?;
//!     let publisher = node.create_publisher::<Text>("chatter", QosProfile::default())?;
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
//! The thread that spins is the receive loop: it polls the sockets, runs the
//! protocol and calls the callbacks. Within a process messages travel as
//! shared pointers, elsewhere as RTPS over UDP, compatible with ROS 2.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod action;
pub mod args;
mod callback_group;
pub mod clock;
pub mod component;
mod context;
mod dynamic;
mod error;
mod event;
pub mod executor;
mod graph;
mod guard;
mod instance;
mod lifecycle;
mod loan;
pub mod log;
mod logger;
mod node;
pub mod parameter;
mod payload;
mod payload_memory;
mod publisher;
mod publisher_group;
mod sample;
mod service;
mod set_qos;
mod stored;
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
pub use pteros_rmw::content_filter::FilterSpec as ContentFilter;
pub use pteros_rmw::error::{
    EndpointError, FilterProblem, GroupError, OpenError, PublishError, QosChangeError,
};
pub use pteros_rmw::event::EndpointEvent;
pub use pteros_rmw::flow::{FlowController, FlowError, Pace};
pub use pteros_rmw::limits::{LimitError, Limits};
pub use pteros_rmw::links::{LinkCounts, LinkTotals, ShmError};
pub use pteros_rmw::reader::ReaderCounts;
pub use pteros_rmw::rtps::content_filter::ContentFilterProperty;
pub use pteros_rmw::rtps::discovery::data::ProductVersion;
#[doc(hidden)]
pub use pteros_rmw::rtps::fault;
pub use pteros_rmw::rtps::id::{Guid, VendorId};
pub use pteros_rmw::rtps::qos::PolicyId;
pub use pteros_rmw::sample::Path;
pub use pteros_rmw::service::ServerCounts;
pub use pteros_rmw::thread::{self, ThreadSettings};
pub use pteros_rmw::writer::WriterCounts;
pub use pteros_rmw::{PeerPath, SharedMemoryOptions};
pub use pteros_rmw::{config, env, names, qos, store};

pub use action::{
    ActionClient, ActionError, ActionServer, ActionServerOptions, ClientGoal, DynamicActionClient,
    DynamicActionServer, DynamicActionServerOptions, DynamicActionType, DynamicClientGoal,
    DynamicServerGoal, GoalEnd, GoalError, GoalResponse, GoalStatus, ServerGoal,
};
pub use callback_group::{CallbackGroup, CallbackGroupKind};
pub use context::{Context, ContextOptions};
pub use dynamic::DynamicPublisher;
pub use error::{ContextError, CreateError, NodeError};
pub use executor::{
    Chain, ChainError, ChainExecutor, ChainGraph, ChainReport, ChainReports, DataSemantics,
    ExecutorError, ExecutorHandle, IsolatedExecutor, MultiThreadedExecutor, Output, PanicPolicy,
    PolledExecutor, Readiness, SingleThreadedExecutor, StaticExecutor, StaticExecutorHandle,
    StepKey, Trigger,
};
pub use graph::{
    EndpointInfo, EndpointKind, Graph, NodeInfo, PairReport, ParticipantInfo, TopicInfo,
    TypeNotTold, Verdict,
};
pub use guard::{GuardCondition, GuardConditionOptions, TriggerHandle};
pub use instance::{Change, InstanceEnd};
pub use lifecycle::{
    CallbackReturn, Condition, Later, LaterAnswer, LifecycleCallbacks, LifecycleNode,
    LifecyclePublisher, LifecycleState, LifecycleSupervisor, LifecycleTransition, LossPolicy,
    NodeReport, SupervisedNode, SupervisorError, SupervisorEvent, SupervisorReport,
    TransitionError,
};
pub use loan::Loan;
#[doc(hidden)]
pub use logger::At as LoggerAt;
pub use logger::Logger;
pub use node::{Node, NodeOptions};
pub use pteros_rmw::instance::{InstanceInfo, InstanceState, KeyHash, ViewState};
pub use publisher::{Publisher, PublisherOptions};
pub use publisher_group::{CoherentChanges, PublisherGroup};
pub use qos::QosProfile;
pub use sample::{Sample, SampleInfo};
pub use service::{
    Call, CallError, Client, DynamicClient, DynamicService, DynamicServiceType, Service,
    ServiceCall, ServiceIntrospection, ServiceOptions, ServiceTypeError,
};
pub use set_qos::SetQosError;
pub use subscription::{Subscription, SubscriptionOptions};
pub use subscription_group::{Access, GroupChange, SubscriptionGroup};
pub use task::{Next, Sleep, SpawnError, TaskHandle};
pub use timer::{Timer, TimerOptions};
pub use type_description::{AskTypeError, ToldType};
pub use view::{InPlace, View};
pub use wait_set::{WaitKey, WaitSet, WaitSetError, Waitable};

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The example of docs/executors.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/executors.md")]
struct Executors;

/// The example of docs/copies.md runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/copies.md")]
struct Copies;

/// The examples of docs/actions.md compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/actions.md")]
struct Actions;

/// The example of docs/lifecycle.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/lifecycle.md")]
struct Lifecycle;

/// The example of docs/time.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/time.md")]
struct Time;

/// The example of docs/logging.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/logging.md")]
struct Logging;

/// The example of docs/parameters.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/parameters.md")]
struct Parameters;

/// The example of docs/components.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/components.md")]
struct Components;

/// What a program usually needs.
pub mod prelude {
    pub use crate::{
        Client, Context, ContextOptions, Node, NodeOptions, Publisher, QosProfile, Sample, Service,
        SingleThreadedExecutor, Subscription, Timer,
    };
    pub use pteros_msg::message::Message;
}

/// Spins one node until the context shuts down. Blocks.
pub fn spin(node: &Node) {
    node.spin();
}

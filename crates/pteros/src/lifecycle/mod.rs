//! Lifecycle (managed) nodes: ROS 2's lifecycle state machine.
//!
//! [`LifecycleNode`] is a node with a state. Its transition callbacks
//! ([`LifecycleCallbacks`]) run when a service call or a method requests a
//! transition. Its publishers and timers work while it is active. States,
//! transitions, services and the topic are those of rcl_lifecycle and
//! rclcpp_lifecycle (ROS 2 design: managed nodes).
//!
//! [`LifecycleSupervisor`] brings several managed nodes up and down by their
//! dependencies.

mod activation;
mod callbacks;
mod error;
mod node;
mod publisher;
mod services;
mod state_machine;
mod supervisor;

pub use callbacks::{CallbackReturn, CallbackReturnSender, DeferredReturn, LifecycleCallbacks};
pub use error::TransitionError;
pub use node::LifecycleNode;
pub use publisher::LifecyclePublisher;
pub use state_machine::{LifecycleState, LifecycleTransition};
pub use supervisor::{
    LifecycleSupervisor, LossPolicy, NodeCondition, NodeReport, SupervisedNode, SupervisorEvent,
    SupervisorReport,
};

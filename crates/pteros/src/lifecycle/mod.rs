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
mod node;
mod publisher;
mod services;
mod supervisor;

pub use callbacks::{CallbackReturn, CallbackReturnSender, DeferredReturn, LifecycleCallbacks};
pub use node::LifecycleNode;
pub use pteros_rcl::lifecycle::{LifecycleState, LifecycleTransition, TransitionError};
pub use publisher::LifecyclePublisher;
pub use supervisor::{
    LifecycleSupervisor, LossPolicy, NodeCondition, NodeReport, SupervisedNode, SupervisorEvent,
    SupervisorReport,
};

//! Managed nodes: ROS 2's lifecycle.
//!
//! [`LifecycleNode`] is a node with a state. Its callbacks
//! ([`LifecycleCallbacks`]) run when somebody asks it to change, by a service or
//! here; what it publishes and its timers work while it is active. States,
//! transitions, services and the topic are ROS 2's (rcl_lifecycle, rclcpp_lifecycle).

mod activation;
mod callbacks;
mod error;
mod machine;
mod node;
mod publisher;
mod services;
mod supervisor;

pub use callbacks::{CallbackReturn, Later, LaterAnswer, LifecycleCallbacks};
pub use error::TransitionError;
pub use machine::{LifecycleState, LifecycleTransition};
pub use node::LifecycleNode;
pub use publisher::LifecyclePublisher;
pub use supervisor::{
    Condition, LifecycleSupervisor, LossPolicy, NodeReport, SupervisedNode, SupervisorError,
    SupervisorEvent, SupervisorReport,
};

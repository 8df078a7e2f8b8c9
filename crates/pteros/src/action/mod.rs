//! Actions: long-running goals with feedback and a result.
//!
//! ROS 2 implements an action as three services and two topics under
//! `<name>/_action`. Each goal follows the goal state machine of rcl_action.

mod client;
mod error;
mod goal_requests;
mod goal_server;
mod options;
mod server;

pub use client::{ActionClient, ClientGoalHandle, WrappedResult};
pub use error::ActionError;
pub use options::{ActionClientOptions, ActionServerOptions, GoalResponse};
pub use pteros_rcl::action::{GoalStatus, IllegalTransition};
pub use server::{ActionServer, ServerGoalHandle};

/// Name of a service or topic of the action.
fn endpoint_name(action: &str, part: &str) -> String {
    format!("{action}/_action/{part}")
}

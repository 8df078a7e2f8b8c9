//! Actions: a goal that takes a while, what it has come to meanwhile, and its
//! result. ROS 2's: three services and two topics under `<name>/_action`.

mod asking;
mod client;
mod dynamic;
mod error;
mod ledger;
mod options;
mod served;
mod server;

pub use client::{ActionClient, ClientGoal, GoalEnd};
pub use dynamic::{
    DynamicActionClient, DynamicActionServer, DynamicActionServerOptions, DynamicActionType,
    DynamicClientGoal, DynamicServerGoal,
};
pub use error::{ActionError, GoalError};
pub use ledger::GoalStatus;
pub use options::{ActionServerOptions, GoalResponse};
pub use server::{ActionServer, ServerGoal};

/// Names of an action's parts.
fn part(action: &str, part: &str) -> String {
    format!("{action}/_action/{part}")
}

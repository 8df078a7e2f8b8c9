//! Actions: a goal that takes a while, what it has come to meanwhile, and its
//! result. ROS 2's: three services and two topics under `<name>/_action`.

mod client;
mod error;
mod ledger;
mod options;
mod server;

pub use client::{ActionClient, ClientGoal, GoalEnd};
pub use error::{ActionError, GoalError};
pub use ledger::GoalStatus;
pub use options::{ActionServerOptions, GoalResponse};
pub use server::{ActionServer, ServerGoal};

/// Names of an action's parts.
fn part(action: &str, part: &str) -> String {
    format!("{action}/_action/{part}")
}

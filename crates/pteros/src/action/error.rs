//! Errors of action clients and of server goal handles.

use thiserror::Error;

use crate::service::CallError;
use pteros_rcl::action::IllegalTransition;

/// Why an action call failed, or a goal did not change its status.
#[derive(Error)]
pub enum ActionError {
    /// The server rejected the goal.
    #[error("action \"{action}\": goal rejected by the server; its log may have the reason")]
    Rejected {
        /// Name of the action.
        action: String,
    },
    /// The server does not know the goal: the result has expired, or the server was
    /// restarted.
    #[error(
        "action \"{action}\": unknown goal, or its result has expired; request the result sooner, or raise the server's result_timeout"
    )]
    UnknownGoal {
        /// Name of the action.
        action: String,
    },
    /// The goal has already ended and cannot be cancelled.
    #[error("action \"{action}\": the goal has already ended")]
    GoalTerminated {
        /// Name of the action.
        action: String,
    },
    /// The server rejected the cancel request.
    #[error("action \"{action}\": cancel request rejected by the server")]
    CancelRejected {
        /// Name of the action.
        action: String,
    },
    /// The goal state machine has no such transition.
    #[error(transparent)]
    IllegalTransition(#[from] IllegalTransition),
    /// The action server of the goal was dropped.
    #[error("the goal's action server was dropped")]
    ServerDropped,
    /// A service call of the action failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

pteros_msg::debug_as_display!(ActionError);

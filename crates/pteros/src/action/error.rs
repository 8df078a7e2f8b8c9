//! Why a goal does not do what was asked.

use thiserror::Error;

use super::ledger::GoalStatus;
use crate::service::CallError;

/// Why a client has no goal, or no result.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum ActionError {
    /// The server does not want the goal.
    #[error("action \"{action}\": the server has rejected the goal; its log may say why")]
    Rejected {
        /// The action.
        action: String,
    },
    /// The server knows nothing of the goal: it has kept the result no longer, or
    /// has been started anew.
    #[error(
        "action \"{action}\": the server does not know the goal (any more); ask for the result sooner, or let the server keep it longer"
    )]
    UnknownGoal {
        /// The action.
        action: String,
    },
    /// The goal has ended already, so that it cannot be cancelled.
    #[error("action \"{action}\": the goal has ended already")]
    Ended {
        /// The action.
        action: String,
    },
    /// The server does not let it be cancelled.
    #[error("action \"{action}\": the server does not let the goal be cancelled")]
    NotCancelled {
        /// The action.
        action: String,
    },
    /// One of its services could not be called.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Why a server's goal does not change its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GoalError {
    /// It does not lead there.
    #[error(
        "a goal that is {status} does not become {wanted}{}",
        hint(*.wanted)
    )]
    Illegal {
        /// Its status.
        status: GoalStatus,
        /// What it was to be.
        wanted: GoalStatus,
    },
    /// The server has been dropped.
    #[error("the goal's server has been dropped")]
    NoServer,
}

fn hint(wanted: GoalStatus) -> &'static str {
    match wanted {
        GoalStatus::Canceled => "; only one whose cancelling was asked for does: see is_canceling",
        _ => "",
    }
}

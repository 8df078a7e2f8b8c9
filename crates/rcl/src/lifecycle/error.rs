//! Errors of lifecycle transitions.

use thiserror::Error;

use super::state_machine::{LifecycleState, LifecycleTransition};

/// Why a transition did not reach its goal state.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum TransitionError {
    /// The current state has no such transition.
    #[error(
        "node \"{node}\": transition {requested} is not available in state {state}; available: {}",
        possible(.state)
    )]
    Illegal {
        /// Fully qualified name of the node.
        node: String,
        /// Current state of the node.
        state: LifecycleState,
        /// Requested transition: a label, or a number in brackets.
        requested: String,
    },
    /// Another transition is in progress.
    #[error(
        "node \"{node}\" is {state}: a transition is in progress; request {requested} again after it has ended"
    )]
    Busy {
        /// Fully qualified name of the node.
        node: String,
        /// Current state of the node.
        state: LifecycleState,
        /// Requested transition.
        requested: String,
    },
    /// The callback returned failure.
    #[error(
        "node \"{node}\": {transition} failed, back in state {state}; the callback returned FAILURE"
    )]
    Failed {
        /// Fully qualified name of the node.
        node: String,
        /// Requested transition.
        transition: LifecycleTransition,
        /// State of the node now.
        state: LifecycleState,
    },
    /// The callback returned an error or panicked.
    #[error(
        "node \"{node}\": error in {transition}, now in state {state}; the callback returned ERROR or panicked, see the node's log"
    )]
    Error {
        /// Fully qualified name of the node.
        node: String,
        /// Requested transition.
        transition: LifecycleTransition,
        /// State after error processing.
        state: LifecycleState,
    },
    /// The node was dropped; only handles remain.
    #[error("node \"{node}\" has been dropped")]
    NodeDropped {
        /// Fully qualified name of the node.
        node: String,
    },
}

pteros_msg::debug_as_display!(TransitionError);

fn possible(state: &LifecycleState) -> String {
    let transitions = state.transitions();
    let words: Vec<_> = transitions
        .filter(|transition| transition.is_requestable())
        .map(ToString::to_string)
        .collect();
    if words.is_empty() {
        "none".into()
    } else {
        words.join(", ")
    }
}

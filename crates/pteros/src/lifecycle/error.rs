//! Why a managed node is not in the state it was asked to go to.

use thiserror::Error;

use super::machine::{LifecycleState, LifecycleTransition};

/// Why a transition did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransitionError {
    /// It does not lead away from the node's state.
    #[error(
        "node \"{node}\" is {state}: no transition {asked} leads away from there; possible: {}",
        possible(.state)
    )]
    Illegal {
        /// The node.
        node: String,
        /// Its state.
        state: LifecycleState,
        /// What was asked for: a label, or a number in brackets.
        asked: String,
    },
    /// Another transition goes on.
    #[error(
        "node \"{node}\" is {state}: one transition at a time; ask for {asked} again when that has ended"
    )]
    Busy {
        /// The node.
        node: String,
        /// Its state.
        state: LifecycleState,
        /// What was asked for.
        asked: String,
    },
    /// The node's callback said that it failed.
    #[error("node \"{node}\": {transition} failed, it is {state} again; its callback said FAILURE")]
    Failed {
        /// The node.
        node: String,
        /// What was asked for.
        transition: LifecycleTransition,
        /// Where it is now.
        state: LifecycleState,
    },
    /// The node's callback said error, or panicked.
    #[error(
        "node \"{node}\": {transition} ended in an error, it is {state} now; its callback said ERROR or panicked, see its log"
    )]
    Error {
        /// The node.
        node: String,
        /// What was asked for.
        transition: LifecycleTransition,
        /// Where error processing left it.
        state: LifecycleState,
    },
    /// The node has been dropped; only its handles remain.
    #[error("node \"{node}\" has been dropped")]
    Gone {
        /// The node.
        node: String,
    },
}

fn possible(state: &LifecycleState) -> String {
    let steps = state.transitions();
    let words: Vec<_> = steps
        .filter(|step| step.can_be_asked_for())
        .map(ToString::to_string)
        .collect();
    match words.is_empty() {
        true => "none".into(),
        false => words.join(", "),
    }
}

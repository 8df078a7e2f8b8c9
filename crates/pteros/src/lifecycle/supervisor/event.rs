//! What a supervisor has seen and done, as values and in words.

use std::fmt;
use std::time::Duration;

use crate::lifecycle::{LifecycleState, LifecycleTransition};

/// One thing that happened to a supervised node. Its text is what the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SupervisorEvent {
    /// It is there, perhaps again.
    Arrived {
        /// The node.
        node: String,
    },
    /// A transition asked for has ended where it should, as the node itself said
    /// afterwards.
    Reached {
        /// The node.
        node: String,
        /// Its state.
        state: LifecycleState,
    },
    /// A transition ended elsewhere.
    Failed {
        /// The node.
        node: String,
        /// What was asked for.
        transition: LifecycleTransition,
        /// Where the node is.
        state: LifecycleState,
    },
    /// Somebody else changed its state: it is left alone until the supervisor is
    /// told anew what to do.
    ChangedByOthers {
        /// The node.
        node: String,
        /// Its state.
        state: LifecycleState,
    },
    /// It does not answer, or a transition does not end.
    Hung {
        /// The node.
        node: String,
        /// What was asked for, if it was that.
        transition: Option<LifecycleTransition>,
        /// How long it was waited for.
        after: Duration,
    },
    /// Its process has ended, is cut off, or has dropped it.
    Gone {
        /// The node.
        node: String,
        /// In the middle of this.
        during: Option<LifecycleTransition>,
    },
    /// It has not come, or not come back.
    Missing {
        /// The node.
        node: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// It is tried again.
    Retrying {
        /// The node.
        node: String,
        /// After this pause.
        pause: Duration,
        /// The how-many-th time, counted from one.
        attempt: u32,
    },
    /// It is not tried again until the supervisor is told anew.
    GivenUp {
        /// The node.
        node: String,
        /// Why.
        reason: String,
    },
    /// Several nodes have the name. They all get what one is meant to.
    Twins {
        /// The name.
        node: String,
        /// How many.
        count: usize,
    },
}

impl SupervisorEvent {
    /// Whether the operator should look at it.
    pub fn is_trouble(&self) -> bool {
        !matches!(
            self,
            Self::Arrived { .. } | Self::Reached { .. } | Self::Retrying { .. }
        )
    }

    /// The node it happened to.
    pub fn node(&self) -> &str {
        match self {
            Self::Arrived { node }
            | Self::Reached { node, .. }
            | Self::Failed { node, .. }
            | Self::ChangedByOthers { node, .. }
            | Self::Hung { node, .. }
            | Self::Gone { node, .. }
            | Self::Missing { node, .. }
            | Self::Retrying { node, .. }
            | Self::GivenUp { node, .. }
            | Self::Twins { node, .. } => node,
        }
    }
}

impl fmt::Display for SupervisorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrived { node } => write!(f, "{node} is there"),
            Self::Reached { node, state } => write!(f, "{node} is {}", state.label()),
            Self::Failed {
                node,
                transition,
                state,
            } => write!(
                f,
                "{node}: {} failed, it is {}; its log says why",
                transition.label,
                state.label()
            ),
            Self::ChangedByOthers { node, state } => write!(
                f,
                "{node} is {}: somebody else changed that, it is left alone",
                state.label()
            ),
            Self::Hung {
                node,
                transition: Some(transition),
                after,
            } => write!(
                f,
                "{node}: {} has not ended within {after:?}; look what its callback waits for, or allow more time",
                transition.label
            ),
            Self::Hung { node, after, .. } => write!(
                f,
                "{node} does not tell its state for {after:?}; look whether its executor spins"
            ),
            Self::Gone { node, during: None } => write!(f, "{node} is gone"),
            Self::Gone {
                node,
                during: Some(transition),
            } => write!(f, "{node} is gone in the middle of {}", transition.label),
            Self::Missing { node, after } => write!(
                f,
                "{node} is missing for {after:?}; start its process, or compare names with: pteros lifecycle nodes"
            ),
            Self::Retrying {
                node,
                pause,
                attempt,
            } => write!(f, "{node} is tried again in {pause:?} (attempt {attempt})"),
            Self::GivenUp { node, reason } => write!(f, "{node} is given up: {reason}"),
            Self::Twins { node, count } => write!(
                f,
                "{count} nodes are called {node}: all get what one is meant to; rename the others"
            ),
        }
    }
}

/// How a supervised node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Condition {
    /// Nothing is known against it.
    Well,
    /// It is not there.
    Missing,
    /// It does not answer, or a transition does not end.
    Hanging,
    /// Somebody else changed its state.
    LeftAlone,
    /// It failed or went, and is not tried again.
    GivenUp,
}

/// A supervised node at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// Its full name.
    pub node: String,
    /// Its state as it last told; unknown when it is not there.
    pub state: LifecycleState,
    /// How it is.
    pub condition: Condition,
    /// Tries in a row that have failed.
    pub attempts: u32,
}

/// All supervised nodes at one moment, those that others depend on first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorReport {
    /// The nodes.
    pub nodes: Vec<NodeReport>,
}

impl SupervisorReport {
    /// Whether all are in that state.
    pub fn all_are(&self, state: LifecycleState) -> bool {
        self.nodes.iter().all(|node| node.state == state)
    }
}

impl fmt::Display for SupervisorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, row) in self.nodes.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{} {}", row.node, row.state.label())?;
            match row.condition {
                Condition::Well => {}
                Condition::Missing => f.write_str(" (missing)")?,
                Condition::Hanging => f.write_str(" (hanging)")?,
                Condition::LeftAlone => f.write_str(" (left alone)")?,
                Condition::GivenUp => f.write_str(" (given up)")?,
            }
        }
        Ok(())
    }
}

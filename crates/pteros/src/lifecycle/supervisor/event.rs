//! Supervisor events and reports, as values and as log text.

use std::fmt;
use std::time::Duration;

use crate::lifecycle::{LifecycleState, LifecycleTransition};

/// Event of a supervised node. Its text is the log line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SupervisorEvent {
    /// The node appeared, or appeared again.
    Discovered {
        /// Fully qualified name of the node.
        node: String,
    },
    /// A requested transition reached its goal state, as a later query of the node
    /// confirmed.
    Reached {
        /// Fully qualified name of the node.
        node: String,
        /// State of the node.
        state: LifecycleState,
    },
    /// A requested transition ended in another state.
    Failed {
        /// Fully qualified name of the node.
        node: String,
        /// Requested transition.
        transition: LifecycleTransition,
        /// State of the node.
        state: LifecycleState,
    },
    /// Another client changed the state. The supervisor leaves the node alone until
    /// its next command.
    ChangedExternally {
        /// Fully qualified name of the node.
        node: String,
        /// State of the node.
        state: LifecycleState,
    },
    /// The node does not respond, or a transition does not end.
    Unresponsive {
        /// Fully qualified name of the node.
        node: String,
        /// Requested transition, if there was one.
        transition: Option<LifecycleTransition>,
        /// Time waited.
        after: Duration,
    },
    /// The node is gone: its process ended or is unreachable, or it was dropped.
    Lost {
        /// Fully qualified name of the node.
        node: String,
        /// Transition that was in progress.
        during: Option<LifecycleTransition>,
    },
    /// The node did not appear, or did not come back.
    Missing {
        /// Fully qualified name of the node.
        node: String,
        /// Time waited.
        after: Duration,
    },
    /// The supervisor retries the node.
    Retrying {
        /// Fully qualified name of the node.
        node: String,
        /// Back-off before the retry.
        pause: Duration,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// The supervisor gave up the node until its next command.
    GivenUp {
        /// Fully qualified name of the node.
        node: String,
        /// Text of the last failure.
        reason: String,
    },
    /// Several nodes have the same name. All of them receive the requests.
    DuplicateName {
        /// Name of the nodes.
        node: String,
        /// Number of nodes with this name.
        count: usize,
    },
}

impl SupervisorEvent {
    /// Whether an operator should check it.
    pub fn needs_attention(&self) -> bool {
        !matches!(
            self,
            Self::Discovered { .. } | Self::Reached { .. } | Self::Retrying { .. }
        )
    }

    /// Name of the node.
    pub fn node(&self) -> &str {
        match self {
            Self::Discovered { node }
            | Self::Reached { node, .. }
            | Self::Failed { node, .. }
            | Self::ChangedExternally { node, .. }
            | Self::Unresponsive { node, .. }
            | Self::Lost { node, .. }
            | Self::Missing { node, .. }
            | Self::Retrying { node, .. }
            | Self::GivenUp { node, .. }
            | Self::DuplicateName { node, .. } => node,
        }
    }
}

impl fmt::Display for SupervisorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovered { node } => write!(f, "{node} was discovered"),
            Self::Reached { node, state } => write!(f, "{node} is {}", state.label()),
            Self::Failed {
                node,
                transition,
                state,
            } => write!(
                f,
                "{node}: {} failed, state is {}; see its log",
                transition.label,
                state.label()
            ),
            Self::ChangedExternally { node, state } => write!(
                f,
                "{node} is {}: changed by another client, so it is not managed any more",
                state.label()
            ),
            Self::Unresponsive {
                node,
                transition: Some(transition),
                after,
            } => write!(
                f,
                "{node}: {} has not ended within {after:?}; check what its callback waits for, or raise the transition time-out",
                transition.label
            ),
            Self::Unresponsive { node, after, .. } => write!(
                f,
                "{node} has not reported its state for {after:?}; check that its executor spins"
            ),
            Self::Lost { node, during: None } => write!(f, "{node} was lost"),
            Self::Lost {
                node,
                during: Some(transition),
            } => write!(f, "{node} was lost during {}", transition.label),
            Self::Missing { node, after } => write!(
                f,
                "{node} is missing for {after:?}; start its process, or compare names with: pteros lifecycle nodes"
            ),
            Self::Retrying {
                node,
                pause,
                attempt,
            } => write!(f, "{node} is retried in {pause:?} (attempt {attempt})"),
            Self::GivenUp { node, reason } => write!(f, "{node} is given up: {reason}"),
            Self::DuplicateName { node, count } => write!(
                f,
                "{count} nodes have the name {node}: all receive the requests; rename the others"
            ),
        }
    }
}

/// Condition of a supervised node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum NodeCondition {
    /// No problem known.
    Healthy,
    /// The node is not present.
    Missing,
    /// The node does not respond, or a transition does not end.
    Unresponsive,
    /// Another client changed its state.
    ChangedExternally,
    /// It failed or was lost and is not retried.
    GivenUp,
}

/// Snapshot of one supervised node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// Fully qualified name.
    pub node: String,
    /// Last reported state; unknown if the node is not present.
    pub state: LifecycleState,
    /// Condition of the node.
    pub condition: NodeCondition,
    /// Consecutive failed attempts.
    pub attempts: u32,
}

/// Snapshot of all supervised nodes, dependencies first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorReport {
    /// One report for each supervised node.
    pub nodes: Vec<NodeReport>,
}

impl SupervisorReport {
    /// Whether all nodes are in the given state.
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
                NodeCondition::Healthy => {}
                NodeCondition::Missing => f.write_str(" (missing)")?,
                NodeCondition::Unresponsive => f.write_str(" (unresponsive)")?,
                NodeCondition::ChangedExternally => f.write_str(" (changed externally)")?,
                NodeCondition::GivenUp => f.write_str(" (given up)")?,
            }
        }
        Ok(())
    }
}

//! What is supervised: nodes, what they depend on, and what is done when one
//! goes or does not do as it is told.

use std::time::Duration;

use thiserror::Error;

use crate::error::{CreateError, NodeError};

/// A managed node that a [`LifecycleSupervisor`](crate::LifecycleSupervisor)
/// looks after.
#[derive(Clone, Debug)]
pub struct SupervisedNode {
    pub(super) name: String,
    pub(super) depends_on: Vec<String>,
    pub(super) on_loss: LossPolicy,
    pub(super) transition_timeout: Duration,
    pub(super) arrival_timeout: Duration,
    pub(super) sign_of_life: Option<SignOfLife>,
}

/// A topic whose publisher proves that its node lives.
#[derive(Clone, Debug)]
pub(super) struct SignOfLife {
    pub(super) topic: String,
    pub(super) type_name: String,
    pub(super) lease: Duration,
}

impl SupervisedNode {
    /// The node of that full name; a slash before it may be left out. It depends
    /// on nothing and is restarted.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: full(name.into()),
            depends_on: Vec::new(),
            on_loss: LossPolicy::default(),
            transition_timeout: Duration::from_secs(10),
            arrival_timeout: Duration::from_secs(10),
            sign_of_life: None,
        }
    }

    /// Needs another one to be active: it is brought up after that, and down
    /// before.
    pub fn depends_on(mut self, name: impl Into<String>) -> Self {
        self.depends_on.push(full(name.into()));
        self
    }

    /// It counts as hanging while a publisher on this topic does not prove to be
    /// alive within `lease`: one with manual liveliness ([`QosProfile::liveliness`](
    /// crate::QosProfile::liveliness)) and a lease no longer than that, which says
    /// something or [asserts](crate::Publisher::assert_liveliness) as long as its
    /// node works. Its absence means nothing: it may be made when the node is
    /// configured. `type_name` is as `sensor_msgs/msg/LaserScan`.
    pub fn sign_of_life(
        mut self,
        topic: impl Into<String>,
        type_name: impl Into<String>,
        lease: Duration,
    ) -> Self {
        self.sign_of_life = Some(SignOfLife {
            topic: topic.into(),
            type_name: type_name.into(),
            lease,
        });
        self
    }

    /// What is done when it goes, or fails in a transition.
    pub fn on_loss(mut self, policy: LossPolicy) -> Self {
        self.on_loss = policy;
        self
    }

    /// How long a transition, or a node without an answer, is waited for before it
    /// counts as hanging. 10 s unless given.
    pub fn transition_timeout(mut self, timeout: Duration) -> Self {
        self.transition_timeout = timeout;
        self
    }

    /// How long it is waited for, at first and after it went, before it counts as
    /// missing. 10 s unless given.
    pub fn arrival_timeout(mut self, timeout: Duration) -> Self {
        self.arrival_timeout = timeout;
        self
    }
}

fn full(name: String) -> String {
    match name.starts_with('/') {
        true => name,
        false => format!("/{name}"),
    }
}

/// What is done when a supervised node goes away, or fails in a transition.
/// Processes are not started here: whoever started the node does that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossPolicy {
    /// It is brought up again, when it is there again. Those that depend on it
    /// stay as they are meanwhile; they are brought down when it is missing for
    /// longer than its arrival time-out, hangs, or is given up.
    Restart {
        /// Tries in a row before it is given up. The count begins anew once it
        /// has been active for longer than `backoff_max`.
        attempts: u32,
        /// The pause before the first of them; it doubles each time.
        backoff: Duration,
        /// The longest pause.
        backoff_max: Duration,
    },
    /// It is given up, and all that depend on it are brought down.
    BringDown,
    /// It is given up, and nothing else is done: those that depend on it do
    /// without.
    Ignore,
}

impl Default for LossPolicy {
    /// Five tries, with pauses from 0.5 s to 8 s.
    fn default() -> Self {
        Self::Restart {
            attempts: 5,
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(8),
        }
    }
}

/// Why there is no supervisor.
#[derive(Debug, Error)]
pub enum SupervisorError {
    /// A node is named twice.
    #[error("node \"{node}\" is to be supervised twice; name it once")]
    Twice {
        /// The node.
        node: String,
    },
    /// A node depends on one that is not supervised.
    #[error(
        "node \"{node}\" depends on \"{dependency}\", which is not supervised; add it, or leave the dependency out"
    )]
    UnknownDependency {
        /// The node.
        node: String,
        /// What it needs.
        dependency: String,
    },
    /// Nodes depend on each other in a circle.
    #[error(
        "nodes depend on each other in a circle, so none can be first: {}; leave one dependency out",
        .nodes.join(", ")
    )]
    Circle {
        /// Those of the circle, and those that depend on it.
        nodes: Vec<String>,
    },
    /// The supervisor's own node cannot be made.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A client or subscription of the supervisor's cannot be made: mostly a
    /// node's name that is none.
    #[error(transparent)]
    Create(#[from] CreateError),
}

/// For each node the places of those it depends on, all of which stand before
/// it: the nodes are sorted for that.
pub(super) fn sorted(
    nodes: Vec<SupervisedNode>,
) -> Result<Vec<(SupervisedNode, Vec<usize>)>, SupervisorError> {
    for (at, node) in nodes.iter().enumerate() {
        if nodes.iter().take(at).any(|other| other.name == node.name) {
            let node = node.name.clone();
            return Err(SupervisorError::Twice { node });
        }
        let known = |name: &String| nodes.iter().any(|other| other.name == *name);
        if let Some(dependency) = node.depends_on.iter().find(|name| !known(name)) {
            return Err(SupervisorError::UnknownDependency {
                node: node.name.clone(),
                dependency: dependency.clone(),
            });
        }
    }
    let mut done: Vec<(SupervisedNode, Vec<usize>)> = Vec::new();
    let mut left = nodes;
    while !left.is_empty() {
        let places = |node: &SupervisedNode| -> Option<Vec<usize>> {
            let place = |name: &String| done.iter().position(|(other, _)| other.name == *name);
            node.depends_on.iter().map(place).collect()
        };
        let next = left
            .iter()
            .enumerate()
            .find_map(|(at, node)| Some((at, places(node)?)));
        let Some((at, places)) = next else {
            let nodes = left.into_iter().map(|node| node.name).collect();
            return Err(SupervisorError::Circle { nodes });
        };
        done.push((left.remove(at), places));
    }
    Ok(done)
}

//! Supervised nodes: dependencies, time-outs and loss policies.

use std::time::Duration;

use crate::error::CreateError;

/// A managed node for a [`LifecycleSupervisor`](crate::lifecycle::LifecycleSupervisor).
#[derive(Clone, Debug)]
pub struct SupervisedNode {
    pub(super) name: String,
    pub(super) depends_on: Vec<String>,
    pub(super) on_loss: LossPolicy,
    pub(super) transition_timeout: Duration,
    pub(super) arrival_timeout: Duration,
    pub(super) liveliness_topic: Option<LivelinessTopic>,
}

/// Topic whose publisher asserts the liveliness of its node.
#[derive(Clone, Debug)]
pub(super) struct LivelinessTopic {
    pub(super) topic: String,
    pub(super) type_name: String,
    pub(super) lease: Duration,
}

impl SupervisedNode {
    /// Creates an entry for the node with this fully qualified name; the leading
    /// slash is optional. It has no dependencies and the policy
    /// [`LossPolicy::Restart`].
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: fully_qualified(name.into()),
            depends_on: Vec::new(),
            on_loss: LossPolicy::default(),
            transition_timeout: Duration::from_secs(10),
            arrival_timeout: Duration::from_secs(10),
            liveliness_topic: None,
        }
    }

    /// Adds a dependency: this node is brought up after the other one is active,
    /// and down before it.
    pub fn depends_on(mut self, name: impl Into<String>) -> Self {
        self.depends_on.push(fully_qualified(name.into()));
        self
    }

    /// Sets a topic for liveliness monitoring (DDS 1.4 §2.2.3.11). The node counts
    /// as unresponsive while a publisher on it does not assert its liveliness
    /// within `lease`. The publisher must use manual liveliness
    /// ([`QosProfile::liveliness`](crate::QosProfile::liveliness)) with a lease no
    /// longer than that. It publishes or
    /// [asserts](crate::Publisher::assert_liveliness) while its node works. A
    /// missing publisher means nothing: it may be created when the node is
    /// configured. `type_name` is for example `sensor_msgs/msg/LaserScan`.
    pub fn liveliness_topic(
        mut self,
        topic: impl Into<String>,
        type_name: impl Into<String>,
        lease: Duration,
    ) -> Self {
        self.liveliness_topic = Some(LivelinessTopic {
            topic: topic.into(),
            type_name: type_name.into(),
            lease,
        });
        self
    }

    /// Sets what to do when the node is lost or a transition fails.
    pub fn on_loss(mut self, policy: LossPolicy) -> Self {
        self.on_loss = policy;
        self
    }

    /// Sets the time limit of a transition and of a node that does not respond,
    /// after which it counts as unresponsive. Default 10 s.
    pub fn transition_timeout(mut self, timeout: Duration) -> Self {
        self.transition_timeout = timeout;
        self
    }

    /// Sets how long to wait for the node, initially and after a loss, before it
    /// counts as missing. Default 10 s.
    pub fn arrival_timeout(mut self, timeout: Duration) -> Self {
        self.arrival_timeout = timeout;
        self
    }
}

fn fully_qualified(name: String) -> String {
    if name.starts_with('/') {
        name
    } else {
        format!("/{name}")
    }
}

/// Policy for a supervised node that is lost or fails in a transition. The
/// supervisor does not start processes; whatever started the node must restart it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossPolicy {
    /// Brings the node up again when it is back. Its dependents stay as they are
    /// meanwhile. They are brought down when it is missing for longer than its
    /// arrival time-out, is unresponsive, or is given up.
    Restart {
        /// Consecutive attempts before it is given up. The count restarts after it
        /// has been active for longer than `backoff_max`.
        attempts: u32,
        /// Back-off before the first attempt; it doubles each time.
        backoff: Duration,
        /// Maximum back-off.
        backoff_max: Duration,
    },
    /// Gives the node up and brings all its dependents down.
    BringDown,
    /// Gives the node up; its dependents continue without it.
    Ignore,
}

impl Default for LossPolicy {
    /// Five attempts, with a back-off from 0.5 s to 8 s.
    fn default() -> Self {
        Self::Restart {
            attempts: 5,
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(8),
        }
    }
}

/// Sorts the nodes topologically. Returns each with the indices of its
/// dependencies, which come before it.
pub(super) fn sort_by_dependencies(
    nodes: Vec<SupervisedNode>,
) -> Result<Vec<(SupervisedNode, Vec<usize>)>, CreateError> {
    for (index, node) in nodes.iter().enumerate() {
        if nodes
            .iter()
            .take(index)
            .any(|other| other.name == node.name)
        {
            let problem = format!("node \"{}\" is listed twice; list it once", node.name);
            return Err(CreateError::Supervision(problem));
        }
        let is_supervised = |name: &String| nodes.iter().any(|other| other.name == *name);
        if let Some(dependency) = node.depends_on.iter().find(|name| !is_supervised(name)) {
            return Err(CreateError::Supervision(format!(
                "node \"{}\" depends on \"{dependency}\", which is not supervised; add it, or leave the dependency out",
                node.name
            )));
        }
    }
    let mut sorted: Vec<(SupervisedNode, Vec<usize>)> = Vec::new();
    let mut remaining = nodes;
    while !remaining.is_empty() {
        let dependency_indices = |node: &SupervisedNode| -> Option<Vec<usize>> {
            let position = |name: &String| sorted.iter().position(|(other, _)| other.name == *name);
            node.depends_on.iter().map(position).collect()
        };
        let next = remaining
            .iter()
            .enumerate()
            .find_map(|(index, node)| Some((index, dependency_indices(node)?)));
        let Some((index, dependency_indices)) = next else {
            let nodes: Vec<String> = remaining.into_iter().map(|node| node.name).collect();
            return Err(CreateError::Supervision(format!(
                "dependency cycle among the nodes {}; remove one dependency",
                nodes.join(", ")
            )));
        };
        sorted.push((remaining.remove(index), dependency_indices));
    }
    Ok(sorted)
}

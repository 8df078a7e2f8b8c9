//! Callback groups: which callbacks of a node may run in parallel.
//!
//! As in rclcpp, a callback group is mutually exclusive (one callback at a time,
//! enforced by a gate) or reentrant. A node has a default callback group, which is
//! mutually exclusive.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;

use crate::executors::ExecutorQueue;
use crate::node::{Node, NodeCore};

/// Whether callbacks of one group may run in parallel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CallbackGroupType {
    /// One callback at a time, in the order in which they became ready.
    MutuallyExclusive,
    /// Callbacks run in parallel; a single callback never runs twice at the same
    /// time.
    Reentrant,
}

/// A group of callbacks of one node: subscriptions, timers, services, clients,
/// guard conditions and event callbacks created with it. Entities created without a
/// group belong to the node's default group, which is mutually exclusive. Cheap to
/// clone, thread-safe.
///
/// The type matters to a [`MultiThreadedExecutor`](crate::executors::MultiThreadedExecutor). A
/// [`SingleThreadedExecutor`](crate::executors::SingleThreadedExecutor) runs one callback at a
/// time anyway. A group can have its own executor (`add_callback_group`), on a
/// thread with its own priority.
///
/// ```no_run
/// use pteros::interfaces::sensor_msgs::msg::{Image, LaserScan};
/// use pteros::prelude::*;
/// use pteros::SubscriptionOptions;
/// use pteros::callback_groups::CallbackGroupType;
/// use pteros::executors::MultiThreadedExecutor;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.create_node("eyes")?;
/// let slow = node.create_callback_group(CallbackGroupType::MutuallyExclusive);
/// let images = SubscriptionOptions::new("image".keep_last(1)).callback_group(&slow);
/// let _images = node.create_subscription::<Image>(images, |image| {
///     println!("{} bytes", image.data.len());
/// })?;
/// // Not kept waiting by images:
/// let _scans = node.create_subscription("scan".keep_last(1), |_: Sample<LaserScan>| ())?;
/// let executor = MultiThreadedExecutor::new(&context, 2);
/// executor.add_node(&node)?;
/// executor.spin()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CallbackGroup {
    pub(crate) core: Arc<CallbackGroupCore>,
    node: Arc<NodeCore>,
}

impl CallbackGroup {
    /// Type of the group.
    pub fn group_type(&self) -> CallbackGroupType {
        self.core.group_type()
    }

    pub(crate) fn node(&self) -> &Arc<NodeCore> {
        &self.node
    }
}

impl fmt::Debug for CallbackGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackGroup")
            .field("group_type", &self.group_type())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Creates a callback group of this node.
    pub fn create_callback_group(&self, group_type: CallbackGroupType) -> CallbackGroup {
        CallbackGroup {
            core: CallbackGroupCore::new(group_type, self.core().key),
            node: self.core().clone(),
        }
    }
}

/// A callback group without a reference to its node, which may own it.
pub(crate) struct CallbackGroupCore {
    pub(crate) node: NodeKey,
    gate: Option<MutualExclusionGate>,
    /// Executors to which the group itself was added; the last one spins it.
    /// Without any, the node's executor does.
    pub(crate) executor_queues: Mutex<Vec<Arc<ExecutorQueue>>>,
}

impl CallbackGroupCore {
    pub(crate) fn new(group_type: CallbackGroupType, node: NodeKey) -> Arc<Self> {
        let gate = match group_type {
            CallbackGroupType::MutuallyExclusive => Some(MutualExclusionGate::default()),
            CallbackGroupType::Reentrant => None,
        };
        Arc::new(Self {
            node,
            gate,
            executor_queues: Mutex::default(),
        })
    }

    fn group_type(&self) -> CallbackGroupType {
        match self.gate {
            Some(_) => CallbackGroupType::MutuallyExclusive,
            None => CallbackGroupType::Reentrant,
        }
    }

    pub(crate) fn gate(&self) -> Option<&MutualExclusionGate> {
        self.gate.as_ref()
    }
}

/// The callback group of an entity: the requested one, or the node's default.
///
/// # Panics
/// If the group belongs to another node.
pub(crate) fn group_for(
    node: &Arc<NodeCore>,
    group: Option<&CallbackGroup>,
) -> Arc<CallbackGroupCore> {
    let Some(group) = group else {
        return node.default_callback_group.clone();
    };
    assert!(
        Arc::ptr_eq(group.node(), node),
        "a callback group of node {} was given to node {}",
        group.node().fully_qualified_name(),
        node.fully_qualified_name()
    );
    group.core.clone()
}

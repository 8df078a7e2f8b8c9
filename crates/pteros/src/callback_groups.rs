//! Callback groups: which callbacks of a node may run in parallel.
//!
//! As in rclcpp, a callback group is mutually exclusive (one callback at a time,
//! enforced by a gate) or reentrant. A node has a default callback group, which is
//! mutually exclusive.

use std::fmt;
use std::sync::Arc;

use crate::node::{CallbackGroupCore, Node, NodeCore};

pub use crate::node::CallbackGroupType;

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
    /// Whether its callbacks exclude each other or run in parallel.
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

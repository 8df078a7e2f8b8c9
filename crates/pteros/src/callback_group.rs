//! Callback groups: which callbacks of a node may run at the same time.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;

use crate::executor::Home;
use crate::node::{Node, NodeCore};

/// Whether callbacks of one group may run beside each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CallbackGroupKind {
    /// One at a time, in the order they became ready.
    MutuallyExclusive,
    /// Any at any time; one callback alone is still never run twice at once.
    Reentrant,
}

/// Callbacks of one node that an executor treats alike: subscriptions, timers,
/// services, clients, guard conditions and event callbacks that were made with it. Whatever is made
/// without belongs to the node's own group, which is mutually exclusive. Cheap to
/// clone, thread-safe.
///
/// Kinds matter to a [`MultiThreadedExecutor`](crate::MultiThreadedExecutor); a
/// [`SingleThreadedExecutor`](crate::SingleThreadedExecutor) runs one callback at
/// a time anyway. A group may be spun by an executor of its own
/// (`add_callback_group`), on a thread with its own priority.
///
/// ```no_run
/// use pteros::interfaces::sensor_msgs::msg::{Image, LaserScan};
/// use pteros::prelude::*;
/// use pteros::{CallbackGroupKind, MultiThreadedExecutor, SubscriptionOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.node("eyes")?;
/// let slow = node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
/// let images = SubscriptionOptions::new(1)
///     .callback_group(&slow)
///     .callback(|image: Sample<Image>| println!("{} bytes", image.data.len()));
/// let _images = node.create_subscription_with("image", images)?;
/// // Not kept waiting by images:
/// let _scans = node.create_subscription("scan", 1, |_: Sample<LaserScan>| ())?;
/// let executor = MultiThreadedExecutor::new(&context, 2);
/// executor.add_node(&node)?;
/// executor.spin()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CallbackGroup {
    pub(crate) core: Arc<GroupCore>,
    node: Arc<NodeCore>,
}

impl CallbackGroup {
    /// What its callbacks may do.
    pub fn kind(&self) -> CallbackGroupKind {
        self.core.kind()
    }

    pub(crate) fn node(&self) -> &Arc<NodeCore> {
        &self.node
    }
}

impl fmt::Debug for CallbackGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackGroup")
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// A group of callbacks of this node.
    pub fn create_callback_group(&self, kind: CallbackGroupKind) -> CallbackGroup {
        CallbackGroup {
            core: GroupCore::new(kind, self.core().key),
            node: self.core().clone(),
        }
    }
}

/// A group without its node, which may own it.
pub(crate) struct GroupCore {
    pub(crate) node: NodeKey,
    gate: Option<Gate>,
    /// The executors that have the group itself, the last of which spins it; the
    /// node's, if there is none.
    pub(crate) homes: Mutex<Vec<Arc<Home>>>,
}

impl GroupCore {
    pub(crate) fn new(kind: CallbackGroupKind, node: NodeKey) -> Arc<Self> {
        let gate = match kind {
            CallbackGroupKind::MutuallyExclusive => Some(Gate::default()),
            CallbackGroupKind::Reentrant => None,
        };
        Arc::new(Self {
            node,
            gate,
            homes: Mutex::default(),
        })
    }

    fn kind(&self) -> CallbackGroupKind {
        match self.gate {
            Some(_) => CallbackGroupKind::MutuallyExclusive,
            None => CallbackGroupKind::Reentrant,
        }
    }

    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }
}

/// The group of a node's part: the one asked for, or the node's own.
///
/// # Panics
/// When the group is another node's.
pub(crate) fn group_for(node: &Arc<NodeCore>, group: Option<&CallbackGroup>) -> Arc<GroupCore> {
    let Some(group) = group else {
        return node.own_group.clone();
    };
    assert!(
        Arc::ptr_eq(group.node(), node),
        "a callback group of node {} was given to node {}",
        group.node().path(),
        node.path()
    );
    group.core.clone()
}

//! Node: a named set of publishers, subscriptions, services and timers.
//!
//! [`Node`] is a handle. Each entity's file adds the method that creates it,
//! [`executors`](crate::executors) those that spin. A node owns no socket and no
//! thread: the [`Context`] does. Names follow the ROS 2 design page "Topic and Service
//! name mapping to DDS".
//!
//! Its methods are rclcpp's: one that creates each kind of entity, getters,
//! parameters and spinning.

mod core;
mod entity;
mod future_task;
mod options;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use pteros_runtime::thread::ThreadSettings;

use crate::context::Context;

pub(crate) use core::{NodeCore, NodeParts};
pub use entity::CallbackGroupType;
pub(crate) use entity::{CallbackGroupCore, NodeEntity};
pub use future_task::{CallbackOutput, UserFuture};
pub(crate) use future_task::{CurrentGroup, FutureOwner, FutureTask};
pub use options::NodeOptions;

/// A node of the ROS graph. Cheap to clone, thread-safe.
///
/// It leaves the graph when the last clone and the last of its publishers,
/// subscriptions, services and timers is dropped.
#[must_use = "a node leaves the graph when it and its endpoints are dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct Node {
    core: Arc<NodeCore>,
    /// Services and publishers of the node itself. Held here, not in the core,
    /// which endpoints keep alive.
    _services: Option<Arc<dyn Any + Send + Sync>>,
}

impl Node {
    /// A handle without services of its own.
    pub(crate) fn of(core: Arc<NodeCore>) -> Self {
        Self {
            core,
            _services: None,
        }
    }

    /// The handle that keeps the node's own services alive.
    pub(crate) fn with_services(self, services: Arc<dyn Any + Send + Sync>) -> Self {
        Self {
            _services: Some(services),
            ..self
        }
    }

    pub(crate) fn core(&self) -> &Arc<NodeCore> {
        &self.core
    }

    pub(crate) fn is_same(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// The node's name, after remapping.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The node's namespace, after remapping; `/` is the root.
    pub fn namespace(&self) -> &str {
        &self.core.namespace
    }

    /// `/namespace/name`.
    pub fn fully_qualified_name(&self) -> String {
        self.core.fully_qualified_name()
    }

    /// The node's logger name: `namespace.name`.
    pub fn logger_name(&self) -> String {
        self.fully_qualified_name()
            .trim_start_matches('/')
            .replace('/', ".")
    }

    /// Thread settings that the node's parameters request.
    ///
    /// The parameters are `thread.priority`, `thread.cpus` and
    /// `thread.lock_memory`; without them nothing is requested. The executor's
    /// thread applies them when it begins to spin: the highest priority and all
    /// CPUs of its nodes. If the kernel refuses,
    /// [`IsolatedExecutor::spin`](crate::executors::IsolatedExecutor::spin) and
    /// [`MultiThreadedExecutor::spin`](crate::executors::MultiThreadedExecutor::spin) return
    /// an error; executors whose `spin` returns nothing log a warning.
    pub fn thread_settings(&self) -> ThreadSettings {
        self.core.thread.as_deref().cloned().unwrap_or_default()
    }

    /// The context that created it.
    pub fn context(&self) -> &Context {
        &self.core.context
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node")
            .field(&self.fully_qualified_name())
            .finish()
    }
}

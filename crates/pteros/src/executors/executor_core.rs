//! Executor core: state that all executors share.
//!
//! Nodes and callback groups of the executor, cancellation, the executor queue, and
//! the panic policy. It does not depend on the number of threads.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::ready_queue::Task;
use pteros_runtime::rtps::time::Instant;
use pteros_runtime::thread::ThreadSettings;

use super::ExecutorError;
use super::panic_policy::{PanicPayload, PanicPolicy, panic_message};
use crate::callback_groups::CallbackGroup;
use crate::context::Context;
use crate::executor_queue::ExecutorQueue;
use crate::node::{Node, NodeCore};
use crate::parameter::merge_thread_settings;

/// Handle to an executor for other threads and for its own callbacks. Cheap to
/// clone, thread-safe.
#[derive(Clone)]
pub struct ExecutorHandle {
    pub(super) core: Arc<ExecutorCore>,
}

impl ExecutorHandle {
    /// Ends the current spin, or else the next one, after the running callbacks: also
    /// the wait of `spin_once`. Returns at once.
    pub fn cancel(&self) {
        self.core.cancel();
    }

    /// Whether a thread is spinning the executor.
    pub fn is_spinning(&self) -> bool {
        self.core.spinning.load(Ordering::Acquire)
    }

    /// Adds a node, taking it from the executor that had it. Also works while the
    /// executor spins.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`].
    pub fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.core.add_node(node)
    }

    /// Removes a node. It returns to the executor that had it before, if that still
    /// exists. Otherwise its callbacks wait until another executor adds it. A
    /// running callback runs to its end. Returns false if the node was not in this
    /// executor.
    pub fn remove_node(&self, node: &Node) -> bool {
        self.core.remove_node(node)
    }

    /// Adds one callback group; the rest of its node stays with its executor.
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        self.core.add_group(group)
    }

    /// Removes a callback group, which returns to its previous executor. Returns
    /// false if it was not in this executor.
    pub fn remove_callback_group(&self, group: &CallbackGroup) -> bool {
        self.core.remove_group(group)
    }
}

impl fmt::Debug for ExecutorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorHandle")
            .field("nodes", &*self.core.nodes.lock())
            .field("spinning", &self.is_spinning())
            .finish()
    }
}

/// State of an executor that does not depend on its threads.
pub(super) struct ExecutorCore {
    pub(super) context: Context,
    pub(super) executor_queue: Arc<ExecutorQueue>,
    nodes: Mutex<Vec<Node>>,
    groups: Mutex<Vec<CallbackGroup>>,
    cancelled: AtomicBool,
    spinning: AtomicBool,
    on_panic: PanicPolicy,
    /// Callbacks that panicked and are not called again.
    disabled_callbacks: Mutex<Vec<Weak<dyn Task>>>,
    /// Nodes that were removed after a panic. Their tasks still in the queue do not
    /// run.
    disabled_nodes: Mutex<Vec<Weak<NodeCore>>>,
    any_disabled: AtomicBool,
}

impl ExecutorCore {
    pub(super) fn new(context: &Context, on_panic: PanicPolicy) -> Arc<Self> {
        Arc::new(Self {
            context: context.clone(),
            executor_queue: ExecutorQueue::new(context.core()),
            nodes: Mutex::default(),
            groups: Mutex::default(),
            cancelled: AtomicBool::new(false),
            spinning: AtomicBool::new(false),
            on_panic,
            disabled_callbacks: Mutex::default(),
            disabled_nodes: Mutex::default(),
            any_disabled: AtomicBool::new(false),
        })
    }

    pub(super) fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.check_context(node)?;
        let mut nodes = self.nodes.lock();
        if nodes.iter().any(|member| member.is_same(node)) {
            return Err(already_added(node));
        }
        nodes.push(node.clone());
        drop(nodes);
        self.enable_node(node.core().key);
        node.core().add_to_executor(&self.executor_queue);
        Ok(())
    }

    fn check_context(&self, node: &Node) -> Result<(), ExecutorError> {
        if Arc::ptr_eq(node.core().core(), self.context.core()) {
            Ok(())
        } else {
            Err(other_context(node.core()))
        }
    }

    pub(super) fn remove_node(&self, node: &Node) -> bool {
        self.remove_nodes(|member| member.is_same(node))
    }

    fn remove_nodes(&self, is_selected: impl Fn(&Node) -> bool) -> bool {
        let mut nodes = self.nodes.lock();
        let selected: Vec<_> = nodes.extract_if(.., |node| is_selected(node)).collect();
        drop(nodes);
        for node in &selected {
            node.core().remove_from_executor(&self.executor_queue);
        }
        !selected.is_empty()
    }

    pub(super) fn add_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        let node = group.node();
        if !Arc::ptr_eq(node.core(), self.context.core()) {
            return Err(other_context(node));
        }
        let mut groups = self.groups.lock();
        if groups.iter().any(|g| Arc::ptr_eq(&g.core, &group.core)) {
            return Err(group_already_added(group));
        }
        groups.push(group.clone());
        drop(groups);
        self.enable_node(node.key);
        node.add_group_to_executor(&group.core, &self.executor_queue);
        Ok(())
    }

    pub(super) fn remove_group(&self, group: &CallbackGroup) -> bool {
        let mut groups = self.groups.lock();
        let before = groups.len();
        groups.retain(|g| !Arc::ptr_eq(&g.core, &group.core));
        let was_here = groups.len() < before;
        drop(groups);
        if was_here {
            group
                .node()
                .remove_group_from_executor(&group.core, &self.executor_queue);
        }
        was_here
    }

    /// Thread settings that the parameters of its nodes request. Nodes may be added
    /// concurrently.
    pub(super) fn thread_settings(&self) -> ThreadSettings {
        let nodes = self.nodes.lock();
        let settings = nodes
            .iter()
            .filter_map(|node| node.core().thread.as_deref());
        merge_thread_settings(settings)
    }

    pub(super) fn has_node(&self, node: &Node) -> bool {
        self.nodes.lock().iter().any(|member| member.is_same(node))
    }

    pub(super) fn has_group(&self, group: &CallbackGroup) -> bool {
        let groups = self.groups.lock();
        groups.iter().any(|g| Arc::ptr_eq(&g.core, &group.core))
    }

    // --- spinning ---

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.executor_queue.ready.interrupt();
    }

    /// Marks the start of a spin, which ends when the guard is dropped. `None` if
    /// another spin is active.
    pub(super) fn begin_spin(&self) -> Option<SpinGuard<'_>> {
        let was_spinning = self.spinning.swap(true, Ordering::AcqRel);
        // Lazy: a guard created for a rejected caller would end the active spin
        // when dropped.
        (!was_spinning).then(|| SpinGuard(self))
    }

    /// Whether the spin must end: it was cancelled, or the context is shut down.
    pub(super) fn should_end(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) || self.context.core().is_shut_down()
    }

    /// The current time, or zero without timers: reading the clock costs as much as
    /// a message.
    pub(super) fn now_for_timers(&self) -> Instant {
        match self.executor_queue.timers.next() {
            Instant::FAR_FUTURE => Instant::ZERO,
            _ => self.context.core().platform.now(),
        }
    }

    /// Runs user code and applies the panic policy. Returns the panic that ends the
    /// spin.
    pub(super) fn run(&self, task: &Arc<dyn Task>, run: impl FnOnce()) -> Option<PanicPayload> {
        if self.any_disabled.load(Ordering::Acquire)
            && (self.is_callback_disabled(task) || self.is_node_disabled(task))
        {
            return None;
        }
        // No lock of ours is held here, so a panic leaves only the user's own state
        // inconsistent.
        let payload = catch_unwind(AssertUnwindSafe(run)).err()?;
        let (callback, message) = (task.describe(), panic_message(&payload).to_owned());
        match self.on_panic {
            PanicPolicy::Process => {
                tracing::error!("{callback} panicked: {message}");
                return Some(payload);
            }
            PanicPolicy::Callback => {
                tracing::error!("{callback} panicked and is not called again: {message}");
                self.disabled_callbacks.lock().push(Arc::downgrade(task));
                self.any_disabled.store(true, Ordering::Release);
            }
            PanicPolicy::Node => {
                tracing::error!("{callback} panicked, its node leaves the executor: {message}");
                if let Some(key) = task.node() {
                    self.disable_node(key);
                }
            }
        }
        None
    }

    /// Removes all nodes and groups when the executor is dropped. Handles may
    /// outlive it.
    pub(super) fn release(&self) {
        self.remove_nodes(|_| true);
        let groups = std::mem::take(&mut *self.groups.lock());
        for group in groups {
            group
                .node()
                .remove_group_from_executor(&group.core, &self.executor_queue);
        }
    }

    fn is_callback_disabled(&self, task: &Arc<dyn Task>) -> bool {
        let mut disabled_callbacks = self.disabled_callbacks.lock();
        disabled_callbacks.retain(|task| task.strong_count() > 0);
        let address = Arc::as_ptr(task).cast::<()>();
        disabled_callbacks
            .iter()
            .any(|t| t.as_ptr().cast::<()>() == address)
    }

    fn is_node_disabled(&self, task: &Arc<dyn Task>) -> bool {
        let mut disabled_nodes = self.disabled_nodes.lock();
        disabled_nodes.retain(|node| node.strong_count() > 0);
        let mut nodes = disabled_nodes.iter().filter_map(Weak::upgrade);
        nodes.any(|node| task.node() == Some(node.key))
    }

    /// The node was added again after a panic.
    fn enable_node(&self, key: NodeKey) {
        let is_other_node = |node: &Weak<NodeCore>| node.upgrade().is_some_and(|n| n.key != key);
        self.disabled_nodes.lock().retain(is_other_node);
    }

    fn mark_node_disabled(&self, key: NodeKey) {
        let of_nodes = self.nodes.lock().iter().find_map(|node| {
            let core = node.core();
            (core.key == key).then(|| Arc::downgrade(core))
        });
        let of_groups = || {
            let groups = self.groups.lock();
            let mut groups = groups.iter().filter(|group| group.core.node == key);
            groups.next().map(|group| Arc::downgrade(group.node()))
        };
        let node = of_nodes.or_else(of_groups);
        self.disabled_nodes.lock().extend(node);
        self.any_disabled.store(true, Ordering::Release);
    }

    fn disable_node(&self, key: NodeKey) {
        self.mark_node_disabled(key);
        self.remove_nodes(|node| node.core().key == key);
        let groups: Vec<_> = self.groups.lock().clone();
        for group in groups.iter().filter(|group| group.core.node == key) {
            self.remove_group(group);
        }
    }
}

/// Guard of an active spin.
pub(super) struct SpinGuard<'c>(&'c ExecutorCore);

impl Drop for SpinGuard<'_> {
    fn drop(&mut self) {
        self.0.cancelled.store(false, Ordering::Release);
        self.0.spinning.store(false, Ordering::Release);
    }
}

fn other_context(node: &NodeCore) -> ExecutorError {
    ExecutorError::OtherContext {
        entity: format!("node \"{}\"", node.fully_qualified_name()),
        target: "executor",
    }
}

pub(super) fn already_added(node: &Node) -> ExecutorError {
    ExecutorError::AlreadyAdded {
        entity: format!("node \"{}\"", node.fully_qualified_name()),
    }
}

pub(super) fn group_already_added(group: &CallbackGroup) -> ExecutorError {
    let node = group.node().fully_qualified_name();
    ExecutorError::AlreadyAdded {
        entity: format!("this callback group of node \"{node}\""),
    }
}

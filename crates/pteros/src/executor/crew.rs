//! What all executors have: nodes, an end, and what becomes of panics.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::ready::Task;
use pteros_rmw::rtps::time::Instant;
use pteros_rmw::thread::ThreadSettings;

use super::panic::{PanicPolicy, Payload, text};
use super::{ExecutorError, Home};
use crate::callback_group::CallbackGroup;
use crate::context::Context;
use crate::node::{Node, NodeCore};
use crate::parameter::joined_thread_settings;

/// An executor from other threads and from its own callbacks. Cheap to clone,
/// thread-safe.
#[derive(Clone)]
pub struct ExecutorHandle {
    pub(super) crew: Arc<Crew>,
}

impl ExecutorHandle {
    /// Ends the spin that goes on, or else the next one, after the callbacks that
    /// run now. Returns at once.
    pub fn cancel(&self) {
        self.crew.cancel();
    }

    /// Whether somebody spins it.
    pub fn is_spinning(&self) -> bool {
        self.crew.spinning.load(Ordering::Acquire)
    }

    /// Takes a node over, from another executor if one had it; also while it
    /// spins.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`].
    pub fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.crew.add_node(node)
    }

    /// Lets a node go: back to the executor that had it before, if that still
    /// exists; else its callbacks wait until another executor takes it. A
    /// callback that runs ends as it will. False when it was not here.
    pub fn remove_node(&self, node: &Node) -> bool {
        self.crew.remove_node(node)
    }

    /// Takes over one callback group, wherever the rest of its node is spun.
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        self.crew.add_group(group)
    }

    /// Lets a callback group go, back to where it was before. False when it was
    /// not here.
    pub fn remove_callback_group(&self, group: &CallbackGroup) -> bool {
        self.crew.remove_group(group)
    }
}

impl fmt::Debug for ExecutorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorHandle")
            .field("nodes", &*self.crew.nodes.lock())
            .field("spinning", &self.is_spinning())
            .finish()
    }
}

/// The part of an executor that does not depend on its threads.
pub(super) struct Crew {
    pub(super) context: Context,
    pub(super) home: Arc<Home>,
    nodes: Mutex<Vec<Node>>,
    groups: Mutex<Vec<CallbackGroup>>,
    cancelled: AtomicBool,
    spinning: AtomicBool,
    on_panic: PanicPolicy,
    /// Callbacks that panicked and are not called again.
    ended: Mutex<Vec<Weak<dyn Task>>>,
    /// Nodes that left with a panic: what of them is in the queue still does not run.
    ended_nodes: Mutex<Vec<Weak<NodeCore>>>,
    any_ended: AtomicBool,
}

impl Crew {
    pub(super) fn new(context: &Context, on_panic: PanicPolicy) -> Arc<Self> {
        Arc::new(Self {
            context: context.clone(),
            home: Home::new(context.core()),
            nodes: Mutex::default(),
            groups: Mutex::default(),
            cancelled: AtomicBool::new(false),
            spinning: AtomicBool::new(false),
            on_panic,
            ended: Mutex::default(),
            ended_nodes: Mutex::default(),
            any_ended: AtomicBool::new(false),
        })
    }

    pub(super) fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.check_context(node)?;
        let mut nodes = self.nodes.lock();
        if nodes.iter().any(|member| member.is_same(node)) {
            let node = node.fully_qualified_name();
            return Err(ExecutorError::AlreadyAdded { node });
        }
        nodes.push(node.clone());
        drop(nodes);
        self.forget_end_of(node.core().key);
        node.core().move_to(&self.home);
        Ok(())
    }

    fn check_context(&self, node: &Node) -> Result<(), ExecutorError> {
        match Arc::ptr_eq(node.core().core(), self.context.core()) {
            true => Ok(()),
            false => Err(ExecutorError::OtherContext {
                node: node.fully_qualified_name(),
            }),
        }
    }

    pub(super) fn remove_node(&self, node: &Node) -> bool {
        self.remove_nodes(|member| member.is_same(node))
    }

    fn remove_nodes(&self, is_meant: impl Fn(&Node) -> bool) -> bool {
        let mut nodes = self.nodes.lock();
        let meant: Vec<_> = nodes.extract_if(.., |node| is_meant(node)).collect();
        drop(nodes);
        for node in &meant {
            node.core().leave(&self.home);
        }
        !meant.is_empty()
    }

    pub(super) fn add_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        let node = group.node();
        if !Arc::ptr_eq(node.core(), self.context.core()) {
            return Err(ExecutorError::OtherContext { node: node.path() });
        }
        let mut groups = self.groups.lock();
        if groups.iter().any(|g| Arc::ptr_eq(&g.core, &group.core)) {
            return Err(ExecutorError::GroupAlreadyAdded { node: node.path() });
        }
        groups.push(group.clone());
        drop(groups);
        self.forget_end_of(node.key);
        node.move_group_to(&group.core, &self.home);
        Ok(())
    }

    pub(super) fn remove_group(&self, group: &CallbackGroup) -> bool {
        let mut groups = self.groups.lock();
        let before = groups.len();
        groups.retain(|g| !Arc::ptr_eq(&g.core, &group.core));
        let was_here = groups.len() < before;
        drop(groups);
        if was_here {
            group.node().take_group_from(&group.core, &self.home);
        }
        was_here
    }

    /// What the parameters of its nodes ask for; they may be added meanwhile.
    pub(super) fn thread_settings(&self) -> ThreadSettings {
        let nodes = self.nodes.lock();
        let settings = nodes
            .iter()
            .filter_map(|node| node.core().thread.as_deref());
        joined_thread_settings(settings)
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
        self.home.queue.recall();
    }

    /// Notes that a spin begins; it ends when what is returned is dropped. `None`
    /// while another goes on.
    pub(super) fn begin_spin(&self) -> Option<Spinning<'_>> {
        let was_spinning = self.spinning.swap(true, Ordering::AcqRel);
        // Not made for who is refused: its end would be that of the spin that goes on.
        (!was_spinning).then(|| Spinning(self))
    }

    /// Whether the spin should end.
    pub(super) fn should_end(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) || self.context.core().is_shut_down()
    }

    /// The time, for which nobody asks without timers: a look at the clock costs
    /// as much as a message.
    pub(super) fn now_for_timers(&self) -> Instant {
        match self.home.timers.next() {
            Instant::FAR_FUTURE => Instant::ZERO,
            _ => self.context.core().env.now(),
        }
    }

    /// Runs a piece of user code. Returns the panic that the spin ends with.
    pub(super) fn run(&self, task: &Arc<dyn Task>, run: impl FnOnce()) -> Option<Payload> {
        if self.any_ended.load(Ordering::Acquire)
            && (self.has_ended(task) || self.has_ended_with_its_node(task))
        {
            return None;
        }
        // Our own state is under no lock then, and what the user's code leaves
        // behind is the user's.
        let payload = catch_unwind(AssertUnwindSafe(run)).err()?;
        let (what, said) = (task.describe(), text(&payload).to_owned());
        match self.on_panic {
            PanicPolicy::Process => {
                tracing::error!("{what} panicked: {said}");
                return Some(payload);
            }
            PanicPolicy::Callback => {
                tracing::error!("{what} panicked and is not called again: {said}");
                self.ended.lock().push(Arc::downgrade(task));
                self.any_ended.store(true, Ordering::Release);
            }
            PanicPolicy::Node => {
                tracing::error!("{what} panicked, its node leaves the executor: {said}");
                if let Some(key) = task.node() {
                    self.end_node(key);
                }
            }
        }
        None
    }

    /// Lets everybody go: the executor is dropped, though handles may stay.
    pub(super) fn release(&self) {
        self.remove_nodes(|_| true);
        let groups = std::mem::take(&mut *self.groups.lock());
        for group in groups {
            group.node().take_group_from(&group.core, &self.home);
        }
    }

    fn has_ended(&self, task: &Arc<dyn Task>) -> bool {
        let mut ended = self.ended.lock();
        ended.retain(|task| task.strong_count() > 0);
        let address = Arc::as_ptr(task).cast::<()>();
        ended.iter().any(|t| t.as_ptr().cast::<()>() == address)
    }

    fn has_ended_with_its_node(&self, task: &Arc<dyn Task>) -> bool {
        let mut ended = self.ended_nodes.lock();
        ended.retain(|node| node.strong_count() > 0);
        let mut ended = ended.iter().filter_map(Weak::upgrade);
        ended.any(|node| task.node() == Some(node.key))
    }

    /// The node is here again.
    fn forget_end_of(&self, key: NodeKey) {
        let is_other = |node: &Weak<NodeCore>| node.upgrade().is_some_and(|n| n.key != key);
        self.ended_nodes.lock().retain(is_other);
    }

    fn note_end_of(&self, key: NodeKey) {
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
        self.ended_nodes.lock().extend(node);
        self.any_ended.store(true, Ordering::Release);
    }

    fn end_node(&self, key: NodeKey) {
        self.note_end_of(key);
        self.remove_nodes(|node| node.core().key == key);
        let groups: Vec<_> = self.groups.lock().clone();
        for group in groups.iter().filter(|group| group.core.node == key) {
            self.remove_group(group);
        }
    }
}

/// A spin that goes on.
pub(super) struct Spinning<'c>(&'c Crew);

impl Drop for Spinning<'_> {
    fn drop(&mut self) {
        self.0.cancelled.store(false, Ordering::Release);
        self.0.spinning.store(false, Ordering::Release);
    }
}

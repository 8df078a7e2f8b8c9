//! Guard conditions: callbacks that any thread can trigger.
//!
//! The trigger of a guard condition comes from another thread, the thread of a
//! signal handler or an external library. The callback runs in the node's executor.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_rcl::guard_condition::GuardCondition as Signal;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::ready_queue::Task;

use crate::callback_groups::{CallbackGroup, group_for};
use crate::executor_queue::ExecutorQueue;
use crate::node::{CallbackGroupCore, Node, NodeCore, NodeEntity};
use crate::waitable::{Arrivals, Waitable, WaitableEntity};

/// ROS 2's guard condition: a callback that its node's executor runs when it is
/// triggered. Thread-safe; clones share it, and it ends when the last one is
/// dropped.
///
/// Triggers coalesce as in rcl. A trigger before the callback has begun adds
/// nothing. A trigger while it runs makes it run once more.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("camera")?;
/// let guard = node.create_guard_condition(None, || println!("a frame is there"));
/// let frame_is_there = guard.trigger_handle();
/// std::thread::spawn(move || frame_is_there.trigger());
/// node.spin();
/// # Ok(())
/// # }
/// ```
#[must_use = "a guard condition ends when its last handle is dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct GuardCondition {
    pub(crate) core: Arc<GuardConditionCore>,
}

impl GuardCondition {
    /// Triggers the callback; see [`TriggerHandle::trigger`].
    pub fn trigger(&self) {
        self.core.signal.trigger();
    }

    /// Returns a handle that triggers it from any thread.
    pub fn trigger_handle(&self) -> TriggerHandle {
        TriggerHandle {
            signal: self.core.signal.clone(),
        }
    }

    /// Whether a trigger is pending.
    pub fn is_triggered(&self) -> bool {
        self.core.signal.is_triggered()
    }

    /// Takes the pending trigger; returns whether there was one.
    pub fn take(&self) -> bool {
        self.core.signal.take()
    }

    /// Number of times the callback has run.
    pub fn runs(&self) -> u64 {
        self.core.runs.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for GuardCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardCondition")
            .field("triggered", &self.is_triggered())
            .finish()
    }
}

/// Triggers a [`GuardCondition`]. Cheap to clone, thread-safe. Keeps neither the
/// guard condition nor its node alive.
#[derive(Clone)]
pub struct TriggerHandle {
    signal: Arc<Signal>,
}

impl TriggerHandle {
    /// Makes the callback run. Returns at once and allocates nothing. It makes a
    /// system call only if the executor sleeps. Without an executor the trigger
    /// stays pending. Does nothing if the guard condition was dropped.
    pub fn trigger(&self) {
        self.signal.trigger();
    }
}

impl fmt::Debug for TriggerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TriggerHandle").finish_non_exhaustive()
    }
}

pub(crate) struct GuardConditionCore {
    node: Arc<NodeCore>,
    signal: Arc<Signal>,
    callback: Mutex<Box<dyn FnMut() + Send>>,
    callback_group: Arc<CallbackGroupCore>,
    runs: AtomicU64,
}

impl Node {
    /// Creates a guard condition. The node's executor runs the callback when it is
    /// triggered, in this callback group or the node's own.
    pub fn create_guard_condition(
        &self,
        group: Option<&CallbackGroup>,
        callback: impl FnMut() + Send + 'static,
    ) -> GuardCondition {
        let core = Arc::new(GuardConditionCore {
            node: self.core().clone(),
            signal: Arc::default(),
            callback: Mutex::new(Box::new(callback)),
            callback_group: group_for(self.core(), group),
            runs: AtomicU64::new(0),
        });
        let weak: Weak<GuardConditionCore> = Arc::downgrade(&core);
        core.signal.slot.set_task(weak.clone());
        self.core().add_entity(weak);
        GuardCondition { core }
    }
}

impl Task for GuardConditionCore {
    fn run(&self) {
        self.signal.slot.begin_take();
        // Locked if the callback itself spins, or still runs on the node's previous
        // executor. The holder checks for more work afterwards.
        let Some(mut callback) = self.callback.try_lock() else {
            return;
        };
        if self.signal.take() {
            self.runs.fetch_add(1, Ordering::Relaxed);
            callback();
        }
        drop(callback);
        if self.signal.is_triggered() {
            self.signal.slot.mark_ready();
        }
    }

    fn gate(&self) -> Option<&MutualExclusionGate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        format!(
            "guard condition of node \"{}\"",
            self.node.fully_qualified_name()
        )
    }
}

impl Waitable for GuardCondition {
    fn waitable_entity(&self) -> Arc<dyn WaitableEntity> {
        self.core.clone()
    }
}

impl WaitableEntity for GuardConditionCore {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    fn rearm(&self) -> bool {
        self.signal.slot.begin_take();
        self.signal.is_triggered()
    }

    fn arrivals(&self) -> Arrivals {
        let is_pending = self.signal.is_triggered();
        Arrivals {
            received: self.runs.load(Ordering::Relaxed) + u64::from(is_pending),
            waiting: usize::from(is_pending),
        }
    }
}

impl NodeEntity for GuardConditionCore {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        let queue = executor_queue.map(|executor_queue| executor_queue.ready.clone());
        let signal = &self.signal;
        signal.slot.attach(queue, || signal.is_triggered());
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.callback_group
    }
}

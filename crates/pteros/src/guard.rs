//! Guard conditions: user code that another thread, a signal handler's thread
//! or a foreign library asks to be run.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::ready::{Slot, Task};

use crate::callback_group::{CallbackGroup, GroupCore, group_for};
use crate::executor::Home;
use crate::node::{Attach, Node, NodeCore};
use crate::wait_set;

/// What [`Node::create_guard_condition_with`] can be told.
#[derive(Clone, Debug, Default)]
pub struct GuardConditionOptions {
    callback_group: Option<CallbackGroup>,
}

impl GuardConditionOptions {
    /// Runs the callback in a group of the node's.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }
}

/// A callback that runs in its node's executor when it is triggered: ROS 2's
/// guard condition. Thread-safe; clones share it, and it ends when the last one
/// is dropped.
///
/// Triggers coalesce as in rcl: one that comes before the callback has begun adds
/// nothing, one that comes while it runs has it run once more.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("camera")?;
/// let guard = node.create_guard_condition(|| println!("a frame is there"));
/// let frame_is_there = guard.trigger_handle();
/// std::thread::spawn(move || frame_is_there.trigger());
/// node.spin();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GuardCondition {
    pub(crate) core: Arc<GuardCore>,
}

impl GuardCondition {
    /// As [`TriggerHandle::trigger`].
    pub fn trigger(&self) {
        self.core.signal.trigger();
    }

    /// What triggers it, from anywhere.
    pub fn trigger_handle(&self) -> TriggerHandle {
        TriggerHandle {
            signal: self.core.signal.clone(),
        }
    }

    /// Whether it was triggered and its callback has not begun since.
    pub fn is_triggered(&self) -> bool {
        self.core.signal.pending.load(Ordering::Acquire)
    }

    /// Takes a trigger back: true if there was one.
    pub fn take(&self) -> bool {
        self.core.signal.pending.swap(false, Ordering::AcqRel)
    }

    /// How often its callback has run.
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

/// Triggers a [`GuardCondition`]. Cheap to clone, thread-safe; keeps neither the
/// guard condition nor its node alive.
#[derive(Clone)]
pub struct TriggerHandle {
    signal: Arc<Signal>,
}

impl TriggerHandle {
    /// Has the callback run. Returns at once, allocates nothing, and asks the
    /// system for something only if the executor sleeps; without an executor the
    /// trigger waits for one, and when the guard condition is gone nothing
    /// happens.
    pub fn trigger(&self) {
        self.signal.trigger();
    }
}

impl fmt::Debug for TriggerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TriggerHandle").finish_non_exhaustive()
    }
}

/// What a trigger touches.
#[derive(Default)]
struct Signal {
    pending: AtomicBool,
    slot: Slot,
}

impl Signal {
    fn trigger(&self) {
        // AcqRel: what the thread did before is visible to the callback.
        if !self.pending.swap(true, Ordering::AcqRel) {
            self.slot.ready();
        }
    }
}

pub(crate) struct GuardCore {
    node: Arc<NodeCore>,
    signal: Arc<Signal>,
    callback: Mutex<Box<dyn FnMut() + Send>>,
    callback_group: Arc<GroupCore>,
    runs: AtomicU64,
}

impl Node {
    /// A guard condition whose callback runs in the node's executor when it is
    /// triggered.
    pub fn create_guard_condition(
        &self,
        callback: impl FnMut() + Send + 'static,
    ) -> GuardCondition {
        self.create_guard_condition_with(GuardConditionOptions::default(), callback)
    }

    /// A guard condition with options.
    pub fn create_guard_condition_with(
        &self,
        options: GuardConditionOptions,
        callback: impl FnMut() + Send + 'static,
    ) -> GuardCondition {
        let core = Arc::new(GuardCore {
            node: self.core().clone(),
            signal: Arc::default(),
            callback: Mutex::new(Box::new(callback)),
            callback_group: group_for(self.core(), options.callback_group.as_ref()),
            runs: AtomicU64::new(0),
        });
        let weak: Weak<GuardCore> = Arc::downgrade(&core);
        core.signal.slot.set_task(weak.clone());
        self.core().add(weak);
        GuardCondition { core }
    }
}

impl Task for GuardCore {
    fn run(&self) {
        let Signal { pending, slot } = &*self.signal;
        slot.taken();
        // Locked when the callback itself spins, or runs on the executor that
        // had the node before: whoever holds it looks for more afterwards.
        let Some(mut callback) = self.callback.try_lock() else {
            return;
        };
        if pending.swap(false, Ordering::AcqRel) {
            self.runs.fetch_add(1, Ordering::Relaxed);
            callback();
        }
        drop(callback);
        if pending.load(Ordering::Acquire) {
            slot.ready();
        }
    }

    fn gate(&self) -> Option<&Gate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        format!("guard condition of node \"{}\"", self.node.path())
    }
}

impl wait_set::Entity for GuardCondition {
    fn member(&self) -> Arc<dyn wait_set::Member> {
        self.core.clone()
    }
}

impl wait_set::Member for GuardCore {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    fn rearm(&self) -> bool {
        self.signal.slot.taken();
        self.signal.pending.load(Ordering::Acquire)
    }

    fn arrivals(&self) -> (u64, usize) {
        let waits = self.signal.pending.load(Ordering::Acquire);
        (
            self.runs.load(Ordering::Relaxed) + u64::from(waits),
            usize::from(waits),
        )
    }
}

impl Attach for GuardCore {
    fn attach(&self, home: Option<&Arc<Home>>) {
        let queue = home.map(|home| home.queue.clone());
        let Signal { pending, slot } = &*self.signal;
        slot.attach(queue, || pending.load(Ordering::Acquire));
    }

    fn callback_group(&self) -> &Arc<GroupCore> {
        &self.callback_group
    }
}

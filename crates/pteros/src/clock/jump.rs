//! Callbacks for when ROS time does not go on as it did.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::ready::{Slot, Task};

use crate::callback_group::GroupCore;
use crate::executor::Home;
use crate::node::{Attach, NodeCore};

/// How ROS time jumped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeJump {
    /// Why.
    pub kind: JumpKind,
    /// The new time less the old one, nanoseconds; negative is back.
    pub delta: i64,
}

/// Why ROS time jumped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JumpKind {
    /// `use_sim_time` was set: it is simulated from now on.
    Activated,
    /// `use_sim_time` was unset: it is the system's from now on.
    Deactivated,
    /// `/clock` went on, or back.
    Moved,
}

/// Which jumps are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JumpThreshold {
    /// Whether `use_sim_time` changing is told.
    pub on_clock_change: bool,
    /// The least step forward of `/clock` that is told; none without it.
    pub min_forward: Option<Duration>,
    /// The least step back of `/clock` that is told; none without it.
    pub min_backward: Option<Duration>,
}

impl JumpThreshold {
    fn is_passed(&self, jump: TimeJump) -> bool {
        let size = Duration::from_nanos(jump.delta.unsigned_abs());
        let passes = |least: Option<Duration>| least.is_some_and(|least| size >= least);
        match jump.kind {
            JumpKind::Activated | JumpKind::Deactivated => self.on_clock_change,
            JumpKind::Moved if jump.delta < 0 => passes(self.min_backward),
            JumpKind::Moved => passes(self.min_forward),
        }
    }
}

/// Keeps a callback for jumps; dropped, it is not called any more.
#[must_use = "the callback ends when this is dropped"]
pub struct JumpCallback {
    pub(super) _task: Arc<JumpTask>,
}

impl fmt::Debug for JumpCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JumpCallback")
    }
}

/// Jumps that wait for their callback. When there are more, the oldest is dropped.
const WAITING_MAX: usize = 64;

type Callback = Box<dyn FnMut(TimeJump) + Send>;

/// Runs in the node's executor.
pub(crate) struct JumpTask {
    node: Arc<NodeCore>,
    threshold: JumpThreshold,
    waiting: Mutex<VecDeque<TimeJump>>,
    callback: Mutex<Callback>,
    slot: Slot,
}

impl JumpTask {
    pub(super) fn start(
        node: &Arc<NodeCore>,
        threshold: JumpThreshold,
        callback: Callback,
    ) -> Arc<Self> {
        let task = Arc::new(Self {
            node: node.clone(),
            threshold,
            waiting: Mutex::default(),
            callback: Mutex::new(callback),
            slot: Slot::default(),
        });
        let weak: Weak<Self> = Arc::downgrade(&task);
        task.slot.set_task(weak.clone());
        node.add(weak);
        task
    }

    pub(super) fn note(&self, jump: TimeJump) {
        if !self.threshold.is_passed(jump) {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(jump);
        drop(waiting);
        self.slot.ready();
    }
}

impl Task for JumpTask {
    fn run(&self) {
        self.slot.taken();
        let Some(mut callback) = self.callback.try_lock() else {
            return;
        };
        let jump = self.waiting.lock().pop_front();
        if let Some(jump) = jump {
            callback(jump);
        }
        drop(callback);
        if !self.waiting.lock().is_empty() {
            self.slot.ready();
        }
    }

    fn gate(&self) -> Option<&Gate> {
        self.node.own_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.node.key)
    }

    fn describe(&self) -> String {
        format!("time jump callback of node \"{}\"", self.node.path())
    }
}

impl Attach for JumpTask {
    fn attach(&self, home: Option<&Arc<Home>>) {
        let queue = home.map(|home| home.queue.clone());
        self.slot.attach(queue, || !self.waiting.lock().is_empty());
    }

    fn callback_group(&self) -> &Arc<GroupCore> {
        &self.node.own_group
    }
}

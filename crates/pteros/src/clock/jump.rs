//! Time jump callbacks: ROS time jumps, or its source changes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::ready_queue::{ReadySlot, Task};

use crate::executor_queue::ExecutorQueue;
use crate::node::{CallbackGroupCore, NodeCore, NodeEntity};
use crate::ros_clock::TimeJump;
use crate::time_source::TimeJumpObserver;

/// Handle of a jump callback. Dropping it removes the callback.
#[must_use = "dropping the handle removes the callback"]
pub struct JumpHandle {
    pub(super) _task: Arc<JumpTask>,
}

impl fmt::Debug for JumpHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JumpHandle")
    }
}

/// Maximum jumps queued per callback; beyond that the oldest is dropped.
const PENDING_JUMPS_MAX: usize = 64;

type JumpFn = Box<dyn FnMut(TimeJump) + Send>;

/// Task that runs the callback in the node's executor.
pub(crate) struct JumpTask {
    node: Arc<NodeCore>,
    pending: Mutex<VecDeque<TimeJump>>,
    callback: Mutex<JumpFn>,
    slot: ReadySlot,
}

impl JumpTask {
    pub(super) fn start(node: &Arc<NodeCore>, callback: JumpFn) -> Arc<Self> {
        let task = Arc::new(Self {
            node: node.clone(),
            pending: Mutex::default(),
            callback: Mutex::new(callback),
            slot: ReadySlot::default(),
        });
        let weak: Weak<Self> = Arc::downgrade(&task);
        task.slot.set_task(weak.clone());
        node.add_entity(weak);
        task
    }
}

impl TimeJumpObserver for JumpTask {
    fn handle_jump(&self, jump: TimeJump) {
        let mut pending = self.pending.lock();
        if pending.len() >= PENDING_JUMPS_MAX {
            pending.pop_front();
        }
        pending.push_back(jump);
        drop(pending);
        self.slot.mark_ready();
    }
}

impl Task for JumpTask {
    fn run(&self) {
        self.slot.begin_take();
        let Some(mut callback) = self.callback.try_lock() else {
            return;
        };
        let jump = self.pending.lock().pop_front();
        if let Some(jump) = jump {
            callback(jump);
        }
        drop(callback);
        if !self.pending.lock().is_empty() {
            self.slot.mark_ready();
        }
    }

    fn gate(&self) -> Option<&MutualExclusionGate> {
        self.node.default_callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.node.key)
    }

    fn describe(&self) -> String {
        format!(
            "time jump callback of node \"{}\"",
            self.node.fully_qualified_name()
        )
    }
}

impl NodeEntity for JumpTask {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        let queue = executor_queue.map(|executor_queue| executor_queue.ready.clone());
        self.slot.attach(queue, || !self.pending.lock().is_empty());
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.node.default_callback_group
    }
}

//! Executor queue: the handle of one executor or wait set, to which its nodes'
//! entities report that they are ready.

use std::sync::Arc;

use pteros_runtime::Core;
use pteros_runtime::ready_queue::ReadyQueue;

use crate::timer_heap::TimerHeap;

/// Ready tasks and timers of the nodes of one executor.
pub(crate) struct ExecutorQueue {
    pub(crate) ready: Arc<ReadyQueue>,
    pub(crate) timers: TimerHeap,
    /// True for a wait set, which also gets wake-ups for subscriptions without a
    /// callback.
    pub(crate) is_wait_set: bool,
}

impl ExecutorQueue {
    pub(crate) fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self {
            ready: core.ready_queue(),
            timers: TimerHeap::new(),
            is_wait_set: false,
        })
    }

    pub(crate) fn for_wait_set(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self {
            ready: core.ready_queue(),
            timers: TimerHeap::new(),
            is_wait_set: true,
        })
    }
}

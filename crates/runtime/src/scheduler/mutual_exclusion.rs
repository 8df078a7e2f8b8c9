//! Mutual-exclusion gate: callbacks of a mutually exclusive callback group run one at
//! a time (ROS 2 MutuallyExclusive).
//!
//! Threads that share a ready queue enter the gate before they run a task. If the gate is
//! occupied, the task is queued there and the thread takes another one. A thread that
//! leaves the gate takes the next queued task. No thread blocks.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::lock::{Mutex, rank};
use crate::scheduler::ready_queue::Task;

/// Admits one task at a time; the others wait in order of arrival. Bounded by one
/// entry per entity, as the ready queue is.
#[derive(Default)]
pub struct MutualExclusionGate {
    state: Mutex<GateState, rank::Gate>,
}

#[derive(Default)]
struct GateState {
    is_occupied: bool,
    waiting: VecDeque<Weak<dyn Task>>,
}

impl MutualExclusionGate {
    /// Admits `task`, or queues it until its turn. [`MutualExclusionGate::leave`]
    /// must follow if admitted.
    pub fn enter(&self, task: &Arc<dyn Task>) -> bool {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.is_occupied, true) {
            state.waiting.push_back(Arc::downgrade(task));
            return false;
        }
        true
    }

    /// Releases the gate. Returns the next waiting task that still exists, which is
    /// admitted now.
    pub fn leave(&self) -> Option<Arc<dyn Task>> {
        let mut state = self.state.lock();
        while let Some(task) = state.waiting.pop_front() {
            if let Some(task) = task.upgrade() {
                return Some(task);
            }
        }
        state.is_occupied = false;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Idle;

    impl Task for Idle {
        fn run(&self) {}
    }

    #[test]
    fn one_task_is_admitted_and_the_others_follow_in_order() {
        let gate = MutualExclusionGate::default();
        let tasks = [(); 3].map(|()| Arc::new(Idle) as Arc<dyn Task>);
        assert!(gate.enter(&tasks[0]));
        assert!(!gate.enter(&tasks[1]));
        assert!(!gate.enter(&tasks[2]));
        let [_, second, third] = &tasks;
        assert!(Arc::ptr_eq(&gate.leave().unwrap(), second));
        assert!(Arc::ptr_eq(&gate.leave().unwrap(), third));
        assert!(gate.leave().is_none());
        assert!(gate.enter(second), "open again");
    }

    #[test]
    fn a_task_that_is_gone_is_skipped() {
        let gate = MutualExclusionGate::default();
        let inside: Arc<dyn Task> = Arc::new(Idle);
        let gone: Arc<dyn Task> = Arc::new(Idle);
        assert!(gate.enter(&inside));
        assert!(!gate.enter(&gone));
        drop(gone);
        assert!(gate.leave().is_none());
        assert!(gate.enter(&inside));
    }
}

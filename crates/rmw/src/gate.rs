//! The gate of callbacks that must not run at the same time.
//!
//! Threads that share a ready queue ask the gate before they run a task. Whoever
//! finds it closed leaves the task there and takes another; whoever comes out
//! takes the next that waits along. Nobody blocks.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::ready::Task;

/// Lets one task in at a time; the others wait in the order they came. Bounded
/// by one entry per entity, as the ready queue is.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    waiting: VecDeque<Weak<dyn Task>>,
}

impl Gate {
    /// Lets `task` in, which [`Gate::leave`] must follow, or keeps it until its
    /// turn.
    pub fn enter(&self, task: &Arc<dyn Task>) -> bool {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.is_closed, true) {
            state.waiting.push_back(Arc::downgrade(task));
            return false;
        }
        true
    }

    /// Lets out who was inside. Returns the next that waits and still exists: it
    /// is inside now.
    pub fn leave(&self) -> Option<Arc<dyn Task>> {
        let mut state = self.state.lock();
        while let Some(task) = state.waiting.pop_front() {
            if let Some(task) = task.upgrade() {
                return Some(task);
            }
        }
        state.is_closed = false;
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
    fn one_is_inside_and_the_others_follow_in_order() {
        let gate = Gate::default();
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
    fn who_is_gone_waits_no_longer() {
        let gate = Gate::default();
        let inside: Arc<dyn Task> = Arc::new(Idle);
        let gone: Arc<dyn Task> = Arc::new(Idle);
        assert!(gate.enter(&inside));
        assert!(!gate.enter(&gone));
        drop(gone);
        assert!(gate.leave().is_none());
        assert!(gate.enter(&inside));
    }
}

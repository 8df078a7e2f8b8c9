//! Async slots: the concurrent futures of one async callback.
//!
//! A mutually exclusive group has one slot per callback, a reentrant group up to
//! `pending_max`. Messages and requests beyond that stay in their queue
//! (back-pressure).

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::callback_groups::{CallbackGroup, group_for};
use crate::node::{CallbackGroupCore, FutureOwner, FutureTask, NodeCore, UserFuture};

/// Default number of slots of a callback in a reentrant group. It is large enough
/// to hide waiting times, and small enough to expose a future that never completes.
pub(crate) const PENDING_FUTURES_MAX: usize = 16;

/// The slots of one async callback. Slots are created on demand and reused.
pub(crate) struct AsyncSlots {
    node: Weak<NodeCore>,
    group: Arc<CallbackGroupCore>,
    description: String,
    pending_max: usize,
    state: Mutex<State>,
    weak_self: Weak<AsyncSlots>,
}

#[derive(Default)]
struct State {
    busy: Vec<Arc<FutureTask>>,
    free: Vec<Arc<FutureTask>>,
    /// A future panicked, so the callback starts no more.
    is_closed: bool,
    /// Called when a slot is free again, to take what waited.
    resume: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl AsyncSlots {
    /// Slots for the callback `description` in `group`: one if the group is
    /// mutually exclusive, else `pending_max`, at least one.
    pub(crate) fn new(
        node: &Arc<NodeCore>,
        group: Option<&CallbackGroup>,
        description: String,
        pending_max: Option<usize>,
    ) -> Arc<Self> {
        let group = group_for(node, group);
        let pending_max = match group.gate() {
            Some(_) => 1,
            None => pending_max.unwrap_or(PENDING_FUTURES_MAX).max(1),
        };
        Arc::new_cyclic(|weak_self| Self {
            node: Arc::downgrade(node),
            group,
            description,
            pending_max,
            state: Mutex::default(),
            weak_self: weak_self.clone(),
        })
    }

    /// Sets the function to call when a slot becomes free.
    pub(crate) fn on_free_slot(&self, resume: impl Fn() + Send + Sync + 'static) {
        self.state.lock().resume = Some(Arc::new(resume));
    }

    /// Whether a slot is free.
    pub(crate) fn has_free_slot(&self) -> bool {
        let state = self.state.lock();
        !state.is_closed && state.busy.len() < self.pending_max
    }

    /// Starts a future in a free slot. One thread at a time may call it.
    pub(crate) fn start(&self, future: UserFuture) {
        let Some(node) = self.node.upgrade() else {
            return;
        };
        let free = self.state.lock().free.pop();
        let task = free.unwrap_or_else(|| {
            let owner = self.weak_self.clone();
            let task = FutureTask::new(&self.group, self.description.clone(), owner);
            let entity: Weak<FutureTask> = Arc::downgrade(&task);
            node.add_entity(entity);
            task
        });
        self.state.lock().busy.push(task.clone());
        task.start(future);
    }
}

impl FutureOwner for AsyncSlots {
    fn handle_finished(&self, task: &FutureTask, panicked: bool) {
        let mut state = self.state.lock();
        state.is_closed |= panicked;
        let at = state.busy.iter().position(|l| std::ptr::eq(&**l, task));
        if let Some(at) = at {
            let task = state.busy.swap_remove(at);
            state.free.push(task);
        }
        let resume = state.resume.clone();
        drop(state);
        if let Some(resume) = resume {
            resume();
        }
    }
}

impl Drop for AsyncSlots {
    fn drop(&mut self) {
        // Wakers may keep a task alive, but not the future in it.
        let state = std::mem::take(self.state.get_mut());
        for task in state.busy {
            task.cancel();
        }
    }
}

//! What a managed node does in its transitions, and what it answers.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::machine::{LifecycleState, Verdict};
use super::node::{LifecycleCore, LifecycleNode};

/// What a managed node does when it changes its state. Each callback has a
/// default that does nothing, successfully. A panic in one counts as
/// [`CallbackReturn::Error`].
///
/// They run in the node's executor when a service asked, else on the thread that
/// called [`LifecycleNode::change_state`]; never two at a time. `node` is the node
/// itself, without its callbacks: what they keep may hold a clone of it. `previous`
/// is the state before the transition.
pub trait LifecycleCallbacks: Send + 'static {
    /// Gets what the node needs to work. To inactive; back on failure.
    fn on_configure(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Gives back what `on_configure` got. To unconfigured; back on failure.
    fn on_cleanup(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Begins to work: managed publishers speak already. To active, where managed
    /// timers tick; back on failure.
    fn on_activate(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Stops working: managed timers have stopped, managed publishers still speak
    /// until it returns. To inactive; back on failure.
    fn on_deactivate(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Ends. To finalized, on failure too.
    fn on_shutdown(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Cleans up after one of the others said error or panicked. To unconfigured
    /// when it succeeds; else to finalized.
    fn on_error(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }
}

/// A managed node that does nothing in its transitions.
impl LifecycleCallbacks for () {}

/// What a callback of a transition answers.
#[derive(Debug)]
pub enum CallbackReturn {
    /// Done: the node goes on to the state it was asked for.
    Success,
    /// Not done: the node is as before, except that shutting down goes on.
    Failure,
    /// Something is wrong: `on_error` decides what becomes of the node.
    Error,
    /// The answer is still to come, see [`CallbackReturn::later`].
    Later(Later),
}

impl CallbackReturn {
    /// An answer that is given later, from any thread. Until then the node stays
    /// configuring, activating … and takes no other transition; what its callback
    /// began goes on outside the executor. There is no time limit.
    ///
    /// ```
    /// use pteros::{CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState};
    ///
    /// struct Lidar;
    ///
    /// impl LifecycleCallbacks for Lidar {
    ///     fn on_activate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
    ///         let (later, answer) = CallbackReturn::later();
    ///         std::thread::spawn(move || {
    ///             // Spins the motor up, which takes a while …
    ///             answer.success();
    ///         });
    ///         later
    ///     }
    /// }
    /// ```
    pub fn later() -> (Self, LaterAnswer) {
        let shared = Arc::new(Mutex::new(Progress::Open));
        let answer = LaterAnswer {
            shared: shared.clone(),
        };
        (Self::Later(Later { shared }), answer)
    }
}

/// The half of an answer to come that a callback returns.
pub struct Later {
    shared: Arc<Mutex<Progress>>,
}

impl Later {
    /// Says whom the answer is for. The answer, if it is there already.
    pub(super) fn wait_for(self, core: &Arc<LifecycleCore>, number: u64) -> Option<Verdict> {
        let mut progress = self.shared.lock();
        match *progress {
            Progress::Answered(verdict) => Some(verdict),
            Progress::Open | Progress::Awaited(..) => {
                *progress = Progress::Awaited(Arc::downgrade(core), number);
                None
            }
        }
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

/// The answer to a transition whose callback has returned already. Dropped
/// without a word it is [`LaterAnswer::error`].
pub struct LaterAnswer {
    shared: Arc<Mutex<Progress>>,
}

impl LaterAnswer {
    /// Done. The transition ends in the node's executor.
    pub fn success(self) {
        self.give(Verdict::Success);
    }

    /// Not done: the node is as before.
    pub fn failure(self) {
        self.give(Verdict::Failure);
    }

    /// Something is wrong: `on_error` runs in the node's executor.
    pub fn error(self) {
        self.give(Verdict::Error);
    }

    /// The first answer counts.
    fn give(&self, verdict: Verdict) {
        let mut progress = self.shared.lock();
        match std::mem::replace(&mut *progress, Progress::Answered(verdict)) {
            Progress::Open => {}
            Progress::Answered(first) => *progress = Progress::Answered(first),
            Progress::Awaited(core, number) => {
                drop(progress);
                if let Some(core) = core.upgrade() {
                    core.answered_later(number, verdict);
                }
            }
        }
    }
}

impl Drop for LaterAnswer {
    fn drop(&mut self) {
        self.give(Verdict::Error);
    }
}

impl fmt::Debug for LaterAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaterAnswer")
    }
}

/// How far an answer has come.
enum Progress {
    /// Its callback has not returned.
    Open,
    /// The node waits for it, in the transition of that number.
    Awaited(Weak<LifecycleCore>, u64),
    Answered(Verdict),
}

//! Lifecycle callbacks: transition callbacks of a managed node and their results.
//!
//! The names and states are those of rclcpp_lifecycle (ROS 2 design: managed
//! nodes). A result may be deferred.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::node::{LifecycleCore, LifecycleNode};
use pteros_rcl::lifecycle::{LifecycleState, TransitionOutcome};

/// Transition callbacks of a managed node. Each has a default that returns success.
/// A panic counts as [`CallbackReturn::Error`].
///
/// The node's executor runs them if a service requested the transition, otherwise
/// the thread that called [`LifecycleNode::change_state`]. They never run two at a
/// time. `node` is a handle without the callbacks, so they may keep a clone.
/// `previous` is the state before the transition.
pub trait LifecycleCallbacks: Send + 'static {
    /// Acquires resources. Leads to inactive; on failure back to unconfigured.
    fn on_configure(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Releases the resources of `on_configure`. Leads to unconfigured; on failure
    /// back to inactive.
    fn on_cleanup(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Starts work. Managed publishers are already enabled. Leads to active, where
    /// managed timers tick; on failure back to inactive.
    fn on_activate(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Stops work. Managed timers have stopped; managed publishers stay enabled
    /// until it returns. Leads to inactive; on failure back to active.
    fn on_deactivate(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Shuts down. Leads to finalized, also on failure.
    fn on_shutdown(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }

    /// Cleans up after another callback returned an error or panicked. Leads to
    /// unconfigured on success, otherwise to finalized.
    fn on_error(&mut self, node: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        let _ = (node, previous);
        CallbackReturn::Success
    }
}

/// A managed node without transition callbacks.
impl LifecycleCallbacks for () {}

/// Result of a transition callback, as in rclcpp_lifecycle.
#[derive(Debug)]
pub enum CallbackReturn {
    /// Success: the node enters the requested state.
    Success,
    /// Failure: the node returns to its previous state. A shutdown continues.
    Failure,
    /// Error: `on_error` runs and decides the next state.
    Error,
    /// The result follows later; see [`CallbackReturn::deferred`].
    Deferred(DeferredReturn),
}

impl CallbackReturn {
    /// Creates a deferred result, sent later from any thread. Until then the node
    /// stays in the transition state (configuring, activating …) and accepts no
    /// other transition. Work that the callback started continues outside the
    /// executor. There is no time limit.
    ///
    /// ```
    /// use pteros::lifecycle::{CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState};
    ///
    /// struct Lidar;
    ///
    /// impl LifecycleCallbacks for Lidar {
    ///     fn on_activate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
    ///         let (deferred, sender) = CallbackReturn::deferred();
    ///         std::thread::spawn(move || {
    ///             // Spins the motor up, which takes a while …
    ///             sender.success();
    ///         });
    ///         deferred
    ///     }
    /// }
    /// ```
    pub fn deferred() -> (Self, CallbackReturnSender) {
        let shared = Arc::new(Mutex::new(DeferredState::Pending));
        let sender = CallbackReturnSender {
            shared: shared.clone(),
        };
        (Self::Deferred(DeferredReturn { shared }), sender)
    }
}

/// The half of a deferred result that the callback returns.
pub struct DeferredReturn {
    shared: Arc<Mutex<DeferredState>>,
}

impl DeferredReturn {
    /// Returns the result if it was sent already, else registers the node to
    /// receive it.
    pub(super) fn outcome_or_register(
        self,
        core: &Arc<LifecycleCore>,
        number: u64,
    ) -> Option<TransitionOutcome> {
        let mut state = self.shared.lock();
        match *state {
            DeferredState::Sent(outcome) => Some(outcome),
            DeferredState::Pending | DeferredState::Awaited(..) => {
                *state = DeferredState::Awaited(Arc::downgrade(core), number);
                None
            }
        }
    }
}

impl fmt::Debug for DeferredReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeferredReturn")
    }
}

/// Sends the deferred result of a transition callback. Dropping it unused counts as
/// [`CallbackReturnSender::error`].
pub struct CallbackReturnSender {
    shared: Arc<Mutex<DeferredState>>,
}

impl CallbackReturnSender {
    /// Reports success. The transition ends in the node's executor.
    pub fn success(self) {
        self.send(TransitionOutcome::Success);
    }

    /// Reports failure: the node returns to its previous state.
    pub fn failure(self) {
        self.send(TransitionOutcome::Failure);
    }

    /// Reports an error: `on_error` runs in the node's executor.
    pub fn error(self) {
        self.send(TransitionOutcome::Error);
    }

    /// Sends an outcome. Only the first one counts.
    fn send(&self, outcome: TransitionOutcome) {
        let mut state = self.shared.lock();
        match std::mem::replace(&mut *state, DeferredState::Sent(outcome)) {
            DeferredState::Pending => {}
            DeferredState::Sent(first) => *state = DeferredState::Sent(first),
            DeferredState::Awaited(core, number) => {
                drop(state);
                if let Some(core) = core.upgrade() {
                    core.handle_deferred_outcome(number, outcome);
                }
            }
        }
    }
}

impl Drop for CallbackReturnSender {
    fn drop(&mut self) {
        self.send(TransitionOutcome::Error);
    }
}

impl fmt::Debug for CallbackReturnSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackReturnSender")
    }
}

/// State of a deferred result.
enum DeferredState {
    /// The callback has not returned.
    Pending,
    /// The node waits for it, in the transition of that number.
    Awaited(Weak<LifecycleCore>, u64),
    Sent(TransitionOutcome),
}

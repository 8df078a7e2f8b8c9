//! What an action server may be told.

use std::time::Duration;

use pteros_msg::message::Action;

use super::server::ServerGoal;

/// What becomes of a goal that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GoalResponse {
    /// Nothing.
    Reject,
    /// It is accepted, and executing at once.
    AcceptAndExecute,
    /// It is accepted, and waits for [`ServerGoal::execute`].
    AcceptAndDefer,
}

pub(super) type OnGoal<A> = Box<dyn FnMut(&<A as Action>::Goal) -> GoalResponse + Send>;
pub(super) type OnCancel<A> = Box<dyn FnMut(&ServerGoal<A>) -> bool + Send>;

/// What [`Node::create_action_server`](crate::Node::create_action_server) can be
/// told.
pub struct ActionServerOptions<A: Action> {
    pub(super) on_goal: OnGoal<A>,
    pub(super) on_cancel: OnCancel<A>,
    pub(super) result_timeout: Duration,
    pub(super) goals_max: usize,
    pub(super) cancel_abandoned: bool,
    pub(super) preempt: bool,
}

/// Goals known at a time, those included that have ended and whose result is kept.
pub(super) const GOALS_MAX: usize = 1_000;
/// As in rcl_action.
pub(super) const RESULT_TIMEOUT: Duration = Duration::from_secs(10);

impl<A: Action> Default for ActionServerOptions<A> {
    /// Every goal is accepted and executed, may be cancelled, and its result is
    /// kept for 10 s.
    fn default() -> Self {
        Self {
            on_goal: Box::new(|_| GoalResponse::AcceptAndExecute),
            on_cancel: Box::new(|_| true),
            result_timeout: RESULT_TIMEOUT,
            goals_max: GOALS_MAX,
            cancel_abandoned: false,
            preempt: false,
        }
    }
}

impl<A: Action> ActionServerOptions<A> {
    /// Decides what becomes of a goal. Runs in the node's executor.
    pub fn on_goal(
        mut self,
        decide: impl FnMut(&A::Goal) -> GoalResponse + Send + 'static,
    ) -> Self {
        self.on_goal = Box::new(decide);
        self
    }

    /// Decides whether a goal may be cancelled; then it is canceling until
    /// [`ServerGoal::canceled`]. Runs in the node's executor.
    pub fn on_cancel(
        mut self,
        decide: impl FnMut(&ServerGoal<A>) -> bool + Send + 'static,
    ) -> Self {
        self.on_cancel = Box::new(decide);
        self
    }

    /// How long a result is kept for whoever asks late. 10 s unless given.
    pub fn result_timeout(mut self, timeout: Duration) -> Self {
        self.result_timeout = timeout;
        self
    }

    /// Goals known at a time, kept results included; further ones are rejected,
    /// which the log says. 1000 unless given.
    pub fn goals_max(mut self, count: usize) -> Self {
        self.goals_max = count;
        self
    }

    /// Whether a goal becomes canceling, without asking, when the client that sent
    /// it is gone. Looked at every half second while goals go on. Off by default, as in ROS 2.
    pub fn cancel_abandoned(mut self, yes: bool) -> Self {
        self.cancel_abandoned = yes;
        self
    }

    /// Whether a goal that is accepted takes the place of those that go on: these end
    /// with an empty result, aborted, or cancelled if that was asked for. Whoever works on
    /// one sees it by [`ServerGoal::is_open`]. Off by default, as in ROS 2; Nav2's servers
    /// do it.
    pub fn preempt(mut self, yes: bool) -> Self {
        self.preempt = yes;
        self
    }
}

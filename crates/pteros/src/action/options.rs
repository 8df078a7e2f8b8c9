//! Options of action clients and servers.

use std::time::Duration;

use pteros_msg::type_support::ActionTypeSupport;

use super::server::ServerGoalHandle;
use crate::named_qos::{NamedQos, options_from_names};

/// Response of a server to a goal request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GoalResponse {
    /// The goal is rejected.
    Reject,
    /// The goal is accepted and executes at once.
    AcceptAndExecute,
    /// The goal is accepted and waits for [`ServerGoalHandle::execute`].
    AcceptAndDefer,
}

pub(super) type OnGoal<A> = Box<dyn FnMut(&<A as ActionTypeSupport>::Goal) -> GoalResponse + Send>;
pub(super) type OnCancel<A> = Box<dyn FnMut(&ServerGoalHandle<A>) -> bool + Send>;

/// Options of [`Node::create_action_client`](crate::Node::create_action_client).
///
/// A name converts into them.
pub struct ActionClientOptions<A: ActionTypeSupport> {
    pub(super) action: String,
    pub(super) support: A::Support,
}

options_from_names!(ActionClientOptions<A: ActionTypeSupport>);

impl<A: ActionTypeSupport> ActionClientOptions<A> {
    /// Options for an action, whose name the node expands and remaps.
    pub fn new(action: impl Into<NamedQos>) -> Self
    where
        A::Support: Default,
    {
        Self::of_type(&A::Support::default(), action)
    }

    /// Options for an action whose type is known at run time only: a
    /// [`DynamicAction`](crate::msg::dynamic::DynamicAction).
    pub fn of_type(support: &A::Support, action: impl Into<NamedQos>) -> Self {
        Self {
            action: action.into().name,
            support: support.clone(),
        }
    }
}

/// Options of [`Node::create_action_server`](crate::Node::create_action_server).
///
/// A name converts into them: it accepts and executes every goal, allows cancellation,
/// and keeps results for 10 s.
pub struct ActionServerOptions<A: ActionTypeSupport> {
    pub(super) action: String,
    pub(super) support: A::Support,
    pub(super) on_goal: OnGoal<A>,
    pub(super) on_cancel: OnCancel<A>,
    pub(super) result_timeout: Duration,
    pub(super) goals_max: usize,
    pub(super) cancel_abandoned: bool,
    pub(super) preempt: bool,
}

options_from_names!(ActionServerOptions<A: ActionTypeSupport>);

/// Default maximum number of goals, including ended goals with kept results.
const GOALS_MAX: usize = 1_000;
/// Default of rcl_action.
const RESULT_TIMEOUT: Duration = Duration::from_secs(10);

impl<A: ActionTypeSupport> ActionServerOptions<A> {
    /// Options for an action, whose name the node expands and remaps.
    pub fn new(action: impl Into<NamedQos>) -> Self
    where
        A::Support: Default,
    {
        Self::of_type(&A::Support::default(), action)
    }

    /// Options for an action whose type is known at run time only: a
    /// [`DynamicAction`](crate::msg::dynamic::DynamicAction).
    pub fn of_type(support: &A::Support, action: impl Into<NamedQos>) -> Self {
        Self {
            action: action.into().name,
            support: support.clone(),
            on_goal: Box::new(|_| GoalResponse::AcceptAndExecute),
            on_cancel: Box::new(|_| true),
            result_timeout: RESULT_TIMEOUT,
            goals_max: GOALS_MAX,
            cancel_abandoned: false,
            preempt: false,
        }
    }

    /// Sets the callback that accepts or rejects a goal. The node's executor runs
    /// it.
    pub fn on_goal(
        mut self,
        decide: impl FnMut(&A::Goal) -> GoalResponse + Send + 'static,
    ) -> Self {
        self.on_goal = Box::new(decide);
        self
    }

    /// Sets the callback that accepts or rejects a cancel request. An accepted goal
    /// is canceling until [`ServerGoalHandle::canceled`]. The node's executor runs
    /// it.
    pub fn on_cancel(
        mut self,
        decide: impl FnMut(&ServerGoalHandle<A>) -> bool + Send + 'static,
    ) -> Self {
        self.on_cancel = Box::new(decide);
        self
    }

    /// Sets how long the result of an ended goal is kept. Default 10 s.
    pub fn result_timeout(mut self, timeout: Duration) -> Self {
        self.result_timeout = timeout;
        self
    }

    /// Sets the maximum number of goals, including those with kept results. A further goal
    /// takes the place of the one that ended first; while all are active, it is rejected
    /// with a log message. Default 1000.
    pub fn goals_max(mut self, count: usize) -> Self {
        self.goals_max = count;
        self
    }

    /// Sets whether a goal becomes canceling when its client is gone, without
    /// calling `on_cancel`. Checked every 500 ms while goals are active. Off by
    /// default, as in ROS 2.
    pub fn cancel_abandoned(mut self, yes: bool) -> Self {
        self.cancel_abandoned = yes;
        self
    }

    /// Sets whether an accepted goal preempts the active goals. These end with an
    /// empty result: aborted, or canceled if they were canceling. Their handles
    /// report it by [`ServerGoalHandle::is_active`]. Off by default, as in ROS 2;
    /// Nav2's servers preempt.
    pub fn preempt(mut self, yes: bool) -> Self {
        self.preempt = yes;
        self
    }
}

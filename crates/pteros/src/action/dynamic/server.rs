//! Dynamic action server: executes goals of a type known at run time.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::srv::{CancelGoal, CancelGoal_Request, CancelGoal_Response};
use pteros_msg::dynamic::{DynamicMessage, Value};
use pteros_msg::message::GoalId;

use super::super::endpoint_name;
use super::super::error::GoalError;
use super::super::goal_server::{GoalServer, respond, split_nanos};
use super::super::goal_table::{GoalStatus, ResultLookup};
use super::super::options::{GOALS_MAX, GoalResponse, RESULT_TIMEOUT};
use super::{DynamicActionType, goal_id, goal_message, nested_message, set_field};
use crate::dynamic::DynamicPublisher;
use crate::error::CreateError;
use crate::node::Node;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{DynamicService, PendingRequest, Service, ServiceOptions};

type DynamicCall = PendingRequest<DynamicMessage, DynamicMessage>;
type OnDynamicGoal = Box<dyn FnMut(&DynamicMessage) -> GoalResponse + Send>;
type OnDynamicCancel = Box<dyn FnMut(GoalId) -> bool + Send>;
type OnDynamicAccepted = Box<dyn FnMut(DynamicServerGoalHandle) + Send>;

/// Options for
/// [`Node::create_dynamic_action_server`](crate::Node::create_dynamic_action_server),
/// as [`ActionServerOptions`](crate::ActionServerOptions).
pub struct DynamicActionServerOptions {
    on_goal: OnDynamicGoal,
    on_cancel: OnDynamicCancel,
    result_timeout: Duration,
    goals_max: usize,
    cancel_abandoned: bool,
    preempt: bool,
}

impl Default for DynamicActionServerOptions {
    /// Accepts and executes every goal, allows cancellation, and keeps results for
    /// 10 s.
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

impl DynamicActionServerOptions {
    /// Sets the callback that accepts or rejects a goal. The node's executor runs
    /// it.
    #[must_use]
    pub fn on_goal(
        mut self,
        decide: impl FnMut(&DynamicMessage) -> GoalResponse + Send + 'static,
    ) -> Self {
        self.on_goal = Box::new(decide);
        self
    }

    /// Sets the callback that accepts or rejects a cancel request for a goal id. An
    /// accepted goal is canceling until [`DynamicServerGoalHandle::canceled`]. The
    /// node's executor runs it.
    #[must_use]
    pub fn on_cancel(mut self, decide: impl FnMut(GoalId) -> bool + Send + 'static) -> Self {
        self.on_cancel = Box::new(decide);
        self
    }

    /// Sets how long the result of an ended goal is kept. Default 10 s.
    #[must_use]
    pub fn result_timeout(mut self, timeout: Duration) -> Self {
        self.result_timeout = timeout;
        self
    }

    /// Sets the maximum number of goals, including those with kept results. Further
    /// goals are rejected with a log message. Default 1000.
    #[must_use]
    pub fn goals_max(mut self, count: usize) -> Self {
        self.goals_max = count;
        self
    }

    /// Sets whether a goal becomes canceling when its client is gone, without
    /// calling `on_cancel`. Checked every 500 ms while goals are active. Off by
    /// default, as in ROS 2.
    #[must_use]
    pub fn cancel_abandoned(mut self, yes: bool) -> Self {
        self.cancel_abandoned = yes;
        self
    }

    /// See [`ActionServerOptions::preempt`](crate::ActionServerOptions::preempt).
    #[must_use]
    pub fn preempt(mut self, yes: bool) -> Self {
        self.preempt = yes;
        self
    }
}

/// Like [`ActionServer`](crate::ActionServer), for an action whose type is known at
/// run time.
#[derive(Clone)]
pub struct DynamicActionServer {
    core: Arc<DynamicActionServerCore>,
    _services: Arc<DynamicActionServices>,
}

/// Services of the action, which live as long as the server.
struct DynamicActionServices {
    _goals: DynamicService,
    _cancels: Service<CancelGoal>,
    _results: DynamicService,
}

struct DynamicActionServerCore {
    goals: GoalServer<DynamicMessage, DynamicCall>,
    ty: DynamicActionType,
    // One lock per callback: a callback that spins does not block the others.
    on_goal: Mutex<OnDynamicGoal>,
    on_cancel: Mutex<OnDynamicCancel>,
    preempt: bool,
    accepted: Mutex<OnDynamicAccepted>,
    feedback: DynamicPublisher,
    weak_self: Weak<Self>,
}

impl DynamicActionServer {
    /// Fully qualified name of the action, after remapping.
    pub fn action_name(&self) -> &str {
        &self.core.goals.name
    }

    /// Number of active goals.
    pub fn open_goals(&self) -> usize {
        self.core.goals.table.lock().open_goals().count()
    }
}

impl fmt::Debug for DynamicActionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicActionServer")
            .field("action", &self.core.goals.name)
            .field("type", &self.core.ty.name)
            .finish()
    }
}

/// Handle of a goal for the server, usable on any thread. If it is dropped before
/// the goal has ended, the goal is aborted with an empty result, so that no client
/// waits in vain.
pub struct DynamicServerGoalHandle {
    server: Weak<DynamicActionServerCore>,
    id: GoalId,
    goal: DynamicMessage,
}

impl DynamicServerGoalHandle {
    /// The goal message.
    pub fn goal(&self) -> &DynamicMessage {
        &self.goal
    }

    /// Goal id, chosen by the client.
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// Status of the goal; unknown once its server is dropped.
    pub fn status(&self) -> GoalStatus {
        let server = self.server.upgrade();
        server.map_or(GoalStatus::Unknown, |s| {
            s.goals.table.lock().status(self.id)
        })
    }

    /// Whether cancellation was accepted; end the goal with [`Self::canceled`].
    pub fn is_canceling(&self) -> bool {
        self.status() == GoalStatus::Canceling
    }

    /// See [`ServerGoalHandle::is_active`](crate::ServerGoalHandle::is_active).
    pub fn is_active(&self) -> bool {
        let status = self.status();
        !status.is_terminal() && status != GoalStatus::Unknown
    }

    /// Starts the execution of a deferred goal.
    ///
    /// # Errors
    /// [`GoalError::IllegalTransition`] unless the status is accepted.
    pub fn execute(&self) -> Result<(), GoalError> {
        self.server()?
            .goals
            .transition(self.id, GoalStatus::Executing)
    }

    /// Publishes feedback, a message of [`DynamicActionType::feedback`]. Blocks no
    /// longer than publishing does. Logs a warning if it cannot be sent.
    pub fn publish_feedback(&self, feedback: DynamicMessage) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        let mut message = goal_message(&server.ty.feedback_message, self.id);
        set_field(&mut message, "feedback", Value::Message(feedback));
        if let Err(error) = server.feedback.publish(&message) {
            tracing::warn!(action = %server.goals.name, "feedback not sent: {error}");
        }
    }

    /// Ends the goal as succeeded. A result that is not of
    /// [`DynamicActionType::result`] is sent empty, with a warning.
    ///
    /// # Errors
    /// [`GoalError::IllegalTransition`] if the goal has already ended.
    pub fn succeed(&self, result: DynamicMessage) -> Result<(), GoalError> {
        self.server()?
            .finish(self.id, GoalStatus::Succeeded, result)
    }

    /// Ends the goal as aborted.
    ///
    /// # Errors
    /// [`GoalError::IllegalTransition`] if the goal has already ended.
    pub fn abort(&self, result: DynamicMessage) -> Result<(), GoalError> {
        self.server()?.finish(self.id, GoalStatus::Aborted, result)
    }

    /// Ends the goal as canceled.
    ///
    /// # Errors
    /// [`GoalError::IllegalTransition`] unless [`Self::is_canceling`].
    pub fn canceled(&self, result: DynamicMessage) -> Result<(), GoalError> {
        self.server()?.finish(self.id, GoalStatus::Canceled, result)
    }

    fn server(&self) -> Result<Arc<DynamicActionServerCore>, GoalError> {
        self.server.upgrade().ok_or(GoalError::NoServer)
    }
}

impl Drop for DynamicServerGoalHandle {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade() {
            let empty = DynamicMessage::new(&server.ty.result);
            if server.finish(self.id, GoalStatus::Aborted, empty).is_ok() {
                tracing::warn!(action = %server.goals.name, "a goal handle was dropped without a result: the goal is aborted");
            }
        }
    }
}

impl fmt::Debug for DynamicServerGoalHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicServerGoalHandle")
            .field("goal", &self.goal)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Creates an action server for a type known at run time; otherwise as
    /// [`Node::create_action_server`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_action_server(
        &self,
        action: &str,
        ty: &DynamicActionType,
        options: DynamicActionServerOptions,
        accepted: impl FnMut(DynamicServerGoalHandle) + Send + 'static,
    ) -> Result<DynamicActionServer, CreateError> {
        let feedback = self.create_dynamic_publisher(
            &endpoint_name(action, "feedback"),
            &ty.feedback_message,
            QosProfile::default(),
        )?;
        let status = self.create_publisher(
            &endpoint_name(action, "status"),
            QosProfile::action_status(),
        )?;
        let name: String = feedback
            .topic()
            .trim_end_matches("/_action/feedback")
            .into();
        let core =
            Arc::new_cyclic(
                |weak_self: &Weak<DynamicActionServerCore>| DynamicActionServerCore {
                    goals: GoalServer::new(
                        self,
                        name,
                        status,
                        options.goals_max,
                        options.result_timeout,
                    ),
                    ty: ty.clone(),
                    on_goal: Mutex::new(options.on_goal),
                    on_cancel: Mutex::new(options.on_cancel),
                    preempt: options.preempt,
                    accepted: Mutex::new(Box::new(accepted)),
                    feedback,
                    weak_self: weak_self.clone(),
                },
            );
        let weak = Arc::downgrade(&core);
        core.goals.start_expiry(options.result_timeout, move || {
            if let Some(server) = weak.upgrade() {
                server.goals.expire();
            }
        })?;
        if options.cancel_abandoned {
            let weak = Arc::downgrade(&core);
            core.goals.start_client_check(move || {
                if let Some(server) = weak.upgrade() {
                    server.goals.cancel_abandoned();
                }
            })?;
        }
        let services = core.serve(action)?;
        Ok(DynamicActionServer {
            core,
            _services: Arc::new(services),
        })
    }
}

impl DynamicActionServerCore {
    fn serve(&self, action: &str) -> Result<DynamicActionServices, CreateError> {
        let node = &self.goals.node;
        let weak_self = self.weak_self.clone();
        let goals = node.create_deferred_dynamic_service(
            &endpoint_name(action, "send_goal"),
            &self.ty.send_goal,
            ServiceOptions::default(),
            move |call| {
                if let Some(server) = weak_self.upgrade() {
                    server.handle_goal_request(call);
                }
            },
        )?;
        let weak_self = self.weak_self.clone();
        let cancels = node.create_service::<CancelGoal>(
            &endpoint_name(action, "cancel_goal"),
            move |request: Sample<CancelGoal_Request>| {
                let server = weak_self.upgrade();
                server.map_or_else(CancelGoal_Response::default, |server| {
                    let may = |id| (server.on_cancel.lock())(id);
                    server.goals.cancel(&request, may)
                })
            },
        )?;
        let weak_self = self.weak_self.clone();
        let results = node.create_deferred_dynamic_service(
            &endpoint_name(action, "get_result"),
            &self.ty.get_result,
            ServiceOptions::default(),
            move |call| {
                if let Some(server) = weak_self.upgrade() {
                    server.handle_result_request(call);
                }
            },
        )?;
        Ok(DynamicActionServices {
            _goals: goals,
            _cancels: cancels,
            _results: results,
        })
    }

    fn handle_goal_request(&self, call: DynamicCall) {
        let goals = &self.goals;
        let id = goal_id(call.request());
        let goal = nested_message(call.request(), "goal", &self.ty.goal);
        let stamp = goals.node.core().core().platform.wall_clock().as_nanos();
        let answer = |accepted: bool| {
            let mut answer = DynamicMessage::new(self.ty.send_goal.response());
            let (seconds, nanos) = split_nanos(stamp);
            set_field(&mut answer, "accepted", Value::Bool(accepted));
            set_field(&mut answer, "stamp.sec", seconds);
            set_field(&mut answer, "stamp.nanosec", nanos);
            answer
        };
        // No lock is held while user code runs.
        let decision = if goals.must_reject(id) {
            GoalResponse::Reject
        } else {
            (self.on_goal.lock())(&goal)
        };
        let client = call.client();
        if decision == GoalResponse::Reject {
            respond(&goals.name, call, answer(false));
            return;
        }
        goals.table.lock().accept(id, stamp, client);
        respond(&goals.name, call, answer(true));
        if decision == GoalResponse::AcceptAndExecute {
            // Cannot fail: the goal was accepted just now.
            let _ = goals.table.lock().transition(id, GoalStatus::Executing);
        }
        goals.publish_status();
        if self.preempt {
            for preempted in goals.preempted_by(id) {
                // The goal may have ended meanwhile.
                let empty = DynamicMessage::new(&self.ty.result);
                let _ = self.finish(preempted.id, preempted.terminal_status, empty);
            }
        }
        (self.accepted.lock())(DynamicServerGoalHandle {
            server: self.weak_self.clone(),
            id,
            goal,
        });
    }

    fn handle_result_request(&self, call: DynamicCall) {
        let goals = &self.goals;
        let now = goals.node.core().core().platform.now();
        let id = goal_id(call.request());
        let lookup = goals.table.lock().request_result(now, id, call);
        match lookup {
            ResultLookup::Pending => {}
            ResultLookup::Ended(call, status, result) => {
                respond(&goals.name, call, self.result(status, result));
            }
            ResultLookup::Unknown(call) => {
                let empty = DynamicMessage::new(&self.ty.result);
                respond(&goals.name, call, self.result(GoalStatus::Unknown, empty));
            }
        }
    }

    fn result(&self, status: GoalStatus, result: DynamicMessage) -> DynamicMessage {
        let mut answer = DynamicMessage::new(self.ty.get_result.response());
        set_field(&mut answer, "status", status.id());
        set_field(&mut answer, "result", Value::Message(result));
        answer
    }

    fn finish(
        &self,
        id: GoalId,
        target: GoalStatus,
        result: DynamicMessage,
    ) -> Result<(), GoalError> {
        for call in self.goals.finish(id, target, result.clone())? {
            let answer = self.result(target, result.clone());
            respond(&self.goals.name, call, answer);
        }
        Ok(())
    }
}

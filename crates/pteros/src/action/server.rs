//! Action server: accepts goals, executes them, publishes feedback and status.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::srv::{CancelGoal, CancelGoalRequest, CancelGoalResponse};
use pteros_msg::message::GoalId;
use pteros_msg::type_support::{ActionTypeSupport, MessageTypeSupport, RequestOf, ResponseOf};

use super::endpoint_name;
use super::error::ActionError;
use super::goal_server::{GoalServer, respond, split_nanos};
use super::options::{ActionServerOptions, GoalResponse, OnCancel, OnGoal};
use crate::error::CreateError;
use crate::named_qos::NamedQosExt;
use crate::node::Node;
use crate::publisher::{Publisher, PublisherOptions};
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{PendingRequest, Service, ServiceOptions};
use pteros_rcl::action::{GoalStatus, ResultLookup};

type GoalCall<A> = PendingRequest<
    RequestOf<<A as ActionTypeSupport>::SendGoal>,
    ResponseOf<<A as ActionTypeSupport>::SendGoal>,
>;
type ResultCall<A> = PendingRequest<
    RequestOf<<A as ActionTypeSupport>::GetResult>,
    ResponseOf<<A as ActionTypeSupport>::GetResult>,
>;

/// Server of an action. Cheap to clone, thread-safe. It ends when the last clone is
/// dropped; active goals then end without a result.
///
/// ```no_run
/// use pteros::interfaces::example_interfaces::action::{
///     Fibonacci, FibonacciFeedback, FibonacciResult,
/// };
/// use pteros::prelude::*;
/// use pteros::action::ServerGoalHandle;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("counter")?;
/// let work = |goal: ServerGoalHandle<Fibonacci>| {
///     // Takes a while, so not in the executor.
///     std::thread::spawn(move || {
///         let mut sequence = vec![0, 1];
///         for at in 1..usize::try_from(goal.goal().order).unwrap_or(0) {
///             if goal.is_canceling() {
///                 return goal.canceled(FibonacciResult { sequence });
///             }
///             sequence.push(sequence[at] + sequence[at - 1]);
///             goal.publish_feedback(FibonacciFeedback { sequence: sequence.clone() });
///         }
///         goal.succeed(FibonacciResult { sequence })
///     });
/// };
/// let _server = node.create_action_server::<Fibonacci>("fibonacci", work)?;
/// node.spin();
/// # Ok(())
/// # }
/// ```
#[must_use = "an action server ends when it is dropped: keep it in a variable or a field"]
pub struct ActionServer<A: ActionTypeSupport> {
    core: Arc<ActionServerCore<A>>,
    _services: Arc<ActionServices<A>>,
}

impl<A: ActionTypeSupport> Clone for ActionServer<A> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            _services: self._services.clone(),
        }
    }
}

/// Services of the action, which live as long as the server.
struct ActionServices<A: ActionTypeSupport> {
    _goals: Service<A::SendGoal>,
    _cancels: Service<CancelGoal>,
    _results: Service<A::GetResult>,
}

impl<A: ActionTypeSupport> ActionServer<A> {
    /// Fully qualified name of the action, after remapping.
    pub fn action_name(&self) -> &str {
        &self.core.goals.name
    }

    /// Number of active goals.
    pub fn open_goals(&self) -> usize {
        self.core.goals.table.lock().open_goals().count()
    }
}

impl<A: ActionTypeSupport> fmt::Debug for ActionServer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionServer")
            .field("action", &self.core.goals.name)
            .finish()
    }
}

/// Handle of a goal for the server, usable on any thread. If it is dropped before
/// the goal has ended, the goal is aborted with an empty result, so that no client
/// waits in vain.
pub struct ServerGoalHandle<A: ActionTypeSupport> {
    server: Weak<ActionServerCore<A>>,
    id: GoalId,
    goal: A::Goal,
    /// Whether dropping the handle aborts the goal.
    aborts_on_drop: bool,
}

impl<A: ActionTypeSupport> ServerGoalHandle<A> {
    /// The goal message.
    pub fn goal(&self) -> &A::Goal {
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

    /// Whether the goal is active: accepted, executing or canceling. False once it
    /// has ended, was preempted ([`ActionServerOptions::preempt`]) or its server
    /// was dropped.
    pub fn is_active(&self) -> bool {
        let status = self.status();
        !status.is_terminal() && status != GoalStatus::Unknown
    }

    /// Starts the execution of a deferred goal.
    ///
    /// # Errors
    /// [`ActionError::IllegalTransition`] unless the status is accepted.
    pub fn execute(&self) -> Result<(), ActionError> {
        self.server()?
            .goals
            .transition(self.id, GoalStatus::Executing)
    }

    /// Publishes feedback. Blocks no longer than publishing does. Logs a warning if
    /// it cannot be sent.
    pub fn publish_feedback(&self, feedback: A::Feedback) {
        if let Some(server) = self.server.upgrade() {
            let sent = A::wrap_feedback(&server.support, self.id, feedback).and_then(|message| {
                let sent = server.feedback.publish_owned(message);
                sent.map_err(|error| error.to_string())
            });
            if let Err(error) = sent {
                tracing::warn!(action = %server.goals.name, "feedback not sent: {error}");
            }
        }
    }

    /// Ends the goal as succeeded. A result of another dynamic type is sent empty, with
    /// a warning.
    ///
    /// # Errors
    /// [`ActionError::IllegalTransition`] if the goal has already ended, or was deferred
    /// and is not executed ([`Self::execute`]).
    pub fn succeed(&self, result: A::Result) -> Result<(), ActionError> {
        self.server()?
            .finish(self.id, GoalStatus::Succeeded, result)
    }

    /// Ends the goal as aborted.
    ///
    /// # Errors
    /// [`ActionError::IllegalTransition`] if the goal has already ended, or was deferred
    /// and is not executed ([`Self::execute`]).
    pub fn abort(&self, result: A::Result) -> Result<(), ActionError> {
        self.server()?.finish(self.id, GoalStatus::Aborted, result)
    }

    /// Ends the goal as canceled.
    ///
    /// # Errors
    /// [`ActionError::IllegalTransition`] unless [`Self::is_canceling`].
    pub fn canceled(&self, result: A::Result) -> Result<(), ActionError> {
        self.server()?.finish(self.id, GoalStatus::Canceled, result)
    }

    fn server(&self) -> Result<Arc<ActionServerCore<A>>, ActionError> {
        self.server.upgrade().ok_or(ActionError::ServerDropped)
    }
}

impl<A: ActionTypeSupport> Drop for ServerGoalHandle<A> {
    fn drop(&mut self) {
        if let (true, Some(server)) = (self.aborts_on_drop, self.server.upgrade())
            && server.end(self.id, GoalStatus::Aborted).is_ok()
        {
            tracing::warn!(action = %server.goals.name, "a goal handle was dropped without a result: the goal is aborted");
        }
    }
}

impl<A: ActionTypeSupport> fmt::Debug for ServerGoalHandle<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerGoalHandle")
            .field("goal", &self.goal)
            .field("status", &self.status())
            .finish()
    }
}

impl Node {
    /// Creates an action server.
    ///
    /// The options are the action's name, which is expanded and remapped, or
    /// [`ActionServerOptions`]. The node's executor calls `accepted` for each accepted
    /// goal. Leave long work to a thread, a timer or a spawned task.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_action_server<A: ActionTypeSupport>(
        &self,
        options: impl Into<ActionServerOptions<A>>,
        accepted: impl FnMut(ServerGoalHandle<A>) + Send + 'static,
    ) -> Result<ActionServer<A>, CreateError> {
        let options = options.into();
        let (action, support) = (options.action, options.support);
        let feedback = self.create_publisher(PublisherOptions::of_type(
            A::feedback_type(&support),
            endpoint_name(&action, "feedback"),
        ))?;
        let status = self
            .create_publisher(endpoint_name(&action, "status").qos(QosProfile::action_status()))?;
        let name: String = feedback
            .topic()
            .trim_end_matches("/_action/feedback")
            .into();
        let core = Arc::new_cyclic(|weak_self: &Weak<ActionServerCore<A>>| ActionServerCore {
            goals: GoalServer::new(
                self,
                name,
                status,
                options.goals_max,
                options.result_timeout,
            ),
            support,
            on_goal: Mutex::new(options.on_goal),
            on_cancel: Mutex::new(options.on_cancel),
            preempt: options.preempt,
            accepted: Mutex::new(Box::new(accepted)),
            feedback,
            weak_self: weak_self.clone(),
        });
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
        let services = core.serve(&action)?;
        Ok(ActionServer {
            core,
            _services: Arc::new(services),
        })
    }
}

type OnAccepted<A> = Box<dyn FnMut(ServerGoalHandle<A>) + Send>;

struct ActionServerCore<A: ActionTypeSupport> {
    goals: GoalServer<A::Result, ResultCall<A>>,
    support: A::Support,
    // One lock per callback: a callback that spins does not block the others.
    on_goal: Mutex<OnGoal<A>>,
    on_cancel: Mutex<OnCancel<A>>,
    preempt: bool,
    accepted: Mutex<OnAccepted<A>>,
    feedback: Publisher<A::FeedbackMessage>,
    weak_self: Weak<Self>,
}

impl<A: ActionTypeSupport> ActionServerCore<A> {
    fn serve(&self, action: &str) -> Result<ActionServices<A>, CreateError> {
        let node = &self.goals.node;
        let weak_self = self.weak_self.clone();
        let goals = Service::<A::SendGoal>::deferred(
            node,
            ServiceOptions::of_type(
                A::send_goal(&self.support),
                endpoint_name(action, "send_goal"),
            ),
            move |call: GoalCall<A>| {
                if let Some(server) = weak_self.upgrade() {
                    server.handle_goal_request(call);
                }
            },
        )?;
        let weak_self = self.weak_self.clone();
        let cancels = node.create_service::<CancelGoal>(
            endpoint_name(action, "cancel_goal"),
            move |request: Sample<CancelGoalRequest>| {
                let server = weak_self.upgrade();
                server.map_or_else(CancelGoalResponse::default, |s| {
                    s.handle_cancel_request(&request)
                })
            },
        )?;
        let weak_self = self.weak_self.clone();
        let results = Service::<A::GetResult>::deferred(
            node,
            ServiceOptions::of_type(
                A::get_result(&self.support),
                endpoint_name(action, "get_result"),
            ),
            move |call: ResultCall<A>| {
                if let Some(server) = weak_self.upgrade() {
                    server.handle_result_request(call);
                }
            },
        )?;
        Ok(ActionServices {
            _goals: goals,
            _cancels: cancels,
            _results: results,
        })
    }

    fn handle_goal_request(&self, call: GoalCall<A>) {
        let (id, goal) = A::requested_goal(&self.support, call.request());
        let stamp = self
            .goals
            .node
            .core()
            .core()
            .platform
            .wall_clock()
            .as_nanos();
        let (sec, nanosec) = split_nanos(stamp);
        let answer = |accepted| A::respond_goal(&self.support, accepted, sec, nanosec);
        // No lock is held while user code runs.
        let refused = self.goals.must_reject(id);
        let decision = if refused {
            GoalResponse::Reject
        } else {
            (self.on_goal.lock())(&goal)
        };
        let client = call.client();
        if decision == GoalResponse::Reject {
            respond(&self.goals.name, call, answer(false));
            return;
        }
        self.goals.table.lock().accept(id, stamp, client);
        respond(&self.goals.name, call, answer(true));
        if decision == GoalResponse::AcceptAndExecute {
            // Cannot fail: the goal was accepted just now.
            let _ = self
                .goals
                .table
                .lock()
                .transition(id, GoalStatus::Executing);
        }
        self.goals.publish_status();
        if self.preempt {
            for preempted in self.goals.preempted_by(id) {
                // The goal may have ended meanwhile.
                let _ = self.end(preempted.id, preempted.terminal_status);
            }
        }
        (self.accepted.lock())(self.goal(id, goal, true));
    }

    fn goal(&self, id: GoalId, goal: A::Goal, aborts_on_drop: bool) -> ServerGoalHandle<A> {
        ServerGoalHandle {
            server: self.weak_self.clone(),
            id,
            goal,
            aborts_on_drop,
        }
    }

    fn handle_cancel_request(&self, request: &CancelGoalRequest) -> CancelGoalResponse {
        self.goals.cancel(request, |id| {
            // The callback decides by id and status. The goal message is with the
            // handle that executes it.
            let goal = self.goal(
                id,
                A::Goal::default_message(A::goal_type(&self.support)),
                false,
            );
            (self.on_cancel.lock())(&goal)
        })
    }

    fn handle_result_request(&self, call: ResultCall<A>) {
        let now = self.goals.node.core().core().platform.now();
        let id = A::requested_result(call.request());
        let lookup = self.goals.table.lock().request_result(now, id, call);
        match lookup {
            ResultLookup::Pending => {}
            ResultLookup::Ended(call, status, result) => {
                respond(
                    &self.goals.name,
                    call,
                    A::respond_result(&self.support, status.id(), result),
                );
            }
            ResultLookup::Unknown(call) => {
                let unknown = GoalStatus::Unknown.id();
                let answer = A::respond_result(&self.support, unknown, self.empty_result());
                respond(&self.goals.name, call, answer);
            }
        }
    }

    fn empty_result(&self) -> A::Result {
        A::Result::default_message(A::result_type(&self.support))
    }

    /// Ends a goal without a result, also one that was deferred and is not executed.
    fn end(&self, id: GoalId, target: GoalStatus) -> Result<(), ActionError> {
        // Refused for a goal that executes already.
        let _ = self
            .goals
            .table
            .lock()
            .transition(id, GoalStatus::Executing);
        self.finish(id, target, self.empty_result())
    }

    fn finish(
        &self,
        id: GoalId,
        target: GoalStatus,
        mut result: A::Result,
    ) -> Result<(), ActionError> {
        let ty = A::result_type(&self.support);
        if !result.is_of(ty) {
            let reason = result.validate(ty).err().unwrap_or_default();
            tracing::warn!(action = %self.goals.name, "the result is sent empty: {reason}");
            result = self.empty_result();
        }
        for call in self.goals.finish(id, target, result.clone())? {
            let answer = A::respond_result(&self.support, target.id(), result.clone());
            respond(&self.goals.name, call, answer);
        }
        Ok(())
    }
}

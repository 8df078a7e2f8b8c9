//! The side that works on goals.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::srv::{CancelGoal, CancelGoal_Request, CancelGoal_Response};
use pteros_msg::message::{Action, GoalId, Service as ServiceType};
use pteros_rmw::rtps::fault;

use super::error::GoalError;
use super::ledger::{GoalStatus, Known};
use super::options::{ActionServerOptions, GoalResponse, OnCancel, OnGoal};
use super::part;
use super::served::{Served, respond, split};
use crate::error::CreateError;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{Service, ServiceCall, ServiceOptions};

type GoalRequest<A> = <<A as Action>::SendGoal as ServiceType>::Request;
type GoalAnswer<A> = <<A as Action>::SendGoal as ServiceType>::Response;
type ResultRequest<A> = <<A as Action>::GetResult as ServiceType>::Request;
type ResultAnswer<A> = <<A as Action>::GetResult as ServiceType>::Response;
type ResultCall<A> = ServiceCall<ResultRequest<A>, ResultAnswer<A>>;

/// Works on the goals of an action. Cheap to clone, thread-safe; it ends when the
/// last clone is dropped, and goals that go on then end without a result.
///
/// ```no_run
/// use pteros::interfaces::example_interfaces::action::{
///     Fibonacci, Fibonacci_Feedback, Fibonacci_Result,
/// };
/// use pteros::prelude::*;
/// use pteros::{ActionServerOptions, ServerGoal};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("counter")?;
/// let work = |goal: ServerGoal<Fibonacci>| {
///     // Takes a while, so not in the executor.
///     std::thread::spawn(move || {
///         let mut sequence = vec![0, 1];
///         for at in 1..usize::try_from(goal.goal().order).unwrap_or(0) {
///             if goal.is_canceling() {
///                 return goal.canceled(Fibonacci_Result { sequence });
///             }
///             sequence.push(sequence[at] + sequence[at - 1]);
///             goal.publish_feedback(Fibonacci_Feedback { sequence: sequence.clone() });
///         }
///         goal.succeed(Fibonacci_Result { sequence })
///     });
/// };
/// let options = ActionServerOptions::default();
/// let _server = node.create_action_server::<Fibonacci>("fibonacci", options, work)?;
/// node.spin();
/// # Ok(())
/// # }
/// ```
pub struct ActionServer<A: Action> {
    core: Arc<ServerCore<A>>,
    _parts: Arc<Parts<A>>,
}

impl<A: Action> Clone for ActionServer<A> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            _parts: self._parts.clone(),
        }
    }
}

/// What is served, for as long as the server is.
struct Parts<A: Action> {
    _goals: Service<A::SendGoal>,
    _cancels: Service<CancelGoal>,
    _results: Service<A::GetResult>,
}

impl<A: Action> ActionServer<A> {
    /// The action's fully qualified name, after remapping.
    pub fn action_name(&self) -> &str {
        &self.core.served.name
    }

    /// Goals that go on.
    pub fn open_goals(&self) -> usize {
        self.core.served.ledger.lock().going_on().count()
    }
}

impl<A: Action> fmt::Debug for ActionServer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionServer")
            .field("action", &self.core.served.name)
            .finish()
    }
}

/// A goal as its server works on it, on any thread. Dropped before it has ended, it
/// is aborted with an empty result, so no client waits in vain.
pub struct ServerGoal<A: Action> {
    server: Weak<ServerCore<A>>,
    id: GoalId,
    goal: A::Goal,
    /// Whether dropping it ends the goal.
    is_working: bool,
}

impl<A: Action> ServerGoal<A> {
    /// What was asked for.
    pub fn goal(&self) -> &A::Goal {
        &self.goal
    }

    /// The id that its client gave it.
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// Where it is; unknown once its server is dropped.
    pub fn status(&self) -> GoalStatus {
        let server = self.server.upgrade();
        server.map_or(GoalStatus::Unknown, |s| {
            s.served.ledger.lock().status(self.id)
        })
    }

    /// Whether it should end soon, by [`Self::canceled`].
    pub fn is_canceling(&self) -> bool {
        self.status() == GoalStatus::Canceling
    }

    /// Whether it goes on. Not, once it has ended, as when another took its place
    /// ([`ActionServerOptions::preempt`]) or its server is dropped.
    pub fn is_open(&self) -> bool {
        let status = self.status();
        !status.is_end() && status != GoalStatus::Unknown
    }

    /// Begins with a goal that was deferred.
    ///
    /// # Errors
    /// [`GoalError::Illegal`] unless it was accepted and nothing more.
    pub fn execute(&self) -> Result<(), GoalError> {
        self.server()?.served.go(self.id, GoalStatus::Executing)
    }

    /// Tells its client what it has come to. Blocks no longer than publishing does;
    /// what cannot be sent is warned of.
    pub fn publish_feedback(&self, feedback: A::Feedback) {
        if let Some(server) = self.server.upgrade() {
            let message = A::feedback_message(self.id, feedback);
            if let Err(error) = server.feedback.publish_owned(message) {
                tracing::warn!(action = %server.served.name, "no feedback sent: {error}");
            }
        }
    }

    /// It is done.
    ///
    /// # Errors
    /// [`GoalError::Illegal`] when it has ended already.
    pub fn succeed(&self, result: A::Result) -> Result<(), GoalError> {
        self.server()?.end(self.id, GoalStatus::Succeeded, result)
    }

    /// It cannot be done.
    ///
    /// # Errors
    /// [`GoalError::Illegal`] when it has ended already.
    pub fn abort(&self, result: A::Result) -> Result<(), GoalError> {
        self.server()?.end(self.id, GoalStatus::Aborted, result)
    }

    /// It is cancelled, as was asked for.
    ///
    /// # Errors
    /// [`GoalError::Illegal`] unless [`Self::is_canceling`].
    pub fn canceled(&self, result: A::Result) -> Result<(), GoalError> {
        self.server()?.end(self.id, GoalStatus::Canceled, result)
    }

    fn server(&self) -> Result<Arc<ServerCore<A>>, GoalError> {
        self.server.upgrade().ok_or(GoalError::NoServer)
    }
}

impl<A: Action> Drop for ServerGoal<A> {
    fn drop(&mut self) {
        if let (true, Some(server)) = (self.is_working, self.server.upgrade()) {
            let ended = server.end(self.id, GoalStatus::Aborted, A::Result::default());
            if ended.is_ok() {
                tracing::warn!(action = %server.served.name, "a goal was dropped without a result, so it is aborted");
            }
        }
    }
}

impl<A: Action> fmt::Debug for ServerGoal<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerGoal")
            .field("goal", &self.goal)
            .field("status", &self.status())
            .finish()
    }
}

impl Node {
    /// Serves an action, remapped as the arguments say. `accepted` gets each goal
    /// that is accepted and runs in the node's executor: what takes a while it
    /// leaves to a thread, a timer or a task of the node's.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_action_server<A: Action>(
        &self,
        action: &str,
        options: ActionServerOptions<A>,
        accepted: impl FnMut(ServerGoal<A>) + Send + 'static,
    ) -> Result<ActionServer<A>, CreateError> {
        let feedback = self.create_publisher(&part(action, "feedback"), QosProfile::default())?;
        let status = self.create_publisher(&part(action, "status"), QosProfile::action_status())?;
        let name: String = feedback
            .topic()
            .trim_end_matches("/_action/feedback")
            .into();
        let core = Arc::new_cyclic(|me: &Weak<ServerCore<A>>| ServerCore {
            served: Served::new(
                self,
                name,
                status,
                (options.goals_max, options.result_timeout),
            ),
            on_goal: Mutex::new(options.on_goal),
            on_cancel: Mutex::new(options.on_cancel),
            preempt: options.preempt,
            accepted: Mutex::new(Box::new(accepted)),
            feedback,
            me: me.clone(),
        });
        let weak = Arc::downgrade(&core);
        core.served.start_expiry(options.result_timeout, move || {
            if let Some(server) = weak.upgrade() {
                server.served.expire();
            }
        })?;
        if options.cancel_abandoned {
            let weak = Arc::downgrade(&core);
            core.served.start_looking(move || {
                if let Some(server) = weak.upgrade() {
                    server.served.cancel_abandoned();
                }
            })?;
        }
        let parts = core.serve(action)?;
        Ok(ActionServer {
            core,
            _parts: Arc::new(parts),
        })
    }
}

type Accepted<A> = Box<dyn FnMut(ServerGoal<A>) + Send>;

struct ServerCore<A: Action> {
    served: Served<A::Result, ResultCall<A>>,
    // A lock for each: one that spins lets the others run.
    on_goal: Mutex<OnGoal<A>>,
    on_cancel: Mutex<OnCancel<A>>,
    preempt: bool,
    accepted: Mutex<Accepted<A>>,
    feedback: Publisher<A::FeedbackMessage>,
    me: Weak<Self>,
}

impl<A: Action> ServerCore<A> {
    fn serve(&self, action: &str) -> Result<Parts<A>, CreateError> {
        let node = &self.served.node;
        let me = self.me.clone();
        let goals = node.create_deferred_service::<A::SendGoal>(
            &part(action, "send_goal"),
            ServiceOptions::default(),
            move |call| {
                if let Some(server) = me.upgrade() {
                    server.goal_asked(call);
                }
            },
        )?;
        let me = self.me.clone();
        let cancels = node.create_service::<CancelGoal>(
            &part(action, "cancel_goal"),
            move |request: Sample<CancelGoal_Request>| {
                let server = me.upgrade();
                server.map_or_else(CancelGoal_Response::default, |s| s.cancel_asked(&request))
            },
        )?;
        let me = self.me.clone();
        let results = node.create_deferred_service::<A::GetResult>(
            &part(action, "get_result"),
            ServiceOptions::default(),
            move |call| {
                if let Some(server) = me.upgrade() {
                    server.result_asked(call);
                }
            },
        )?;
        Ok(Parts {
            _goals: goals,
            _cancels: cancels,
            _results: results,
        })
    }

    fn goal_asked(&self, call: ServiceCall<GoalRequest<A>, GoalAnswer<A>>) {
        let (id, goal) = A::goal_of(call.request());
        let goal = goal.clone();
        let stamp = self.served.node.core().core().env.wall().as_nanos();
        let answer = |accepted| A::goal_response(accepted, split(stamp));
        // Not locked while the user's code runs.
        let refused = self.served.refuses(id);
        let decided = match refused {
            true => GoalResponse::Reject,
            false => (self.on_goal.lock())(&goal),
        };
        let client = call.client();
        if decided == GoalResponse::Reject {
            let answer = answer(fault!("rejected-goal-is-told-accepted"));
            respond(&self.served.name, call, answer);
            return;
        }
        self.served.ledger.lock().accept(id, stamp, client);
        respond(&self.served.name, call, answer(true));
        if decided == GoalResponse::AcceptAndExecute {
            // It was accepted just now.
            let _ = self.served.ledger.lock().go(id, GoalStatus::Executing);
        }
        self.served.tell_status();
        if self.preempt {
            for (other, end) in self.served.preempted_by(id) {
                // It may have ended meanwhile.
                let _ = self.end(other, end, A::Result::default());
            }
        }
        (self.accepted.lock())(self.goal(id, goal, true));
    }

    fn goal(&self, id: GoalId, goal: A::Goal, is_working: bool) -> ServerGoal<A> {
        ServerGoal {
            server: self.me.clone(),
            id,
            goal,
            is_working,
        }
    }

    fn cancel_asked(&self, request: &CancelGoal_Request) -> CancelGoal_Response {
        self.served.cancel(request, |id| {
            // The user decides by id and status; the goal's own content is with
            // whoever works on it.
            let goal = self.goal(id, A::Goal::default(), false);
            (self.on_cancel.lock())(&goal)
        })
    }

    fn result_asked(&self, call: ResultCall<A>) {
        let now = self.served.node.core().core().env.now();
        let id = A::result_goal(call.request());
        let known = self.served.ledger.lock().ask_result(now, id, call);
        match known {
            Known::Later => {}
            Known::End(call, status, result) => {
                respond(
                    &self.served.name,
                    call,
                    A::result_response(status.id(), result),
                );
            }
            Known::Nothing(call) => {
                let unknown = GoalStatus::Unknown.id();
                let answer = A::result_response(unknown, A::Result::default());
                respond(&self.served.name, call, answer);
            }
        }
    }

    fn end(&self, id: GoalId, wanted: GoalStatus, result: A::Result) -> Result<(), GoalError> {
        for call in self.served.end(id, wanted, result.clone())? {
            let answer = A::result_response(wanted.id(), result.clone());
            respond(&self.served.name, call, answer);
        }
        Ok(())
    }
}

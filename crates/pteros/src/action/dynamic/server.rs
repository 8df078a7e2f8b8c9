//! The side that works on goals.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::srv::{CancelGoal, CancelGoal_Request, CancelGoal_Response};
use pteros_msg::dynamic::{DynamicMessage, Value};
use pteros_msg::message::GoalId;

use super::super::error::GoalError;
use super::super::ledger::{GoalStatus, Known};
use super::super::options::{GOALS_MAX, GoalResponse, RESULT_TIMEOUT};
use super::super::part as named;
use super::super::served::{Served, respond, split};
use super::{DynamicActionType, about, goal_id, part, put};
use crate::dynamic::DynamicPublisher;
use crate::error::CreateError;
use crate::node::Node;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{DynamicService, Service, ServiceCall, ServiceOptions};

type Call = ServiceCall<DynamicMessage, DynamicMessage>;
type OnGoal = Box<dyn FnMut(&DynamicMessage) -> GoalResponse + Send>;
type OnCancel = Box<dyn FnMut(GoalId) -> bool + Send>;
type Accepted = Box<dyn FnMut(DynamicServerGoal) + Send>;

/// What [`Node::create_dynamic_action_server`](crate::Node::create_dynamic_action_server)
/// can be told; as [`ActionServerOptions`](crate::ActionServerOptions).
pub struct DynamicActionServerOptions {
    on_goal: OnGoal,
    on_cancel: OnCancel,
    result_timeout: Duration,
    goals_max: usize,
    cancel_abandoned: bool,
    preempt: bool,
}

impl Default for DynamicActionServerOptions {
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

impl DynamicActionServerOptions {
    /// Decides what becomes of a goal. Runs in the node's executor.
    #[must_use]
    pub fn on_goal(
        mut self,
        decide: impl FnMut(&DynamicMessage) -> GoalResponse + Send + 'static,
    ) -> Self {
        self.on_goal = Box::new(decide);
        self
    }

    /// Decides whether the goal of an id may be cancelled; then it is canceling until
    /// [`DynamicServerGoal::canceled`]. Runs in the node's executor.
    #[must_use]
    pub fn on_cancel(mut self, decide: impl FnMut(GoalId) -> bool + Send + 'static) -> Self {
        self.on_cancel = Box::new(decide);
        self
    }

    /// How long a result is kept for whoever asks late. 10 s unless given.
    #[must_use]
    pub fn result_timeout(mut self, timeout: Duration) -> Self {
        self.result_timeout = timeout;
        self
    }

    /// Goals known at a time, kept results included; further ones are rejected,
    /// which the log says. 1000 unless given.
    #[must_use]
    pub fn goals_max(mut self, count: usize) -> Self {
        self.goals_max = count;
        self
    }

    /// Whether a goal becomes canceling, without asking, when the client that sent
    /// it is gone. Looked at every half second while goals go on. Off by default, as in ROS 2.
    #[must_use]
    pub fn cancel_abandoned(mut self, yes: bool) -> Self {
        self.cancel_abandoned = yes;
        self
    }

    /// As [`ActionServerOptions::preempt`](crate::ActionServerOptions::preempt).
    #[must_use]
    pub fn preempt(mut self, yes: bool) -> Self {
        self.preempt = yes;
        self
    }
}

/// Works on the goals of an action whose type is known at run time; otherwise as
/// [`ActionServer`](crate::ActionServer).
#[derive(Clone)]
pub struct DynamicActionServer {
    core: Arc<ServerCore>,
    _parts: Arc<Parts>,
}

/// What is served, for as long as the server is.
struct Parts {
    _goals: DynamicService,
    _cancels: Service<CancelGoal>,
    _results: DynamicService,
}

struct ServerCore {
    served: Served<DynamicMessage, Call>,
    ty: DynamicActionType,
    // A lock for each: one that spins lets the others run.
    on_goal: Mutex<OnGoal>,
    on_cancel: Mutex<OnCancel>,
    preempt: bool,
    accepted: Mutex<Accepted>,
    feedback: DynamicPublisher,
    me: Weak<Self>,
}

impl DynamicActionServer {
    /// The action's fully qualified name, after remapping.
    pub fn action_name(&self) -> &str {
        &self.core.served.name
    }

    /// Goals that go on.
    pub fn open_goals(&self) -> usize {
        self.core.served.ledger.lock().going_on().count()
    }
}

impl fmt::Debug for DynamicActionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicActionServer")
            .field("action", &self.core.served.name)
            .field("type", &self.core.ty.name)
            .finish()
    }
}

/// A goal as its server works on it, on any thread. Dropped before it has ended, it
/// is aborted with an empty result, so no client waits in vain.
pub struct DynamicServerGoal {
    server: Weak<ServerCore>,
    id: GoalId,
    goal: DynamicMessage,
}

impl DynamicServerGoal {
    /// What was asked for.
    pub fn goal(&self) -> &DynamicMessage {
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

    /// As [`ServerGoal::is_open`](crate::ServerGoal::is_open).
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

    /// Tells its client what it has come to, a message of
    /// [`DynamicActionType::feedback`]. Blocks no longer than publishing does; what
    /// cannot be sent is warned of.
    pub fn publish_feedback(&self, feedback: DynamicMessage) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        let mut message = about(&server.ty.feedback_message, self.id);
        put(&mut message, "feedback", Value::Message(feedback));
        if let Err(error) = server.feedback.publish(&message) {
            tracing::warn!(action = %server.served.name, "no feedback sent: {error}");
        }
    }

    /// It is done. A result that is not of [`DynamicActionType::result`] is sent empty,
    /// with a warning.
    ///
    /// # Errors
    /// [`GoalError::Illegal`] when it has ended already.
    pub fn succeed(&self, result: DynamicMessage) -> Result<(), GoalError> {
        self.server()?.end(self.id, GoalStatus::Succeeded, result)
    }

    /// It cannot be done.
    ///
    /// # Errors
    /// [`GoalError::Illegal`] when it has ended already.
    pub fn abort(&self, result: DynamicMessage) -> Result<(), GoalError> {
        self.server()?.end(self.id, GoalStatus::Aborted, result)
    }

    /// It is cancelled, as was asked for.
    ///
    /// # Errors
    /// [`GoalError::Illegal`] unless [`Self::is_canceling`].
    pub fn canceled(&self, result: DynamicMessage) -> Result<(), GoalError> {
        self.server()?.end(self.id, GoalStatus::Canceled, result)
    }

    fn server(&self) -> Result<Arc<ServerCore>, GoalError> {
        self.server.upgrade().ok_or(GoalError::NoServer)
    }
}

impl Drop for DynamicServerGoal {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade() {
            let empty = DynamicMessage::new(&server.ty.result);
            if server.end(self.id, GoalStatus::Aborted, empty).is_ok() {
                tracing::warn!(action = %server.served.name, "a goal was dropped without a result, so it is aborted");
            }
        }
    }
}

impl fmt::Debug for DynamicServerGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicServerGoal")
            .field("goal", &self.goal)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Serves an action whose type is known at run time; otherwise as
    /// [`Node::create_action_server`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_action_server(
        &self,
        action: &str,
        ty: &DynamicActionType,
        options: DynamicActionServerOptions,
        accepted: impl FnMut(DynamicServerGoal) + Send + 'static,
    ) -> Result<DynamicActionServer, CreateError> {
        let feedback = self.create_dynamic_publisher(
            &named(action, "feedback"),
            &ty.feedback_message,
            QosProfile::default(),
        )?;
        let status =
            self.create_publisher(&named(action, "status"), QosProfile::action_status())?;
        let name: String = feedback
            .topic()
            .trim_end_matches("/_action/feedback")
            .into();
        let limits = (options.goals_max, options.result_timeout);
        let core = Arc::new_cyclic(|me: &Weak<ServerCore>| ServerCore {
            served: Served::new(self, name, status, limits),
            ty: ty.clone(),
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
        Ok(DynamicActionServer {
            core,
            _parts: Arc::new(parts),
        })
    }
}

impl ServerCore {
    fn serve(&self, action: &str) -> Result<Parts, CreateError> {
        let node = &self.served.node;
        let me = self.me.clone();
        let goals = node.create_deferred_dynamic_service(
            &named(action, "send_goal"),
            &self.ty.send_goal,
            ServiceOptions::default(),
            move |call| {
                if let Some(server) = me.upgrade() {
                    server.goal_asked(call);
                }
            },
        )?;
        let me = self.me.clone();
        let cancels = node.create_service::<CancelGoal>(
            &named(action, "cancel_goal"),
            move |request: Sample<CancelGoal_Request>| {
                let server = me.upgrade();
                server.map_or_else(CancelGoal_Response::default, |server| {
                    let may = |id| (server.on_cancel.lock())(id);
                    server.served.cancel(&request, may)
                })
            },
        )?;
        let me = self.me.clone();
        let results = node.create_deferred_dynamic_service(
            &named(action, "get_result"),
            &self.ty.get_result,
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

    fn goal_asked(&self, call: Call) {
        let served = &self.served;
        let id = goal_id(call.request());
        let goal = part(call.request(), "goal", &self.ty.goal);
        let stamp = served.node.core().core().env.wall().as_nanos();
        let answer = |accepted: bool| {
            let mut answer = DynamicMessage::new(self.ty.send_goal.response());
            let (seconds, nanos) = split(stamp);
            put(&mut answer, "accepted", Value::Bool(accepted));
            put(&mut answer, "stamp.sec", seconds);
            put(&mut answer, "stamp.nanosec", nanos);
            answer
        };
        // Not locked while the user's code runs.
        let decided = match served.refuses(id) {
            true => GoalResponse::Reject,
            false => (self.on_goal.lock())(&goal),
        };
        let client = call.client();
        if decided == GoalResponse::Reject {
            respond(&served.name, call, answer(false));
            return;
        }
        served.ledger.lock().accept(id, stamp, client);
        respond(&served.name, call, answer(true));
        if decided == GoalResponse::AcceptAndExecute {
            // It was accepted just now.
            let _ = served.ledger.lock().go(id, GoalStatus::Executing);
        }
        served.tell_status();
        if self.preempt {
            for (other, end) in served.preempted_by(id) {
                // It may have ended meanwhile.
                let _ = self.end(other, end, DynamicMessage::new(&self.ty.result));
            }
        }
        (self.accepted.lock())(DynamicServerGoal {
            server: self.me.clone(),
            id,
            goal,
        });
    }

    fn result_asked(&self, call: Call) {
        let served = &self.served;
        let now = served.node.core().core().env.now();
        let id = goal_id(call.request());
        let known = served.ledger.lock().ask_result(now, id, call);
        match known {
            Known::Later => {}
            Known::End(call, status, result) => {
                respond(&served.name, call, self.result(status, result));
            }
            Known::Nothing(call) => {
                let empty = DynamicMessage::new(&self.ty.result);
                respond(&served.name, call, self.result(GoalStatus::Unknown, empty));
            }
        }
    }

    fn result(&self, status: GoalStatus, result: DynamicMessage) -> DynamicMessage {
        let mut answer = DynamicMessage::new(self.ty.get_result.response());
        put(&mut answer, "status", status.id());
        put(&mut answer, "result", Value::Message(result));
        answer
    }

    fn end(&self, id: GoalId, wanted: GoalStatus, result: DynamicMessage) -> Result<(), GoalError> {
        for call in self.served.end(id, wanted, result.clone())? {
            let answer = self.result(wanted, result.clone());
            respond(&self.served.name, call, answer);
        }
        Ok(())
    }
}

//! Action client: sends goals, receives feedback and status, fetches results.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::msg::{GoalInfo, GoalStatusArray};
use pteros_interfaces::action_msgs::srv::CancelGoal;
use pteros_msg::message::GoalId;
use pteros_msg::type_support::{ActionTypeSupport, ResponseOf};
use pteros_runtime::error::PublishError;

use super::endpoint_name;
use super::error::ActionError;
use super::goal_requests::{GoalIdGenerator, request_cancel};
use super::options::ActionClientOptions;
use crate::error::CreateError;
use crate::named_qos::NamedQosExt;
use crate::node::Node;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{CallError, Client, ClientOptions};
use crate::subscription::{Subscription, SubscriptionOptions};
use pteros_rcl::action::GoalStatus;

type FeedbackCallback<A> = Box<dyn FnMut(&<A as ActionTypeSupport>::Feedback) + Send>;

/// Client of an action. Cheap to clone, thread-safe.
///
/// Blocking calls drive the network themselves and need no executor. Feedback and
/// status arrive through the node's executor, which has to spin for them.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::example_interfaces::action::{Fibonacci, FibonacciGoal};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("asker")?;
/// let client = node.create_action_client::<Fibonacci>("fibonacci")?;
/// let goal = client.send_goal(FibonacciGoal { order: 10 }, Duration::from_secs(5))?;
/// let end = goal.result(Duration::from_secs(60))?;
/// println!("{}: {:?}", end.status, end.result.sequence);
/// # Ok(())
/// # }
/// ```
#[must_use = "an action client ends when it is dropped: keep it in a variable or a field"]
pub struct ActionClient<A: ActionTypeSupport> {
    core: Arc<ActionClientCore<A>>,
}

impl<A: ActionTypeSupport> Clone for ActionClient<A> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
        }
    }
}

struct ActionClientCore<A: ActionTypeSupport> {
    name: String,
    support: A::Support,
    ids: GoalIdGenerator,
    goals: Client<A::SendGoal>,
    cancels: Client<CancelGoal>,
    results: Client<A::GetResult>,
    sent_goals: Arc<Mutex<BTreeMap<GoalId, SentGoal<A>>>>,
    _feedback: Subscription<A::FeedbackMessage>,
    _status: Subscription<GoalStatusArray>,
}

/// Status and feedback callback of a goal that this client sent.
struct SentGoal<A: ActionTypeSupport> {
    status: GoalStatus,
    on_feedback: Option<FeedbackCallback<A>>,
}

impl<A: ActionTypeSupport> ActionClient<A> {
    /// Sends a goal and waits until the server accepts it. Waits for a server first
    /// if there is none. Blocks, at most `timeout` for both.
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn send_goal(
        &self,
        goal: A::Goal,
        timeout: Duration,
    ) -> Result<ClientGoalHandle<A>, ActionError> {
        self.send(goal, None, timeout)
    }

    /// Like [`Self::send_goal`]. The node's executor calls `on_feedback` for each
    /// feedback message, until the [`ClientGoalHandle`] is dropped.
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn send_goal_with_feedback(
        &self,
        goal: A::Goal,
        on_feedback: impl FnMut(&A::Feedback) + Send + 'static,
        timeout: Duration,
    ) -> Result<ClientGoalHandle<A>, ActionError> {
        self.send(goal, Some(Box::new(on_feedback)), timeout)
    }

    fn send(
        &self,
        goal: A::Goal,
        on_feedback: Option<FeedbackCallback<A>>,
        timeout: Duration,
    ) -> Result<ClientGoalHandle<A>, ActionError> {
        let core = &self.core;
        let id = core.ids.next();
        let request = A::request_goal(&core.support, id, goal).map_err(|reason| {
            let service = endpoint_name(&core.name, "send_goal");
            CallError::Publish {
                service: service.clone(),
                source: PublishError::Invalid {
                    topic: service,
                    reason,
                },
            }
        })?;
        // Feedback may arrive before the response.
        core.sent_goals.lock().insert(
            id,
            SentGoal {
                status: GoalStatus::Unknown,
                on_feedback,
            },
        );
        let goal_handle = ClientGoalHandle {
            core: core.clone(),
            id,
        };
        let response = core.goals.call(&request, timeout)?;
        if A::was_accepted(&response) {
            Ok(goal_handle)
        } else {
            Err(ActionError::Rejected {
                action: core.name.clone(),
            })
        }
    }

    /// Requests cancellation of all goals of the server, including those of other
    /// clients. Returns the goals that are now canceling. Blocks, at most
    /// `timeout`.
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn cancel_all(&self, timeout: Duration) -> Result<Vec<GoalId>, ActionError> {
        self.core.cancel(GoalInfo::default(), timeout)
    }

    /// Whether a server is available for all three services of the action.
    pub fn action_server_is_ready(&self) -> bool {
        let core = &self.core;
        core.goals.service_is_ready()
            && core.cancels.service_is_ready()
            && core.results.service_is_ready()
    }

    /// Waits until a server is available; true if one is.
    ///
    /// Blocks, at most `timeout` or until the context shuts down. Drives the network
    /// itself and runs no callbacks.
    pub fn wait_for_action_server(&self, timeout: Duration) -> bool {
        let ready = || self.action_server_is_ready();
        ready() || self.core.goals.core.node.wait_until(timeout, ready)
    }

    /// Fully qualified name of the action, after remapping.
    pub fn action_name(&self) -> &str {
        &self.core.name
    }
}

impl<A: ActionTypeSupport> fmt::Debug for ActionClient<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionClient")
            .field("action", &self.core.name)
            .finish()
    }
}

/// Terminal status and result of a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct WrappedResult<R> {
    /// Succeeded, canceled or aborted.
    pub status: GoalStatus,
    /// The result message.
    pub result: R,
}

/// Handle of a goal that the server accepted. Dropping it does not affect the
/// server.
pub struct ClientGoalHandle<A: ActionTypeSupport> {
    core: Arc<ActionClientCore<A>>,
    id: GoalId,
}

impl<A: ActionTypeSupport> ClientGoalHandle<A> {
    /// Goal id.
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// Last received status; unknown before the first status message.
    pub fn status(&self) -> GoalStatus {
        let sent_goals = self.core.sent_goals.lock();
        sent_goals
            .get(&self.id)
            .map_or(GoalStatus::Unknown, |k| k.status)
    }

    /// Waits for the result. Blocks, at most `timeout`; may be called again after a
    /// time-out.
    ///
    /// # Errors
    /// See [`ActionError`]; a [time-out](CallError::is_timeout) if the goal has not ended
    /// in time.
    pub fn result(&self, timeout: Duration) -> Result<WrappedResult<A::Result>, ActionError> {
        let request = A::request_result(&self.core.support, self.id);
        let response = self.core.results.call(&request, timeout)?;
        self.wrap_result(&response)
    }

    /// Calls `callback` from the node's executor when the goal has ended.
    ///
    /// # Errors
    /// As [`Client::call_then`]; `callback` is not called then.
    pub fn result_then(
        self,
        callback: impl FnOnce(Result<WrappedResult<A::Result>, ActionError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let request = A::request_result(&self.core.support, self.id);
        let client = self.core.results.clone();
        client.call_then(&request, move |response| {
            callback(match response {
                Ok(response) => self.wrap_result(&response),
                Err(error) => Err(error.into()),
            });
        })
    }

    fn wrap_result(
        &self,
        response: &ResponseOf<A::GetResult>,
    ) -> Result<WrappedResult<A::Result>, ActionError> {
        let (status, result) = A::received_result(&self.core.support, response);
        match GoalStatus::from_id(status) {
            GoalStatus::Unknown => Err(ActionError::UnknownGoal {
                action: self.core.name.clone(),
            }),
            status => Ok(WrappedResult { status, result }),
        }
    }

    /// Requests cancellation of the goal. Its result reports how it ended. Blocks,
    /// at most `timeout`.
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn cancel(&self, timeout: Duration) -> Result<(), ActionError> {
        let mut info = GoalInfo::default();
        info.goal_id.uuid = self.id;
        self.core.cancel(info, timeout).map(drop)
    }
}

impl<A: ActionTypeSupport> Drop for ClientGoalHandle<A> {
    fn drop(&mut self) {
        let sent_goals = self.core.sent_goals.lock().remove(&self.id);
        // Dropped after the lock is released: the callback may own user data.
        drop(sent_goals);
    }
}

impl<A: ActionTypeSupport> fmt::Debug for ClientGoalHandle<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientGoalHandle")
            .field("id", &self.id)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Creates an action client.
    ///
    /// The options are the action's name, which is expanded and remapped, or
    /// [`ActionClientOptions`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_action_client<A: ActionTypeSupport>(
        &self,
        options: impl Into<ActionClientOptions<A>>,
    ) -> Result<ActionClient<A>, CreateError> {
        let ActionClientOptions { action, support } = options.into();
        let action = action.as_str();
        let sent_goals: Arc<Mutex<BTreeMap<GoalId, SentGoal<A>>>> = Arc::default();
        let (callback_goals, callback_support) = (sent_goals.clone(), support.clone());
        let topic = endpoint_name(action, "feedback");
        let feedback = self.create_subscription(
            SubscriptionOptions::of_type(A::feedback_type(&support), topic),
            move |message: Sample<A::FeedbackMessage>| {
                let (id, feedback) = A::unwrap_feedback(&callback_support, &message);
                deliver_feedback(&callback_goals, id, &feedback);
            },
        )?;
        let callback_goals = sent_goals.clone();
        let status = self.create_subscription(
            endpoint_name(action, "status").qos(QosProfile::action_status()),
            move |message: Sample<GoalStatusArray>| {
                let mut sent_goals = callback_goals.lock();
                for goal_status in &message.status_list {
                    if let Some(goal) = sent_goals.get_mut(&goal_status.goal_info.goal_id.uuid) {
                        goal.status = GoalStatus::from_id(goal_status.status);
                    }
                }
            },
        )?;
        let goals =
            ClientOptions::of_type(A::send_goal(&support), endpoint_name(action, "send_goal"));
        let results =
            ClientOptions::of_type(A::get_result(&support), endpoint_name(action, "get_result"));
        let core = Arc::new(ActionClientCore {
            name: feedback
                .topic()
                .trim_end_matches("/_action/feedback")
                .into(),
            ids: GoalIdGenerator::new(self),
            goals: self.create_client(goals)?,
            cancels: self.create_client(endpoint_name(action, "cancel_goal"))?,
            results: self.create_client(results)?,
            support,
            sent_goals,
            _feedback: feedback,
            _status: status,
        });
        Ok(ActionClient { core })
    }
}

/// Calls the goal's feedback callback, with no lock held.
fn deliver_feedback<A: ActionTypeSupport>(
    sent_goals: &Mutex<BTreeMap<GoalId, SentGoal<A>>>,
    id: GoalId,
    feedback: &A::Feedback,
) {
    let callback = sent_goals
        .lock()
        .get_mut(&id)
        .and_then(|goal| goal.on_feedback.take());
    let Some(mut callback) = callback else {
        return;
    };
    callback(feedback);
    if let Some(goal) = sent_goals.lock().get_mut(&id) {
        goal.on_feedback = Some(callback);
    }
}

impl<A: ActionTypeSupport> ActionClientCore<A> {
    fn cancel(&self, goal_info: GoalInfo, timeout: Duration) -> Result<Vec<GoalId>, ActionError> {
        request_cancel(&self.cancels, &self.name, goal_info, timeout)
    }
}

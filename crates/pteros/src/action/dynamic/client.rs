//! Dynamic action client: sends goals of a type known at run time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::msg::{GoalInfo, GoalStatusArray};
use pteros_interfaces::action_msgs::srv::CancelGoal;
use pteros_msg::dynamic::{DynamicMessage, Value};
use pteros_msg::message::GoalId;
use pteros_runtime::error::PublishError;

use super::super::client::WrappedResult;
use super::super::endpoint_name;
use super::super::error::ActionError;
use super::super::goal_requests::{GoalIdGenerator, request_cancel};
use super::super::goal_table::GoalStatus;
use super::{DynamicActionType, goal_id, goal_message, nested_message};
use crate::error::CreateError;
use crate::node::Node;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{CallError, Client, DynamicClient, ServiceOptions};
use crate::subscription::{Subscription, SubscriptionOptions};

type DynamicFeedbackCallback = Box<dyn FnMut(&DynamicMessage) + Send>;
type SentGoals = Mutex<BTreeMap<GoalId, SentGoal>>;

/// Like [`ActionClient`](crate::ActionClient), for an action whose type is known at
/// run time.
#[derive(Clone)]
pub struct DynamicActionClient {
    core: Arc<DynamicActionClientCore>,
}

struct DynamicActionClientCore {
    name: String,
    ty: DynamicActionType,
    ids: GoalIdGenerator,
    goals: DynamicClient,
    cancels: Client<CancelGoal>,
    results: DynamicClient,
    sent_goals: Arc<SentGoals>,
    _feedback: Subscription<DynamicMessage>,
    _status: Subscription<GoalStatusArray>,
}

/// Status and feedback callback of a goal that this client sent.
struct SentGoal {
    status: GoalStatus,
    on_feedback: Option<DynamicFeedbackCallback>,
}

impl DynamicActionClient {
    /// See [`ActionClient::send_goal`](crate::ActionClient::send_goal).
    ///
    /// # Errors
    /// See [`ActionError`]; a goal of another type is [`CallError::Publish`].
    pub fn send_goal(
        &self,
        goal: &DynamicMessage,
        timeout: Duration,
    ) -> Result<DynamicClientGoalHandle, ActionError> {
        self.send(goal, None, timeout)
    }

    /// See
    /// [`ActionClient::send_goal_with_feedback`](crate::ActionClient::send_goal_with_feedback).
    ///
    /// # Errors
    /// As [`Self::send_goal`].
    pub fn send_goal_with_feedback(
        &self,
        goal: &DynamicMessage,
        on_feedback: impl FnMut(&DynamicMessage) + Send + 'static,
        timeout: Duration,
    ) -> Result<DynamicClientGoalHandle, ActionError> {
        self.send(goal, Some(Box::new(on_feedback)), timeout)
    }

    fn send(
        &self,
        goal: &DynamicMessage,
        on_feedback: Option<DynamicFeedbackCallback>,
        timeout: Duration,
    ) -> Result<DynamicClientGoalHandle, ActionError> {
        let core = &self.core;
        let id = core.ids.next();
        let mut request = goal_message(core.ty.send_goal.request(), id);
        let set = request.set("goal", Value::Message(goal.clone()));
        set.map_err(|error| CallError::Publish {
            service: endpoint_name(&core.name, "send_goal"),
            source: PublishError::Invalid {
                topic: endpoint_name(&core.name, "send_goal"),
                reason: format!(
                    "{error}; create the goal from DynamicActionType::goal, {}",
                    core.ty.goal.name()
                ),
            },
        })?;
        // Feedback may arrive before the response.
        core.sent_goals.lock().insert(
            id,
            SentGoal {
                status: GoalStatus::Unknown,
                on_feedback,
            },
        );
        let handle = DynamicClientGoalHandle {
            core: core.clone(),
            id,
        };
        let response = core.goals.call(&request, timeout)?;
        match response.field("accepted") {
            Some(Value::Bool(true)) => Ok(handle),
            _ => Err(ActionError::Rejected {
                action: core.name.clone(),
            }),
        }
    }

    /// See [`ActionClient::cancel_all`](crate::ActionClient::cancel_all).
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn cancel_all(&self, timeout: Duration) -> Result<Vec<GoalId>, ActionError> {
        let core = &self.core;
        request_cancel(&core.cancels, &core.name, GoalInfo::default(), timeout)
    }

    /// Whether a server is available for all three services of the action.
    pub fn is_ready(&self) -> bool {
        let core = &self.core;
        core.goals.service_is_ready()
            && core.cancels.service_is_ready()
            && core.results.service_is_ready()
    }

    /// Fully qualified name of the action, after remapping.
    pub fn action_name(&self) -> &str {
        &self.core.name
    }
}

impl fmt::Debug for DynamicActionClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicActionClient")
            .field("action", &self.core.name)
            .field("type", &self.core.ty.name)
            .finish()
    }
}

/// Handle of a goal that the server accepted. Dropping it does not affect the
/// server.
pub struct DynamicClientGoalHandle {
    core: Arc<DynamicActionClientCore>,
    id: GoalId,
}

impl DynamicClientGoalHandle {
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

    /// See [`ClientGoalHandle::result`](crate::ClientGoalHandle::result).
    ///
    /// # Errors
    /// See [`ActionError`]; [`CallError::TimedOut`] if the goal has not ended in
    /// time.
    pub fn result(&self, timeout: Duration) -> Result<WrappedResult<DynamicMessage>, ActionError> {
        let core = &self.core;
        let request = goal_message(core.ty.get_result.request(), self.id);
        let response = core.results.call(&request, timeout)?;
        self.wrap_result(&response)
    }

    /// See [`ClientGoalHandle::result_then`](crate::ClientGoalHandle::result_then).
    ///
    /// # Errors
    /// As [`DynamicClient::call_then`]; `callback` is not called then.
    pub fn result_then(
        self,
        callback: impl FnOnce(Result<WrappedResult<DynamicMessage>, ActionError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let core = self.core.clone();
        let request = goal_message(core.ty.get_result.request(), self.id);
        core.results.call_then(&request, move |response| {
            callback(match response {
                Ok(response) => self.wrap_result(&response),
                Err(error) => Err(error.into()),
            });
        })
    }

    fn wrap_result(
        &self,
        response: &DynamicMessage,
    ) -> Result<WrappedResult<DynamicMessage>, ActionError> {
        let core = &self.core;
        let status = match response.field("status") {
            Some(Value::I8(number)) => GoalStatus::from_id(*number),
            _ => GoalStatus::Unknown,
        };
        match status {
            GoalStatus::Unknown => Err(ActionError::UnknownGoal {
                action: core.name.clone(),
            }),
            status => Ok(WrappedResult {
                status,
                result: nested_message(response, "result", &core.ty.result),
            }),
        }
    }

    /// See [`ClientGoalHandle::cancel`](crate::ClientGoalHandle::cancel).
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn cancel(&self, timeout: Duration) -> Result<(), ActionError> {
        let mut info = GoalInfo::default();
        info.goal_id.uuid = self.id;
        request_cancel(&self.core.cancels, &self.core.name, info, timeout).map(drop)
    }
}

impl Drop for DynamicClientGoalHandle {
    fn drop(&mut self) {
        let sent_goals = self.core.sent_goals.lock().remove(&self.id);
        // Dropped after the lock is released: the callback may own user data.
        drop(sent_goals);
    }
}

impl fmt::Debug for DynamicClientGoalHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicClientGoalHandle")
            .field("id", &self.id)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Creates a client of an action whose type is known at run time.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_action_client(
        &self,
        action: &str,
        ty: &DynamicActionType,
    ) -> Result<DynamicActionClient, CreateError> {
        let sent_goals: Arc<SentGoals> = Arc::default();
        let (callback_goals, feedback_type) = (sent_goals.clone(), ty.feedback.clone());
        let feedback_options = SubscriptionOptions::new(QosProfile::default()).callback(
            move |message: Sample<DynamicMessage>| {
                let feedback = nested_message(&message, "feedback", &feedback_type);
                deliver_feedback(&callback_goals, goal_id(&message), &feedback);
            },
        );
        let feedback = self.create_dynamic_subscription(
            &endpoint_name(action, "feedback"),
            &ty.feedback_message,
            feedback_options,
        )?;
        let callback_goals = sent_goals.clone();
        let status = self.create_subscription(
            &endpoint_name(action, "status"),
            QosProfile::action_status(),
            move |message: Sample<GoalStatusArray>| {
                let mut sent_goals = callback_goals.lock();
                for goal_status in &message.status_list {
                    if let Some(goal) = sent_goals.get_mut(&goal_status.goal_info.goal_id.uuid) {
                        goal.status = GoalStatus::from_id(goal_status.status);
                    }
                }
            },
        )?;
        let client = |name: &str, ty| {
            self.create_dynamic_client(&endpoint_name(action, name), ty, ServiceOptions::default())
        };
        let core = Arc::new(DynamicActionClientCore {
            name: feedback
                .topic()
                .trim_end_matches("/_action/feedback")
                .into(),
            ids: GoalIdGenerator::new(self),
            goals: client("send_goal", &ty.send_goal)?,
            cancels: self.create_client(&endpoint_name(action, "cancel_goal"))?,
            results: client("get_result", &ty.get_result)?,
            ty: ty.clone(),
            sent_goals,
            _feedback: feedback,
            _status: status,
        });
        Ok(DynamicActionClient { core })
    }
}

/// Calls the goal's feedback callback, with no lock held.
fn deliver_feedback(sent_goals: &SentGoals, id: GoalId, feedback: &DynamicMessage) {
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

//! The side that asks for goals.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::msg::{GoalInfo, GoalStatusArray};
use pteros_interfaces::action_msgs::srv::CancelGoal;
use pteros_msg::dynamic::{DynamicMessage, Value};
use pteros_msg::message::GoalId;
use pteros_rmw::error::PublishError;

use super::super::asking::{GoalIds, cancel};
use super::super::client::GoalEnd;
use super::super::error::ActionError;
use super::super::ledger::GoalStatus;
use super::super::part as named;
use super::{DynamicActionType, about, goal_id, part};
use crate::error::CreateError;
use crate::node::Node;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{CallError, Client, DynamicClient, ServiceOptions};
use crate::subscription::{Subscription, SubscriptionOptions};

type OnFeedback = Box<dyn FnMut(&DynamicMessage) + Send>;
type Goals = Mutex<BTreeMap<GoalId, Known>>;

/// Asks for goals of an action whose type is known at run time; otherwise as
/// [`ActionClient`](crate::ActionClient).
#[derive(Clone)]
pub struct DynamicActionClient {
    core: Arc<ClientCore>,
}

struct ClientCore {
    name: String,
    ty: DynamicActionType,
    ids: GoalIds,
    goals: DynamicClient,
    cancels: Client<CancelGoal>,
    results: DynamicClient,
    known: Arc<Goals>,
    _feedback: Subscription<DynamicMessage>,
    _status: Subscription<GoalStatusArray>,
}

/// What is heard of one of our goals.
struct Known {
    status: GoalStatus,
    on_feedback: Option<OnFeedback>,
}

impl DynamicActionClient {
    /// As [`ActionClient::send_goal`](crate::ActionClient::send_goal).
    ///
    /// # Errors
    /// See [`ActionError`]; a goal of another type is [`CallError::Publish`].
    pub fn send_goal(
        &self,
        goal: &DynamicMessage,
        timeout: Duration,
    ) -> Result<DynamicClientGoal, ActionError> {
        self.send(goal, None, timeout)
    }

    /// As [`ActionClient::send_goal_with_feedback`](crate::ActionClient::send_goal_with_feedback).
    ///
    /// # Errors
    /// As [`Self::send_goal`].
    pub fn send_goal_with_feedback(
        &self,
        goal: &DynamicMessage,
        on_feedback: impl FnMut(&DynamicMessage) + Send + 'static,
        timeout: Duration,
    ) -> Result<DynamicClientGoal, ActionError> {
        self.send(goal, Some(Box::new(on_feedback)), timeout)
    }

    fn send(
        &self,
        goal: &DynamicMessage,
        on_feedback: Option<OnFeedback>,
        timeout: Duration,
    ) -> Result<DynamicClientGoal, ActionError> {
        let core = &self.core;
        let id = core.ids.next();
        let mut request = about(core.ty.send_goal.request(), id);
        let set = request.set("goal", Value::Message(goal.clone()));
        set.map_err(|error| CallError::Publish {
            service: named(&core.name, "send_goal"),
            source: PublishError::Invalid {
                topic: named(&core.name, "send_goal"),
                reason: format!(
                    "{error}; make the goal of DynamicActionType::goal, {}",
                    core.ty.goal.name()
                ),
            },
        })?;
        // Feedback may come before the answer does.
        core.known.lock().insert(
            id,
            Known {
                status: GoalStatus::Unknown,
                on_feedback,
            },
        );
        let handle = DynamicClientGoal {
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

    /// As [`ActionClient::cancel_all`](crate::ActionClient::cancel_all).
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn cancel_all(&self, timeout: Duration) -> Result<Vec<GoalId>, ActionError> {
        let core = &self.core;
        cancel(&core.cancels, &core.name, GoalInfo::default(), timeout)
    }

    /// Whether a server is there for all three of the action's services.
    pub fn is_ready(&self) -> bool {
        let core = &self.core;
        core.goals.is_ready() && core.cancels.is_ready() && core.results.is_ready()
    }

    /// The action's fully qualified name, after remapping.
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

/// A goal that was accepted. Dropping it changes nothing for the server.
pub struct DynamicClientGoal {
    core: Arc<ClientCore>,
    id: GoalId,
}

impl DynamicClientGoal {
    /// Its id.
    pub fn id(&self) -> GoalId {
        self.id
    }

    /// Its status as last heard; unknown until something was.
    pub fn status(&self) -> GoalStatus {
        let known = self.core.known.lock();
        known
            .get(&self.id)
            .map_or(GoalStatus::Unknown, |k| k.status)
    }

    /// As [`ClientGoal::result`](crate::ClientGoal::result).
    ///
    /// # Errors
    /// See [`ActionError`]; [`CallError::TimedOut`] when it has not ended in time.
    pub fn result(&self, timeout: Duration) -> Result<GoalEnd<DynamicMessage>, ActionError> {
        let core = &self.core;
        let request = about(core.ty.get_result.request(), self.id);
        let response = core.results.call(&request, timeout)?;
        self.end(&response)
    }

    /// As [`ClientGoal::result_then`](crate::ClientGoal::result_then).
    ///
    /// # Errors
    /// As [`DynamicClient::call_then`]; `ended` is not called then.
    pub fn result_then(
        self,
        ended: impl FnOnce(Result<GoalEnd<DynamicMessage>, ActionError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let core = self.core.clone();
        let request = about(core.ty.get_result.request(), self.id);
        core.results.call_then(&request, move |answer| {
            ended(match answer {
                Ok(response) => self.end(&response),
                Err(error) => Err(error.into()),
            });
        })
    }

    fn end(&self, response: &DynamicMessage) -> Result<GoalEnd<DynamicMessage>, ActionError> {
        let core = &self.core;
        let status = match response.field("status") {
            Some(Value::I8(number)) => GoalStatus::from_id(*number),
            _ => GoalStatus::Unknown,
        };
        match status {
            GoalStatus::Unknown => Err(ActionError::UnknownGoal {
                action: core.name.clone(),
            }),
            status => Ok(GoalEnd {
                status,
                result: part(response, "result", &core.ty.result),
            }),
        }
    }

    /// As [`ClientGoal::cancel`](crate::ClientGoal::cancel).
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn cancel(&self, timeout: Duration) -> Result<(), ActionError> {
        let mut info = GoalInfo::default();
        info.goal_id.uuid = self.id;
        cancel(&self.core.cancels, &self.core.name, info, timeout).map(drop)
    }
}

impl Drop for DynamicClientGoal {
    fn drop(&mut self) {
        let known = self.core.known.lock().remove(&self.id);
        // After the lock: what its callback holds is the user's.
        drop(known);
    }
}

impl fmt::Debug for DynamicClientGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicClientGoal")
            .field("id", &self.id)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// A client of an action whose type is known at run time.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_action_client(
        &self,
        action: &str,
        ty: &DynamicActionType,
    ) -> Result<DynamicActionClient, CreateError> {
        let known: Arc<Goals> = Arc::default();
        let (ours, feedback_type) = (known.clone(), ty.feedback.clone());
        let hear = SubscriptionOptions::new(QosProfile::default()).callback(
            move |message: Sample<DynamicMessage>| {
                let feedback = part(&message, "feedback", &feedback_type);
                hear(&ours, goal_id(&message), &feedback);
            },
        );
        let feedback = self.create_dynamic_subscription(
            &named(action, "feedback"),
            &ty.feedback_message,
            hear,
        )?;
        let ours = known.clone();
        let status = self.create_subscription(
            &named(action, "status"),
            QosProfile::action_status(),
            move |message: Sample<GoalStatusArray>| {
                let mut known = ours.lock();
                for row in &message.status_list {
                    if let Some(goal) = known.get_mut(&row.goal_info.goal_id.uuid) {
                        goal.status = GoalStatus::from_id(row.status);
                    }
                }
            },
        )?;
        let client = |name: &str, ty| {
            self.create_dynamic_client(&named(action, name), ty, ServiceOptions::default())
        };
        let core = Arc::new(ClientCore {
            name: feedback
                .topic()
                .trim_end_matches("/_action/feedback")
                .into(),
            ids: GoalIds::new(self),
            goals: client("send_goal", &ty.send_goal)?,
            cancels: self.create_client(&named(action, "cancel_goal"))?,
            results: client("get_result", &ty.get_result)?,
            ty: ty.clone(),
            known,
            _feedback: feedback,
            _status: status,
        });
        Ok(DynamicActionClient { core })
    }
}

/// Hands feedback to the goal's callback, which runs under no lock of ours.
fn hear(known: &Goals, id: GoalId, feedback: &DynamicMessage) {
    let callback = known
        .lock()
        .get_mut(&id)
        .and_then(|goal| goal.on_feedback.take());
    let Some(mut callback) = callback else {
        return;
    };
    callback(feedback);
    if let Some(goal) = known.lock().get_mut(&id) {
        goal.on_feedback = Some(callback);
    }
}

//! The side that asks for goals.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::msg::{GoalInfo, GoalStatusArray};
use pteros_interfaces::action_msgs::srv::CancelGoal;
use pteros_msg::message::{Action, GoalId, Service as ServiceType};

use super::asking::{GoalIds, cancel};
use super::error::ActionError;
use super::ledger::GoalStatus;
use super::part;
use crate::error::CreateError;
use crate::node::Node;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{CallError, Client};
use crate::subscription::Subscription;

type OnFeedback<A> = Box<dyn FnMut(&<A as Action>::Feedback) + Send>;

/// Asks for goals of an action. Cheap to clone, thread-safe.
///
/// Calls that wait drive the network themselves and need no executor. Feedback and
/// status come through the node's executor: somebody has to spin it for them.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::example_interfaces::action::{Fibonacci, Fibonacci_Goal};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("asker")?;
/// let client = node.create_action_client::<Fibonacci>("fibonacci")?;
/// let goal = client.send_goal(Fibonacci_Goal { order: 10 }, Duration::from_secs(5))?;
/// let end = goal.result(Duration::from_secs(60))?;
/// println!("{}: {:?}", end.status, end.result.sequence);
/// # Ok(())
/// # }
/// ```
pub struct ActionClient<A: Action> {
    core: Arc<ClientCore<A>>,
}

impl<A: Action> Clone for ActionClient<A> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
        }
    }
}

struct ClientCore<A: Action> {
    name: String,
    ids: GoalIds,
    goals: Client<A::SendGoal>,
    cancels: Client<CancelGoal>,
    results: Client<A::GetResult>,
    known: Arc<Mutex<BTreeMap<GoalId, Known<A>>>>,
    _feedback: Subscription<A::FeedbackMessage>,
    _status: Subscription<GoalStatusArray>,
}

/// What is heard of one of our goals.
struct Known<A: Action> {
    status: GoalStatus,
    on_feedback: Option<OnFeedback<A>>,
}

impl<A: Action> ActionClient<A> {
    /// Asks for a goal and waits until it is accepted, first for a server if none
    /// is there. Blocks, at most `timeout` for both.
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn send_goal(
        &self,
        goal: A::Goal,
        timeout: Duration,
    ) -> Result<ClientGoal<A>, ActionError> {
        self.send(goal, None, timeout)
    }

    /// As [`Self::send_goal`]; `on_feedback` is called from the node's executor
    /// with what the goal has come to, until the [`ClientGoal`] is dropped.
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn send_goal_with_feedback(
        &self,
        goal: A::Goal,
        on_feedback: impl FnMut(&A::Feedback) + Send + 'static,
        timeout: Duration,
    ) -> Result<ClientGoal<A>, ActionError> {
        self.send(goal, Some(Box::new(on_feedback)), timeout)
    }

    fn send(
        &self,
        goal: A::Goal,
        on_feedback: Option<OnFeedback<A>>,
        timeout: Duration,
    ) -> Result<ClientGoal<A>, ActionError> {
        let core = &self.core;
        let id = core.ids.next();
        // Feedback may come before the answer does.
        core.known.lock().insert(
            id,
            Known {
                status: GoalStatus::Unknown,
                on_feedback,
            },
        );
        let goal_handle = ClientGoal {
            core: core.clone(),
            id,
        };
        let response = core.goals.call(&A::goal_request(id, goal), timeout)?;
        match A::is_accepted(&response) {
            true => Ok(goal_handle),
            false => Err(ActionError::Rejected {
                action: core.name.clone(),
            }),
        }
    }

    /// Asks for all goals of the server to be cancelled, other clients' too;
    /// returns those that will be. Blocks, at most `timeout`.
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn cancel_all(&self, timeout: Duration) -> Result<Vec<GoalId>, ActionError> {
        self.core.cancel(GoalInfo::default(), timeout)
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

impl<A: Action> fmt::Debug for ActionClient<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionClient")
            .field("action", &self.core.name)
            .finish()
    }
}

/// How a goal ended.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalEnd<R> {
    /// Succeeded, canceled or aborted.
    pub status: GoalStatus,
    /// What it came to.
    pub result: R,
}

/// A goal that was accepted. Dropping it changes nothing for the server.
pub struct ClientGoal<A: Action> {
    core: Arc<ClientCore<A>>,
    id: GoalId,
}

impl<A: Action> ClientGoal<A> {
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

    /// Waits for its end. Blocks, at most `timeout`; may be asked again after
    /// that.
    ///
    /// # Errors
    /// See [`ActionError`]; [`CallError::TimedOut`] when it has not ended in time.
    pub fn result(&self, timeout: Duration) -> Result<GoalEnd<A::Result>, ActionError> {
        let request = A::result_request(self.id);
        let response = self.core.results.call(&request, timeout)?;
        self.end(&response)
    }

    /// Calls `ended` from the node's executor when the goal has ended.
    ///
    /// # Errors
    /// As [`Client::call_then`]; `ended` is not called then.
    pub fn result_then(
        self,
        ended: impl FnOnce(Result<GoalEnd<A::Result>, ActionError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let request = A::result_request(self.id);
        let client = self.core.results.clone();
        client.call_then(&request, move |answer| {
            ended(match answer {
                Ok(response) => self.end(&response),
                Err(error) => Err(error.into()),
            });
        })
    }

    fn end(
        &self,
        response: &<A::GetResult as ServiceType>::Response,
    ) -> Result<GoalEnd<A::Result>, ActionError> {
        let (status, result) = A::result_of(response);
        match GoalStatus::from_id(status) {
            GoalStatus::Unknown => Err(ActionError::UnknownGoal {
                action: self.core.name.clone(),
            }),
            status => Ok(GoalEnd {
                status,
                result: result.clone(),
            }),
        }
    }

    /// Asks for it to be cancelled. Its end is told by its result. Blocks, at most
    /// `timeout`.
    ///
    /// # Errors
    /// See [`ActionError`].
    pub fn cancel(&self, timeout: Duration) -> Result<(), ActionError> {
        let mut info = GoalInfo::default();
        info.goal_id.uuid = self.id;
        self.core.cancel(info, timeout).map(drop)
    }
}

impl<A: Action> Drop for ClientGoal<A> {
    fn drop(&mut self) {
        let known = self.core.known.lock().remove(&self.id);
        // After the lock: what its callback holds is the user's.
        drop(known);
    }
}

impl<A: Action> fmt::Debug for ClientGoal<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientGoal")
            .field("id", &self.id)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// A client of an action, remapped as the arguments say.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_action_client<A: Action>(
        &self,
        action: &str,
    ) -> Result<ActionClient<A>, CreateError> {
        let known: Arc<Mutex<BTreeMap<GoalId, Known<A>>>> = Arc::default();
        let ours = known.clone();
        let feedback = self.create_subscription(
            &part(action, "feedback"),
            QosProfile::default(),
            move |message: Sample<A::FeedbackMessage>| {
                let (id, feedback) = A::feedback_of(&message);
                hear(&ours, id, feedback);
            },
        )?;
        let ours = known.clone();
        let status = self.create_subscription(
            &part(action, "status"),
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
        let core = Arc::new(ClientCore {
            name: feedback
                .topic()
                .trim_end_matches("/_action/feedback")
                .into(),
            ids: GoalIds::new(self),
            goals: self.create_client(&part(action, "send_goal"))?,
            cancels: self.create_client(&part(action, "cancel_goal"))?,
            results: self.create_client(&part(action, "get_result"))?,
            known,
            _feedback: feedback,
            _status: status,
        });
        Ok(ActionClient { core })
    }
}

/// Hands feedback to the goal's callback, which runs under no lock of ours.
fn hear<A: Action>(known: &Mutex<BTreeMap<GoalId, Known<A>>>, id: GoalId, feedback: &A::Feedback) {
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

impl<A: Action> ClientCore<A> {
    fn cancel(&self, goal_info: GoalInfo, timeout: Duration) -> Result<Vec<GoalId>, ActionError> {
        cancel(&self.cancels, &self.name, goal_info, timeout)
    }
}

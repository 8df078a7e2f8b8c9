//! What every action client does, whatever its goals are made of.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pteros_interfaces::action_msgs::msg::GoalInfo;
use pteros_interfaces::action_msgs::srv::{CancelGoal, CancelGoal_Request};
use pteros_msg::message::GoalId;

use super::error::ActionError;
use crate::context::Context;
use crate::node::Node;
use crate::service::Client;

/// Makes ids that nobody else has.
pub(super) struct GoalIds {
    context: Context,
    /// The first bytes: the participant.
    prefix: [u8; 12],
}

impl GoalIds {
    pub(super) fn new(node: &Node) -> Self {
        let mut prefix = [0; 12];
        let guid = node.context().guid().to_bytes();
        prefix
            .iter_mut()
            .zip(guid)
            .for_each(|(to, from)| *to = from);
        Self {
            context: node.context().clone(),
            prefix,
        }
    }

    /// Never zero, which means all goals, and never twice: 12 bytes are the
    /// participant's own, the rest is counted in its context.
    pub(super) fn next(&self) -> GoalId {
        let asked = &self.context.inner.goals_asked;
        let number = asked.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut id = [0; 16];
        let bytes = self.prefix.into_iter().chain(number);
        id.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        id
    }
}

/// Asks for goals to be cancelled; those that will be.
pub(super) fn cancel(
    client: &Client<CancelGoal>,
    action: &str,
    goal_info: GoalInfo,
    timeout: Duration,
) -> Result<Vec<GoalId>, ActionError> {
    let request = CancelGoal_Request { goal_info };
    let response = client.call(&request, timeout)?;
    let action = action.to_owned();
    match response.return_code {
        1 => Err(ActionError::NotCancelled { action }),
        2 => Err(ActionError::UnknownGoal { action }),
        3 => Err(ActionError::Ended { action }),
        _ => {
            let ids = response.goals_canceling.iter();
            Ok(ids.map(|goal| goal.goal_id.uuid).collect())
        }
    }
}

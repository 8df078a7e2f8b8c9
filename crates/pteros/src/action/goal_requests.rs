//! Requests common to typed and dynamic action clients: goal ids and cancellation.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pteros_interfaces::action_msgs::msg::GoalInfo;
use pteros_interfaces::action_msgs::srv::{CancelGoal, CancelGoalRequest};
use pteros_msg::message::GoalId;

use super::error::ActionError;
use crate::context::Context;
use crate::node::Node;
use crate::service::Client;

/// Generates unique goal ids.
pub(super) struct GoalIdGenerator {
    context: Context,
    /// First bytes of each id: the GUID prefix of the participant.
    prefix: [u8; 12],
}

impl GoalIdGenerator {
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

    /// Returns the next id. It is unique: 12 bytes identify the participant, the
    /// rest counts in its context. It is never zero, which means all goals.
    pub(super) fn next(&self) -> GoalId {
        let sent = &self.context.inner.next_goal_number;
        let number = sent.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut id = [0; 16];
        let bytes = self.prefix.into_iter().chain(number);
        id.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        id
    }
}

/// Sends a cancel request. Returns the goals that are now canceling.
pub(super) fn request_cancel(
    client: &Client<CancelGoal>,
    action: &str,
    goal_info: GoalInfo,
    timeout: Duration,
) -> Result<Vec<GoalId>, ActionError> {
    let request = CancelGoalRequest { goal_info };
    let response = client.call(&request, timeout)?;
    let action = action.to_owned();
    match response.return_code {
        1 => Err(ActionError::CancelRejected { action }),
        2 => Err(ActionError::UnknownGoal { action }),
        3 => Err(ActionError::GoalTerminated { action }),
        _ => {
            let ids = response.goals_canceling.iter();
            Ok(ids.map(|goal| goal.goal_id.uuid).collect())
        }
    }
}

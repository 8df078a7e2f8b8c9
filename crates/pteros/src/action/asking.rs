//! What every action client does, whatever its goals are made of.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pteros_interfaces::action_msgs::msg::GoalInfo;
use pteros_interfaces::action_msgs::srv::{CancelGoal, CancelGoal_Request};
use pteros_msg::message::GoalId;

use super::error::ActionError;
use crate::node::Node;
use crate::service::Client;

/// Makes ids that nobody else has.
pub(super) struct GoalIds {
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
        Self { prefix }
    }

    /// Never zero, which means all goals, and never twice: 12 bytes are the
    /// participant's own, the rest is counted in this process.
    pub(super) fn next(&self) -> GoalId {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
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

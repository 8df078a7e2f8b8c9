//! Goal server: the part of an action server that does not depend on the type.
//!
//! The goal table, the status publisher, result expiry, and the check for clients
//! that are gone.

use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::msg::{GoalInfo, GoalStatus as StatusMessage, GoalStatusArray};
use pteros_interfaces::action_msgs::srv::{CancelGoalRequest, CancelGoalResponse};
use pteros_msg::message::GoalId;

use super::error::ActionError;
use crate::error::CreateError;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::service::PendingRequest;
use crate::timer::{Timer, TimerOptions};
use pteros_rcl::action::{GoalStatus, GoalSummary, GoalTable, REJECTED};

/// `R` is the result type, `W` a pending result request.
pub(super) struct GoalServer<R, W> {
    pub(super) node: Node,
    pub(super) name: String,
    pub(super) table: Mutex<GoalTable<R, W>>,
    status: Publisher<GoalStatusArray>,
    /// One-shot timer: results may have expired.
    expiry: OnceLock<Timer>,
    /// Periodic timer that cancels goals whose client is gone, if enabled.
    client_check: OnceLock<Timer>,
}

/// An active goal that a new goal preempts.
pub(super) struct PreemptedGoal {
    pub(super) id: GoalId,
    pub(super) terminal_status: GoalStatus,
}

/// Period of the check for goals whose client is gone.
const CLIENT_CHECK_PERIOD: Duration = Duration::from_millis(500);

impl<R: Clone, W> GoalServer<R, W> {
    pub(super) fn new(
        node: &Node,
        name: String,
        status: Publisher<GoalStatusArray>,
        goals_max: usize,
        result_timeout: Duration,
    ) -> Self {
        Self {
            node: node.clone(),
            name,
            table: Mutex::new(GoalTable::new(goals_max, result_timeout)),
            status,
            expiry: OnceLock::new(),
            client_check: OnceLock::new(),
        }
    }

    /// Starts result expiry. `expire` is called when results may have expired and
    /// must call [`Self::expire`].
    pub(super) fn start_expiry(
        &self,
        timeout: Duration,
        expire: impl FnMut() + Send + 'static,
    ) -> Result<(), CreateError> {
        // A timer period must not be zero.
        let delay = timeout.max(Duration::from_millis(1));
        let timer = self
            .node
            .create_timer(TimerOptions::new(delay).one_shot(), expire)?;
        timer.cancel();
        let _ = self.expiry.set(timer);
        Ok(())
    }

    /// Starts the client check. `cancel` is called periodically and must call
    /// [`Self::cancel_abandoned`].
    pub(super) fn start_client_check(
        &self,
        cancel: impl FnMut() + Send + 'static,
    ) -> Result<(), CreateError> {
        let _ = self
            .client_check
            .set(self.node.create_timer(CLIENT_CHECK_PERIOD, cancel)?);
        Ok(())
    }

    /// Cancels goals whose client is gone.
    pub(super) fn cancel_abandoned(&self) {
        let open: Vec<_> = self.table.lock().open_goals().collect();
        if open.is_empty() {
            return;
        }
        let graph = self.node.core().core().graph();
        for GoalSummary {
            id, client, status, ..
        } in open
        {
            if !graph.has_endpoint(client)
                && status != GoalStatus::Canceling
                && self.transition(id, GoalStatus::Canceling).is_ok()
            {
                tracing::info!(action = %self.name, "goal is canceling: its client {client} is gone");
            }
        }
    }

    /// The goals that a new goal preempts, each with its terminal status.
    pub(super) fn preempted_by(&self, id: GoalId) -> Vec<PreemptedGoal> {
        let table = self.table.lock();
        let others = table.open_goals().filter(|goal| goal.id != id);
        others
            .map(|goal| PreemptedGoal {
                id: goal.id,
                terminal_status: if goal.status == GoalStatus::Canceling {
                    GoalStatus::Canceled
                } else {
                    GoalStatus::Aborted
                },
            })
            .collect()
    }

    pub(super) fn expire(&self) {
        let now = self.node.core().core().platform.now();
        let mut table = self.table.lock();
        let expired = !table.expire(now).is_empty();
        let more = table.keeps_results();
        drop(table);
        if expired {
            self.publish_status();
        }
        if let (true, Some(timer)) = (more, self.expiry.get()) {
            timer.reset();
        }
    }

    /// Whether a goal must be rejected: the table is full, or the id is in use.
    pub(super) fn must_reject(&self, id: GoalId) -> bool {
        let table = self.table.lock();
        if table.is_full() {
            tracing::warn!(action = %self.name, "goal rejected: the maximum number of goals is reached; end some, or raise goals_max");
        }
        table.is_full() || table.contains(id)
    }

    pub(super) fn transition(&self, id: GoalId, target: GoalStatus) -> Result<(), ActionError> {
        self.table.lock().transition(id, target)?;
        self.publish_status();
        Ok(())
    }

    /// Ends a goal. Returns the pending result requests, to be answered.
    pub(super) fn finish(
        &self,
        id: GoalId,
        target: GoalStatus,
        result: R,
    ) -> Result<Vec<W>, ActionError> {
        let now = self.node.core().core().platform.now();
        let waiters = self.table.lock().finish(now, id, target, result)?;
        self.publish_status();
        if let Some(timer) = self.expiry.get()
            && timer.is_cancelled()
        {
            timer.reset();
        }
        Ok(waiters)
    }

    /// Handles a cancel request. `is_allowed` is called for each selected goal.
    pub(super) fn cancel(
        &self,
        request: &CancelGoalRequest,
        mut is_allowed: impl FnMut(GoalId) -> bool,
    ) -> CancelGoalResponse {
        let GoalInfo { goal_id, stamp } = &request.goal_info;
        let until = i64::from(stamp.sec) * SECOND + i64::from(stamp.nanosec);
        let selection = self.table.lock().select_for_cancel(goal_id.uuid, until);
        let mut response = CancelGoalResponse {
            return_code: selection.code,
            goals_canceling: Vec::new(),
        };
        let any = !selection.goals.is_empty();
        for id in selection.goals {
            let is_marked = || {
                self.table
                    .lock()
                    .transition(id, GoalStatus::Canceling)
                    .is_ok()
            };
            if is_allowed(id) && is_marked() {
                response.goals_canceling.push(self.info(id));
            }
        }
        if any && response.goals_canceling.is_empty() {
            response.return_code = REJECTED;
        }
        if any {
            self.publish_status();
        }
        response
    }

    fn info(&self, id: GoalId) -> GoalInfo {
        let table = self.table.lock();
        let stamp = table
            .all()
            .find(|goal| goal.id == id)
            .map_or(0, |goal| goal.stamp);
        info(id, stamp)
    }

    pub(super) fn publish_status(&self) {
        // Locked while sending, so that the last message sent is the newest.
        let table = self.table.lock();
        let row = |goal: GoalSummary| StatusMessage {
            goal_info: info(goal.id, goal.stamp),
            status: goal.status.id(),
        };
        let message = GoalStatusArray {
            status_list: table.all().map(row).collect(),
        };
        if let Err(error) = self.status.publish_owned(message) {
            tracing::warn!(action = %self.name, "status not sent: {error}");
        }
    }
}

const SECOND: i64 = 1_000_000_000;

/// Splits nanoseconds since 1970 into the fields of `builtin_interfaces/Time`.
pub(super) fn split_nanos(stamp: i64) -> (i32, u32) {
    let seconds = i32::try_from(stamp.div_euclid(SECOND)).unwrap_or(i32::MAX);
    let nanos = u32::try_from(stamp.rem_euclid(SECOND)).unwrap_or(0);
    (seconds, nanos)
}

fn info(id: GoalId, stamp: i64) -> GoalInfo {
    let mut info = GoalInfo::default();
    info.goal_id.uuid = id;
    (info.stamp.sec, info.stamp.nanosec) = split_nanos(stamp);
    info
}

pub(super) fn respond<Q: Send + 'static, R: Send + 'static>(
    action: &str,
    call: PendingRequest<Q, R>,
    answer: R,
) {
    if let Err(error) = call.respond(answer) {
        tracing::warn!(%action, "response not sent: {error}");
    }
}

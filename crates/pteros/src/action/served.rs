//! What every action server has, whatever its goals are made of: the ledger of its
//! goals, who is told of their status, and the clock by which results expire.

use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::action_msgs::msg::{GoalInfo, GoalStatus as StatusMessage, GoalStatusArray};
use pteros_interfaces::action_msgs::srv::{CancelGoal_Request, CancelGoal_Response};
use pteros_msg::message::GoalId;

use super::error::GoalError;
use super::ledger::{GoalStatus, Ledger, REJECTED};
use crate::error::CreateError;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::service::ServiceCall;
use crate::timer::Timer;

/// `R` are results, `W` those who wait for one.
pub(super) struct Served<R, W> {
    pub(super) node: Node,
    pub(super) name: String,
    pub(super) ledger: Mutex<Ledger<R, W>>,
    status: Publisher<GoalStatusArray>,
    /// Ticks once when results may have expired.
    expiry: OnceLock<Timer>,
    /// Ticks where goals of clients that are gone are cancelled.
    abandoned: OnceLock<Timer>,
}

/// How often those are looked for whose client is gone.
const LOOK: Duration = Duration::from_millis(500);

impl<R: Clone, W> Served<R, W> {
    pub(super) fn new(
        node: &Node,
        name: String,
        status: Publisher<GoalStatusArray>,
        (goals_max, result_timeout): (usize, Duration),
    ) -> Self {
        Self {
            node: node.clone(),
            name,
            ledger: Mutex::new(Ledger::new(goals_max, result_timeout)),
            status,
            expiry: OnceLock::new(),
            abandoned: OnceLock::new(),
        }
    }

    /// `expire` is called when results may have expired, and calls [`Self::expire`].
    pub(super) fn start_expiry(
        &self,
        timeout: Duration,
        expire: impl FnMut() + Send + 'static,
    ) -> Result<(), CreateError> {
        // None is so short that it cannot be a timer's.
        let delay = timeout.max(Duration::from_millis(1));
        let timer = self.node.create_one_shot_timer(delay, expire)?;
        timer.cancel();
        let _ = self.expiry.set(timer);
        Ok(())
    }

    /// `cancel` is called every now and then, and calls [`Self::cancel_abandoned`].
    pub(super) fn start_looking(
        &self,
        cancel: impl FnMut() + Send + 'static,
    ) -> Result<(), CreateError> {
        let _ = self.abandoned.set(self.node.create_timer(LOOK, cancel)?);
        Ok(())
    }

    /// Cancels what nobody waits for any more.
    pub(super) fn cancel_abandoned(&self) {
        let on: Vec<_> = self.ledger.lock().going_on().collect();
        if on.is_empty() {
            return;
        }
        let graph = self.node.core().core().graph();
        for (id, client, status) in on {
            if !graph.has_endpoint(client)
                && status != GoalStatus::Canceling
                && self.go(id, GoalStatus::Canceling).is_ok()
            {
                tracing::info!(action = %self.name, "a goal is canceling: its client {client} is gone");
            }
        }
    }

    /// The goals whose place that one takes, each with how it ends.
    pub(super) fn preempted_by(&self, id: GoalId) -> Vec<(GoalId, GoalStatus)> {
        let ledger = self.ledger.lock();
        let others = ledger.going_on().filter(|(other, ..)| *other != id);
        let end = |status| match status {
            GoalStatus::Canceling => GoalStatus::Canceled,
            _ => GoalStatus::Aborted,
        };
        others
            .map(|(other, _, status)| (other, end(status)))
            .collect()
    }

    pub(super) fn expire(&self) {
        let now = self.node.core().core().env.now();
        let mut ledger = self.ledger.lock();
        let expired = ledger.expire(now);
        let more = ledger.keeps_results();
        drop(ledger);
        if expired {
            self.tell_status();
        }
        if let (true, Some(timer)) = (more, self.expiry.get()) {
            timer.reset();
        }
    }

    /// Whether a goal cannot be taken: too many are known, or this one is.
    pub(super) fn refuses(&self, id: GoalId) -> bool {
        let ledger = self.ledger.lock();
        if ledger.is_full() {
            tracing::warn!(action = %self.name, "a goal is rejected: as many are known as may be; end some, or raise goals_max");
        }
        ledger.is_full() || ledger.knows(id)
    }

    pub(super) fn go(&self, id: GoalId, wanted: GoalStatus) -> Result<(), GoalError> {
        self.ledger.lock().go(id, wanted)?;
        self.tell_status();
        Ok(())
    }

    /// Ends a goal; those who waited for its result are to be answered.
    pub(super) fn end(
        &self,
        id: GoalId,
        wanted: GoalStatus,
        result: R,
    ) -> Result<Vec<W>, GoalError> {
        let now = self.node.core().core().env.now();
        let waiting = self.ledger.lock().end(now, id, wanted, result)?;
        self.tell_status();
        if let Some(timer) = self.expiry.get()
            && timer.is_cancelled()
        {
            timer.reset();
        }
        Ok(waiting)
    }

    /// Answers a request to cancel; `may` is asked for each goal that is meant.
    pub(super) fn cancel(
        &self,
        request: &CancelGoal_Request,
        mut may: impl FnMut(GoalId) -> bool,
    ) -> CancelGoal_Response {
        let GoalInfo { goal_id, stamp } = &request.goal_info;
        let until = i64::from(stamp.sec) * SECOND + i64::from(stamp.nanosec);
        let meant = self.ledger.lock().meant(goal_id.uuid, until);
        let mut response = CancelGoal_Response {
            return_code: meant.code,
            goals_canceling: Vec::new(),
        };
        let any = !meant.goals.is_empty();
        for id in meant.goals {
            let is_noted = || {
                pteros_rmw::rtps::fault!("cancelling-not-noted")
                    || self.ledger.lock().go(id, GoalStatus::Canceling).is_ok()
            };
            if may(id) && is_noted() {
                response.goals_canceling.push(self.info(id));
            }
        }
        if any && response.goals_canceling.is_empty() {
            response.return_code = REJECTED;
        }
        if any {
            self.tell_status();
        }
        response
    }

    fn info(&self, id: GoalId) -> GoalInfo {
        let ledger = self.ledger.lock();
        let stamp = ledger.all().find(|goal| goal.0 == id).map_or(0, |g| g.1);
        info(id, stamp)
    }

    pub(super) fn tell_status(&self) {
        // Locked while it is sent: the last word is the newest.
        let ledger = self.ledger.lock();
        let row = |(id, stamp, status): (GoalId, i64, GoalStatus)| StatusMessage {
            goal_info: info(id, stamp),
            status: status.id(),
        };
        let message = GoalStatusArray {
            status_list: ledger.all().map(row).collect(),
        };
        if let Err(error) = self.status.publish_owned(message) {
            tracing::warn!(action = %self.name, "no status sent: {error}");
        }
    }
}

const SECOND: i64 = 1_000_000_000;

/// `builtin_interfaces/Time` of nanoseconds since 1970.
pub(super) fn split(stamp: i64) -> (i32, u32) {
    let seconds = i32::try_from(stamp.div_euclid(SECOND)).unwrap_or(i32::MAX);
    let nanos = u32::try_from(stamp.rem_euclid(SECOND)).unwrap_or(0);
    (seconds, nanos)
}

fn info(id: GoalId, stamp: i64) -> GoalInfo {
    let mut info = GoalInfo::default();
    info.goal_id.uuid = id;
    (info.stamp.sec, info.stamp.nanosec) = split(stamp);
    info
}

pub(super) fn respond<Q: Send + 'static, R: Send + 'static>(
    action: &str,
    call: ServiceCall<Q, R>,
    answer: R,
) {
    if let Err(error) = call.respond(answer) {
        tracing::warn!(%action, "no answer sent: {error}");
    }
}

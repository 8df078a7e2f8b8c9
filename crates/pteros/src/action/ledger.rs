//! The goals of an action server: their status and how it changes
//! (`action_msgs/msg/GoalStatus`, rcl_action's goal state machine), who waits for
//! their results, and which of them a cancel request means
//! (`action_msgs/srv/CancelGoal`). No clock and no network.

use std::fmt;

use pteros_msg::message::GoalId;
use pteros_rmw::rtps::id::Guid;
use pteros_rmw::rtps::time::{Duration, Instant};

use super::error::GoalError;

/// Where a goal is, with its number in `action_msgs/msg/GoalStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(i8)]
pub enum GoalStatus {
    /// Nobody knows.
    Unknown = 0,
    /// Accepted, and waiting to be executed.
    Accepted = 1,
    /// Being executed.
    Executing = 2,
    /// To be cancelled.
    Canceling = 3,
    /// Done.
    Succeeded = 4,
    /// Cancelled.
    Canceled = 5,
    /// Ended by the server.
    Aborted = 6,
}

impl GoalStatus {
    /// The status of that number; unknown if there is none.
    pub fn from_id(id: i8) -> Self {
        use GoalStatus as G;
        let all = [
            G::Accepted,
            G::Executing,
            G::Canceling,
            G::Succeeded,
            G::Canceled,
            G::Aborted,
        ];
        let found = all.into_iter().find(|status| status.id() == id);
        found.unwrap_or(G::Unknown)
    }

    /// Its number.
    pub fn id(self) -> i8 {
        self as i8
    }

    /// Whether the goal has ended.
    pub fn is_end(self) -> bool {
        self.id() >= Self::Succeeded.id()
    }

    /// Whether a goal may go from here to there.
    fn leads_to(self, next: Self) -> bool {
        use GoalStatus as G;
        match next {
            G::Unknown | G::Accepted => false,
            G::Executing => self == G::Accepted,
            G::Canceling => matches!(self, G::Accepted | G::Executing),
            G::Succeeded | G::Aborted => matches!(self, G::Executing | G::Canceling),
            G::Canceled => self == G::Canceling,
        }
    }
}

impl fmt::Display for GoalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "unknown",
            Self::Accepted => "accepted",
            Self::Executing => "executing",
            Self::Canceling => "canceling",
            Self::Succeeded => "succeeded",
            Self::Canceled => "canceled",
            Self::Aborted => "aborted",
        })
    }
}

/// Those that wait for one goal's result; whoever comes then is told at once that
/// it is not known.
const WAITING_MAX: usize = 64;

struct Entry<R, W> {
    id: GoalId,
    /// Nanoseconds since 1970 when it was accepted.
    stamp: i64,
    client: Guid,
    status: GoalStatus,
    /// When it ended, and how.
    end: Option<(Instant, R)>,
    waiting: Vec<W>,
}

/// `R` are results, `W` those who wait for one.
pub(super) struct Ledger<R, W> {
    goals: Vec<Entry<R, W>>,
    goals_max: usize,
    keep: Duration,
}

/// What is known of a result.
pub(super) enum Known<R, W> {
    /// Nothing: who asked is handed back.
    Nothing(W),
    /// It has ended.
    End(W, GoalStatus, R),
    /// Who asked waits.
    Later,
}

/// Which goals a cancel request means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Meant {
    /// A number of `CancelGoal_Response`.
    pub(super) code: i8,
    pub(super) goals: Vec<GoalId>,
}

pub(super) const NO_ERROR: i8 = 0;
pub(super) const REJECTED: i8 = 1;
const UNKNOWN_GOAL: i8 = 2;
const TERMINATED: i8 = 3;

impl<R: Clone, W> Ledger<R, W> {
    pub(super) fn new(goals_max: usize, keep: std::time::Duration) -> Self {
        Self {
            goals: Vec::new(),
            goals_max,
            keep: keep.into(),
        }
    }

    fn entry(&mut self, id: GoalId) -> Option<&mut Entry<R, W>> {
        self.goals.iter_mut().find(|goal| goal.id == id)
    }

    pub(super) fn is_full(&self) -> bool {
        self.goals.len() >= self.goals_max
    }

    pub(super) fn knows(&self, id: GoalId) -> bool {
        self.goals.iter().any(|goal| goal.id == id)
    }

    pub(super) fn accept(&mut self, id: GoalId, stamp: i64, client: Guid) {
        self.goals.push(Entry {
            id,
            stamp,
            client,
            status: GoalStatus::Accepted,
            end: None,
            waiting: Vec::new(),
        });
    }

    pub(super) fn status(&mut self, id: GoalId) -> GoalStatus {
        let entry = self.entry(id);
        entry.map_or(GoalStatus::Unknown, |goal| goal.status)
    }

    /// Changes the status of a goal that goes on.
    pub(super) fn go(&mut self, id: GoalId, wanted: GoalStatus) -> Result<(), GoalError> {
        let status = self.status(id);
        if !status.leads_to(wanted) {
            return Err(GoalError::Illegal { status, wanted });
        }
        if let Some(goal) = self.entry(id) {
            goal.status = wanted;
        }
        Ok(())
    }

    /// Ends a goal; those who waited are handed out.
    pub(super) fn end(
        &mut self,
        now: Instant,
        id: GoalId,
        wanted: GoalStatus,
        result: R,
    ) -> Result<Vec<W>, GoalError> {
        // One that nobody has begun was begun by whoever ends it.
        if self.status(id) == GoalStatus::Accepted && wanted != GoalStatus::Canceled {
            self.go(id, GoalStatus::Executing)?;
        }
        self.go(id, wanted)?;
        let goal = self.entry(id).ok_or(GoalError::NoServer)?;
        goal.end = Some((now, result));
        let waiting = std::mem::take(&mut goal.waiting);
        Ok(match pteros_rmw::rtps::fault!("result-told-to-nobody") {
            true => Vec::new(),
            false => waiting,
        })
    }

    pub(super) fn ask_result(&mut self, now: Instant, id: GoalId, who: W) -> Known<R, W> {
        self.expire(now);
        let Some(goal) = self.entry(id) else {
            return Known::Nothing(who);
        };
        match &goal.end {
            Some((_, result)) => Known::End(who, goal.status, result.clone()),
            None if goal.waiting.len() >= WAITING_MAX => Known::Nothing(who),
            None => {
                goal.waiting.push(who);
                Known::Later
            }
        }
    }

    /// Forgets goals whose result has been kept long enough. Whether there were any.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let (before, keep) = (self.goals.len(), self.keep);
        self.goals.retain(|goal| match &goal.end {
            Some((end, _)) => now < end.after(keep),
            None => true,
        });
        self.goals.len() < before
    }

    /// Whether results are kept that will expire.
    pub(super) fn keeps_results(&self) -> bool {
        self.goals.iter().any(|goal| goal.end.is_some())
    }

    /// Goals that go on, and whose they are.
    pub(super) fn going_on(&self) -> impl Iterator<Item = (GoalId, Guid, GoalStatus)> {
        let on = self.goals.iter().filter(|goal| !goal.status.is_end());
        on.map(|goal| (goal.id, goal.client, goal.status))
    }

    /// All goals in the order they were accepted: id, stamp, status.
    pub(super) fn all(&self) -> impl Iterator<Item = (GoalId, i64, GoalStatus)> {
        self.goals
            .iter()
            .map(|goal| (goal.id, goal.stamp, goal.status))
    }

    /// Whom a cancel request means. An id alone: that goal. A stamp: all that were
    /// accepted until then, and the goal of that id. Neither: all.
    pub(super) fn meant(&mut self, id: GoalId, stamp: i64) -> Meant {
        let can_be = |status: GoalStatus| status.leads_to(GoalStatus::Canceling);
        let has_id = id != [0; 16];
        if has_id && stamp == 0 {
            let status = self.entry(id).map(|goal| goal.status);
            let (code, goals) = match status {
                None => (UNKNOWN_GOAL, Vec::new()),
                Some(status) if can_be(status) => (NO_ERROR, vec![id]),
                // Also one that is canceling already, as in rcl_action.
                Some(_) => (TERMINATED, Vec::new()),
            };
            return Meant { code, goals };
        }
        let until = if stamp == 0 { i64::MAX } else { stamp };
        let meant = self.goals.iter().filter(|goal| {
            can_be(goal.status) && (goal.stamp <= until || (has_id && goal.id == id))
        });
        Meant {
            code: NO_ERROR,
            goals: meant.map(|goal| goal.id).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use GoalStatus as G;

    const A: GoalId = [1; 16];
    const B: GoalId = [2; 16];
    const C: GoalId = [3; 16];
    const ALL: GoalId = [0; 16];

    fn at(seconds: i64) -> Instant {
        Instant::ZERO.after(Duration::from_secs(seconds))
    }

    /// Three goals, accepted at 10, 20 and 30 ns; the last has ended.
    fn three() -> Ledger<&'static str, u8> {
        let mut ledger = Ledger::new(3, std::time::Duration::from_secs(10));
        for (id, stamp) in [(A, 10), (B, 20), (C, 30)] {
            assert!(!ledger.is_full());
            ledger.accept(id, stamp, Guid::default());
        }
        assert!(ledger.is_full());
        ledger.end(at(0), C, G::Succeeded, "done").unwrap();
        ledger
    }

    fn meant(ledger: &mut Ledger<&'static str, u8>, id: GoalId, stamp: i64) -> (i8, Vec<GoalId>) {
        let Meant { code, goals } = ledger.meant(id, stamp);
        (code, goals)
    }

    #[test]
    fn a_cancel_request_means_one_goal_all_or_those_up_to_a_time() {
        let mut ledger = three();
        assert_eq!(meant(&mut ledger, B, 0), (NO_ERROR, vec![B]));
        assert_eq!(meant(&mut ledger, ALL, 0), (NO_ERROR, vec![A, B]));
        assert_eq!(meant(&mut ledger, ALL, 10), (NO_ERROR, vec![A]));
        assert_eq!(meant(&mut ledger, B, 10), (NO_ERROR, vec![A, B]));
        assert_eq!(meant(&mut ledger, C, 0), (TERMINATED, vec![]));
        assert_eq!(meant(&mut ledger, [9; 16], 0), (UNKNOWN_GOAL, vec![]));
        assert_eq!(meant(&mut ledger, ALL, 5), (NO_ERROR, vec![]));
    }

    #[test]
    fn a_status_leads_where_rcl_action_lets_it() {
        let mut ledger = three();
        let illegal = ledger.end(at(0), A, G::Canceled, "").unwrap_err();
        assert!(
            illegal.to_string().contains("see is_canceling"),
            "{illegal}"
        );
        ledger.go(A, G::Executing).unwrap();
        ledger.go(A, G::Canceling).unwrap();
        assert!(ledger.go(A, G::Executing).is_err());
        ledger.end(at(0), A, G::Canceled, "no").unwrap();
        assert!(ledger.end(at(0), A, G::Succeeded, "").is_err());
        assert!(ledger.go([9; 16], G::Executing).is_err());
        assert_eq!(ledger.status(A), G::Canceled);
        let listed: Vec<_> = ledger.all().map(|(id, _, status)| (id, status)).collect();
        assert_eq!(
            listed,
            [(A, G::Canceled), (B, G::Accepted), (C, G::Succeeded)]
        );
    }

    #[test]
    fn results_wait_for_the_end_and_are_kept_for_a_while() {
        let mut ledger = three();
        assert!(matches!(ledger.ask_result(at(1), A, 1), Known::Later));
        assert_eq!(ledger.end(at(2), A, G::Aborted, "bad"), Ok(vec![1]));
        let kept = ledger.ask_result(at(9), C, 2);
        assert!(matches!(kept, Known::End(2, G::Succeeded, "done")));
        let expired = ledger.ask_result(at(10), C, 3);
        assert!(matches!(expired, Known::Nothing(3)));
        let kept = ledger.ask_result(at(11), A, 4);
        assert!(matches!(kept, Known::End(4, G::Aborted, "bad")));
        assert!(ledger.expire(at(12)));
        assert!(!ledger.keeps_results());
        // One that goes on is never forgotten.
        assert!(!ledger.expire(at(1_000)) && ledger.knows(B));
    }

    #[test]
    fn those_that_wait_for_one_result_have_a_limit() {
        let mut ledger = three();
        let later = (0..200).filter(|n| matches!(ledger.ask_result(at(1), A, *n), Known::Later));
        assert_eq!(later.count(), WAITING_MAX);
    }
}

//! Goal table with the goal state machine of rcl_action.
//!
//! It holds the status of each goal (`action_msgs/msg/GoalStatus`), the pending
//! result requests, and the selection of goals for a cancel request
//! (`action_msgs/srv/CancelGoal`). It has no clock and no network.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use pteros_msg::message::GoalId;
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::rtps::time::{Duration, Instant};

/// The goal state machine has no such transition.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a goal cannot change from {status} to {target}{}", hint(*.status, *.target))]
pub struct IllegalTransition {
    /// Current status.
    pub status: GoalStatus,
    /// Requested status.
    pub target: GoalStatus,
}

pteros_msg::debug_as_display!(IllegalTransition);

fn hint(status: GoalStatus, target: GoalStatus) -> &'static str {
    match target {
        GoalStatus::Canceled => "; a cancel request must be accepted first",
        GoalStatus::Succeeded | GoalStatus::Aborted if status == GoalStatus::Accepted => {
            "; execute it first"
        }
        _ => "",
    }
}

/// Status of a goal, numbered as in `action_msgs/msg/GoalStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(i8)]
pub enum GoalStatus {
    /// Not known.
    Unknown = 0,
    /// Accepted, awaiting execution.
    Accepted = 1,
    /// The server's callback works on it.
    Executing = 2,
    /// A cancel request was accepted; the goal is stopping.
    Canceling = 3,
    /// Ended successfully.
    Succeeded = 4,
    /// Ended after a cancel request.
    Canceled = 5,
    /// Ended by the server without success.
    Aborted = 6,
}

impl GoalStatus {
    /// Status with the given number; unknown if there is none.
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

    /// Number in `action_msgs/msg/GoalStatus`.
    pub fn id(self) -> i8 {
        self as i8
    }

    /// Whether this is a terminal state: succeeded, canceled or aborted.
    pub fn is_terminal(self) -> bool {
        self.id() >= Self::Succeeded.id()
    }

    /// Whether the state machine has this transition.
    fn can_become(self, next: Self) -> bool {
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

/// Maximum pending result requests per goal; further ones get the status unknown.
const RESULT_WAITERS_MAX: usize = 64;

struct GoalEntry<R, W> {
    summary: GoalSummary,
    /// Time of the end, and the result.
    end: Option<(Instant, R)>,
    waiters: Vec<W>,
}

/// `R` is the result type, `W` a pending result request.
pub struct GoalTable<R, W> {
    /// By the number of the acceptance.
    goals: BTreeMap<u64, GoalEntry<R, W>>,
    numbers: HashMap<GoalId, u64>,
    accepted: u64,
    goals_max: usize,
    result_timeout: Duration,
}

/// A goal without its result.
#[derive(Clone, Copy)]
pub struct GoalSummary {
    /// UUID that the client chose.
    pub id: GoalId,
    /// Time of acceptance in nanoseconds since 1970.
    pub stamp: i64,
    /// Writer of the goal request.
    pub client: Guid,
    /// The state of the goal state machine.
    pub status: GoalStatus,
}

/// Outcome of a result request.
pub enum ResultLookup<R, W> {
    /// Unknown goal; returns the request.
    Unknown(W),
    /// The goal has ended; returns the request, the status and the result.
    Ended(W, GoalStatus, R),
    /// The request is pending until the goal ends.
    Pending,
}

/// Goals selected by a cancel request.
#[derive(Debug, PartialEq, Eq)]
pub struct CancelSelection {
    /// Return code of `CancelGoalResponse`.
    pub code: i8,
    /// The goals to be cancelled, in the order of acceptance; empty with an error code.
    pub goals: Vec<GoalId>,
}

/// `CancelGoal_Response::ERROR_NONE`.
const NO_ERROR: i8 = 0;
/// `CancelGoal_Response::ERROR_REJECTED`.
pub const REJECTED: i8 = 1;
const UNKNOWN_GOAL: i8 = 2;
const TERMINATED: i8 = 3;

impl<R: Clone, W> GoalTable<R, W> {
    /// An empty table. A result is kept for `result_timeout` after the goal has ended.
    pub fn new(goals_max: usize, result_timeout: std::time::Duration) -> Self {
        Self {
            goals: BTreeMap::new(),
            numbers: HashMap::new(),
            accepted: 0,
            goals_max,
            result_timeout: result_timeout.into(),
        }
    }

    fn entry(&mut self, id: GoalId) -> Option<&mut GoalEntry<R, W>> {
        self.goals.get_mut(self.numbers.get(&id)?)
    }

    /// Whether it has `goals_max` goals, and all of them are active.
    pub fn is_full(&self) -> bool {
        self.goals.len() >= self.goals_max && self.goals.values().all(|goal| goal.end.is_none())
    }

    /// Whether the goal is active, or has ended and its result is kept.
    pub fn contains(&self, id: GoalId) -> bool {
        self.numbers.contains_key(&id)
    }

    /// Adds a goal in the state accepted. The caller checks [`GoalTable::is_full`] and
    /// [`GoalTable::contains`]; an id that is there already is not added. With `goals_max`
    /// goals, it takes the place of the one that ended first, which is returned.
    pub fn accept(&mut self, id: GoalId, stamp: i64, client: Guid) -> Option<GoalId> {
        if self.contains(id) {
            return None;
        }
        let dropped = if self.goals.len() >= self.goals_max {
            self.ended_first()
        } else {
            None
        };
        if let Some(dropped) = dropped {
            self.remove(dropped);
        }
        self.accepted += 1;
        self.numbers.insert(id, self.accepted);
        let summary = GoalSummary {
            id,
            stamp,
            client,
            status: GoalStatus::Accepted,
        };
        let entry = GoalEntry {
            summary,
            end: None,
            waiters: Vec::new(),
        };
        self.goals.insert(self.accepted, entry);
        dropped
    }

    fn ended_first(&self) -> Option<GoalId> {
        let ended = self.goals.values().filter_map(|goal| {
            let (end, _) = goal.end.as_ref()?;
            Some((*end, goal.summary.id))
        });
        ended.min_by_key(|(end, _)| *end).map(|(_, id)| id)
    }

    /// Removes a goal in any state, without an answer to its result requests. Returns
    /// whether it was there.
    pub fn remove(&mut self, id: GoalId) -> bool {
        let number = self.numbers.remove(&id);
        number.is_some_and(|number| self.goals.remove(&number).is_some())
    }

    /// The state of a goal; unknown for one that is not in the table.
    pub fn status(&self, id: GoalId) -> GoalStatus {
        let number = self.numbers.get(&id);
        let entry = number.and_then(|number| self.goals.get(number));
        entry.map_or(GoalStatus::Unknown, |goal| goal.summary.status)
    }

    /// Lets an active goal become executing or canceling. [`GoalTable::finish`] ends it.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the state machine has no such transition, or the target
    /// is a terminal state.
    pub fn transition(&mut self, id: GoalId, target: GoalStatus) -> Result<(), IllegalTransition> {
        let status = self.status(id);
        match self.entry(id) {
            Some(goal) if status.can_become(target) && !target.is_terminal() => {
                goal.summary.status = target;
                Ok(())
            }
            _ => Err(IllegalTransition { status, target }),
        }
    }

    /// Ends a goal as succeeded, aborted or canceled. Returns the pending result requests.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the state machine has no such transition, or the target
    /// is no terminal state. As in rcl_action, a goal that is accepted and was not
    /// executed cannot end.
    pub fn finish(
        &mut self,
        now: Instant,
        id: GoalId,
        target: GoalStatus,
        result: R,
    ) -> Result<Vec<W>, IllegalTransition> {
        let status = self.status(id);
        match self.entry(id) {
            Some(goal) if status.can_become(target) && target.is_terminal() => {
                goal.summary.status = target;
                goal.end = Some((now, result));
                Ok(std::mem::take(&mut goal.waiters))
            }
            _ => Err(IllegalTransition { status, target }),
        }
    }

    /// Answers a result request, or keeps it until the goal ends; at most 64 per goal.
    pub fn request_result(&mut self, now: Instant, id: GoalId, requester: W) -> ResultLookup<R, W> {
        self.expire(now);
        let Some(goal) = self.entry(id) else {
            return ResultLookup::Unknown(requester);
        };
        match &goal.end {
            Some((_, result)) => {
                ResultLookup::Ended(requester, goal.summary.status, result.clone())
            }
            None if goal.waiters.len() >= RESULT_WAITERS_MAX => ResultLookup::Unknown(requester),
            None => {
                goal.waiters.push(requester);
                ResultLookup::Pending
            }
        }
    }

    /// Removes goals whose results have expired, and returns their ids.
    pub fn expire(&mut self, now: Instant) -> Vec<GoalId> {
        let result_timeout = self.result_timeout;
        let has_expired = |_: &u64, goal: &mut GoalEntry<R, W>| {
            let end = goal.end.as_ref();
            end.is_some_and(|(end, _)| now >= end.after(result_timeout))
        };
        let expired = self.goals.extract_if(.., has_expired);
        let expired: Vec<_> = expired.map(|(_, goal)| goal.summary.id).collect();
        for id in &expired {
            self.numbers.remove(id);
        }
        expired
    }

    /// Whether there are results that will expire.
    pub fn keeps_results(&self) -> bool {
        self.goals.values().any(|goal| goal.end.is_some())
    }

    /// When the first of the kept results expires.
    pub fn next_expiry(&self) -> Option<Instant> {
        let ends = self.goals.values().filter_map(|goal| goal.end.as_ref());
        ends.map(|(end, _)| end.after(self.result_timeout)).min()
    }

    /// Active goals with their clients.
    pub fn open_goals(&self) -> impl Iterator<Item = GoalSummary> {
        self.all().filter(|goal| !goal.status.is_terminal())
    }

    /// All goals in the order of acceptance.
    pub fn all(&self) -> impl Iterator<Item = GoalSummary> {
        self.goals.values().map(|goal| goal.summary)
    }

    /// Selects the goals of a cancel request. An id alone selects that goal. A
    /// stamp selects all goals accepted until then, plus the goal with the id.
    /// Neither selects all goals.
    pub fn select_for_cancel(&self, id: GoalId, stamp: i64) -> CancelSelection {
        let is_cancelable = |status: GoalStatus| status.can_become(GoalStatus::Canceling);
        let has_id = id != [0; 16];
        if has_id && stamp == 0 {
            let (code, goals) = match self.status(id) {
                GoalStatus::Unknown => (UNKNOWN_GOAL, Vec::new()),
                status if is_cancelable(status) => (NO_ERROR, vec![id]),
                // Also a goal that is already canceling, as in rcl_action.
                _ => (TERMINATED, Vec::new()),
            };
            return CancelSelection { code, goals };
        }
        let until = if stamp == 0 { i64::MAX } else { stamp };
        let selected = self.all().filter(|goal| {
            is_cancelable(goal.status) && (goal.stamp <= until || (has_id && goal.id == id))
        });
        CancelSelection {
            code: NO_ERROR,
            goals: selected.map(|goal| goal.id).collect(),
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
    fn three_goals() -> GoalTable<&'static str, u8> {
        let mut table = GoalTable::new(3, std::time::Duration::from_secs(10));
        for (id, stamp) in [(A, 10), (B, 20), (C, 30)] {
            assert!(!table.is_full());
            table.accept(id, stamp, Guid::default());
        }
        assert!(table.is_full());
        table.transition(C, G::Executing).unwrap();
        table.finish(at(0), C, G::Succeeded, "done").unwrap();
        table
    }

    #[test]
    fn a_full_table_drops_the_goal_that_ended_first() {
        let mut table = three_goals();
        assert!(!table.is_full());
        table.transition(A, G::Executing).unwrap();
        table.finish(at(1), A, G::Succeeded, "later").unwrap();
        assert_eq!(table.accept([4; 16], 40, Guid::default()), Some(C));
        assert_eq!(table.accept([5; 16], 50, Guid::default()), Some(A));
        assert!(table.is_full());
        let left: Vec<_> = table.all().map(|goal| goal.id).collect();
        assert_eq!(left, [B, [4; 16], [5; 16]]);
        table.remove(B);
        assert_eq!(table.accept(A, 60, Guid::default()), None);
    }

    fn selection(
        table: &mut GoalTable<&'static str, u8>,
        id: GoalId,
        stamp: i64,
    ) -> (i8, Vec<GoalId>) {
        let CancelSelection { code, goals } = table.select_for_cancel(id, stamp);
        (code, goals)
    }

    #[test]
    fn a_cancel_request_selects_one_goal_all_or_those_up_to_a_time() {
        let mut table = three_goals();
        assert_eq!(selection(&mut table, B, 0), (NO_ERROR, vec![B]));
        assert_eq!(selection(&mut table, ALL, 0), (NO_ERROR, vec![A, B]));
        assert_eq!(selection(&mut table, ALL, 10), (NO_ERROR, vec![A]));
        assert_eq!(selection(&mut table, B, 10), (NO_ERROR, vec![A, B]));
        assert_eq!(selection(&mut table, C, 0), (TERMINATED, vec![]));
        assert_eq!(selection(&mut table, [9; 16], 0), (UNKNOWN_GOAL, vec![]));
        assert_eq!(selection(&mut table, ALL, 5), (NO_ERROR, vec![]));
    }

    #[test]
    fn goal_status_transitions_are_those_of_rcl_action() {
        let mut table = three_goals();
        let illegal = table.finish(at(0), A, G::Canceled, "").unwrap_err();
        assert!(
            illegal.to_string().contains("must be accepted first"),
            "{illegal}"
        );
        table.transition(A, G::Executing).unwrap();
        table.transition(A, G::Canceling).unwrap();
        assert!(table.transition(A, G::Executing).is_err());
        table.finish(at(0), A, G::Canceled, "no").unwrap();
        assert!(table.finish(at(0), A, G::Succeeded, "").is_err());
        assert!(table.transition([9; 16], G::Executing).is_err());
        assert_eq!(table.status(A), G::Canceled);
        // A goal that is not executed, and a terminal state without a result.
        let unexecuted = table.finish(at(0), B, G::Succeeded, "").unwrap_err();
        assert!(unexecuted.to_string().ends_with("execute it first"));
        table.transition(B, G::Executing).unwrap();
        assert!(table.transition(B, G::Succeeded).is_err());
        assert!(table.finish(at(0), B, G::Canceling, "").is_err());
        let listed: Vec<_> = table.all().map(|goal| (goal.id, goal.status)).collect();
        assert_eq!(
            listed,
            [(A, G::Canceled), (B, G::Executing), (C, G::Succeeded)]
        );
    }

    #[test]
    fn result_requests_wait_and_results_expire() {
        let mut table = three_goals();
        assert!(matches!(
            table.request_result(at(1), A, 1),
            ResultLookup::Pending
        ));
        table.transition(A, G::Executing).unwrap();
        assert_eq!(table.finish(at(2), A, G::Aborted, "bad").unwrap(), vec![1]);
        let kept = table.request_result(at(9), C, 2);
        assert!(matches!(kept, ResultLookup::Ended(2, G::Succeeded, "done")));
        let expired = table.request_result(at(10), C, 3);
        assert!(matches!(expired, ResultLookup::Unknown(3)));
        let kept = table.request_result(at(11), A, 4);
        assert!(matches!(kept, ResultLookup::Ended(4, G::Aborted, "bad")));
        assert_eq!(table.next_expiry(), Some(at(12)));
        assert_eq!(table.expire(at(12)), [A]);
        assert!(!table.keeps_results() && table.next_expiry().is_none());
        // An active goal never expires.
        assert!(table.expire(at(1_000)).is_empty() && table.contains(B));
    }

    #[test]
    fn a_removed_goal_is_unknown_and_its_id_can_be_used_again() {
        let mut table = three_goals();
        assert!(table.remove(B) && !table.remove(B));
        assert_eq!(table.status(B), G::Unknown);
        assert_eq!(selection(&mut table, B, 0), (UNKNOWN_GOAL, vec![]));
        table.accept(B, 40, Guid::default());
        let order: Vec<_> = table.all().map(|goal| goal.id).collect();
        assert_eq!(order, [A, C, B]);
    }

    fn id_of(name: &str) -> GoalId {
        match name.bytes().next() {
            Some(b'-') | None => ALL,
            Some(letter) => [letter; 16],
        }
    }

    /// Goals a to d; see `tests/behaviour/goals.txt`.
    fn four_goals() -> GoalTable<(), ()> {
        let mut table = GoalTable::new(4, std::time::Duration::from_nanos(100));
        for (name, stamp) in [("a", 10), ("b", 20), ("c", 30), ("d", 40)] {
            table.accept(id_of(name), stamp, Guid::default());
        }
        table.transition(id_of("a"), G::Executing).unwrap();
        table.transition(id_of("c"), G::Canceling).unwrap();
        table.transition(id_of("d"), G::Executing).unwrap();
        table
            .finish(Instant::ZERO, id_of("d"), G::Succeeded, ())
            .unwrap();
        table
    }

    /// The last status, or that the last step was refused.
    fn last_status(steps: &[&str]) -> String {
        let mut table = GoalTable::<(), ()>::new(1, std::time::Duration::ZERO);
        table.accept(A, 0, Guid::default());
        let mut result = Ok(());
        for step in steps {
            result.expect("only the last step is refused");
            let target = (0..7)
                .map(GoalStatus::from_id)
                .find(|status| status.to_string() == *step)
                .expect("a status");
            result = match target.is_terminal() {
                true => table.finish(Instant::ZERO, A, target, ()).map(drop),
                false => table.transition(A, target),
            };
        }
        match result {
            Ok(()) => table.status(A).to_string(),
            Err(_) => "refused".to_owned(),
        }
    }

    #[test]
    fn the_rows_of_the_behaviour_table_hold() {
        let rows = include_str!("../../tests/behaviour/goals.txt").lines();
        let mut count = 0;
        for row in rows.filter(|row| !row.starts_with('#')) {
            let (question, expected) = row.split_once("->").expect(row);
            let words: Vec<_> = question.split_whitespace().collect();
            let names = |goals: Vec<GoalId>| -> String {
                let letters = goals.iter().map(|id| format!(" {}", char::from(id[0])));
                letters.collect()
            };
            let found = match words.as_slice() {
                ["goal", steps @ ..] => last_status(steps),
                ["cancel", name, stamp] => {
                    let stamp = stamp.parse().expect(row);
                    let selected = four_goals().select_for_cancel(id_of(name), stamp);
                    format!("{}{}", selected.code, names(selected.goals))
                }
                ["expire", nanos] => {
                    let mut table = four_goals();
                    table.expire(Instant::from_nanos(nanos.parse().expect(row)));
                    names(table.all().map(|goal| goal.id).collect())
                }
                _ => panic!("unknown row: {row}"),
            };
            assert_eq!(found.trim(), expected.trim(), "{row}");
            count += 1;
        }
        assert!(count >= 37, "only {count} rows");
    }

    #[test]
    fn pending_result_requests_have_a_limit() {
        let mut table = three_goals();
        let later = (0..200)
            .filter(|n| matches!(table.request_result(at(1), A, *n), ResultLookup::Pending));
        assert_eq!(later.count(), RESULT_WAITERS_MAX);
    }
}

//! Goal table of an action server: status, cancel rules and the expiry of results.

use parking_lot::Mutex;
use pteros_rcl::action::{GoalStatus, GoalTable as Goals};
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::rtps::time::Instant;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::rcl;

type GoalId = [u8; 16];

/// Goals of a server, ended ones with a kept result included: 15 minutes at 72 a second. A
/// further goal takes the place of the one that ended first.
const GOALS_MAX: usize = 65_536;

/// The goals of an action server. Times are nanoseconds of the node's clock. Results and
/// their requests stay with the caller.
#[pyclass(frozen, module = "pteros._native")]
pub(crate) struct GoalTable {
    goals: Mutex<Goals<(), ()>>,
}

fn instant(nanos: i64) -> Instant {
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

#[pymethods]
impl GoalTable {
    /// Keeps an ended goal for `result_timeout` ns.
    #[new]
    fn new(result_timeout: u64) -> Self {
        let timeout = std::time::Duration::from_nanos(result_timeout);
        Self {
            goals: Mutex::new(Goals::new(GOALS_MAX, timeout)),
        }
    }

    /// Whether the goal is active, or has ended and its result is kept.
    fn contains(&self, id: GoalId) -> bool {
        self.goals.lock().contains(id)
    }

    /// Whether it takes no further goal: it holds 65 536, and all of them are active.
    fn is_full(&self) -> bool {
        self.goals.lock().is_full()
    }

    /// Adds an accepted goal: whether it was added, and the goal whose place it took. It is
    /// not added if the id is in use, or the table is full.
    fn accept<'py>(
        &self,
        py: Python<'py>,
        id: GoalId,
        stamp: i64,
    ) -> (bool, Option<Bound<'py, PyBytes>>) {
        let mut goals = self.goals.lock();
        if goals.contains(id) || goals.is_full() {
            return (false, None);
        }
        let dropped = goals.accept(id, stamp, Guid::default());
        (true, dropped.map(|id| PyBytes::new(py, &id)))
    }

    /// The status, of `action_msgs/msg/GoalStatus`; 0 for a goal that is not in the table.
    fn status(&self, id: GoalId) -> i8 {
        self.goals.lock().status(id).id()
    }

    /// The statuses of all goals in the order of acceptance.
    fn statuses(&self) -> Vec<i8> {
        self.goals
            .lock()
            .all()
            .map(|goal| goal.status.id())
            .collect()
    }

    /// Removes a goal in any state.
    fn remove(&self, id: GoalId) {
        self.goals.lock().remove(id);
    }

    /// Changes the status; `RCLError` if the goal state machine has no such transition.
    fn transition(&self, id: GoalId, target: i8, now: i64) -> PyResult<()> {
        let target = GoalStatus::from_id(target);
        let mut goals = self.goals.lock();
        let changed = if target.is_terminal() {
            goals.finish(instant(now), id, target, ()).map(drop)
        } else {
            goals.transition(id, target)
        };
        changed.map_err(|error| {
            let name: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            rcl(format!("goal {name}: {error}"))
        })
    }

    /// The return code for a cancel request, and the goals that it selects by id and time.
    fn select_for_cancel<'py>(
        &self,
        py: Python<'py>,
        id: GoalId,
        stamp: i64,
    ) -> (i8, Vec<Bound<'py, PyBytes>>) {
        let selection = self.goals.lock().select_for_cancel(id, stamp);
        let goals = selection.goals.iter();
        (
            selection.code,
            goals.map(|id| PyBytes::new(py, id)).collect(),
        )
    }

    /// The time at which the next result expires, or None.
    fn next_expiry(&self) -> Option<u64> {
        self.goals.lock().next_expiry().map(Instant::as_nanos)
    }

    /// Removes the goals whose results have expired, and returns them.
    fn expire<'py>(&self, py: Python<'py>, now: i64) -> Vec<Bound<'py, PyBytes>> {
        let expired = self.goals.lock().expire(instant(now));
        expired.iter().map(|id| PyBytes::new(py, id)).collect()
    }
}

//! Lifecycle state machine of a node: the state, and the transitions that it allows.

use parking_lot::Mutex;
use pteros_rcl::lifecycle::{LifecycleState, LifecycleTransition};
use pyo3::prelude::*;

use crate::error::rcl;

/// Number and label of a transition, of its start state and of its goal state.
type TransitionRow = (u8, &'static str, u8, &'static str, u8, &'static str);

fn row(transition: &LifecycleTransition) -> TransitionRow {
    let LifecycleTransition {
        id,
        label,
        start,
        goal,
        ..
    } = *transition;
    (
        id,
        label,
        start.id(),
        start.label(),
        goal.id(),
        goal.label(),
    )
}

/// The state of a lifecycle node, and the transitions that are possible.
#[pyclass(frozen, subclass, module = "pteros._native")]
pub(crate) struct StateMachine {
    state: Mutex<LifecycleState>,
}

/// The transition from a state that `is_it` accepts; `RCLError` if there is none.
fn find(
    state: LifecycleState,
    name: impl FnOnce() -> String,
    is_it: impl Fn(&LifecycleTransition) -> bool,
) -> PyResult<&'static LifecycleTransition> {
    let found = state.transitions().find(|transition| is_it(transition));
    found.ok_or_else(|| {
        let labels: Vec<_> = state.transitions().map(|possible| possible.label).collect();
        let possible = if labels.is_empty() {
            "none".to_owned()
        } else {
            labels.join(", ")
        };
        rcl(format!(
            "transition {} is not possible in the state '{}'; possible: {possible}",
            name(),
            state.label()
        ))
    })
}

#[pymethods]
impl StateMachine {
    #[new]
    fn new() -> Self {
        Self {
            state: Mutex::new(LifecycleState::Unconfigured),
        }
    }

    /// Number and label of the state.
    #[getter]
    fn current_state(&self) -> (u8, &'static str) {
        let state = *self.state.lock();
        (state.id(), state.label())
    }

    /// All states.
    #[getter]
    fn available_states(&self) -> Vec<(u8, &'static str)> {
        let states = LifecycleState::ALL.iter();
        states.map(|state| (state.id(), state.label())).collect()
    }

    /// The transitions from this state: number, label, and both states.
    #[getter]
    fn available_transitions(&self) -> Vec<TransitionRow> {
        self.state.lock().transitions().map(row).collect()
    }

    /// All transitions: number, label, and both states.
    #[getter]
    fn transition_graph(&self) -> Vec<TransitionRow> {
        LifecycleTransition::all().iter().map(row).collect()
    }

    /// The number of the transition with a label from this state; `RCLError` if there is
    /// none.
    fn get_transition_by_label(&self, label: &str) -> PyResult<u8> {
        let state = *self.state.lock();
        find(state, || format!("'{label}'"), |it| it.label == label).map(|found| found.id)
    }

    /// Makes a transition and returns it; `RCLError` if this state does not allow it, or
    /// there is no such number.
    fn make_transition(&self, transition_id: i64) -> PyResult<TransitionRow> {
        let mut state = self.state.lock();
        let name = || format!("number {transition_id}");
        let found = find(*state, name, |it| i64::from(it.id) == transition_id)?;
        *state = found.goal;
        Ok(row(found))
    }
}

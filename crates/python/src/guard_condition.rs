//! Guard conditions: the handles of those of `rcl`.

use std::sync::Arc;

use pteros_rcl::guard_condition::GuardCondition as GuardState;
use pyo3::prelude::*;

use crate::context::{Context, ContextState, Owner};
use crate::handle::{Handle, Lifetime};

/// A guard condition.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct GuardCondition {
    pub(crate) state: Arc<GuardState>,
    pub(crate) life: Arc<Lifetime>,
    _context: Arc<ContextState>,
}

impl GuardCondition {
    pub(crate) fn make(
        context: &Arc<ContextState>,
        state: Arc<GuardState>,
    ) -> PyClassInitializer<Self> {
        let life = Lifetime::new(|| {});
        PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
            state,
            life,
            _context: context.clone(),
        })
    }
}

#[pymethods]
impl GuardCondition {
    #[new]
    fn new(py: Python<'_>, context: &Context) -> PyResult<PyClassInitializer<Self>> {
        context.life.check()?;
        context
            .state
            .check_valid(py, "create guard_condition", Owner::Given)?;
        Ok(Self::make(&context.state, Arc::default()))
    }

    /// Wakes every poller that has it.
    fn trigger_guard_condition(&self) -> PyResult<()> {
        self.life.check()?;
        self.state.trigger();
        Ok(())
    }

    /// Whether it is triggered and no poller has taken the trigger.
    fn is_triggered(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.state.is_triggered())
    }
}

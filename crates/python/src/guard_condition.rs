//! Guard conditions: triggers of user code.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::context::{Context, ContextState, Owner};
use crate::handle::{Handle, Lifetime};
use crate::wakers::Wakers;

/// The state of a guard condition.
#[derive(Default)]
pub(crate) struct GuardState {
    is_triggered: AtomicBool,
    pub(crate) wakers: Wakers,
}

impl GuardState {
    /// Triggers it and wakes its pollers. Thread-safe, does not block.
    pub(crate) fn trigger(&self) {
        self.is_triggered.store(true, Ordering::Release);
        self.wakers.wake();
    }

    pub(crate) fn is_triggered(&self) -> bool {
        self.is_triggered.load(Ordering::Acquire)
    }

    /// Takes the trigger.
    pub(crate) fn consume(&self) -> bool {
        self.is_triggered.swap(false, Ordering::AcqRel)
    }
}

/// A guard condition.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct GuardCondition {
    pub(crate) state: Arc<GuardState>,
    pub(crate) life: Arc<Lifetime>,
    _context: Arc<ContextState>,
}

impl GuardCondition {
    pub(crate) fn make(context: &Arc<ContextState>) -> PyClassInitializer<Self> {
        let life = Lifetime::new(|| {});
        PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
            state: Arc::default(),
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
        Ok(Self::make(&context.state))
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

//! Lock of a mutually exclusive callback group. It never blocks, and any thread may
//! release it, because a callback may end in another thread than it began in.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A lock that is tried, and never waited for.
#[pyclass(frozen, module = "pteros._native")]
pub(crate) struct GroupLock {
    is_locked: AtomicBool,
}

impl GroupLock {
    /// Takes it, unless it is taken.
    pub(crate) fn try_acquire(&self) -> bool {
        !self.is_locked.swap(true, Ordering::Acquire)
    }

    /// Returns whether it was taken.
    pub(crate) fn give_back(&self) -> bool {
        self.is_locked.swap(false, Ordering::Release)
    }
}

#[pymethods]
impl GroupLock {
    #[new]
    fn new() -> Self {
        Self {
            is_locked: AtomicBool::new(false),
        }
    }

    /// Takes it and returns True, unless it is taken.
    fn acquire(&self) -> bool {
        self.try_acquire()
    }

    /// Gives it back.
    fn release(&self) -> PyResult<()> {
        if self.give_back() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("release unlocked lock"))
    }

    /// Whether it is taken.
    fn locked(&self) -> bool {
        self.is_locked.load(Ordering::Acquire)
    }
}

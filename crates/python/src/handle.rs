//! Handles: entities that Python code may destroy while other code uses them.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error::InvalidHandle;

type Closer = Box<dyn FnOnce() + Send>;

/// The life of an entity, from its creation until it is closed.
pub(crate) struct Lifetime(Mutex<State>);

struct State {
    /// `with` blocks that hold it.
    uses: usize,
    is_destroyed: bool,
    /// Frees the entity; taken once.
    close: Option<Closer>,
}

impl Lifetime {
    pub(crate) fn new(close: impl FnOnce() + Send + 'static) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            uses: 0,
            is_destroyed: false,
            close: Some(Box::new(close)),
        })))
    }

    /// Whether the entity is still open: not destroyed, or held by a `with` block.
    pub(crate) fn is_open(&self) -> bool {
        self.0.lock().close.is_some()
    }

    /// # Errors
    /// InvalidHandle once it is closed.
    pub(crate) fn check(&self) -> PyResult<()> {
        if self.is_open() {
            Ok(())
        } else {
            Err(destroyed())
        }
    }

    fn enter(&self) -> PyResult<()> {
        let mut state = self.0.lock();
        if state.is_destroyed {
            return Err(destroyed());
        }
        state.uses += 1;
        Ok(())
    }

    fn leave(&self) {
        let mut state = self.0.lock();
        state.uses = state.uses.saturating_sub(1);
        let close = if state.uses == 0 && state.is_destroyed {
            state.close.take()
        } else {
            None
        };
        drop(state);
        if let Some(close) = close {
            close();
        }
    }

    pub(crate) fn destroy(&self) {
        let mut state = self.0.lock();
        state.is_destroyed = true;
        let close = if state.uses == 0 {
            state.close.take()
        } else {
            None
        };
        drop(state);
        if let Some(close) = close {
            close();
        }
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        if let Some(close) = self.0.get_mut().close.take() {
            close();
        }
    }
}

fn destroyed() -> PyErr {
    InvalidHandle::new_err("cannot use it: it was destroyed")
}

/// Base of every entity.
#[pyclass(subclass, frozen, weakref, module = "pteros._native")]
pub(crate) struct Handle {
    pub(crate) life: Arc<Lifetime>,
}

#[pymethods]
impl Handle {
    fn __enter__(&self) -> PyResult<()> {
        self.life.enter()
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        self.life.leave();
    }

    /// Destroys the entity now, or when the last `with` block ends.
    fn destroy_when_not_in_use(&self, py: Python<'_>) {
        let life = self.life.clone();
        py.detach(move || life.destroy());
    }

    /// A number that is unique among living entities.
    #[getter]
    fn pointer(&self) -> PyResult<usize> {
        self.life.check()?;
        Ok(Arc::as_ptr(&self.life).addr())
    }

    #[getter]
    fn is_destroyed(&self) -> bool {
        self.life.0.lock().is_destroyed
    }
}

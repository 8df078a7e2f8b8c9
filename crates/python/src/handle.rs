//! Handles: entities that Python code may destroy while other code uses them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error::InvalidHandle;

type Closer = Box<dyn FnOnce() + Send>;

/// `os.fork` calls between the first process and this one. The sockets and memory of an
/// entity are its process's alone: in a child it can neither be used nor closed, because
/// the peers would take that for the parent's doing.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The number of forks, to compare with [`is_of_parent`].
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Whether an entity was made before this process was forked, with the number of forks
/// at that time.
pub(crate) fn is_of_parent(forks_then: u64) -> bool {
    forks_then != forks()
}

/// The life of an entity, from its creation until it is closed.
pub(crate) struct Lifetime {
    forks: u64,
    /// Whether `state` still has its closer, for a look without the lock at every call.
    is_open: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// `with` blocks that hold it.
    uses: usize,
    is_destroyed: bool,
    /// Frees the entity; taken once.
    close: Option<Closer>,
}

impl Lifetime {
    pub(crate) fn new(close: impl FnOnce() + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            forks: forks(),
            is_open: AtomicBool::new(true),
            state: Mutex::new(State {
                uses: 0,
                is_destroyed: false,
                close: Some(Box::new(close)),
            }),
        })
    }

    /// Whether the entity is still open: not destroyed, or held by a `with` block. One of
    /// the parent process is not. Takes no lock.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_of_parent() && self.is_open.load(Ordering::Acquire)
    }

    /// Takes the closer if nothing uses the entity any more.
    fn take_closer(&self, state: &mut State) -> Option<Closer> {
        if state.uses > 0 || !state.is_destroyed {
            return None;
        }
        self.is_open.store(false, Ordering::Release);
        state.close.take()
    }

    fn is_of_parent(&self) -> bool {
        is_of_parent(self.forks)
    }

    /// # Errors
    /// InvalidHandle once it is closed, and in a child process.
    pub(crate) fn check(&self) -> PyResult<()> {
        if self.is_open() {
            Ok(())
        } else {
            Err(self.unusable())
        }
    }

    fn unusable(&self) -> PyErr {
        InvalidHandle::new_err(if self.is_of_parent() {
            "cannot use it: it belongs to the process that called os.fork(); call rclpy.init() in this one"
        } else {
            "cannot use it: it was destroyed"
        })
    }

    fn enter(&self) -> PyResult<()> {
        if self.is_of_parent() {
            return Err(self.unusable());
        }
        let mut state = self.state.lock();
        if state.is_destroyed {
            return Err(self.unusable());
        }
        state.uses += 1;
        Ok(())
    }

    fn leave(&self) {
        if self.is_of_parent() {
            return;
        }
        let mut state = self.state.lock();
        state.uses = state.uses.saturating_sub(1);
        let close = self.take_closer(&mut state);
        drop(state);
        if let Some(close) = close {
            close();
        }
    }

    pub(crate) fn destroy(&self) {
        if self.is_of_parent() {
            return;
        }
        let mut state = self.state.lock();
        state.is_destroyed = true;
        let close = self.take_closer(&mut state);
        drop(state);
        if let Some(close) = close {
            close();
        }
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        let Some(close) = self.state.get_mut().close.take() else {
            return;
        };
        if is_of_parent(self.forks) {
            // It keeps what the parent uses.
            std::mem::forget(close);
        } else {
            close();
        }
    }
}

/// Notes that this process is a new child.
#[pyfunction]
fn _after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Notes each `os.fork` from now on.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = pyo3::types::PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(_after_fork, module)?)?;
    py.import("os")?
        .call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
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
        self.life.is_of_parent() || self.life.state.lock().is_destroyed
    }
}

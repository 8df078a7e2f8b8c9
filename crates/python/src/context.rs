//! Contexts: one DDS participant each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use pteros::args::Arguments;
use pteros::config::DOMAIN_ID_MAX;
use pteros_net::{ReceivedSignal, ShutdownSignal, shutdown_request};
use pteros_rcl::wait_set::WaitContext;
use pteros_runtime::Core;
use pteros_runtime::platform::{SignalHandling, SystemPlatform};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::{RCLInvalidROSArgsError, UnknownROSArgsError, rcl};
use crate::ffi::call_back;
use crate::handle::{Handle, Lifetime, forks, is_of_parent};
use crate::signals;

/// The signal that has requested the shutdown.
fn received_signal() -> Option<ReceivedSignal> {
    shutdown_request().ok().and_then(ShutdownSignal::received)
}

/// An open context.
pub(crate) struct ContextState {
    pub(crate) context: pteros::Context,
    pub(crate) core: Arc<Core>,
    pub(crate) waits: Arc<WaitContext>,
    is_shut_down: AtomicBool,
    /// Whether a signal shut it down that was cleared for a later context.
    was_signaled: AtomicBool,
    /// That one.
    noted_signal: Mutex<Option<ReceivedSignal>>,
    /// See [`is_of_parent`].
    forks: u64,
}

impl ContextState {
    /// Whether it is the parent process's.
    pub(crate) fn is_of_parent(&self) -> bool {
        is_of_parent(self.forks)
    }

    /// Whether shutdown has begun, by a call or a signal. Always for one of the parent
    /// process.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.is_of_parent()
            || self.is_shut_down.load(Ordering::Acquire)
            || self.was_signaled.load(Ordering::Acquire)
            || self.core.is_shut_down()
    }

    /// Fails once shutdown has begun. The text has rcl's words, which programs look for:
    /// `failed to publish: publisher's context is invalid`.
    ///
    /// # Errors
    /// RCLError. KeyboardInterrupt, or whatever the program's handler raises, if it was a
    /// signal that this thread has still to handle.
    #[inline]
    pub(crate) fn check_valid(
        &self,
        py: Python<'_>,
        action: impl std::fmt::Display,
        owner: Owner,
    ) -> PyResult<()> {
        if self.is_shut_down() {
            return Err(self.invalid(py, &action, owner));
        }
        Ok(())
    }

    #[cold]
    fn invalid(&self, py: Python<'_>, action: &dyn std::fmt::Display, owner: Owner) -> PyErr {
        if let Err(raised) = py.check_signals() {
            return raised;
        }
        let reason = match self.shutdown_reason() {
            "signal" => format!("{} shut it down", self.signal_name()),
            _ => "rclpy.shutdown() was called".to_owned(),
        };
        let owner = match owner {
            Owner::Publisher => "publisher's context is invalid",
            Owner::Node => "rcl node's context is invalid",
            Owner::Given => "the given context is not valid",
        };
        rcl(format!(
            "failed to {action}: {owner}, {reason}; check rclpy.ok() before"
        ))
    }

    /// Why it is shut down: "", "user" or "signal".
    fn shutdown_reason(&self) -> &'static str {
        if self.is_shut_down.load(Ordering::Acquire) {
            "user"
        } else if self.was_signaled.load(Ordering::Acquire) || self.core.is_shut_down() {
            "signal"
        } else {
            ""
        }
    }

    /// The signal that shut it down.
    fn signal_name(&self) -> &'static str {
        let noted = *self.noted_signal.lock();
        let signal = noted.or_else(received_signal);
        signal.map_or("a signal", ReceivedSignal::name)
    }

    /// Keeps it shut down when the signal that did it is cleared.
    pub(crate) fn note_signal(&self) {
        let mut noted = self.noted_signal.lock();
        *noted = noted.or_else(received_signal);
        self.was_signaled.store(true, Ordering::Release);
    }

    /// Ends all waits.
    pub(crate) fn shut_down(&self) {
        self.is_shut_down.store(true, Ordering::Release);
        self.core.request_shutdown();
        self.core.wake_waiters();
    }
}

/// The owner of a call that an invalid context refuses, for the words of the error.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    Publisher,
    Node,
    /// The context is an argument of the call.
    Given,
}

/// All contexts of this process that exist, for signals and its end.
pub(crate) fn for_each_context(mut see: impl FnMut(&ContextState)) {
    let open: Vec<Arc<ContextState>> = contexts().lock().iter().filter_map(Weak::upgrade).collect();
    let own = open.iter().filter(|context| !context.is_of_parent());
    own.for_each(|context| see(context));
}

fn contexts() -> &'static Mutex<Vec<Weak<ContextState>>> {
    static CONTEXTS: OnceLock<Mutex<Vec<Weak<ContextState>>>> = OnceLock::new();
    CONTEXTS.get_or_init(Mutex::default)
}

/// A context.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Context {
    pub(crate) state: Arc<ContextState>,
    pub(crate) life: Arc<Lifetime>,
    rest: Vec<String>,
    callbacks: Mutex<Vec<Py<PyAny>>>,
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (args=Vec::new(), domain_id=None))]
    fn new(
        py: Python<'_>,
        args: Vec<String>,
        domain_id: Option<i64>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (arguments, rest) = parse(py, args)?;
        let domain_id = match domain_id {
            None => None,
            Some(id) => Some(
                u32::try_from(id)
                    .ok()
                    .filter(|id| *id <= DOMAIN_ID_MAX)
                    .ok_or_else(|| {
                        rcl(format!(
                            "domain {id}: use 0 to {DOMAIN_ID_MAX} (0 to 101 is always safe)"
                        ))
                    })?,
            ),
        };
        let options = pteros::ContextOptions {
            arguments,
            use_environment: true,
            domain_id,
            ..pteros::ContextOptions::default()
        };
        signals::before_open();
        let platform = Arc::new(SystemPlatform::with_signals(SignalHandling::Follow));
        let opened = py.detach(|| pteros::Context::with_platform(platform, options));
        let context = opened.map_err(rcl)?;
        let core = context.runtime().clone();
        let state = Arc::new(ContextState {
            waits: WaitContext::new(&core),
            core,
            context,
            is_shut_down: AtomicBool::new(false),
            was_signaled: AtomicBool::new(false),
            noted_signal: Mutex::default(),
            forks: forks(),
        });
        let mut open = contexts().lock();
        open.retain(|known| known.strong_count() > 0);
        open.push(Arc::downgrade(&state));
        drop(open);
        let closed = state.clone();
        let life = Lifetime::new(move || closed.shut_down());
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                state,
                life,
                rest,
                callbacks: Mutex::default(),
            }),
        )
    }

    /// False once shutdown has begun.
    fn ok(&self) -> bool {
        self.life.is_open() && !self.state.is_shut_down()
    }

    /// Begins shutdown and runs all callbacks. Raises the first error of theirs.
    fn shutdown(&self, py: Python<'_>) -> PyResult<()> {
        self.life.check()?;
        if self.state.is_shut_down.swap(true, Ordering::AcqRel) {
            return Err(rcl("the context is shut down already"));
        }
        py.detach(|| self.state.shut_down());
        let callbacks = std::mem::take(&mut *self.callbacks.lock());
        let mut result = Ok(());
        for callback in callbacks {
            // The others end waits, which would last for ever.
            result = result.and(run_callback(callback.bind(py)));
        }
        result
    }

    /// Adds a callback of `shutdown`; a bound method is held weakly.
    fn on_shutdown(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = callback.py();
        let kept = if callback.hasattr("__self__")? && callback.hasattr("__func__")? {
            py.import("weakref")?
                .getattr("WeakMethod")?
                .call1((callback,))?
        } else {
            callback.clone()
        };
        self.callbacks.lock().push(kept.unbind());
        Ok(())
    }

    /// For the garbage collector: a callback may hold what holds the context.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // No Python code runs under the lock, so it is free here.
        let Some(callbacks) = self.callbacks.try_lock() else {
            return Ok(());
        };
        callbacks.iter().try_for_each(|one| visit.call(one))
    }

    fn __clear__(&self) {
        let callbacks = std::mem::take(&mut *self.callbacks.lock());
        drop(callbacks);
    }

    /// The DDS domain.
    fn get_domain_id(&self) -> PyResult<u32> {
        self.life.check()?;
        Ok(self.state.context.domain_id())
    }

    /// Why it is shut down: "", "user" or "signal".
    #[getter]
    fn shutdown_reason(&self) -> &'static str {
        self.state.shutdown_reason()
    }

    /// The arguments without `--ros-args … --`.
    #[getter]
    fn non_ros_args(&self) -> Vec<String> {
        self.rest.clone()
    }
}

/// Runs a callback of `shutdown`. A weak reference to a bound method gives the method, or None.
fn run_callback(callback: &Bound<'_, PyAny>) -> PyResult<()> {
    let callback = if callback.hasattr("__callback__")? {
        callback.call0()?
    } else {
        callback.clone()
    };
    if !callback.is_none() {
        call_back(&callback, None)?;
    }
    Ok(())
}

/// Parses a command line.
pub(crate) fn parse(py: Python<'_>, words: Vec<String>) -> PyResult<(Arguments, Vec<String>)> {
    Arguments::parse(words).map_err(|error| match error {
        pteros::args::ArgumentsError::Unknown { ref argument, .. } => {
            let raised = UnknownROSArgsError::new_err(format!(
                "Failed to parse ROS arguments, unknown ones: ['{argument}']: {error}"
            ));
            // Setting an attribute of a new exception does not fail.
            if let Ok(list) = PyList::new(py, [argument]) {
                let _ = raised.value(py).setattr("unknown_args", list);
            }
            raised
        }
        other => RCLInvalidROSArgsError::new_err(format!("Failed to parse ROS arguments: {other}")),
    })
}

/// The arguments without `--ros-args … --`.
#[pyfunction]
fn remove_ros_args(py: Python<'_>, args: Vec<String>) -> PyResult<Vec<String>> {
    Ok(parse(py, args)?.1)
}

/// Announces the departure of all participants, at the end of the process.
#[pyfunction]
fn _close_all(py: Python<'_>) {
    py.detach(|| {
        for_each_context(|context| {
            context.shut_down();
            context.core.close();
        });
    });
}

/// Adds class and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Context>()?;
    module.add_function(wrap_pyfunction!(remove_ros_args, module)?)?;
    let close = wrap_pyfunction!(_close_all, module)?;
    module
        .py()
        .import("atexit")?
        .call_method1("register", (close,))?;
    Ok(())
}

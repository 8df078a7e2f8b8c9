//! Synchronizers and caches of the package `message_filters`: those of the client core.
//! Messages cross as objects, with their stamps in nanoseconds.
//!
//! Filters change only with the GIL, so the garbage collector sees the same messages in each
//! of its passes. The end of an object may run Python code, so it waits until the lock of its
//! filter is free ([`Held`]).

use std::cell::RefCell;

use parking_lot::Mutex;
use pteros_rcl::message_filters::{Cache, ExactTime, SlopTime, SyncPolicy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

type Object = Py<PyAny>;

/// A message in a filter. Where it is dropped, its object is only moved to `ENDED`.
struct Held(Option<Object>);

thread_local! {
    /// Objects that have left a filter whose lock this thread holds.
    static ENDED: RefCell<Vec<Object>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Held {
    fn drop(&mut self) {
        let object = self.0.take();
        // Without `ENDED` the thread ends, and the object with this closure.
        let _ = ENDED.try_with(|ended| ended.borrow_mut().extend(object));
    }
}

impl Held {
    fn clone_ref(&self, py: Python<'_>) -> Option<Object> {
        self.0.as_ref().map(|object| object.clone_ref(py))
    }
}

/// Drops the objects that have left filters. Their ends may run Python code.
fn drop_ended() {
    drop(ENDED.try_with(RefCell::take));
}

/// A filter behind its lock.
struct Locked<T> {
    filter: Mutex<T>,
    /// Dropped after the filter.
    _ended: DropEnded,
}

struct DropEnded;

impl Drop for DropEnded {
    fn drop(&mut self) {
        drop_ended();
    }
}

impl<T> Locked<T> {
    fn new(filter: T) -> Self {
        Self {
            filter: Mutex::new(filter),
            _ended: DropEnded,
        }
    }

    /// Calls `act` with the filter. It must not run Python code.
    fn with<R>(&self, _: Python<'_>, act: impl FnOnce(&mut T) -> R) -> R {
        let outcome = act(&mut self.filter.lock());
        drop_ended();
        outcome
    }
}

/// Joins the messages of several inputs.
#[pyclass(frozen, weakref, module = "pteros._native")]
pub(crate) struct Synchronizer {
    policy: Locked<Box<dyn SyncPolicy<Held>>>,
}

#[pymethods]
impl Synchronizer {
    /// `policy` is exact or slop; `slop_ns` is for the last.
    #[new]
    #[pyo3(signature = (policy, inputs, queue_size, slop_ns=0))]
    fn new(policy: &str, inputs: usize, queue_size: usize, slop_ns: i64) -> PyResult<Self> {
        let policy: Box<dyn SyncPolicy<Held>> = match policy {
            "exact" => Box::new(ExactTime::new(inputs, queue_size)),
            "slop" => Box::new(SlopTime::new(inputs, queue_size, slop_ns)),
            other => {
                return Err(PyValueError::new_err(format!(
                    "policy {other:?}: use exact or slop"
                )));
            }
        };
        Ok(Self {
            policy: Locked::new(policy),
        })
    }

    /// Adds a message of an input. Returns the sets that are complete now, as tuples.
    fn add<'py>(
        &self,
        py: Python<'py>,
        input: usize,
        stamp_ns: i64,
        message: Object,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let message = Held(Some(message));
        let sets = self
            .policy
            .with(py, |policy| policy.add(input, stamp_ns, message));
        let objects = |set: Vec<Held>| -> Vec<Object> {
            let taken = set.into_iter().filter_map(|mut held| held.0.take());
            taken.collect()
        };
        let sets = sets.into_iter().map(objects);
        sets.map(|set| PyTuple::new(py, set)).collect()
    }

    /// Drops all messages that wait.
    fn clear(&self, py: Python<'_>) {
        self.policy.with(py, |policy| policy.clear());
    }

    /// For the garbage collector: messages may refer to the owner of the synchronizer.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The lock is free: whoever holds it has the GIL and runs no Python code.
        let Some(policy) = self.policy.filter.try_lock() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        policy.visit(&mut |message| {
            if outcome.is_ok() {
                outcome = visit.call(&message.0);
            }
        });
        outcome
    }

    fn __clear__(&self, py: Python<'_>) {
        self.clear(py);
    }
}

/// The last messages of an input, by time.
#[pyclass(frozen, weakref, module = "pteros._native")]
pub(crate) struct MessageCache {
    cache: Locked<Cache<Held>>,
}

#[pymethods]
impl MessageCache {
    #[new]
    fn new(size: usize) -> Self {
        Self {
            cache: Locked::new(Cache::new(size)),
        }
    }

    fn add(&self, py: Python<'_>, stamp_ns: i64, message: Object) {
        let message = Held(Some(message));
        self.cache.with(py, |cache| cache.add(stamp_ns, message));
    }

    /// The messages of a span of time with both ends.
    fn interval<'py>(
        &self,
        py: Python<'py>,
        from_ns: i64,
        to_ns: i64,
    ) -> PyResult<Bound<'py, PyList>> {
        let messages: Vec<_> = self.cache.with(py, |cache| {
            let messages = cache.interval(from_ns, to_ns);
            messages.filter_map(|held| held.clone_ref(py)).collect()
        });
        PyList::new(py, messages)
    }

    /// The last message at a time or before, or None.
    fn before(&self, py: Python<'_>, time_ns: i64) -> Option<Object> {
        self.cache
            .with(py, |cache| cache.before(time_ns)?.clone_ref(py))
    }

    /// The first message at a time or after, or None.
    fn after(&self, py: Python<'_>, time_ns: i64) -> Option<Object> {
        self.cache
            .with(py, |cache| cache.after(time_ns)?.clone_ref(py))
    }

    /// The oldest stamp with its message, or None.
    fn first(&self, py: Python<'_>) -> Option<(i64, Object)> {
        self.cache
            .with(py, |cache| stamped(py, cache.messages().next()?))
    }

    /// The latest stamp with its message, or None.
    fn last(&self, py: Python<'_>) -> Option<(i64, Object)> {
        self.cache
            .with(py, |cache| stamped(py, cache.messages().next_back()?))
    }

    /// All stamps with their messages, the oldest first.
    fn messages(&self, py: Python<'_>) -> Vec<(i64, Object)> {
        self.cache.with(py, |cache| {
            let messages = cache.messages();
            messages.filter_map(|one| stamped(py, one)).collect()
        })
    }

    fn clear(&self, py: Python<'_>) {
        self.cache.with(py, Cache::clear);
    }

    /// For the garbage collector, as [`Synchronizer::__traverse__`].
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(cache) = self.cache.filter.try_lock() else {
            return Ok(());
        };
        let mut messages = cache.messages();
        messages.try_for_each(|(_, message)| visit.call(&message.0))
    }

    fn __clear__(&self, py: Python<'_>) {
        self.clear(py);
    }
}

fn stamped(py: Python<'_>, (stamp, held): (i64, &Held)) -> Option<(i64, Object)> {
    Some((stamp, held.clone_ref(py)?))
}

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Synchronizer>()?;
    module.add_class::<MessageCache>()
}

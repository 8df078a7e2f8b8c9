//! Synchronizers and caches of the package `message_filters`: those of the client core.
//! Messages cross as objects, with their stamps in nanoseconds. They are dropped without the
//! GIL, so that the end of an object runs no Python code under a lock.

use parking_lot::Mutex;
use pteros_rcl::message_filters::{Cache, ExactTime, SlopTime, SyncPolicy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

type Object = Py<PyAny>;

/// Joins the messages of several inputs.
#[pyclass(frozen, weakref, module = "pteros._native")]
pub(crate) struct Synchronizer {
    policy: Mutex<Box<dyn SyncPolicy<Object>>>,
}

#[pymethods]
impl Synchronizer {
    /// `policy` is exact or slop; `slop_ns` is for the last.
    #[new]
    #[pyo3(signature = (policy, inputs, queue_size, slop_ns=0))]
    fn new(policy: &str, inputs: usize, queue_size: usize, slop_ns: i64) -> PyResult<Self> {
        let policy: Box<dyn SyncPolicy<Object>> = match policy {
            "exact" => Box::new(ExactTime::new(inputs, queue_size)),
            "slop" => Box::new(SlopTime::new(inputs, queue_size, slop_ns)),
            other => {
                return Err(PyValueError::new_err(format!(
                    "policy {other:?}: use exact or slop"
                )));
            }
        };
        Ok(Self {
            policy: Mutex::new(policy),
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
        let sets = py.detach(|| self.policy.lock().add(input, stamp_ns, message));
        sets.into_iter().map(|set| PyTuple::new(py, set)).collect()
    }

    /// Drops all messages that wait.
    fn clear(&self, py: Python<'_>) {
        py.detach(|| self.policy.lock().clear());
    }
}

/// The last messages of an input, by time.
#[pyclass(frozen, weakref, module = "pteros._native")]
pub(crate) struct MessageCache {
    cache: Mutex<Cache<Object>>,
}

#[pymethods]
impl MessageCache {
    #[new]
    fn new(size: usize) -> Self {
        Self {
            cache: Mutex::new(Cache::new(size)),
        }
    }

    fn add(&self, py: Python<'_>, stamp_ns: i64, message: Object) {
        py.detach(|| self.cache.lock().add(stamp_ns, message));
    }

    /// The messages of a span of time with both ends.
    fn interval<'py>(
        &self,
        py: Python<'py>,
        from_ns: i64,
        to_ns: i64,
    ) -> PyResult<Bound<'py, PyList>> {
        let cache = self.cache.lock();
        let messages = cache.interval(from_ns, to_ns);
        let messages: Vec<_> = messages.map(|message| message.clone_ref(py)).collect();
        drop(cache);
        PyList::new(py, messages)
    }

    /// The last message at a time or before, or None.
    fn before(&self, py: Python<'_>, time_ns: i64) -> Option<Object> {
        let cache = self.cache.lock();
        cache.before(time_ns).map(|message| message.clone_ref(py))
    }

    /// The first message at a time or after, or None.
    fn after(&self, py: Python<'_>, time_ns: i64) -> Option<Object> {
        let cache = self.cache.lock();
        cache.after(time_ns).map(|message| message.clone_ref(py))
    }

    /// The oldest stamp with its message, or None.
    fn first(&self, py: Python<'_>) -> Option<(i64, Object)> {
        let cache = self.cache.lock();
        let (stamp, message) = cache.messages().next()?;
        Some((stamp, message.clone_ref(py)))
    }

    /// The latest stamp with its message, or None.
    fn last(&self, py: Python<'_>) -> Option<(i64, Object)> {
        let cache = self.cache.lock();
        let (stamp, message) = cache.messages().next_back()?;
        Some((stamp, message.clone_ref(py)))
    }

    /// All stamps with their messages, the oldest first.
    fn messages(&self, py: Python<'_>) -> Vec<(i64, Object)> {
        let cache = self.cache.lock();
        let messages = cache.messages();
        messages
            .map(|(stamp, message)| (stamp, message.clone_ref(py)))
            .collect()
    }

    fn clear(&self, py: Python<'_>) {
        py.detach(|| self.cache.lock().clear());
    }
}

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Synchronizer>()?;
    module.add_class::<MessageCache>()
}

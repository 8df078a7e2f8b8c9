//! The loop of a single-threaded executor while nothing but plain callbacks is to be run:
//! wait, take, call, without Python code in between.
//!
//! It knows the executor of `rclpy/executors.py` and its entries. Everything unusual goes
//! back to that: coroutines, groups that are busy or users' own, changed entities, tasks.

use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

use crate::error::InvalidHandle;
use crate::ffi::call_back;
use crate::group_lock::GroupLock;
use crate::poller::{Entities, Poller};
use crate::subscription::Subscription;
use crate::timer::Timer;

/// An entry with the parts that run its callback.
struct Prepared<'py> {
    entry: Bound<'py, PyAny>,
    group: Group<'py>,
    taker: Taker<'py>,
}

/// The callback group.
enum Group<'py> {
    /// Callbacks always may run.
    Free,
    /// Mutually exclusive: the group and its lock.
    Exclusive(Bound<'py, PyAny>, Bound<'py, GroupLock>),
    /// A user's own.
    Unknown,
}

/// Where data comes from, and the entity with the callback.
enum Taker<'py> {
    Timer(Bound<'py, Timer>, Bound<'py, PyAny>),
    Subscription(Bound<'py, Subscription>, Bound<'py, PyAny>),
    /// By the methods of the entry.
    Other,
}

/// The result of an entry's turn.
enum Outcome<'py> {
    /// Its callback has run.
    Done,
    /// There was nothing to take.
    Nothing,
    /// Its callback group has to be asked.
    Unusual,
    /// Its callback has returned a coroutine.
    Coroutine(Bound<'py, PyAny>),
}

/// Runs callbacks until the executor has something else to do. Returns None for that.
///
/// It also returns when the context is shut down during a wait (False), and when a
/// callback returns a coroutine (the entry and it).
///
/// # Errors
/// That of a callback.
pub(crate) fn run(poller: &Poller, executor: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = executor.py();
    let entries = executor.getattr(intern!(py, "_entries"))?;
    let entries = entries.cast::<PyDict>()?;
    let mut known: Option<Arc<Entities>> = None;
    let mut prepared: Vec<Option<Prepared<'_>>> = Vec::new();
    let mut ready = Vec::new();
    // Each later change wakes the poller, because the executor knows that this thread waits.
    if executor.getattr(intern!(py, "_is_stale"))?.is_truthy()? {
        return Ok(py.None());
    }
    loop {
        if poller.is_over() {
            return Ok(py.None());
        }
        let (entities, mut is_stale) = poller.wait_for_places(py, None, &mut ready)?;
        if ready.is_empty() && poller.is_over() {
            return Ok(PyBool::new(py, false).to_owned().into_any().unbind());
        }
        if !known
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, &entities))
        {
            prepared.clear();
            prepared.resize_with(entities.len(), || None);
            known = Some(entities.clone());
        }
        for (done, &place) in ready.iter().enumerate() {
            let Some(slot) = prepared.get_mut(place) else {
                continue;
            };
            if slot.is_none() {
                *slot = prepare(py, &entities, place, entries)?;
            }
            let Some(one) = slot else { continue };
            let ran = one.run(executor);
            is_stale |= poller.set.take_wake();
            if matches!(ran, Ok(Outcome::Done | Outcome::Nothing)) && !is_stale {
                continue;
            }
            let entry = one.entry.clone();
            let rest = ready.get(done + 1..).unwrap_or_default();
            let own_turn = py.None();
            return end_turn(executor, &entities, entries, entry, ran, rest, own_turn);
        }
        if is_stale {
            return Ok(py.None());
        }
    }
}

/// Waits for one callback and runs it. Returns as [`run`] does, and True if the callback
/// has run or the timeout has passed.
///
/// # Errors
/// That of the callback.
pub(crate) fn run_once(
    poller: &Poller,
    executor: &Bound<'_, PyAny>,
    timeout_ns: Option<i64>,
) -> PyResult<Py<PyAny>> {
    let py = executor.py();
    let flag = |value: bool| PyBool::new(py, value).to_owned().into_any().unbind();
    if poller.is_over() {
        return Ok(flag(false));
    }
    if executor.getattr(intern!(py, "_is_stale"))?.is_truthy()? {
        return Ok(py.None());
    }
    let mut ready = Vec::new();
    let (entities, is_woken) = poller.wait_for_places(py, timeout_ns, &mut ready)?;
    let Some((&place, rest)) = ready.split_first() else {
        // Without a wake, a wait without a timeout ends by a shutdown alone.
        return Ok(match (poller.is_over(), is_woken, timeout_ns) {
            (true, ..) => flag(false),
            (false, false, Some(0..)) => flag(true),
            _ => py.None(),
        });
    };
    let entries = executor.getattr(intern!(py, "_entries"))?;
    let entries = entries.cast::<PyDict>()?;
    let Some(one) = prepare(py, &entities, place, entries)? else {
        return Ok(py.None());
    };
    let ran = one.run(executor);
    end_turn(
        executor,
        &entities,
        entries,
        one.entry,
        ran,
        rest,
        flag(true),
    )
}

/// Gives the rest of what is ready to the executor's own turns, and returns what became
/// of an entry: `done` if its callback has run.
fn end_turn<'py>(
    executor: &Bound<'py, PyAny>,
    entities: &Entities,
    entries: &Bound<'py, PyDict>,
    entry: Bound<'py, PyAny>,
    ran: PyResult<Outcome<'py>>,
    rest: &[usize],
    done: Py<PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = executor.py();
    let is_unusual = matches!(ran, Ok(Outcome::Unusual));
    if is_unusual || !rest.is_empty() {
        let queue = executor.getattr(intern!(py, "_ready"))?;
        if is_unusual {
            queue.call_method1(intern!(py, "append"), (&entry,))?;
        }
        for &place in rest {
            if let Some(rest) = prepare(py, entities, place, entries)? {
                queue.call_method1(intern!(py, "append"), (rest.entry,))?;
            }
        }
    }
    Ok(match ran? {
        Outcome::Done => done,
        Outcome::Nothing | Outcome::Unusual => py.None(),
        Outcome::Coroutine(coroutine) => PyTuple::new(py, [entry, coroutine])?.into_any().unbind(),
    })
}

/// Looks up what a ready entity needs. `None`: the executor does not have it.
fn prepare<'py>(
    py: Python<'py>,
    entities: &Entities,
    place: usize,
    entries: &Bound<'py, PyDict>,
) -> PyResult<Option<Prepared<'py>>> {
    let Some(handle) = entities.handle(place) else {
        return Ok(None);
    };
    let handle = handle.bind(py);
    let Some(entry) = entries.get_item(handle)? else {
        return Ok(None);
    };
    let group = entry.getattr(intern!(py, "group"))?;
    let lock = entry.getattr(intern!(py, "lock"))?;
    let group = if let Ok(lock) = lock.cast_into::<GroupLock>() {
        Group::Exclusive(group, lock)
    } else if group.is_none() || entry.getattr(intern!(py, "is_plain"))?.is_truthy()? {
        Group::Free
    } else {
        Group::Unknown
    };
    let entity = entry.getattr(intern!(py, "entity"))?;
    let callback = entity.getattr_opt(intern!(py, "_plain_callback"))?;
    let is_plain = callback.is_some_and(|name| name.is_instance_of::<PyString>());
    let taker = if let (true, Ok(timer)) = (is_plain, handle.cast::<Timer>()) {
        Taker::Timer(timer.clone(), entity)
    } else if let (true, Ok(subscription)) = (is_plain, handle.cast::<Subscription>())
        && !entity.getattr(intern!(py, "raw"))?.is_truthy()?
    {
        Taker::Subscription(subscription.clone(), entity)
    } else {
        Taker::Other
    };
    Ok(Some(Prepared {
        entry,
        group,
        taker,
    }))
}

impl<'py> Prepared<'py> {
    /// Does the same as `Executor._begin` and `SingleThreadedExecutor._run`.
    fn run(&self, executor: &Bound<'py, PyAny>) -> PyResult<Outcome<'py>> {
        match &self.group {
            Group::Free => {}
            Group::Exclusive(_, lock) if lock.get().try_acquire() => {}
            Group::Exclusive(..) | Group::Unknown => return Ok(Outcome::Unusual),
        }
        let called = self.call(executor);
        if let Ok(Some(result)) = &called
            && is_coroutine(result)?
        {
            if let Group::Exclusive(group, _) = &self.group {
                let entity = self.entry.getattr(intern!(executor.py(), "entity"))?;
                group.setattr(intern!(executor.py(), "_active_entity"), entity)?;
            }
            return Ok(Outcome::Coroutine(result.clone()));
        }
        if let Group::Exclusive(_, lock) = &self.group {
            lock.get().give_back();
        }
        called.map(|result| match result {
            Some(_) => Outcome::Done,
            None => Outcome::Nothing,
        })
    }

    /// Takes and calls. `None` if there was nothing to take.
    fn call(&self, executor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = executor.py();
        match &self.taker {
            Taker::Timer(timer, entity) => {
                if !present(py, timer.get().try_call())?.unwrap_or(false) {
                    return Ok(None);
                }
                let callback = entity.getattr(intern!(py, "callback"))?;
                if callback.is_none() {
                    return Ok(Some(callback));
                }
                call_back(&callback, None).map(Some)
            }
            Taker::Subscription(subscription, entity)
                if !entity.getattr(intern!(py, "_with_info"))?.is_truthy()? =>
            {
                let Some(message) = present(py, subscription.get().take_message(py))?.flatten()
                else {
                    return Ok(None);
                };
                let callback = entity.getattr(intern!(py, "_callback"))?;
                call_back(&callback, Some(&PyTuple::new(py, [message])?)).map(Some)
            }
            Taker::Subscription(..) | Taker::Other => {
                let take = self.entry.getattr(intern!(py, "take"))?;
                let taken = call_back(&take, Some(&PyTuple::new(py, [executor])?));
                let Some(arguments) = present(py, taken)?.filter(|taken| !taken.is_none()) else {
                    return Ok(None);
                };
                let arguments = arguments.cast_into::<PyTuple>().map_err(|_| {
                    PyRuntimeError::new_err("an executor takes a tuple of arguments")
                })?;
                let call = self.entry.getattr(intern!(py, "call"))?;
                call_back(&call, Some(&arguments)).map(Some)
            }
        }
    }
}

/// Returns the taken data. `None` if the entity was destroyed since the poller found it.
fn present<T>(py: Python<'_>, taken: PyResult<T>) -> PyResult<Option<T>> {
    match taken {
        Ok(taken) => Ok(Some(taken)),
        Err(error) if error.is_instance_of::<InvalidHandle>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_coroutine(result: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = result.py();
    Ok(!result.is_none()
        && result.hasattr(intern!(py, "send"))?
        && result.hasattr(intern!(py, "__await__"))?)
}

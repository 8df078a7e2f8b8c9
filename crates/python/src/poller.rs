//! `Poller`: the receive loop of an executor. The thread that waits polls the sockets,
//! runs the protocol and returns with the entities that are ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::rtps::time::{Duration, Instant};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::client::Client;
use crate::context::{Context, ContextState};
use crate::endpoint::DataWaiter;
use crate::event::{EventHandle, EventState, Kind};
use crate::guard_condition::{GuardCondition, GuardState};
use crate::handle::Lifetime;
use crate::publisher::deadline;
use crate::service::Service;
use crate::signals;
use crate::subscription::Subscription;
use crate::timer::{Timer, TimerState};

/// An entity that a poller waits for.
struct Entity {
    object: Py<PyAny>,
    life: Arc<Lifetime>,
    source: Source,
}

/// What makes it ready.
enum Source {
    Data(Arc<DataWaiter>),
    Guard(Arc<GuardState>),
    Event(Arc<EventState>, Kind),
    Timer(Arc<TimerState>),
}

impl Source {
    fn attach(&self, queue: &Arc<ReadyQueue>) {
        match self {
            Self::Data(waiter) => waiter.attach(queue),
            Self::Guard(guard) => guard.wakers.add(queue),
            Self::Event(state, _) => state.attach(queue),
            Self::Timer(timer) => {
                timer.wakers.add(queue);
                timer.clock.wakers.add(queue);
            }
        }
    }

    fn detach(&self, queue: &Arc<ReadyQueue>) {
        match self {
            Self::Data(waiter) => waiter.detach(queue),
            Self::Event(state, _) => state.detach(queue),
            // A wake-up that is not needed does no harm.
            Self::Guard(_) | Self::Timer(_) => {}
        }
    }

    fn is_ready(&self) -> bool {
        match self {
            Self::Data(waiter) => waiter.is_ready(),
            Self::Guard(guard) => guard.is_triggered(),
            Self::Event(state, kind) => state.is_ready(*kind),
            Self::Timer(timer) => timer.is_ready(),
        }
    }

    /// As [`Self::is_ready`]; takes the trigger of a guard condition.
    fn take_ready(&self) -> bool {
        match self {
            Self::Guard(guard) => guard.consume(),
            other => other.is_ready(),
        }
    }
}

/// The entities of an executor.
#[pyclass(frozen, weakref, module = "pteros._native")]
pub(crate) struct Poller {
    context: Arc<ContextState>,
    queue: Arc<ReadyQueue>,
    /// Replaced as a whole, so that a wait in progress keeps its own.
    entities: Mutex<Arc<Vec<Entity>>>,
    is_woken: AtomicBool,
    /// Waits in progress. A new entity wakes only those; the next wait has it anyway.
    waits: AtomicUsize,
    is_closed: AtomicBool,
}

fn entity(object: &Bound<'_, PyAny>) -> PyResult<Entity> {
    let (life, source) = if let Ok(one) = object.cast::<Subscription>() {
        let one = one.get();
        (one.life.clone(), Source::Data(one.waiter.clone()))
    } else if let Ok(one) = object.cast::<GuardCondition>() {
        let one = one.get();
        (one.life.clone(), Source::Guard(one.state.clone()))
    } else if let Ok(one) = object.cast::<Timer>() {
        let one = one.get();
        (one.life.clone(), Source::Timer(one.state.clone()))
    } else if let Ok(one) = object.cast::<Client>() {
        let one = one.get();
        (one.life.clone(), Source::Data(one.waiter.clone()))
    } else if let Ok(one) = object.cast::<Service>() {
        let one = one.get();
        (one.life.clone(), Source::Data(one.waiter.clone()))
    } else if let Ok(one) = object.cast::<EventHandle>() {
        let one = one.get();
        let source = Source::Event(one.state.clone(), one.kind);
        (one.life.clone(), source)
    } else {
        return Err(PyTypeError::new_err(format!(
            "a poller cannot wait for {}",
            object.get_type().fully_qualified_name()?
        )));
    };
    Ok(Entity {
        object: object.clone().unbind(),
        life,
        source,
    })
}

impl Entity {
    fn copy(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            life: self.life.clone(),
            source: match &self.source {
                Source::Data(one) => Source::Data(one.clone()),
                Source::Guard(one) => Source::Guard(one.clone()),
                Source::Event(one, kind) => Source::Event(one.clone(), *kind),
                Source::Timer(one) => Source::Timer(one.clone()),
            },
        }
    }

    fn is(&self, object: &Bound<'_, PyAny>) -> bool {
        self.object.as_ptr() == object.as_ptr()
    }
}

impl Poller {
    fn replace(&self, entities: Vec<Entity>) {
        let entities = Arc::new(entities);
        let before = std::mem::replace(&mut *self.entities.lock(), entities.clone());
        let stays = |gone: &Entity| entities.iter().any(|one| one.object.is(&gone.object));
        for gone in before.iter().filter(|one| !stays(one)) {
            gone.source.detach(&self.queue);
        }
    }

    /// Waits without the interpreter lock. Returns the places of ready entities.
    fn poll(&self, entities: &[Entity], timeout_ns: Option<i64>) -> Vec<usize> {
        let (core, queue) = (&self.context.core, &self.queue);
        for entity in entities {
            entity.source.attach(queue);
        }
        let until = deadline(core, timeout_ns);
        let is_ready = || {
            while let Some(task) = queue.pop() {
                task.run();
            }
            self.context.note_graph_changes();
            let is_any = entities
                .iter()
                .any(|one| one.source.is_ready() && one.life.is_open());
            is_any || self.is_woken.load(Ordering::Acquire)
        };
        let is_over = || self.is_closed.load(Ordering::Acquire) || self.context.is_shut_down();
        if is_ready() {
            // Entities that are always ready must not stop reception.
            if self.context.is_poll_due() {
                core.drive(queue, core.platform.now());
                is_ready();
            }
        } else if timeout_ns == Some(0) {
            core.drive(queue, core.platform.now());
            is_ready();
            self.context.note_polled();
        } else {
            loop {
                // Timers can be due before the timeout; a reset changes when.
                let wake_at = next_timer(core.platform.now(), entities).min(until);
                let found = core.drive_until(queue, wake_at, || is_ready() || is_over());
                if found || is_over() || core.platform.now() >= until {
                    break;
                }
            }
            self.context.note_polled();
        }
        self.is_woken.store(false, Ordering::Release);
        if is_over() {
            core.hand_over(queue);
        }
        let places = entities.iter().enumerate();
        places
            .filter(|(_, one)| one.life.is_open() && one.source.take_ready())
            .map(|(place, _)| place)
            .collect()
    }
}

/// When the first timer is due.
fn next_timer(now: Instant, entities: &[Entity]) -> Instant {
    let mut next = Instant::FAR_FUTURE;
    for entity in entities {
        if let Source::Timer(timer) = &entity.source
            && let Some(remaining) = timer.remaining()
            && entity.life.is_open()
            && (remaining <= 0 || !timer.clock.is_simulated())
        {
            next = next.min(now.after(Duration::from_nanos(remaining.max(0))));
        }
    }
    next
}

#[pymethods]
impl Poller {
    #[new]
    fn new(context: &Context) -> PyResult<Self> {
        context.life.check()?;
        Ok(Self {
            queue: context.state.core.ready_queue(),
            context: context.state.clone(),
            entities: Mutex::default(),
            is_woken: AtomicBool::new(false),
            waits: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Adds an entity and wakes a wait in progress.
    fn add(&self, entity_object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = entity_object.py();
        let added = entity(entity_object)?;
        added.life.check()?;
        let before = self.entities.lock().clone();
        if before.iter().any(|one| one.is(entity_object)) {
            return Ok(());
        }
        let mut entities: Vec<Entity> = before
            .iter()
            .filter(|one| one.life.is_open())
            .map(|one| one.copy(py))
            .collect();
        entities.push(added);
        self.replace(entities);
        if self.waits.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
        Ok(())
    }

    /// Removes an entity; unknown ones are ignored.
    fn remove(&self, entity_object: &Bound<'_, PyAny>) {
        let py = entity_object.py();
        let before = self.entities.lock().clone();
        let entities = before
            .iter()
            .filter(|one| one.life.is_open() && !one.is(entity_object))
            .map(|one| one.copy(py))
            .collect();
        self.replace(entities);
    }

    /// Replaces all entities. Cheap if they are the same as before.
    fn set_entities(&self, entities: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = entities.py();
        let objects: Vec<Bound<'_, PyAny>> = entities.try_iter()?.collect::<PyResult<_>>()?;
        let before = self.entities.lock().clone();
        let is_same = before.len() == objects.len()
            && before
                .iter()
                .zip(&objects)
                .all(|(one, object)| one.is(object));
        if is_same {
            return Ok(());
        }
        let mut next = Vec::with_capacity(objects.len());
        for object in &objects {
            let known = before.iter().find(|one| one.is(object));
            next.push(match known {
                Some(known) => known.copy(py),
                None => entity(object)?,
            });
        }
        self.replace(next);
        Ok(())
    }

    /// Removes all.
    fn clear(&self) {
        self.replace(Vec::new());
    }

    /// Waits for ready entities.
    #[pyo3(signature = (timeout_ns=None))]
    fn wait<'py>(&self, py: Python<'py>, timeout_ns: Option<i64>) -> PyResult<Bound<'py, PyList>> {
        // Before the entities are read, so that no addition falls between.
        self.waits.fetch_add(1, Ordering::SeqCst);
        let entities = self.entities.lock().clone();
        let is_over = self.is_closed.load(Ordering::Acquire) || self.context.is_of_parent();
        let ready = if is_over {
            Vec::new()
        } else {
            py.detach(|| self.poll(&entities, timeout_ns))
        };
        self.waits.fetch_sub(1, Ordering::SeqCst);
        if self.context.is_shut_down() {
            signals::trigger_guards();
        }
        py.check_signals()?;
        let objects = ready
            .into_iter()
            .filter_map(|place| entities.get(place))
            .map(|one| one.object.bind(py));
        PyList::new(py, objects.collect::<Vec<_>>())
    }

    /// Ends the wait in progress, or the next one.
    fn wake(&self) {
        self.is_woken.store(true, Ordering::Release);
        self.queue.interrupt();
    }

    /// Gives the sockets back to the background thread.
    fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Release);
        self.replace(Vec::new());
        self.queue.interrupt();
        if !self.context.is_of_parent() {
            py.detach(|| self.context.core.hand_over(&self.queue));
        }
    }
}

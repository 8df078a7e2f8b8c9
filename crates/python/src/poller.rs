//! `Poller`: the wait set of an executor, with the objects of Python. It keeps the
//! interpreter lock while it does not block, and has what only Python needs: signals, forks,
//! event loops, entities that change during a wait.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pteros_rcl::wait_set::{Entries, FirstLook, WaitSet, WaitSource};
use pteros_runtime::external_event_loop::ExternalEventLoop;
use pteros_runtime::rtps::time::Instant;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::client::Client;
use crate::context::{Context, ContextState, Owner};
use crate::event::EventHandle;
use crate::guard_condition::GuardCondition;
use crate::handle::Lifetime;
use crate::publisher::deadline;
use crate::service::Service;
use crate::signals;
use crate::spin;
use crate::subscription::Subscription;
use crate::timer::Timer;

/// An entity that a poller waits for.
struct Entity {
    object: Py<PyAny>,
    life: Arc<Lifetime>,
    source: Arc<dyn WaitSource>,
}

/// The entities of a poller at a time.
#[derive(Default)]
pub(crate) struct Entities {
    list: Vec<Entity>,
}

impl Entities {
    /// Lets them wake a wait set.
    fn attach(&self, set: &WaitSet) {
        for entity in &self.list {
            entity.source.attach(set.queue());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The handle at a place.
    pub(crate) fn handle(&self, place: usize) -> Option<&Py<PyAny>> {
        self.list.get(place).map(|entity| &entity.object)
    }
}

/// The entities of a wait, and the places of those that its last look has found ready.
struct Looked<'a> {
    poller: &'a Poller,
    entities: &'a Entities,
    places: &'a mut Vec<usize>,
}

impl Entries for Looked<'_> {
    fn is_any_ready(&mut self) -> bool {
        self.places.clear();
        let list = self.entities.list.iter().enumerate();
        let ready = list.filter(|(_, one)| one.source.is_ready() && one.life.is_open());
        self.places.extend(ready.map(|(place, _)| place));
        !self.places.is_empty()
    }

    fn next_due(&self, now: Instant) -> Instant {
        let open = self.entities.list.iter().filter(|one| one.life.is_open());
        let due = open.map(|one| one.source.next_due(now)).min();
        due.unwrap_or(Instant::FAR_FUTURE)
    }

    fn is_over(&self) -> bool {
        self.poller.is_over()
    }
}

/// The entities of an executor.
#[pyclass(frozen, weakref, module = "pteros._native")]
pub(crate) struct Poller {
    context: Arc<ContextState>,
    pub(crate) set: WaitSet,
    /// Replaced as a whole, so that a wait in progress keeps its own.
    entities: Mutex<Arc<Entities>>,
    /// Waits in progress. A new entity wakes only those; the next wait has it anyway.
    waits: AtomicUsize,
    is_closed: AtomicBool,
    /// The descriptor of an external event loop, if there is one.
    event_loop: OnceLock<ExternalEventLoop>,
}

fn entity(object: &Bound<'_, PyAny>) -> PyResult<Entity> {
    let (life, source): (_, Arc<dyn WaitSource>) = if let Ok(one) = object.cast::<Subscription>() {
        let one = one.get();
        (&one.life, one.waiter.clone())
    } else if let Ok(one) = object.cast::<GuardCondition>() {
        let one = one.get();
        (&one.life, one.state.clone())
    } else if let Ok(one) = object.cast::<Timer>() {
        let one = one.get();
        (&one.life, one.state.clone())
    } else if let Ok(one) = object.cast::<Client>() {
        let one = one.get();
        (&one.life, one.waiter.clone())
    } else if let Ok(one) = object.cast::<Service>() {
        let one = one.get();
        (&one.life, one.waiter.clone())
    } else if let Ok(one) = object.cast::<EventHandle>() {
        let one = one.get();
        (&one.life, one.source.clone())
    } else {
        return Err(PyTypeError::new_err(format!(
            "a poller cannot wait for {}",
            object.get_type().fully_qualified_name()?
        )));
    };
    Ok(Entity {
        object: object.clone().unbind(),
        life: life.clone(),
        source,
    })
}

impl Entity {
    fn copy(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            life: self.life.clone(),
            source: self.source.clone(),
        }
    }

    fn is(&self, object: &Bound<'_, PyAny>) -> bool {
        self.object.as_ptr() == object.as_ptr()
    }
}

impl Poller {
    fn replace(&self, list: Vec<Entity>) {
        let entities = Arc::new(Entities { list });
        let before = std::mem::replace(&mut *self.entities.lock(), entities.clone());
        let stays = |gone: &Entity| {
            let mut kept = entities.list.iter();
            kept.any(|one| one.object.is(&gone.object))
        };
        for gone in before.list.iter().filter(|one| !stays(one)) {
            gone.source.detach(self.set.queue());
        }
    }

    /// Whether it is closed, or its context shut down.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed.load(Ordering::Acquire) || self.context.is_shut_down()
    }

    /// As [`Poller::wait`]. Returns the entities, and in `places` which are ready, and
    /// whether the wait was woken.
    pub(crate) fn wait_for_places(
        &self,
        py: Python<'_>,
        timeout_ns: Option<i64>,
        places: &mut Vec<usize>,
    ) -> PyResult<(Arc<Entities>, bool)> {
        places.clear();
        let mut is_woken = false;
        let core = &self.context.core;
        if let Some(event_loop) = self.event_loop.get() {
            event_loop.disarm(core.driver(), self.set.queue());
        }
        // Before the entities are read, so that no addition falls between.
        self.waits.fetch_add(1, Ordering::SeqCst);
        let entities = self.entities.lock().clone();
        if !self.is_closed.load(Ordering::Acquire) && !self.context.is_of_parent() {
            entities.attach(&self.set);
            let mut looked = Looked {
                poller: self,
                entities: &entities,
                places,
            };
            // A wait that does not block keeps the interpreter lock.
            let first = self.set.begin(&mut looked);
            if first != FirstLook::Ready {
                let until = deadline(core, timeout_ns);
                py.detach(|| self.set.wait(&mut looked, first, until));
            }
            is_woken = self.set.take_wake();
            // The triggers of guard conditions are taken, by one thread each.
            places.retain(|place| {
                let entity = entities.list.get(*place);
                entity.is_some_and(|one| one.life.is_open() && one.source.take())
            });
        }
        self.waits.fetch_sub(1, Ordering::SeqCst);
        if self.context.is_shut_down() {
            signals::trigger_guards();
        }
        py.check_signals()?;
        Ok((entities, is_woken))
    }
}

#[pymethods]
impl Poller {
    #[new]
    fn new(py: Python<'_>, context: &Context) -> PyResult<Self> {
        context.life.check()?;
        context
            .state
            .check_valid(py, "create wait set", Owner::Given)?;
        Ok(Self {
            set: WaitSet::new(&context.state.waits),
            context: context.state.clone(),
            entities: Mutex::default(),
            waits: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            event_loop: OnceLock::new(),
        })
    }

    /// Adds an entity and wakes a wait in progress.
    fn add(&self, entity_object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = entity_object.py();
        let added = entity(entity_object)?;
        added.life.check()?;
        let before = self.entities.lock().clone();
        if before.list.iter().any(|one| one.is(entity_object)) {
            return Ok(());
        }
        let mut entities: Vec<Entity> = before
            .list
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
            .list
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
        let is_same = before.list.len() == objects.len()
            && before
                .list
                .iter()
                .zip(&objects)
                .all(|(one, object)| one.is(object));
        if is_same {
            return Ok(());
        }
        let mut next = Vec::with_capacity(objects.len());
        for object in &objects {
            let known = before.list.iter().find(|one| one.is(object));
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
        let mut places = Vec::new();
        let (entities, _) = self.wait_for_places(py, timeout_ns, &mut places)?;
        let objects = places
            .into_iter()
            .filter_map(|place| entities.list.get(place))
            .map(|one| one.object.bind(py));
        PyList::new(py, objects.collect::<Vec<_>>())
    }

    /// Waits and runs callbacks, until something else is to be done.
    fn spin(&self, executor: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        spin::run(self, executor)
    }

    /// Waits for one callback and runs it.
    #[pyo3(signature = (executor, timeout_ns=None))]
    fn spin_once(
        &self,
        executor: &Bound<'_, PyAny>,
        timeout_ns: Option<i64>,
    ) -> PyResult<Py<PyAny>> {
        spin::run_once(self, executor, timeout_ns)
    }

    /// The descriptor for an external event loop.
    fn fileno(&self) -> PyResult<i32> {
        let event_loop = match self.event_loop.get() {
            Some(event_loop) => event_loop,
            None => {
                let made = self
                    .context
                    .core
                    .driver()
                    .external_event_loop(self.set.queue())?;
                self.event_loop.get_or_init(|| made)
            }
        };
        Ok(event_loop.as_fd().as_raw_fd())
    }

    /// Prepares the sleep of an external event loop. False if there is something to do.
    fn arm(&self) -> bool {
        let Some(event_loop) = self.event_loop.get() else {
            return false;
        };
        let entities = self.entities.lock().clone();
        entities.attach(&self.set);
        let mut looked = Looked {
            poller: self,
            entities: &entities,
            places: &mut Vec::new(),
        };
        if self.set.look(&mut looked) || self.is_over() {
            return false;
        }
        let core = &self.context.core;
        let next = looked.next_due(core.platform.now());
        event_loop.arm(core.driver(), self.set.queue(), next);
        true
    }

    /// Ends the wait in progress, or the next one.
    fn wake(&self) {
        self.set.wake();
    }

    /// Gives the sockets back to the background thread.
    fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Release);
        self.replace(Vec::new());
        self.set.queue().interrupt();
        if !self.context.is_of_parent() {
            py.detach(|| self.context.core.driver().hand_over(self.set.queue()));
        }
    }
}

//! `Poller`: the receive loop of an executor. The thread that waits polls the sockets,
//! runs the protocol and returns with the entities that are ready.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pteros_rcl::event_status::StatusKind;
use pteros_rcl::guard_condition::GuardCondition as GuardState;
use pteros_runtime::external_event_loop::ExternalEventLoop;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::rtps::time::{Duration, Instant};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::client::Client;
use crate::context::{Context, ContextState, Owner};
use crate::endpoint::DataWaiter;
use crate::event::{EventHandle, EventState};
use crate::guard_condition::GuardCondition;
use crate::handle::Lifetime;
use crate::publisher::deadline;
use crate::service::Service;
use crate::signals;
use crate::spin;
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
    Event(Arc<EventState>, StatusKind),
    Timer(Arc<TimerState>),
}

impl Source {
    /// Returns whether it no longer wakes the queue of another poller.
    fn attach(&self, queue: &Arc<ReadyQueue>) -> bool {
        match self {
            Self::Data(waiter) => waiter.attach(queue),
            Self::Event(state, _) => state.attach(queue),
            // They wake any number of queues.
            Self::Guard(guard) => {
                guard.add_waker(queue);
                false
            }
            Self::Timer(timer) => {
                timer.wakers.add(queue);
                timer.clock.wakers.add(queue);
                false
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

    /// As [`Self::take_ready`], of one that was ready a moment before.
    fn take_ready_again(&self) -> bool {
        match self {
            Self::Guard(guard) => guard.take(),
            _ => true,
        }
    }

    /// As [`Self::is_ready`]; takes the trigger of a guard condition.
    fn take_ready(&self) -> bool {
        match self {
            Self::Guard(guard) => guard.take(),
            other => other.is_ready(),
        }
    }
}

/// How often a poller has taken an entity from another one. Pollers attach their entities
/// again when it has changed, not at each wait.
static TAKEOVERS: AtomicU64 = AtomicU64::new(1);

/// The entities of a poller at a time.
#[derive(Default)]
pub(crate) struct Entities {
    list: Vec<Entity>,
    /// The number of takeovers up to which they are attached to the poller's queue.
    attached_at: AtomicU64,
}

impl Entities {
    /// Lets them wake `queue`, unless they do.
    fn attach(&self, queue: &Arc<ReadyQueue>) {
        let takeovers = TAKEOVERS.load(Ordering::Acquire);
        if self.attached_at.load(Ordering::Acquire) == takeovers {
            return;
        }
        let mut took = false;
        for entity in &self.list {
            took |= entity.source.attach(queue);
        }
        // A takeover meanwhile may have been one of these, so it makes the numbers differ.
        let mut attached_at = takeovers;
        if took {
            TAKEOVERS.fetch_add(1, Ordering::AcqRel);
            attached_at += 1;
        }
        self.attached_at.store(attached_at, Ordering::Release);
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The handle at a place.
    pub(crate) fn handle(&self, place: usize) -> Option<&Py<PyAny>> {
        self.list.get(place).map(|entity| &entity.object)
    }

    /// The places of those that are ready. Takes the triggers of guard conditions.
    fn take_ready(&self) -> Vec<usize> {
        let places = self.list.iter().enumerate();
        places
            .filter(|(_, one)| one.life.is_open() && one.source.take_ready())
            .map(|(place, _)| place)
            .collect()
    }
}

/// The entities of an executor.
#[pyclass(frozen, weakref, module = "pteros._native")]
pub(crate) struct Poller {
    context: Arc<ContextState>,
    queue: Arc<ReadyQueue>,
    /// Replaced as a whole, so that a wait in progress keeps its own.
    entities: Mutex<Arc<Entities>>,
    is_woken: AtomicBool,
    /// Waits in progress. A new entity wakes only those; the next wait has it anyway.
    waits: AtomicUsize,
    is_closed: AtomicBool,
    /// The descriptor of an external event loop, if there is one.
    event_loop: OnceLock<ExternalEventLoop>,
}

/// The result of a look without a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtOnce {
    Taken,
    /// Something, but the sockets were not looked at for long.
    AfterPoll,
    Nothing,
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
    fn replace(&self, list: Vec<Entity>) {
        let entities = Arc::new(Entities {
            list,
            attached_at: AtomicU64::new(0),
        });
        let before = std::mem::replace(&mut *self.entities.lock(), entities.clone());
        let stays = |gone: &Entity| {
            let mut kept = entities.list.iter();
            kept.any(|one| one.object.is(&gone.object))
        };
        for gone in before.list.iter().filter(|one| !stays(one)) {
            gone.source.detach(&self.queue);
        }
    }

    /// Whether it is closed, or its context shut down.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed.load(Ordering::Acquire) || self.context.is_shut_down()
    }

    /// Runs what was queued, and looks for a reason to end a wait.
    fn look(&self, entities: &Entities) -> bool {
        self.run_queued();
        let mut list = entities.list.iter();
        list.any(|one| one.source.is_ready() && one.life.is_open())
            || self.is_woken.load(Ordering::Acquire)
    }

    fn run_queued(&self) {
        while let Some(task) = self.queue.pop() {
            task.run();
        }
        self.context.note_graph_changes();
    }

    /// Whether it was woken; that ends.
    pub(crate) fn take_wake(&self) -> bool {
        self.is_woken.load(Ordering::Relaxed) && self.is_woken.swap(false, Ordering::AcqRel)
    }

    /// Takes what is ready without a wait, into `places`, unless the sockets have to be
    /// looked at.
    fn take_at_once(&self, entities: &Entities, places: &mut Vec<usize>) -> AtOnce {
        self.run_queued();
        let list = entities.list.iter().enumerate();
        places.extend(
            list.filter(|(_, one)| one.source.is_ready() && one.life.is_open())
                .map(|(place, _)| place),
        );
        if places.is_empty() && !self.is_woken.load(Ordering::Acquire) {
            return AtOnce::Nothing;
        }
        if self.is_over() || self.context.is_poll_due() {
            places.clear();
            return AtOnce::AfterPoll;
        }
        // The triggers of guard conditions are taken, by one thread each.
        places.retain(|place| match entities.list.get(*place) {
            Some(one) => one.source.take_ready_again(),
            None => false,
        });
        AtOnce::Taken
    }

    /// Looks at the sockets once.
    fn poll(&self) {
        let core = &self.context.core;
        core.driver().drive(&self.queue, core.platform.now());
        self.run_queued();
        self.context.note_polled();
    }

    /// Waits until something is ready.
    fn block(&self, entities: &Entities, timeout_ns: Option<i64>) {
        let (core, queue) = (&self.context.core, &self.queue);
        let until = deadline(core, timeout_ns);
        loop {
            // Timers can be due before the timeout; a reset changes when.
            let wake_at = next_timer(core.platform.now(), &entities.list).min(until);
            let found = core
                .driver()
                .drive_until(queue, wake_at, || self.look(entities) || self.is_over());
            if found || self.is_over() || core.platform.now() >= until {
                break;
            }
        }
        self.context.note_polled();
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
        if let Some(event_loop) = self.event_loop.get() {
            event_loop.disarm(self.context.core.driver(), &self.queue);
        }
        // Before the entities are read, so that no addition falls between.
        self.waits.fetch_add(1, Ordering::SeqCst);
        let entities = self.entities.lock().clone();
        if !self.is_closed.load(Ordering::Acquire) && !self.context.is_of_parent() {
            entities.attach(&self.queue);
            // A wait that does not block keeps the interpreter lock.
            let at_once = self.take_at_once(&entities, places);
            match at_once {
                AtOnce::Taken => {}
                // Entities that are always ready must not stop reception.
                AtOnce::AfterPoll => py.detach(|| self.poll()),
                AtOnce::Nothing if timeout_ns == Some(0) => py.detach(|| self.poll()),
                AtOnce::Nothing => py.detach(|| self.block(&entities, timeout_ns)),
            }
            is_woken = self.take_wake();
            if at_once != AtOnce::Taken {
                if self.is_over() {
                    self.context.core.driver().hand_over(&self.queue);
                }
                *places = entities.take_ready();
            }
        }
        self.waits.fetch_sub(1, Ordering::SeqCst);
        if self.context.is_shut_down() {
            signals::trigger_guards();
        }
        py.check_signals()?;
        Ok((entities, is_woken))
    }
}

/// When the first timer is due.
fn next_timer(now: Instant, entities: &[Entity]) -> Instant {
    let mut next = Instant::FAR_FUTURE;
    for entity in entities {
        if let Source::Timer(timer) = &entity.source
            && let Some(remaining) = timer.remaining()
            && entity.life.is_open()
            && (remaining <= 0 || !timer.clock.clock.is_simulated())
        {
            next = next.min(now.after(Duration::from_nanos(remaining.max(0))));
        }
    }
    next
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
            queue: context.state.core.ready_queue(),
            context: context.state.clone(),
            entities: Mutex::default(),
            is_woken: AtomicBool::new(false),
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
                    .external_event_loop(&self.queue)?;
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
        entities.attach(&self.queue);
        if self.look(&entities) || self.is_over() {
            return false;
        }
        let core = &self.context.core;
        let next = next_timer(core.platform.now(), &entities.list);
        event_loop.arm(core.driver(), &self.queue, next);
        true
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
            py.detach(|| self.context.core.driver().hand_over(&self.queue));
        }
    }
}

//! Status events of publishers and subscriptions (DDS 1.4 §2.2.4.1).
//!
//! The runtime queues what happens; here it becomes one status per kind, whose changes
//! count since they were last taken.

use std::sync::Arc;

use parking_lot::Mutex;
use pteros_runtime::event::{EndpointEvent, EndpointEvents};
use pteros_runtime::ready_queue::{ReadyQueue, Task};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;

use crate::error::UnsupportedEventTypeError;
use crate::handle::{Handle, Lifetime};
use crate::publisher::Publisher;
use crate::qos;
use crate::subscription::Subscription;

/// A kind of status.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Deadline,
    LivelinessChanged,
    LivelinessLost,
    IncompatibleQos,
    MessageLost,
    IncompatibleType,
    Matched,
}

/// rcl's numbers of a subscription's events, and of a publisher's.
const OF_SUBSCRIPTION: [Kind; 6] = [
    Kind::Deadline,
    Kind::LivelinessChanged,
    Kind::IncompatibleQos,
    Kind::MessageLost,
    Kind::IncompatibleType,
    Kind::Matched,
];
const OF_PUBLISHER: [Kind; 5] = [
    Kind::Deadline,
    Kind::LivelinessLost,
    Kind::IncompatibleQos,
    Kind::IncompatibleType,
    Kind::Matched,
];

const KINDS: usize = 7;

/// The statuses of one endpoint.
pub(crate) struct EventState {
    events: Arc<EndpointEvents>,
    is_reader: bool,
    statuses: Mutex<[Status; KINDS]>,
}

/// One status; which values it has depends on the kind.
#[derive(Clone, Copy, Default)]
struct Status {
    total: i64,
    total_change: i64,
    current: i64,
    current_change: i64,
    not_alive: i64,
    not_alive_change: i64,
    policy: u32,
    is_untaken: bool,
}

impl Status {
    fn note_total(&mut self, total: u64) {
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        self.total_change += total - self.total;
        self.total = total;
        self.is_untaken = true;
    }

    fn note_current(&mut self, current: usize) {
        let current = i64::try_from(current).unwrap_or(i64::MAX);
        self.current_change += current - self.current;
        self.current = current;
        self.is_untaken = true;
    }

    fn take(&mut self) -> Self {
        let taken = *self;
        self.total_change = 0;
        self.current_change = 0;
        self.not_alive_change = 0;
        self.is_untaken = false;
        taken
    }
}

impl EventState {
    pub(crate) fn new(events: &Arc<EndpointEvents>, is_reader: bool) -> Arc<Self> {
        let state = Arc::new(Self {
            events: events.clone(),
            is_reader,
            statuses: Mutex::default(),
        });
        let task: std::sync::Weak<Self> = Arc::downgrade(&state);
        state.events.slot.set_task(task);
        state
    }

    /// Applies the events that have happened.
    fn sync(&self) {
        let mut statuses = self.statuses.lock();
        while let Some(event) = self.events.take() {
            let mut of = |kind: Kind, note: &mut dyn FnMut(&mut Status)| {
                if let Some(status) = statuses.get_mut(kind as usize) {
                    note(status);
                }
            };
            match event {
                EndpointEvent::Matched { total, current, .. } => of(Kind::Matched, &mut |status| {
                    status.note_total(total);
                    status.note_current(current);
                }),
                EndpointEvent::IncompatibleQos {
                    total, policies, ..
                } => of(Kind::IncompatibleQos, &mut |status| {
                    status.note_total(total);
                    status.policy = policies.first().map_or(1, |one| qos::policy_kind(*one));
                }),
                EndpointEvent::IncompatibleType { total, .. } => {
                    of(Kind::IncompatibleType, &mut |status| {
                        status.note_total(total)
                    });
                }
                EndpointEvent::DeadlineMissed { total } => {
                    of(Kind::Deadline, &mut |status| status.note_total(total));
                }
                EndpointEvent::LivelinessLost { total } => {
                    of(Kind::LivelinessLost, &mut |status| status.note_total(total));
                }
                EndpointEvent::LivelinessChanged {
                    alive, not_alive, ..
                } => of(Kind::LivelinessChanged, &mut |status| {
                    status.note_current(alive);
                    let not_alive = i64::try_from(not_alive).unwrap_or(i64::MAX);
                    status.not_alive_change += not_alive - status.not_alive;
                    status.not_alive = not_alive;
                }),
                EndpointEvent::SampleLost { total, .. } => {
                    of(Kind::MessageLost, &mut |status| status.note_total(total));
                }
                // No kinds of ROS; the runtime logs them.
                EndpointEvent::SampleRejected { .. }
                | EndpointEvent::NotStored { .. }
                | EndpointEvent::ReaderStalled { .. } => {}
            }
        }
    }

    /// Wakes `queue` at an event. Returns whether it woke another one before.
    pub(crate) fn attach(&self, queue: &Arc<ReadyQueue>) -> bool {
        self.events.slot.attach(Some(queue.clone()), || false)
    }

    /// Wakes no queue any more if it woke that one.
    pub(crate) fn detach(&self, queue: &Arc<ReadyQueue>) {
        self.events.slot.detach(queue);
    }

    /// Whether a change of that kind was not taken.
    pub(crate) fn is_ready(&self, kind: Kind) -> bool {
        self.sync();
        let statuses = self.statuses.lock();
        statuses
            .get(kind as usize)
            .is_some_and(|status| status.is_untaken)
    }

    fn take(&self, kind: Kind) -> Option<Status> {
        self.sync();
        let mut statuses = self.statuses.lock();
        let status = statuses.get_mut(kind as usize)?;
        status.is_untaken.then(|| status.take())
    }
}

impl Task for EventState {
    fn run(&self) {
        self.events.slot.begin_take();
    }
}

/// One kind of status of a publisher or subscription.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct EventHandle {
    pub(crate) state: Arc<EventState>,
    pub(crate) kind: Kind,
    owner: Arc<Lifetime>,
    pub(crate) life: Arc<Lifetime>,
}

#[pymethods]
impl EventHandle {
    #[new]
    fn new(entity: &Bound<'_, PyAny>, kind: usize) -> PyResult<PyClassInitializer<Self>> {
        let (state, owner) = if let Ok(publisher) = entity.cast::<Publisher>() {
            let publisher = publisher.get();
            (publisher.events.clone(), publisher.life.clone())
        } else if let Ok(subscription) = entity.cast::<Subscription>() {
            let subscription = subscription.get();
            (subscription.events.clone(), subscription.life.clone())
        } else {
            return Err(PyTypeError::new_err(
                "events belong to a publisher or a subscription",
            ));
        };
        owner.check()?;
        let kinds: &[Kind] = if state.is_reader {
            &OF_SUBSCRIPTION
        } else {
            &OF_PUBLISHER
        };
        let Some(found) = kinds.get(kind).copied() else {
            return Err(UnsupportedEventTypeError::new_err(format!(
                "there is no event {kind}; use 0 to {}",
                kinds.len() - 1
            )));
        };
        let life = Lifetime::new(|| {});
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                state,
                kind: found,
                owner,
                life,
            }),
        )
    }

    fn is_ready(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.owner.is_open() && self.state.is_ready(self.kind))
    }

    /// The status if it has changed.
    fn take_event(&self) -> PyResult<Option<EventStatus>> {
        self.life.check()?;
        let status = self.state.take(self.kind);
        Ok(status.map(|status| EventStatus {
            kind: self.kind,
            is_reader: self.state.is_reader,
            status,
        }))
    }
}

/// A status; its attributes depend on the kind.
#[pyclass(frozen, module = "pteros._native")]
pub(crate) struct EventStatus {
    kind: Kind,
    is_reader: bool,
    status: Status,
}

impl EventStatus {
    fn of<T>(&self, kinds: &[Kind], name: &str, value: T) -> PyResult<T> {
        if kinds.contains(&self.kind) {
            return Ok(value);
        }
        Err(PyAttributeError::new_err(format!(
            "the status {} has no {name}",
            self.name()
        )))
    }
}

const WITH_TOTAL: [Kind; 6] = [
    Kind::Deadline,
    Kind::LivelinessLost,
    Kind::IncompatibleQos,
    Kind::MessageLost,
    Kind::IncompatibleType,
    Kind::Matched,
];

#[pymethods]
impl EventStatus {
    #[getter]
    fn name(&self) -> &'static str {
        match (self.kind, self.is_reader) {
            (Kind::Deadline, true) => "requested_deadline_missed",
            (Kind::Deadline, false) => "offered_deadline_missed",
            (Kind::IncompatibleQos, true) => "requested_incompatible_qos",
            (Kind::IncompatibleQos, false) => "offered_incompatible_qos",
            (Kind::LivelinessChanged, _) => "liveliness_changed",
            (Kind::LivelinessLost, _) => "liveliness_lost",
            (Kind::MessageLost, _) => "message_lost",
            (Kind::IncompatibleType, _) => "incompatible_type",
            (Kind::Matched, _) => "matched",
        }
    }

    #[getter]
    fn total_count(&self) -> PyResult<i64> {
        self.of(&WITH_TOTAL, "total_count", self.status.total)
    }

    #[getter]
    fn total_count_change(&self) -> PyResult<i64> {
        self.of(&WITH_TOTAL, "total_count_change", self.status.total_change)
    }

    #[getter]
    fn current_count(&self) -> PyResult<i64> {
        self.of(&[Kind::Matched], "current_count", self.status.current)
    }

    #[getter]
    fn current_count_change(&self) -> PyResult<i64> {
        let change = self.status.current_change;
        self.of(&[Kind::Matched], "current_count_change", change)
    }

    #[getter]
    fn alive_count(&self) -> PyResult<i64> {
        self.of(
            &[Kind::LivelinessChanged],
            "alive_count",
            self.status.current,
        )
    }

    #[getter]
    fn alive_count_change(&self) -> PyResult<i64> {
        let change = self.status.current_change;
        self.of(&[Kind::LivelinessChanged], "alive_count_change", change)
    }

    #[getter]
    fn not_alive_count(&self) -> PyResult<i64> {
        let count = self.status.not_alive;
        self.of(&[Kind::LivelinessChanged], "not_alive_count", count)
    }

    #[getter]
    fn not_alive_count_change(&self) -> PyResult<i64> {
        let change = self.status.not_alive_change;
        self.of(&[Kind::LivelinessChanged], "not_alive_count_change", change)
    }

    #[getter]
    fn last_policy_kind(&self) -> PyResult<u32> {
        self.of(
            &[Kind::IncompatibleQos],
            "last_policy_kind",
            self.status.policy,
        )
    }
}

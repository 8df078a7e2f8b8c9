//! Status events of publishers and subscriptions (DDS 1.4 §2.2.4.1).
//!
//! The runtime queues what happens; `pteros_rcl::event_status` makes one status per kind
//! of it.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use pteros_rcl::event_status::{EventStatus as Status, EventStatuses, StatusKind};
use pteros_runtime::event::EndpointEvents;
use pteros_runtime::ready_queue::{ReadyQueue, Task};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;

use crate::error::UnsupportedEventTypeError;
use crate::handle::{Handle, Lifetime};
use crate::publisher::Publisher;
use crate::subscription::Subscription;

/// rcl's numbers of a subscription's events, and of a publisher's.
const OF_SUBSCRIPTION: [StatusKind; 6] = [
    StatusKind::DeadlineMissed,
    StatusKind::LivelinessChanged,
    StatusKind::IncompatibleQos,
    StatusKind::MessageLost,
    StatusKind::IncompatibleType,
    StatusKind::Matched,
];
const OF_PUBLISHER: [StatusKind; 5] = [
    StatusKind::DeadlineMissed,
    StatusKind::LivelinessLost,
    StatusKind::IncompatibleQos,
    StatusKind::IncompatibleType,
    StatusKind::Matched,
];

/// The statuses of one endpoint.
pub(crate) struct EventState {
    events: Arc<EndpointEvents>,
    is_reader: bool,
    statuses: Mutex<EventStatuses>,
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

    /// The statuses, with all that has happened.
    fn current(&self) -> MutexGuard<'_, EventStatuses> {
        let mut statuses = self.statuses.lock();
        while let Some(event) = self.events.take() {
            statuses.apply(&event);
        }
        statuses
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
    pub(crate) fn is_ready(&self, kind: StatusKind) -> bool {
        self.current().is_untaken(kind)
    }

    fn take(&self, kind: StatusKind) -> Option<Status> {
        let mut statuses = self.current();
        statuses.is_untaken(kind).then(|| statuses.take(kind))
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
    pub(crate) kind: StatusKind,
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
        let kinds: &[StatusKind] = if state.is_reader {
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
    kind: StatusKind,
    is_reader: bool,
    status: Status,
}

impl EventStatus {
    fn of<T>(&self, kinds: &[StatusKind], name: &str, value: T) -> PyResult<T> {
        if kinds.contains(&self.kind) {
            return Ok(value);
        }
        Err(PyAttributeError::new_err(format!(
            "the status {} has no {name}",
            self.name()
        )))
    }
}

const WITH_TOTAL: [StatusKind; 6] = [
    StatusKind::DeadlineMissed,
    StatusKind::LivelinessLost,
    StatusKind::IncompatibleQos,
    StatusKind::MessageLost,
    StatusKind::IncompatibleType,
    StatusKind::Matched,
];

#[pymethods]
impl EventStatus {
    #[getter]
    fn name(&self) -> &'static str {
        match (self.kind, self.is_reader) {
            (StatusKind::DeadlineMissed, true) => "requested_deadline_missed",
            (StatusKind::DeadlineMissed, false) => "offered_deadline_missed",
            (StatusKind::IncompatibleQos, true) => "requested_incompatible_qos",
            (StatusKind::IncompatibleQos, false) => "offered_incompatible_qos",
            (StatusKind::LivelinessChanged, _) => "liveliness_changed",
            (StatusKind::LivelinessLost, _) => "liveliness_lost",
            (StatusKind::MessageLost, _) => "message_lost",
            (StatusKind::IncompatibleType, _) => "incompatible_type",
            (StatusKind::Matched, _) => "matched",
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
        self.of(&[StatusKind::Matched], "current_count", self.status.current)
    }

    #[getter]
    fn current_count_change(&self) -> PyResult<i64> {
        let change = self.status.current_change;
        self.of(&[StatusKind::Matched], "current_count_change", change)
    }

    #[getter]
    fn alive_count(&self) -> PyResult<i64> {
        self.of(
            &[StatusKind::LivelinessChanged],
            "alive_count",
            self.status.current,
        )
    }

    #[getter]
    fn alive_count_change(&self) -> PyResult<i64> {
        let change = self.status.current_change;
        self.of(
            &[StatusKind::LivelinessChanged],
            "alive_count_change",
            change,
        )
    }

    #[getter]
    fn not_alive_count(&self) -> PyResult<i64> {
        let count = self.status.not_alive;
        self.of(&[StatusKind::LivelinessChanged], "not_alive_count", count)
    }

    #[getter]
    fn not_alive_count_change(&self) -> PyResult<i64> {
        let change = self.status.not_alive_change;
        self.of(
            &[StatusKind::LivelinessChanged],
            "not_alive_count_change",
            change,
        )
    }

    #[getter]
    fn last_policy_kind(&self) -> PyResult<u32> {
        self.of(
            &[StatusKind::IncompatibleQos],
            "last_policy_kind",
            self.status.last_policy_kind,
        )
    }
}

//! Status events of publishers and subscriptions (DDS 1.4 §2.2.4.1).
//!
//! The runtime queues what happens; `pteros_rcl::event_waiter` keeps one status per kind
//! of it.

use std::sync::Arc;

use pteros_rcl::event_status::{EventStatus as Status, StatusKind};
use pteros_rcl::event_waiter::EventSource;
use pteros_rcl::wait_set::WaitSource;
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

/// One kind of status of a publisher or subscription.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct EventHandle {
    pub(crate) source: Arc<EventSource>,
    owner: Arc<Lifetime>,
    pub(crate) life: Arc<Lifetime>,
}

#[pymethods]
impl EventHandle {
    #[new]
    fn new(entity: &Bound<'_, PyAny>, kind: usize) -> PyResult<PyClassInitializer<Self>> {
        let (waiter, owner) = if let Ok(publisher) = entity.cast::<Publisher>() {
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
        let kinds: &[StatusKind] = if waiter.is_reader {
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
                source: Arc::new(EventSource {
                    waiter,
                    kind: found,
                }),
                owner,
                life,
            }),
        )
    }

    fn is_ready(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.owner.is_open() && self.source.is_ready())
    }

    /// The status if it has changed.
    fn take_event(&self) -> PyResult<Option<EventStatus>> {
        self.life.check()?;
        let EventSource { waiter, kind } = &*self.source;
        Ok(waiter.is_ready(*kind).then(|| EventStatus {
            kind: *kind,
            is_reader: waiter.is_reader,
            status: waiter.take(*kind),
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

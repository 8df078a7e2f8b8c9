//! Service introspection: events of each request and response on
//! `<service>/_service_event` (REP-2012).

use std::sync::Arc;

use parking_lot::Mutex;
use pteros_runtime::writer::WriterEndpoint;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::clock::{Clock, ClockState};
use crate::handle::Lifetime;
use crate::node::NodeState;
use crate::publisher::{create_writer, send};
use crate::qos::Profile;
use crate::types::ServiceType;

/// `service_msgs/msg/ServiceEventInfo`.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    RequestSent = 0,
    RequestReceived = 1,
    ResponseSent = 2,
    ResponseReceived = 3,
}

/// The introspection of a client or server.
pub(crate) struct Introspection {
    node: Arc<NodeState>,
    topic: String,
    ty: Arc<ServiceType>,
    active: Mutex<Option<Arc<Active>>>,
}

struct Active {
    writer: Arc<WriterEndpoint>,
    clock: Arc<ClockState>,
    with_contents: bool,
    _life: Arc<Lifetime>,
}

impl Introspection {
    pub(crate) fn new(node: &Arc<NodeState>, service: &str, ty: &Arc<ServiceType>) -> Self {
        Self {
            node: node.clone(),
            topic: format!("{service}/_service_event"),
            ty: ty.clone(),
            active: Mutex::default(),
        }
    }

    /// Switches it: 0 off, 1 metadata, 2 contents.
    ///
    /// # Errors
    /// ValueError for another state; RCLError without a writer.
    pub(crate) fn configure(
        &self,
        py: Python<'_>,
        clock: &Clock,
        qos: &Profile,
        state: u32,
    ) -> PyResult<()> {
        let active = match state {
            0 => None,
            1 | 2 => {
                let profile = qos.to_profile()?;
                let writer = create_writer(py, &self.node, &self.ty.event, &self.topic, &profile)?;
                let (owner, removed) = (self.node.clone(), writer.clone());
                Some(Arc::new(Active {
                    writer,
                    clock: clock.state.clone(),
                    with_contents: state == 2,
                    _life: Lifetime::new(move || {
                        let core = &owner.context.core;
                        core.discovery().detach_endpoint(owner.key, removed.guid());
                        core.remove_writer(&removed);
                    }),
                }))
            }
            other => {
                return Err(PyValueError::new_err(format!(
                    "introspection state {other}: use 0 (off), 1 (metadata) or 2 (contents)"
                )));
            }
        };
        let before = std::mem::replace(&mut *self.active.lock(), active);
        py.detach(move || drop(before));
        Ok(())
    }

    /// Publishes an event if it is on.
    pub(crate) fn note(
        &self,
        py: Python<'_>,
        step: Step,
        (client, number): ([u8; 16], i64),
        message: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let Some(active) = self.active.lock().clone() else {
            return Ok(());
        };
        let program = &self.ty.event;
        let event = program.class.bind(py).call0()?;
        let info = event.getattr("info")?;
        info.setattr("event_type", step as u8)?;
        let now = active.clock.now();
        let stamp = info.getattr("stamp")?;
        stamp.setattr("sec", now.div_euclid(1_000_000_000))?;
        stamp.setattr("nanosec", now.rem_euclid(1_000_000_000))?;
        let gid: Vec<u32> = client.into_iter().map(u32::from).collect();
        info.setattr("client_gid", gid)?;
        info.setattr("sequence_number", number)?;
        if active.with_contents {
            let field = match step {
                Step::RequestSent | Step::RequestReceived => "request",
                Step::ResponseSent | Step::ResponseReceived => "response",
            };
            event.setattr(field, PyList::new(py, [message])?)?;
        }
        send(&self.node.context.core, &active.writer, program, &event)
    }
}

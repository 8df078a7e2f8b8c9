//! Service servers.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_rcl::data_waiter::DataWaiter;
use pteros_runtime::names::NameKind;
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::service::{ReceivedRequest, RequestId as ServerRequestId, ServiceServer};
use pyo3::prelude::*;

use crate::client::{RequestId, service_spec};
use crate::clock::Clock;
use crate::decode::{Undecodable, unbound};
use crate::endpoint::{payload, topic_name};
use crate::error::{self, rcl};
use crate::handle::{Handle, Lifetime};
use crate::introspection::{Introspection, Step};
use crate::node::{Node, NodeState};
use crate::qos::Profile;
use crate::types::ServiceType;

/// Requests that may be answered later. Beyond the limit the oldest is forgotten, and
/// its answer is an error.
const OPEN_REQUESTS_MAX: usize = 4096;

/// A server.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Service {
    node: Arc<NodeState>,
    server: Arc<ServiceServer>,
    pub(crate) waiter: Arc<DataWaiter>,
    ty: Arc<ServiceType>,
    open: Mutex<VecDeque<ServerRequestId>>,
    introspection: Introspection,
    pub(crate) life: Arc<Lifetime>,
    name: String,
}

#[pymethods]
impl Service {
    #[new]
    fn new(
        py: Python<'_>,
        node: &Node,
        srv_type: &Bound<'_, PyAny>,
        service: &str,
        qos: &Profile,
    ) -> PyResult<PyClassInitializer<Self>> {
        node.check(py, "create service")?;
        let node = node.state.clone();
        let ty = Arc::new(ServiceType::of(srv_type)?);
        let profile = qos.to_profile()?;
        let name = topic_name(py, &node, NameKind::Service, service, &profile)?;
        let spec = service_spec(&name, &ty, &profile)?;
        let core = &node.context.core;
        let server = py
            .detach(|| {
                let server = core.create_service_server(spec, DeliveryForm::Bytes)?;
                core.discovery()
                    .attach_endpoint(node.key, &server.requests.announced());
                core.discovery()
                    .attach_endpoint(node.key, &server.replies.announced());
                Ok(server)
            })
            .map_err(error::endpoint)?;
        let server = Arc::new(server);
        let waiter = DataWaiter::of_server(core, &server);
        let (owner, removed) = (node.clone(), server.clone());
        let life = Lifetime::new(move || {
            let core = &owner.context.core;
            core.discovery()
                .detach_endpoint(owner.key, removed.requests.data.guid);
            core.discovery()
                .detach_endpoint(owner.key, removed.replies.guid());
            core.remove_service_server(&removed);
        });
        let introspection = Introspection::new(&node, &name, &ty);
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                node,
                server,
                waiter,
                ty,
                open: Mutex::default(),
                introspection,
                life,
                name,
            }),
        )
    }

    /// The oldest request and its header, or None.
    fn take_request<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, RequestId)>> {
        self.life.check()?;
        let core = &self.node.context.core;
        let decode = |received: ReceivedRequest| {
            let Some(payload) = payload(&received.item) else {
                return Ok(None);
            };
            let ty = &self.ty.request;
            let request = Python::attach(|py| unbound(ty.decode_received(py, payload)))?;
            Ok::<_, Undecodable>(Some((request, received)))
        };
        while let Some(taken) = py.detach(|| self.server.take_decoded_request(core, decode)) {
            let Some((request, received)) = taken else {
                continue;
            };
            let request = request?.into_bound(py);
            let gid = received.id.client.to_bytes();
            let number = received.id.sequence;
            let header = RequestId::new(py, gid, number, &received.item.meta);
            let mut open = self.open.lock();
            if open.len() >= OPEN_REQUESTS_MAX {
                open.pop_front();
            }
            open.push_back(received.id);
            drop(open);
            self.introspection
                .note(py, Step::RequestReceived, (gid, number), &request)?;
            return Ok(Some((request, header)));
        }
        Ok(None)
    }

    /// Answers a request, once.
    fn send_response(&self, response: &Bound<'_, PyAny>, header: &RequestId) -> PyResult<()> {
        self.life.check()?;
        let py = response.py();
        self.ty.response.check(response)?;
        let mut outbound = SerializedPayload::new(self.ty.response.encode(response)?);
        let client = header.client_gid.bind(py).as_bytes().to_vec();
        let number = header.sequence_number;
        let mut open = self.open.lock();
        let is_asked = |one: &ServerRequestId| {
            one.sequence == number && one.client.to_bytes()[..] == client[..]
        };
        let at = open.iter().position(is_asked);
        let id = at.and_then(|at| open.remove(at));
        drop(open);
        let Some(id) = id else {
            return Err(rcl(format!(
                "request {number} of {} is not open: it was answered already, or \
                 {OPEN_REQUESTS_MAX} later requests came first",
                self.name
            )));
        };
        let core = &self.node.context.core;
        py.detach(|| self.server.reply(core, &id, &mut outbound))
            .map_err(rcl)?;
        self.introspection.note(
            py,
            Step::ResponseSent,
            (id.client.to_bytes(), number),
            response,
        )
    }

    fn is_ready(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.waiter.reader.has_samples())
    }

    fn get_service_name(&self) -> PyResult<&str> {
        self.life.check()?;
        Ok(&self.name)
    }

    /// Publishes events on `<service>/_service_event`: 0 off, 1 metadata, 2 contents.
    fn configure_introspection(
        &self,
        py: Python<'_>,
        clock: &Clock,
        qos: &Profile,
        state: u32,
    ) -> PyResult<()> {
        self.life.check()?;
        self.node
            .check_valid(py, "configure service introspection")?;
        self.introspection.configure(py, clock, qos, state)
    }
}

//! Service clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_rcl::data_waiter::DataWaiter;
use pteros_runtime::EndpointSpec;
use pteros_runtime::names::{NameKind, dds_reply_topic, dds_request_topic};
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::qos::QosProfile;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::sample::{QueuedSample, SampleMeta};
use pteros_runtime::service::{CALLS_MAX, CallId, SendRequestError, ServiceClient, ServiceSpec};
use pteros_runtime::user_data::type_hash_entry;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::clock::Clock;
use crate::decode::{Undecodable, unbound};
use crate::endpoint::{payload, topic_name};
use crate::error::{self, rcl};
use crate::handle::{Handle, Lifetime};
use crate::introspection::{Introspection, Step};
use crate::node::{Node, NodeState};
use crate::program::Program;
use crate::qos::Profile;
use crate::types::{self, ServiceType};

/// The header of a request: the client, and the client's number of it.
#[pyclass(frozen, get_all, module = "pteros._native")]
pub(crate) struct RequestId {
    pub(crate) client_gid: Py<PyBytes>,
    pub(crate) sequence_number: i64,
    source_timestamp: i64,
    received_timestamp: i64,
}

impl RequestId {
    pub(crate) fn new(py: Python<'_>, client: [u8; 16], number: i64, meta: &SampleMeta) -> Self {
        Self {
            client_gid: PyBytes::new(py, &client).unbind(),
            sequence_number: number,
            source_timestamp: meta.source.unwrap_or(meta.reception).as_nanos(),
            received_timestamp: meta.reception.as_nanos(),
        }
    }
}

/// The numbers by which Python knows requests.
#[derive(Default)]
struct RequestNumbers {
    last: i64,
    /// Open calls, at most [`CALLS_MAX`]; the oldest goes.
    open: BTreeMap<CallId, i64>,
}

/// A client.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Client {
    node: Arc<NodeState>,
    client: Arc<ServiceClient>,
    pub(crate) waiter: Arc<DataWaiter>,
    ty: Arc<ServiceType>,
    numbers: Mutex<RequestNumbers>,
    introspection: Introspection,
    pub(crate) life: Arc<Lifetime>,
    name: String,
}

/// The endpoints of one side: topics, types and QoS.
pub(crate) fn service_spec(
    name: &str,
    ty: &ServiceType,
    profile: &QosProfile,
) -> PyResult<ServiceSpec> {
    let avoid = profile.avoid_ros_namespace_conventions;
    // As rmw_cyclonedds and rmw_fastrtps, both topics carry the hash of the service.
    let type_hash = types::type_hash(&ty.name)?;
    let user_data = type_hash_entry(type_hash);
    let spec = |topic: String, program: &Program| {
        let mut qos = profile.to_endpoint();
        qos.user_data = user_data.clone();
        EndpointSpec {
            topic,
            type_name: program.ty.dds_type_name(),
            qos,
            serialize_only: true,
            ..EndpointSpec::default()
        }
    };
    Ok(ServiceSpec {
        requests: spec(dds_request_topic(name, avoid), &ty.request),
        replies: spec(dds_reply_topic(name, avoid), &ty.response),
        type_hash: Some(type_hash),
    })
}

#[pymethods]
impl Client {
    #[new]
    fn new(
        py: Python<'_>,
        node: &Node,
        srv_type: &Bound<'_, PyAny>,
        service: &str,
        qos: &Profile,
    ) -> PyResult<PyClassInitializer<Self>> {
        node.check(py, "create client")?;
        let node = node.state.clone();
        let ty = Arc::new(ServiceType::of(srv_type)?);
        let profile = qos.to_profile()?;
        let name = topic_name(py, &node, NameKind::Service, service, &profile)?;
        let spec = service_spec(&name, &ty, &profile)?;
        let core = &node.context.core;
        let client = py
            .detach(|| {
                let client = core.create_service_client(spec, DeliveryForm::Bytes)?;
                core.discovery()
                    .attach_endpoint(node.key, &client.requests.announced());
                core.discovery()
                    .attach_endpoint(node.key, &client.replies.announced());
                Ok(client)
            })
            .map_err(error::endpoint)?;
        let client = Arc::new(client);
        let waiter = DataWaiter::new(core, client.replies.clone());
        let (owner, removed) = (node.clone(), client.clone());
        let life = Lifetime::new(move || {
            let core = &owner.context.core;
            core.discovery()
                .detach_endpoint(owner.key, removed.requests.guid());
            core.discovery()
                .detach_endpoint(owner.key, removed.replies.data.guid);
            core.remove_service_client(&removed);
        });
        let introspection = Introspection::new(&node, &name, &ty);
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                node,
                client,
                waiter,
                ty,
                numbers: Mutex::default(),
                introspection,
                life,
                name,
            }),
        )
    }

    /// Sends a request and returns its number. Without a server it is lost.
    fn send_request(&self, request: &Bound<'_, PyAny>) -> PyResult<i64> {
        self.life.check()?;
        let py = request.py();
        self.ty.request.check(request)?;
        let mut outbound = SerializedPayload::new(self.ty.request.encode(request)?);
        let core = &self.node.context.core;
        let number = py.detach(|| {
            // Held while sending: the reply may come before this returns.
            let mut numbers = self.numbers.lock();
            if numbers.open.len() >= CALLS_MAX
                && let Some((oldest, _)) = numbers.open.pop_first()
            {
                self.client.close_call(oldest);
            }
            let sent = self
                .client
                .send(core, &mut outbound, core.platform.wall_clock());
            let call = match sent {
                Ok(call) => Some(call),
                Err(SendRequestError::NoServer) => None,
                Err(error) => return Err(rcl(error)),
            };
            numbers.last += 1;
            let number = numbers.last;
            if let Some(call) = call {
                numbers.open.insert(call, number);
            }
            Ok(number)
        })?;
        self.introspection.note(
            py,
            Step::RequestSent,
            (self.client.requests.guid().to_bytes(), number),
            request,
        )?;
        Ok(number)
    }

    /// The oldest response to a request of this client.
    fn take_response<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(RequestId, Bound<'py, PyAny>)>> {
        self.life.check()?;
        let decode = |item: QueuedSample| {
            let Some(payload) = payload(&item) else {
                return Ok(None);
            };
            let ty = &self.ty.response;
            let response = Python::attach(|py| unbound(ty.decode_received(py, payload)))?;
            Ok::<_, Undecodable>(Some((response, item.meta)))
        };
        let core = &self.node.context.core;
        while let Some(reply) = py.detach(|| self.client.take_decoded_reply(core, decode)) {
            let number = py.detach(|| self.numbers.lock().open.remove(&reply.call));
            // As with other middlewares, the future of a call stays pending whose response
            // is dropped.
            let (Some(number), Ok(Some((response, meta)))) = (number, reply.message) else {
                continue;
            };
            let response = response?.into_bound(py);
            let gid = self.client.requests.guid().to_bytes();
            self.introspection
                .note(py, Step::ResponseReceived, (gid, number), &response)?;
            let header = RequestId::new(py, gid, number, &meta);
            return Ok(Some((header, response)));
        }
        Ok(None)
    }

    /// Drops the response to a request.
    fn forget_request(&self, py: Python<'_>, sequence_number: i64) -> PyResult<()> {
        self.life.check()?;
        py.detach(|| {
            let mut numbers = self.numbers.lock();
            let found = numbers
                .open
                .iter()
                .find(|(_, number)| **number == sequence_number)
                .map(|(call, _)| *call);
            if let Some(call) = found {
                numbers.open.remove(&call);
                self.client.close_call(call);
            }
        });
        Ok(())
    }

    fn is_ready(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.waiter.reader.has_samples())
    }

    fn service_server_is_available(&self, py: Python<'_>) -> PyResult<bool> {
        self.life.check()?;
        self.node.check_valid(py, "check service availability")?;
        Ok(self.client.server_count(&self.node.context.core) > 0)
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
            .check_valid(py, "configure client introspection")?;
        self.introspection.configure(py, clock, qos, state)
    }
}

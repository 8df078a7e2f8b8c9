//! `Publisher`: the native class below the publishers of `rclpy`. It encodes a message to
//! CDR, in shared memory where possible, and writes it to an endpoint of the runtime.

use std::sync::Arc;

use pteros_rcl::event_waiter::EventWaiter;
use pteros_rcl::rmw_qos::resolve_best_available;
use pteros_runtime::names::{NameKind, dds_topic};
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::rtps::time::{Duration, Instant};
use pteros_runtime::shm_transport::CHUNK_MIN_BYTES;
use pteros_runtime::user_data::type_hash_entry;
use pteros_runtime::writer::WriterEndpoint;
use pteros_runtime::{Core, EndpointSpec};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::context::Owner;
use crate::endpoint::{filterable, given_payload, topic_name};
use crate::error::{self, rcl};
use crate::handle::{Handle, Lifetime};
use crate::node::{Node, NodeState};
use crate::program::Program;
use crate::qos::Profile;
use crate::types;

/// A publisher.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Publisher {
    node: Arc<NodeState>,
    writer: Arc<WriterEndpoint>,
    program: Arc<Program>,
    pub(crate) events: Arc<EventWaiter>,
    pub(crate) life: Arc<Lifetime>,
    topic: String,
}

/// Sends a message through a writer. A large one is encoded into shared memory where
/// readers of other processes are connected.
pub(crate) fn send(
    core: &Core,
    writer: &WriterEndpoint,
    program: &Program,
    message: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = message.py();
    program.check(message)?;
    let mut payload = None;
    if program.is_bulky && writer.connected_count() > 0 {
        let size = program.size(message)?;
        if size > CHUNK_MIN_BYTES {
            let chunk = py.detach(|| core.loan(writer, size)).map_err(rcl)?;
            if let Some(mut chunk) = chunk.filter(|chunk| chunk.len() == size) {
                program.encode_into(message, &mut chunk)?;
                payload = Some(SerializedPayload::in_chunk(chunk.freeze()));
            }
        }
    }
    let mut payload = match payload {
        Some(payload) => payload,
        None => SerializedPayload::new(program.encode(message)?),
    };
    py.detach(|| core.publish(writer, &mut payload, core.platform.wall_clock()))
        .map_err(rcl)?;
    Ok(())
}

/// Creates a writer of a node.
pub(crate) fn create_writer(
    py: Python<'_>,
    node: &NodeState,
    program: &Program,
    name: &str,
    profile: &pteros_runtime::qos::QosProfile,
) -> PyResult<Arc<WriterEndpoint>> {
    let core = &node.context.core;
    let topic = dds_topic(name, profile.avoid_ros_namespace_conventions);
    let profile = resolve_best_available(core.graph(), &topic, true, profile.clone());
    let mut qos = profile.to_endpoint();
    qos.user_data = type_hash_entry(types::type_hash(&program.name)?);
    let spec = EndpointSpec {
        topic,
        type_name: program.ty.dds_type_name(),
        qos,
        serialize_only: true,
        message_type: filterable(program),
        ..EndpointSpec::default()
    };
    py.detach(|| {
        let writer = core.create_writer(spec)?;
        core.discovery()
            .attach_endpoint(node.key, &writer.announced());
        Ok(writer)
    })
    .map_err(error::endpoint)
}

impl Publisher {
    /// # Errors
    /// InvalidHandle once it is destroyed, RCLError once its context is shut down.
    fn check(&self, py: Python<'_>, action: impl std::fmt::Display) -> PyResult<()> {
        self.life.check()?;
        let context = &self.node.context;
        context.check_valid(py, action, Owner::Publisher)
    }

    fn check_publish(&self, py: Python<'_>) -> PyResult<()> {
        self.check(py, format_args!("publish on {:?}", self.topic))
    }
}

#[pymethods]
impl Publisher {
    #[new]
    fn new(
        py: Python<'_>,
        node: &Node,
        msg_type: &Bound<'_, PyAny>,
        topic: &str,
        qos: &Profile,
    ) -> PyResult<PyClassInitializer<Self>> {
        node.check(py, "create publisher")?;
        let node = node.state.clone();
        let program = types::program_of(msg_type)?;
        let profile = qos.to_profile()?;
        let topic = topic_name(py, &node, NameKind::Topic, topic, &profile)?;
        let writer = create_writer(py, &node, &program, &topic, &profile)?;
        let events = EventWaiter::new(&node.context.core, &writer.events, false, ());
        let (owner, removed) = (node.clone(), writer.clone());
        let life = Lifetime::new(move || {
            let core = &owner.context.core;
            core.discovery().detach_endpoint(owner.key, removed.guid());
            core.remove_writer(&removed);
        });
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                node,
                writer,
                program,
                events,
                life,
                topic,
            }),
        )
    }

    /// Publishes a message.
    fn publish(&self, message: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_publish(message.py())?;
        send(
            &self.node.context.core,
            &self.writer,
            &self.program,
            message,
        )
    }

    /// Publishes CDR with its header.
    fn publish_raw(&self, payload: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = payload.py();
        self.check_publish(py)?;
        let mut payload = SerializedPayload::new(given_payload(payload)?);
        let core = &self.node.context.core;
        py.detach(|| core.publish(&self.writer, &mut payload, core.platform.wall_clock()))
            .map_err(rcl)?;
        Ok(())
    }

    /// Full, remapped.
    fn get_topic_name(&self) -> PyResult<&str> {
        self.life.check()?;
        Ok(&self.topic)
    }

    fn get_subscription_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.check(py, "get subscription count")?;
        Ok(self.writer.matched_count())
    }

    fn assert_liveliness(&self, py: Python<'_>) -> PyResult<()> {
        self.check(py, "assert liveliness")?;
        py.detach(|| {
            self.node
                .context
                .core
                .discovery()
                .assert_liveliness(&self.writer)
        });
        Ok(())
    }

    /// Waits until all subscriptions have acknowledged all messages.
    #[pyo3(signature = (timeout_ns=-1))]
    fn wait_for_all_acked(&self, py: Python<'_>, timeout_ns: i64) -> PyResult<bool> {
        self.check(py, "wait for all acknowledgements")?;
        let core = &self.node.context.core;
        let until = deadline(core, Some(timeout_ns));
        let acknowledged = py.detach(|| {
            core.publishing().request_acknowledgement(&self.writer);
            core.driver()
                .wait_until(until, || self.writer.is_acknowledged())
        });
        py.check_signals()?;
        Ok(acknowledged)
    }

    /// Its GUID.
    #[getter]
    fn gid<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.writer.guid().to_bytes())
    }
}

/// When a timeout ends; `None` and negative ones never do.
pub(crate) fn deadline(core: &Core, timeout_ns: Option<i64>) -> Instant {
    match timeout_ns {
        Some(timeout) if (0..i64::MAX).contains(&timeout) => {
            core.platform.now().after(Duration::from_nanos(timeout))
        }
        _ => Instant::FAR_FUTURE,
    }
}

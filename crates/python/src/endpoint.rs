//! Parts that publishers, subscriptions, clients and services have in common.

use bytes::Bytes;
use pteros_runtime::content_filter::MessageType;
use pteros_runtime::names::NameKind;
use pteros_runtime::qos::QosProfile;
use pteros_runtime::sample::{QueuedSample, SampleBody, SampleMeta};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error;
use crate::node::NodeState;
use crate::program::Program;

/// The bytes of a sample.
pub(crate) fn payload(item: &QueuedSample) -> Option<&Bytes> {
    match &item.body {
        SampleBody::Serialized(payload) if item.is_data() => Some(payload),
        _ => None,
    }
}

/// The type of an endpoint, for content filters.
pub(crate) fn filterable(program: &Program) -> MessageType {
    MessageType::Dynamic(program.ty.clone())
}

/// The name of an endpoint: full, remapped, or as given where the QoS avoids ROS's
/// conventions.
pub(crate) fn topic_name(
    py: Python<'_>,
    node: &NodeState,
    kind: NameKind,
    name: &str,
    profile: &QosProfile,
) -> PyResult<String> {
    if profile.avoid_ros_namespace_conventions {
        pteros_runtime::names::validate_dds_topic(name).map_err(|fault| error::name(py, &fault))?;
        return Ok(name.into());
    }
    node.resolve(py, kind, name, false)
}

/// Meta data of a received message.
#[pyclass(frozen, get_all, module = "pteros._native")]
pub(crate) struct MessageInfo {
    source_timestamp: i64,
    received_timestamp: i64,
    publication_sequence_number: Option<u64>,
    reception_sequence_number: Option<u64>,
    publisher_gid: Py<PyBytes>,
}

impl MessageInfo {
    pub(crate) fn of(py: Python<'_>, meta: &SampleMeta) -> Self {
        Self {
            source_timestamp: meta.source.unwrap_or(meta.reception).as_nanos(),
            received_timestamp: meta.reception.as_nanos(),
            publication_sequence_number: u64::try_from(meta.sequence).ok(),
            reception_sequence_number: None,
            publisher_gid: PyBytes::new(py, &meta.publisher.to_bytes()).unbind(),
        }
    }
}

#[pymethods]
impl MessageInfo {
    /// The first four values, as callbacks get them.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        values.set_item("source_timestamp", self.source_timestamp)?;
        values.set_item("received_timestamp", self.received_timestamp)?;
        values.set_item(
            "publication_sequence_number",
            self.publication_sequence_number,
        )?;
        values.set_item("reception_sequence_number", self.reception_sequence_number)?;
        Ok(values)
    }
}

/// Copies the payload that a program gives, after a look at its header.
///
/// # Errors
/// ValueError: it is no CDR.
pub(crate) fn given_payload(payload: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let buffer = crate::ffi::Buffer::read(payload)?;
    let bytes = buffer.bytes();
    pteros_msg::cdr::Encapsulation::read(bytes).map_err(|fault| {
        PyValueError::new_err(format!(
            "{} bytes are no serialized message: {fault}; use rclpy.serialization",
            bytes.len()
        ))
    })?;
    Ok(Bytes::copy_from_slice(bytes))
}

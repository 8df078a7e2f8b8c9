//! Queries of the ROS graph: topics, services, actions, endpoints and their counts.

use pteros_rcl::graph::{
    EndpointRole, NamesAndTypes, NamesOf, NodeQueryError, TopicEndpointInfo, endpoint_infos,
    names_and_types_of_node,
};
use pteros_runtime::names::{NameKind, validate_full};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{self, NodeNameNonExistentError};
use crate::node::Node;
use crate::qos::Profile;

/// Names and types of a node's endpoints.
pub(crate) fn by_node(
    py: Python<'_>,
    asking: &Node,
    node: (&str, &str),
    role: EndpointRole,
    listed: NamesOf,
) -> PyResult<NamesAndTypes> {
    asking.check(py, "get names and types by node")?;
    let graph = asking.state.context.core.graph();
    names_and_types_of_node(graph, node, role, listed).map_err(|reason| match reason {
        // RCLError, as in rclpy.
        NodeQueryError::Name(fault) => error::rcl(error::describe(&fault)),
        NodeQueryError::NoSuchNode { .. } => NodeNameNonExistentError::new_err(reason.to_string()),
    })
}

/// Counts the endpoints of a topic or service.
pub(crate) fn count(
    py: Python<'_>,
    asking: &Node,
    role: EndpointRole,
    name: &str,
) -> PyResult<usize> {
    asking.check(py, "count endpoints")?;
    let (kind, prefix, suffix, counts_writers) = role.counted();
    validate_full(kind, name).map_err(|fault| error::name(py, &fault))?;
    let graph = asking.state.context.core.graph();
    Ok(graph.count_endpoints(&format!("{prefix}{name}{suffix}"), counts_writers))
}

/// A role by its word, and whether names are those of actions.
pub(crate) fn role(word: &str) -> PyResult<(EndpointRole, bool)> {
    let is_action = word.starts_with("action");
    Ok(match word {
        "publisher" | "action_server" => (EndpointRole::Publisher, is_action),
        "subscription" | "action_client" => (EndpointRole::Subscription, is_action),
        "service" => (EndpointRole::Service, is_action),
        "client" => (EndpointRole::Client, is_action),
        _ => return Err(PyValueError::new_err(format!("{word:?} is no role"))),
    })
}

/// The writers or readers of a topic.
pub(crate) fn info_by_topic<'py>(
    py: Python<'py>,
    asking: &Node,
    topic: &str,
    no_mangle: bool,
    wants_writers: bool,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    asking.check(py, "get information by topic")?;
    if !no_mangle {
        validate_full(NameKind::Topic, topic).map_err(|fault| error::name(py, &fault))?;
    }
    let graph = asking.state.context.core.graph();
    endpoint_infos(graph, topic, no_mangle, wants_writers)
        .into_iter()
        .map(|info| to_dict(py, info))
        .collect()
}

fn to_dict(py: Python<'_>, info: TopicEndpointInfo) -> PyResult<Bound<'_, PyDict>> {
    let hash = info.type_hash;
    let hash_info = PyDict::new(py);
    hash_info.set_item("version", u8::from(hash.is_some()))?;
    let value = hash.as_ref().map_or([0; 32], |hash| *hash.value());
    hash_info.set_item("value", PyBytes::new(py, &value))?;
    let values = PyDict::new(py);
    values.set_item("node_name", info.node_name)?;
    values.set_item("node_namespace", info.node_namespace)?;
    values.set_item("topic_type", info.topic_type)?;
    values.set_item("topic_type_hash", hash_info)?;
    values.set_item("endpoint_type", if info.is_publisher { 1 } else { 2 })?;
    values.set_item("endpoint_gid", info.gid.map(u32::from).to_vec())?;
    values.set_item("qos_profile", Profile(info.qos).to_dict(py)?)?;
    Ok(values)
}

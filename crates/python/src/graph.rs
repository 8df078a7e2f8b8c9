//! Queries of the ROS graph: topics, services, actions, endpoints and their counts.

use std::collections::{BTreeMap, BTreeSet};

use pteros_msg::hash::TypeHash;
use pteros_runtime::graph::GraphEndpoint;
use pteros_runtime::names::{
    DdsTopic, NameKind, dds_topic, from_dds_topic, validate_full, validate_namespace, validate_node,
};
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::user_data::user_data_value;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{self, NodeNameNonExistentError};
use crate::node::Node;
use crate::qos::Profile;

/// Names, each with its types, sorted.
pub(crate) type NamesAndTypes = Vec<(String, Vec<String>)>;

/// `pkg/msg/Name` of `pkg::msg::dds_::Name_`; other names stay.
fn ros_type(dds_name: &str) -> String {
    match dds_name.split_once("::dds_::") {
        Some((namespace, name)) => {
            let name = name.strip_suffix('_').unwrap_or(name);
            format!("{}/{name}", namespace.replace("::", "/"))
        }
        None => dds_name.into(),
    }
}

/// The service type of a request or reply type.
fn ros_service_type(dds_name: &str) -> String {
    let name = ros_type(dds_name);
    let service = name
        .strip_suffix("_Request")
        .or_else(|| name.strip_suffix("_Response"));
    service.map_or(name.clone(), Into::into)
}

/// The kind of entry that a list shows.
#[derive(Clone, Copy)]
pub(crate) enum Listed {
    /// Topics of ROS.
    Topics,
    /// All DDS topics under their own names.
    DdsTopics,
    /// Services of servers and clients.
    Services,
}

impl Listed {
    pub(crate) fn topics(no_demangle: bool) -> Self {
        if no_demangle {
            Self::DdsTopics
        } else {
            Self::Topics
        }
    }
}

/// Names with their types, sorted, of endpoints.
pub(crate) fn names_and_types(endpoints: &[GraphEndpoint], listed: Listed) -> NamesAndTypes {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for endpoint in endpoints {
        let data = &endpoint.data;
        let named = match (listed, from_dds_topic(&data.topic)) {
            (Listed::DdsTopics, _) => Some((data.topic.clone(), data.type_name.clone())),
            (Listed::Topics, DdsTopic::Topic(name)) => Some((name, ros_type(&data.type_name))),
            (Listed::Services, DdsTopic::ServiceRequest(name) | DdsTopic::ServiceReply(name)) => {
                Some((name, ros_service_type(&data.type_name)))
            }
            _ => None,
        };
        if let Some((name, ty)) = named {
            found.entry(name).or_default().insert(ty);
        }
    }
    let found = found.into_iter();
    found
        .map(|(name, types)| (name, types.into_iter().collect()))
        .collect()
}

/// Actions among topics, by their feedback.
pub(crate) fn actions(topics: NamesAndTypes) -> NamesAndTypes {
    let action = |(name, types): (String, Vec<String>)| {
        let name = name.strip_suffix("/_action/feedback")?.to_owned();
        let types = types.iter();
        let types = types.filter_map(|ty| ty.strip_suffix("_FeedbackMessage").map(Into::into));
        Some((name, types.collect()))
    };
    topics.into_iter().filter_map(action).collect()
}

/// The endpoints of a node by side.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Subscriptions,
    Publishers,
    Services,
    Clients,
}

impl Side {
    /// Servers read requests, clients write them.
    fn includes(self, guid: Guid, topic: &str) -> bool {
        let is_request = matches!(from_dds_topic(topic), DdsTopic::ServiceRequest(_));
        match self {
            Self::Subscriptions => guid.entity.is_reader(),
            Self::Publishers => guid.entity.is_writer(),
            Self::Services => is_request && guid.entity.is_reader(),
            Self::Clients => is_request && guid.entity.is_writer(),
        }
    }
}

/// Names and types of a node's endpoints.
pub(crate) fn by_node(
    py: Python<'_>,
    asking: &Node,
    (name, namespace): (&str, &str),
    side: Side,
    listed: Listed,
) -> PyResult<NamesAndTypes> {
    asking.check(py, "get names and types by node")?;
    // RCLError, as in rclpy.
    validate_node(name).map_err(|fault| error::rcl(error::describe(&fault)))?;
    validate_namespace(namespace).map_err(|fault| error::rcl(error::describe(&fault)))?;
    let graph = asking.state.context.core.graph();
    let nodes = graph.nodes();
    let found = nodes
        .iter()
        .find(|node| node.name == name && node.namespace == namespace);
    let Some(found) = found else {
        return Err(NodeNameNonExistentError::new_err(format!(
            "there is no node {name:?} in namespace {namespace:?}"
        )));
    };
    let owned: BTreeSet<Guid> = found
        .readers
        .iter()
        .chain(&found.writers)
        .copied()
        .collect();
    let endpoints =
        graph.endpoints_if(|guid, topic| owned.contains(&guid) && side.includes(guid, topic));
    Ok(names_and_types(&endpoints, listed))
}

/// Counts writers or readers of a topic or service.
pub(crate) fn count(
    py: Python<'_>,
    asking: &Node,
    kind: NameKind,
    name: &str,
    (prefix, suffix, counts_writers): (&str, &str, bool),
) -> PyResult<usize> {
    asking.check(py, "count endpoints")?;
    validate_full(kind, name).map_err(|fault| error::name(py, &fault))?;
    let graph = asking.state.context.core.graph();
    Ok(graph.count_endpoints(&format!("{prefix}{name}{suffix}"), counts_writers))
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
    let nodes = graph.nodes();
    let mut infos = Vec::new();
    for endpoint in graph.endpoints_on(&dds_topic(topic, no_mangle)) {
        let data = &endpoint.data;
        if data.guid.entity.is_writer() != wants_writers {
            continue;
        }
        let owner = nodes.iter().find(|node| {
            let list = if wants_writers {
                &node.writers
            } else {
                &node.readers
            };
            list.contains(&data.guid)
        });
        let (name, namespace) = owner.map_or(
            ("_NODE_NAME_UNKNOWN_", "_NODE_NAMESPACE_UNKNOWN_"),
            |node| (node.name.as_str(), node.namespace.as_str()),
        );
        let hash: Option<TypeHash> =
            user_data_value(&data.qos.user_data, "typehash").and_then(|hash| hash.parse().ok());
        let hash_info = PyDict::new(py);
        hash_info.set_item("version", u8::from(hash.is_some()))?;
        let value = hash.as_ref().map_or([0; 32], |hash| *hash.value());
        hash_info.set_item("value", PyBytes::new(py, &value))?;
        let info = PyDict::new(py);
        info.set_item("node_name", name)?;
        info.set_item("node_namespace", namespace)?;
        let ty = if no_mangle {
            data.type_name.clone()
        } else {
            ros_type(&data.type_name)
        };
        info.set_item("topic_type", ty)?;
        info.set_item("topic_type_hash", hash_info)?;
        info.set_item("endpoint_type", if wants_writers { 1 } else { 2 })?;
        let gid: Vec<u32> = data.guid.to_bytes().into_iter().map(u32::from).collect();
        info.set_item("endpoint_gid", gid)?;
        let profile = Profile::announced(&data.qos, endpoint.local);
        info.set_item("qos_profile", profile.to_dict(py)?)?;
        infos.push(info);
    }
    Ok(infos)
}

//! Types of other participants, for types without a local definition. Message types
//! come from TypeLookup (XTypes), other types from the node's
//! `~/get_type_description` service.

use crate::server_type::without_kind;
use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, anyhow, bail};
use pteros::msg::dynamic::DynamicService;
use pteros::msg::dynamic::DynamicType;
use pteros::msg::hash::TypeHash;
use pteros::names::node_path;
use pteros::{
    Graph,
    graph::{AnnouncedTypeError, NodeInfo},
    service::CallError,
    type_description::RemoteTypeDescription,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Timeout of a type request to the endpoints of a topic.
const TYPE_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of a type request to one node.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);
/// Largest number of nodes that are queried.
const NODES_MAX: usize = 8;

/// The type of a topic with a ROS or a DDS name.
///
/// # Errors
/// [`AnnouncedTypeError`], or the error of the last queried node.
pub fn of_topic(session: &Session, graph: &Graph, topic: &str) -> Result<DynamicType> {
    let announced_error = match graph.announced_type(topic, TYPE_TIMEOUT) {
        Ok(ty) => return Ok(ty),
        Err(announced_error) => announced_error,
    };
    let nodes = graph.nodes();
    let endpoints = graph.publishers(topic).into_iter();
    let mut queried = BTreeSet::new();
    let mut query_error = None;
    for endpoint in endpoints.chain(graph.subscriptions(topic)) {
        let (Some(hash), Some(name)) = (endpoint.type_hash, &endpoint.node_name) else {
            continue;
        };
        let namespace = endpoint.node_namespace.as_deref().unwrap_or("/");
        let node = node_path(namespace, name);
        if endpoint.local || queried.len() >= NODES_MAX || !queried.insert(node.clone()) {
            continue;
        }
        let own_node = &session.node;
        let known = nodes.iter().find(|n| n.fully_qualified_name() == node);
        let server = known.and_then(|known| description_server(graph, &nodes, known));
        let server = server.unwrap_or(node);
        match own_node.fetch_type_description(&server, &endpoint.topic_type, hash, NODE_TIMEOUT) {
            Ok(remote) => return Ok(DynamicType::new(&remote.description)?),
            // ROS 2 has had this service since Iron.
            Err(CallError::NoServer { .. }) => {}
            Err(error) => query_error = Some(error),
        }
    }
    match (announced_error, query_error) {
        (AnnouncedTypeError::NotAnnounced | AnnouncedTypeError::NoReply, Some(query_error)) => {
            Err(query_error.into())
        }
        (announced_error, _) => Err(announced_error.into()),
    }
}

/// The full name of the node that describes the types of a node: itself, or another
/// one of its process, which answers for all of them.
fn description_server(graph: &Graph, nodes: &[NodeInfo], node: &NodeInfo) -> Option<String> {
    let services = graph.services();
    let of_process = nodes.iter().filter(|n| n.participant == node.participant);
    std::iter::once(node)
        .chain(of_process)
        .map(NodeInfo::fully_qualified_name)
        .find(|name| {
            let service = format!("{name}/get_type_description");
            services.iter().any(|offered| offered.name == service)
        })
}

/// A type, requested from a node that uses it.
///
/// # Errors
/// Unknown node, unknown type, or no type description.
pub fn from_node(
    session: &Session,
    graph: &Graph,
    node: &str,
    type_name: &str,
) -> Result<RemoteTypeDescription> {
    let node = format!("/{}", node.trim_start_matches('/'));
    let nodes = graph.nodes();
    let Some(known) = nodes.iter().find(|n| n.fully_qualified_name() == node) else {
        let names: Vec<String> = nodes.iter().map(NodeInfo::fully_qualified_name).collect();
        let similar = did_you_mean(&node, names.iter().map(String::as_str));
        bail!("unknown node '{node}'{similar} See all of them with: pteros node list");
    };
    let endpoints = graph.endpoints_of_node(known);
    let types: BTreeMap<&str, TypeHash> = endpoints
        .iter()
        .filter_map(|(_, endpoint)| Some((endpoint.topic_type.as_str(), endpoint.type_hash?)))
        .collect();
    let short = |full: &str| full.replacen("/msg/", "/", 1) == type_name;
    let Some((full, hash)) = types
        .iter()
        .find(|(full, _)| **full == type_name || short(full))
    else {
        let known: Vec<&str> = types.keys().copied().collect();
        bail!(
            "node '{node}' does not use '{type_name}'; it uses {}",
            known.join(", ")
        );
    };
    let server = description_server(graph, &nodes, known).unwrap_or(node);
    let remote = session
        .node
        .fetch_type_description(&server, full, *hash, TYPE_TIMEOUT);
    remote.map_err(|error| match error {
        CallError::NoServer { .. } => anyhow!(
            "no node of the process of '{server}' has a type description service: start one with --ros-args -p start_type_description_service:=true"
        ),
        error => error.into(),
    })
}

/// The types of a service, from its server's endpoints.
///
/// # Errors
/// As [`of_topic`].
pub fn of_service(
    session: &Session,
    graph: &Graph,
    service: &str,
    type_name: &str,
) -> Result<DynamicService> {
    let request = of_topic(session, graph, &format!("rq{service}Request"))?;
    let response = of_topic(session, graph, &format!("rr{service}Reply"))?;
    let own = request.name().strip_suffix("_Request");
    let own = own.unwrap_or_default().to_owned();
    if own != type_name && without_kind(&own) != type_name {
        bail!("its server has type '{own}'");
    }
    Ok(DynamicService::from_parts(&own, request, response))
}

//! Types of a node or of a service's server, for types without a local definition. Those
//! of topics are `Node::fetch_topic_type`.

use crate::server_type::without_kind;
use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, anyhow, bail};
use pteros::msg::dynamic::DynamicService;
use pteros::msg::hash::TypeHash;
use pteros::{
    Graph,
    graph::NodeInfo,
    service::CallError,
    type_description::{RemoteTypeDescription, description_server},
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Timeout of a type request to the endpoints of a topic.
pub const TYPE_TIMEOUT: Duration = Duration::from_secs(3);

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
/// As [`pteros::Node::fetch_topic_type`], or the server has another type.
pub fn of_service(session: &Session, service: &str, type_name: &str) -> Result<DynamicService> {
    let part = |topic: String| session.node.fetch_topic_type(&topic, TYPE_TIMEOUT);
    let request = part(format!("rq{service}Request"))?;
    let response = part(format!("rr{service}Reply"))?;
    let own = request.name().strip_suffix("_Request");
    let own = own.unwrap_or_default().to_owned();
    if own != type_name && without_kind(&own) != type_name {
        bail!("its server has type '{own}'");
    }
    Ok(DynamicService::from_parts(&own, request, response))
}

//! Types that are not known here, from those who use them: their participants tell of
//! message types as XTypes has it, their nodes on `~/get_type_description`.

use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, anyhow, bail};
use pteros::msg::dynamic::DynamicType;
use pteros::msg::hash::TypeHash;
use pteros::names::node_path;
use pteros::{AskTypeError, CallError, DynamicServiceType, Graph, NodeInfo, ToldType, TypeNotTold};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a topic's endpoints may take to tell their type.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long one node may.
const NODE_PATIENCE: Duration = Duration::from_millis(500);
/// Nodes that are asked.
const NODES_MAX: usize = 8;

/// The type of a topic, named as ROS or as DDS names it.
///
/// # Errors
/// [`TypeNotTold`], in the words of whoever came closest.
pub fn of_topic(session: &Session, graph: &Graph, topic: &str) -> Result<DynamicType> {
    let silence = match graph.announced_type(topic, PATIENCE) {
        Ok(ty) => return Ok(ty),
        Err(silence) => silence,
    };
    let endpoints = graph.publishers(topic).into_iter();
    let mut asked = BTreeSet::new();
    let mut reason = None;
    for endpoint in endpoints.chain(graph.subscriptions(topic)) {
        let (Some(hash), Some(name)) = (endpoint.type_hash, &endpoint.node_name) else {
            continue;
        };
        let namespace = endpoint.node_namespace.as_deref().unwrap_or("/");
        let node = node_path(namespace, name);
        if endpoint.local || asked.len() >= NODES_MAX || !asked.insert(node.clone()) {
            continue;
        }
        let asking = &session.node;
        match asking.ask_type(&node, &endpoint.topic_type, hash, NODE_PATIENCE) {
            Ok(told) => return Ok(DynamicType::new(&told.description)?),
            // Nodes without that service are the rule.
            Err(AskTypeError::Call(CallError::NoServer { .. })) => {}
            Err(error) => reason = Some(error),
        }
    }
    match (silence, reason) {
        (TypeNotTold::Silent | TypeNotTold::NoAnswer, Some(reason)) => Err(reason.into()),
        (silence, _) => Err(silence.into()),
    }
}

/// A type that a node uses, from the node itself.
///
/// # Errors
/// There is no such node, it uses no such type, or it does not tell.
pub fn by_node(session: &Session, graph: &Graph, node: &str, type_name: &str) -> Result<ToldType> {
    let node = format!("/{}", node.trim_start_matches('/'));
    let nodes = graph.nodes();
    let Some(known) = nodes.iter().find(|n| n.fully_qualified_name() == node) else {
        let names: Vec<String> = nodes.iter().map(NodeInfo::fully_qualified_name).collect();
        let similar = did_you_mean(&node, names.iter().map(String::as_str));
        bail!("unknown node '{node}'{similar} See all of them with: pteros node list");
    };
    let endpoints = graph.endpoints_of(known);
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
    let told = session.node.ask_type(&node, full, *hash, PATIENCE);
    told.map_err(|error| match error {
        AskTypeError::Call(CallError::NoServer { .. }) => anyhow!(
            "node '{node}' does not tell of its types: start it with --ros-args -p start_type_description_service:=true"
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
) -> Result<DynamicServiceType> {
    let request = of_topic(session, graph, &format!("rq{service}Request"))?;
    let response = of_topic(session, graph, &format!("rr{service}Reply"))?;
    Ok(DynamicServiceType::from_parts(type_name, request, response))
}

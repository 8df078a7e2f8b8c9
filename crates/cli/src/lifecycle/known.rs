//! Managed nodes in the graph, and their services.

use crate::node::node_names;
use crate::outcome::Interrupted;
use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Error, Result, bail};
use pteros::interfaces::lifecycle_msgs::msg::TransitionDescription;
use pteros::interfaces::lifecycle_msgs::srv::{
    GetAvailableTransitions, GetAvailableTransitions_Request,
};
use pteros::msg::message::Service;
use pteros::{CallError, Graph, Sample};
use std::time::Duration;

const STATE_TYPE: &str = "lifecycle_msgs/srv/GetState";

/// Full names of the managed nodes, sorted: those that serve their state.
pub fn managed_nodes(graph: &Graph, include_hidden: bool) -> Vec<String> {
    let services = graph.services();
    let is_managed = |node: &String| {
        let name = format!("{node}/get_state");
        let served = |service: &pteros::TopicInfo| {
            service.name == name && service.types.iter().any(|ty| ty == STATE_TYPE)
        };
        services.iter().any(served)
    };
    let mut nodes = node_names(graph, include_hidden);
    nodes.retain(is_managed);
    nodes.dedup();
    nodes
}

/// The managed node of that name; a slash before it may be left out.
pub fn managed_node(
    session: &Session,
    graph: &Graph,
    name: &str,
    include_hidden: bool,
) -> Result<String> {
    let full = match name.starts_with('/') {
        true => name.to_owned(),
        false => format!("/{name}"),
    };
    let managed = managed_nodes(graph, include_hidden);
    if managed.contains(&full) {
        return Ok(full);
    }
    let domain = session.context.domain_id();
    if node_names(graph, true).contains(&full) {
        match managed_nodes(graph, true).contains(&full) {
            true => bail!("Node not found: '{full}' is hidden; add --include-hidden-nodes"),
            false => bail!(
                "Node not found: '{full}' is not a managed node. See those with: pteros lifecycle nodes"
            ),
        }
    }
    bail!(
        "Node not found: no managed node '{full}' in domain {domain}{} See all of them with: pteros lifecycle nodes",
        did_you_mean(&full, managed.iter().map(String::as_str))
    )
}

/// Calls one of a node's services.
pub fn ask<S: Service>(
    session: &Session,
    node: &str,
    service: &str,
    request: &S::Request,
    timeout: Duration,
) -> Result<Sample<S::Response>> {
    let client = session
        .node
        .create_client::<S>(&format!("{node}/{service}"))?;
    client.call(request, timeout).map_err(interrupted)
}

/// Ctrl-C ends a call as it ends everything else.
pub fn interrupted(error: CallError) -> Error {
    match error {
        CallError::ShutDown { .. } => Interrupted.into(),
        other => other.into(),
    }
}

/// The transitions that a node can make now, or all that it knows.
pub fn transitions(
    session: &Session,
    node: &str,
    all: bool,
    timeout: Duration,
) -> Result<Vec<TransitionDescription>> {
    let service = match all {
        true => "get_transition_graph",
        false => "get_available_transitions",
    };
    let request = GetAvailableTransitions_Request {};
    let answer = ask::<GetAvailableTransitions>(session, node, service, &request, timeout)?;
    Ok(answer.available_transitions.clone())
}

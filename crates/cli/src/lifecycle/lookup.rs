//! Managed nodes in the graph, and calls of their services.

use crate::exit_errors::Interrupted;
use crate::node::node_names;
use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Error, Result, bail};
use pteros::interfaces::lifecycle_msgs::msg::TransitionDescription;
use pteros::interfaces::lifecycle_msgs::srv::{
    GetAvailableTransitions, GetAvailableTransitionsRequest,
};
use pteros::msg::message::Service;
use pteros::{Graph, Sample, service::CallError};
use std::time::Duration;

const STATE_TYPE: &str = "lifecycle_msgs/srv/GetState";

/// Full names of the managed nodes, sorted. A managed node has the service
/// `get_state`.
pub fn managed_nodes(graph: &Graph, include_hidden: bool) -> Vec<String> {
    let services = graph.services();
    let is_managed = |node: &String| {
        let name = format!("{node}/get_state");
        let served = |service: &pteros::graph::TopicInfo| {
            service.name == name && service.types.iter().any(|ty| ty == STATE_TYPE)
        };
        services.iter().any(served)
    };
    let mut nodes = node_names(graph, include_hidden);
    nodes.retain(is_managed);
    nodes.dedup();
    nodes
}

/// The managed node of that name. The leading slash is optional.
pub fn find_managed_node(
    session: &Session,
    graph: &Graph,
    name: &str,
    include_hidden: bool,
) -> Result<String> {
    let full = if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/{name}")
    };
    let managed = managed_nodes(graph, include_hidden);
    if managed.contains(&full) {
        return Ok(full);
    }
    session.check_interrupted()?;
    let domain = session.context.domain_id();
    if node_names(graph, true).contains(&full) {
        if managed_nodes(graph, true).contains(&full) {
            bail!("Node not found: '{full}' is hidden; add --include-hidden-nodes")
        } else {
            bail!(
                "Node not found: '{full}' is not a managed node. See all of them with: pteros lifecycle nodes"
            )
        }
    }
    bail!(
        "Node not found: no managed node '{full}' in domain {domain}{} See all of them with: pteros lifecycle nodes",
        did_you_mean(&full, managed.iter().map(String::as_str))
    )
}

/// Calls a service of a node.
pub fn call<S: Service>(
    session: &Session,
    node: &str,
    service: &str,
    request: &S::Request,
    timeout: Duration,
) -> Result<Sample<S::Response>> {
    let client = session
        .node
        .create_client::<S>(format!("{node}/{service}"))?;
    client.call(request, timeout).map_err(interrupted)
}

/// Ctrl-C during a call is an interruption and no call error.
pub fn interrupted(error: CallError) -> Error {
    match error {
        CallError::ShutDown { .. } => Interrupted::now().into(),
        other => other.into(),
    }
}

/// The transitions from the current state, or all transitions.
pub fn available_transitions(
    session: &Session,
    node: &str,
    all: bool,
    timeout: Duration,
) -> Result<Vec<TransitionDescription>> {
    let service = if all {
        "get_transition_graph"
    } else {
        "get_available_transitions"
    };
    let request = GetAvailableTransitionsRequest {};
    let response = call::<GetAvailableTransitions>(session, node, service, &request, timeout)?;
    Ok(response.available_transitions.clone())
}

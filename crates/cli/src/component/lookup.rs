//! Component containers in the graph, and calls of their services.

use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use pteros::msg::message::Service;
use pteros::names::is_hidden;
use pteros::{Client, Graph, Sample, service::CallError};
use std::time::{Duration, Instant};

/// Service name of a container, after the node name.
pub const LIST_NODES: &str = "/_container/list_nodes";
/// Period between two checks for Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(50);
/// Timeout of a container's response, longer than its constructor timeout.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Full names of all containers, sorted.
pub fn all_containers(graph: &Graph, include_hidden: bool) -> Vec<String> {
    let services = graph.services();
    let mut names: Vec<_> = services
        .iter()
        .filter_map(|service| service.name.strip_suffix(LIST_NODES))
        .filter(|name| include_hidden || !is_hidden(name))
        .map(String::from)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The container of that name. The leading slash is optional.
pub fn find_container(session: &Session, graph: &Graph, name: &str) -> Result<String> {
    let full = if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/{name}")
    };
    let known = all_containers(graph, true);
    if known.contains(&full) {
        return Ok(full);
    }
    let domain = session.context.domain_id();
    let similar = did_you_mean(&full, known.iter().map(String::as_str));
    let hint = if known.is_empty() {
        "No container runs; start one with: pteros component container"
    } else {
        "See all of them with: pteros component list --containers-only"
    };
    bail!("unable to find container node '{full}' in domain {domain}{similar} {hint}")
}

/// Calls a service of a container.
pub fn call<S: Service>(
    session: &Session,
    container: &str,
    service: &str,
    request: &S::Request,
) -> Result<Sample<S::Response>>
where
    S::Request: Send + Sync,
{
    let name = format!("{container}/_container/{service}");
    let node = &session.node;
    let client: Client<S> = node.create_client(&name)?;
    let end = Instant::now() + CALL_TIMEOUT;
    let left = || end.saturating_duration_since(Instant::now());
    let late = || client.timed_out(CALL_TIMEOUT);
    while !client.wait_for_service(left().min(POLL_PERIOD)) {
        check_deadline(session, late, left())?;
    }
    let mut call = client.call_async(request)?;
    loop {
        if let Some(response) = call.take() {
            return Ok(response?);
        }
        check_deadline(session, late, left())?;
        session.spin_once(left().min(POLL_PERIOD));
    }
}

fn check_deadline(
    session: &Session,
    late: impl FnOnce() -> CallError,
    left: Duration,
) -> Result<()> {
    session.check_interrupted()?;
    if left.is_zero() {
        return Err(late().into());
    }
    Ok(())
}

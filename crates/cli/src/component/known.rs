//! Containers in the graph, and calls of their services.

use crate::outcome::Interrupted;
use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use pteros::msg::message::Service;
use pteros::names::is_hidden;
use pteros::{CallError, Client, Graph, Sample, ServiceOptions};
use std::time::{Duration, Instant};

/// What a container serves, behind its name.
pub const LIST_NODES: &str = "/_container/list_nodes";
/// How long one wait lasts before Ctrl-C is looked at again.
const SLICE: Duration = Duration::from_millis(50);
/// How long a container has for an answer: longer than it gives a constructor.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Full names of the containers, sorted.
pub fn containers(graph: &Graph, include_hidden: bool) -> Vec<String> {
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

/// The container of that name; a slash before it may be left out.
pub fn container(session: &Session, graph: &Graph, name: &str) -> Result<String> {
    let full = match name.starts_with('/') {
        true => name.to_owned(),
        false => format!("/{name}"),
    };
    let known = containers(graph, true);
    if known.contains(&full) {
        return Ok(full);
    }
    let domain = session.context.domain_id();
    let similar = did_you_mean(&full, known.iter().map(String::as_str));
    let way_out = match known.is_empty() {
        true => "There is none at all: start one with: pteros component container",
        false => "See all of them with: pteros component list --containers-only",
    };
    bail!("unable to find container node '{full}' in domain {domain}{similar} {way_out}")
}

/// Calls a service of a container.
pub fn ask<S: Service>(
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
    let client: Client<S> = node.create_client_with(&name, ServiceOptions::default())?;
    let end = Instant::now() + PATIENCE;
    let left = || end.saturating_duration_since(Instant::now());
    while !client.wait_for_service(left().min(SLICE)) {
        check(session, &name, left())?;
    }
    let mut call = client.call_async(request)?;
    loop {
        if let Some(answer) = call.take() {
            return Ok(answer?);
        }
        check(session, &name, left())?;
        session.spin_once(left().min(SLICE));
    }
}

fn check(session: &Session, service: &str, left: Duration) -> Result<()> {
    if session.context.is_shut_down() {
        return Err(Interrupted.into());
    }
    if left.is_zero() {
        return Err(CallError::TimedOut {
            service: service.into(),
            waited_ms: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
        }
        .into());
    }
    Ok(())
}

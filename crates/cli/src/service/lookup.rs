//! Services in the graph, by name.

use crate::session::Session;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use pteros::names::is_hidden;
use pteros::{Graph, graph::TopicInfo};

/// The services to show, sorted by name. Hidden ones are optional.
pub fn shown_services(graph: &Graph, include_hidden: bool) -> Vec<TopicInfo> {
    let mut services = graph.services();
    services.retain(|service| include_hidden || !is_hidden(&service.name));
    services
}

/// The service with this full name.
pub fn find_service(session: &Session, graph: &Graph, name: &str) -> Result<TopicInfo> {
    let services = graph.services();
    if let Some(service) = services.iter().find(|service| service.name == name) {
        return Ok(service.clone());
    }
    let similar = did_you_mean(name, services.iter().map(|service| service.name.as_str()));
    let domain = session.context.domain_id();
    let hint = match services.len() {
        0 => {
            "No other service was found either: check that the nodes run, and that ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE are the same for them and here"
        }
        _ => "See all of them with: pteros service list",
    };
    bail!("unknown service '{name}': it has no server or client in domain {domain}{similar} {hint}")
}

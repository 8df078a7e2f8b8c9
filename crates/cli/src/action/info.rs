//! `pteros action info`.

use super::known::{feedback_topic, known_action};
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros::EndpointInfo;
use pteros::names::node_path;
use serde_json::json;
use std::collections::BTreeMap;

/// Arguments of `action info`.
#[derive(Debug, Args)]
pub struct Info {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Show the types too
    #[arg(short = 't', long)]
    show_types: bool,
    /// Only print how many clients and servers there are
    #[arg(short = 'c', long)]
    count: bool,
    /// Name of the action (e.g. /fibonacci)
    action_name: String,
}

impl Info {
    /// Prints the nodes that ask for goals and those that work on them.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let name = session.topic(&self.action_name)?;
        let graph = session.discover(&self.discovery);
        known_action(&session, &graph, &name)?;
        let topic = feedback_topic(&name);
        let clients = nodes(graph.subscriptions(&topic));
        let servers = nodes(graph.publishers(&topic));
        let console = shared.console;
        if console.json {
            return Ok(console.json(&json!({
                "name": name,
                "clients": clients,
                "servers": servers,
            }))?);
        }
        console.line(format!("Action: {name}"))?;
        for (what, nodes) in [("clients", clients), ("servers", servers)] {
            console.line(format!("Action {what}: {}", nodes.len()))?;
            if self.count {
                continue;
            }
            for (node, ty) in nodes {
                console.line(match self.show_types {
                    true => format!("    {node} [{ty}]"),
                    false => format!("    {node}"),
                })?;
            }
        }
        Ok(())
    }
}

/// Nodes by name, and the action's type as they have it.
fn nodes(endpoints: Vec<EndpointInfo>) -> BTreeMap<String, String> {
    let row = |endpoint: EndpointInfo| {
        let name = endpoint.node_name?;
        let namespace = endpoint.node_namespace.unwrap_or_else(|| "/".into());
        let ty = endpoint.topic_type;
        let ty = ty
            .strip_suffix("_FeedbackMessage")
            .unwrap_or(&ty)
            .to_owned();
        Some((node_path(&namespace, &name), ty))
    };
    endpoints.into_iter().filter_map(row).collect()
}

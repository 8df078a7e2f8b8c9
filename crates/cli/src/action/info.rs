//! `pteros action info`.

use super::lookup::{feedback_topic, find_action};
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::graph::EndpointInfo;
use pteros::log::escape_line;
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
    /// Prints the clients and servers of an action.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let name = session.topic(&self.action_name)?;
        let graph = session.discover(&self.discovery);
        find_action(&session, &graph, &name)?;
        let topic = feedback_topic(&name);
        let clients = nodes(graph.subscriptions(&topic));
        let servers = nodes(graph.publishers(&topic));
        let console = cli.console;
        if console.json {
            return Ok(console.json(&json!({
                "name": name,
                "clients": clients,
                "servers": servers,
            }))?);
        }
        console.line(escape_line(&format!("Action: {name}")))?;
        for (what, nodes) in [("clients", clients), ("servers", servers)] {
            console.line(format!("Action {what}: {}", nodes.len()))?;
            if self.count {
                continue;
            }
            for (node, ty) in nodes {
                let text = if self.show_types {
                    format!("    {node} [{ty}]")
                } else {
                    format!("    {node}")
                };
                console.line(escape_line(&text))?;
            }
        }
        Ok(())
    }
}

/// Node names with the action type that each node uses.
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

//! `pteros node info`.

use super::list::node_names;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use clap::Args;
use pteros::TopicInfo;
use pteros::names::{is_hidden, split_node_path};
use serde_json::{Map, Value, json};

/// Arguments of `node info`.
#[derive(Debug, Args)]
pub struct Info {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Show hidden topics, services and actions too
    #[arg(long)]
    include_hidden: bool,
    /// Full name of the node (e.g. /talker)
    node_name: String,
}

impl Info {
    /// Prints what the node publishes, subscribes to and serves.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let wanted = if self.node_name.starts_with('/') {
            self.node_name.clone()
        } else {
            format!("/{}", self.node_name)
        };
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let names = node_names(&graph, true);
        match names.iter().filter(|name| **name == wanted).count() {
            0 => bail!(
                "unable to find node '{}' in domain {}{} See all of them with: pteros node list",
                self.node_name,
                session.context.domain_id(),
                did_you_mean(&wanted, names.iter().map(String::as_str))
            ),
            1 => {}
            count => shared.console.remark(format!(
                "There are {count} nodes in the graph with the exact name \"{wanted}\". You are seeing information about only one of them."
            )),
        }
        let (namespace, name) = split_node_path(&wanted);
        let parts = [
            ("Subscribers", graph.node_subscriptions(name, namespace)),
            ("Publishers", graph.node_publishers(name, namespace)),
            (
                "Service Servers",
                graph.node_service_servers(name, namespace),
            ),
            (
                "Service Clients",
                graph.node_service_clients(name, namespace),
            ),
            ("Action Servers", graph.node_action_servers(name, namespace)),
            ("Action Clients", graph.node_action_clients(name, namespace)),
        ];
        let mut text = format!("{wanted}\n");
        let mut json = Map::new();
        json.insert("name".into(), json!(wanted));
        for (heading, mut rows) in parts {
            rows.retain(|row| self.include_hidden || !is_hidden(&row.name));
            rows.sort_by(|a, b| a.name.cmp(&b.name));
            text += &part_text(heading, &rows);
            let key = heading.to_lowercase().replace(' ', "_");
            let rows = rows
                .iter()
                .map(|row| json!({ "name": row.name, "types": row.types }));
            json.insert(key, rows.collect::<Vec<Value>>().into());
        }
        if shared.console.json {
            shared.console.json(&Value::Object(json))?;
        } else {
            shared.console.text(&text)?;
        }
        Ok(())
    }
}

/// ros2 prints an empty line where a part is empty.
fn part_text(heading: &str, rows: &[TopicInfo]) -> String {
    let mut text = format!("  {heading}:\n");
    for row in rows {
        text += &format!("    {}: {}\n", row.name, row.types.join(", "));
    }
    if rows.is_empty() {
        text.push('\n');
    }
    text
}

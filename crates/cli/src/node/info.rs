//! `pteros node info`.

use super::list::node_names;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use clap::Args;
use pteros::graph::{EndpointInfo, EndpointKind};
use pteros::log::escape_line;
use pteros::names::{DdsTopic, is_hidden};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Prints the topics, services and actions of the node.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let wanted = if self.node_name.starts_with('/') {
            self.node_name.clone()
        } else {
            format!("/{}", self.node_name)
        };
        let session = Session::open(cli, None)?;
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
            count => cli.console.note(format!(
                "There are {count} nodes in the graph with the exact name \"{wanted}\". You are seeing information about only one of them."
            )),
        }
        let node = graph
            .nodes()
            .into_iter()
            .find(|node| node.fully_qualified_name() == wanted);
        let offered =
            NodeInterfaces::new(node.map_or_else(Vec::new, |node| graph.endpoints_of_node(&node)));
        let parts = [
            ("Subscribers", offered.subscribers),
            ("Publishers", offered.publishers),
            ("Service Servers", offered.service_servers),
            ("Service Clients", offered.service_clients),
            ("Action Servers", offered.action_servers),
            ("Action Clients", offered.action_clients),
        ];
        let mut text = format!("{}\n", escape_line(&wanted));
        let mut json = Map::new();
        json.insert("name".into(), json!(wanted));
        for (heading, mut rows) in parts {
            rows.retain(|name, _| self.include_hidden || !is_hidden(name));
            text += &part_text(heading, &rows);
            let key = heading.to_lowercase().replace(' ', "_");
            let rows = rows
                .iter()
                .map(|(name, types)| json!({ "name": name, "types": types }));
            json.insert(key, rows.collect::<Vec<Value>>().into());
        }
        if cli.console.json {
            cli.console.json(&Value::Object(json))?;
        } else {
            cli.console.text(&text)?;
        }
        Ok(())
    }
}

/// Names with their types, both sorted.
type NamesWithTypes = BTreeMap<String, BTreeSet<String>>;

/// The topics, services and actions of a node's endpoints. A feedback topic
/// identifies an action, as in rcl_action.
#[derive(Default)]
struct NodeInterfaces {
    subscribers: NamesWithTypes,
    publishers: NamesWithTypes,
    service_servers: NamesWithTypes,
    service_clients: NamesWithTypes,
    action_servers: NamesWithTypes,
    action_clients: NamesWithTypes,
}

impl NodeInterfaces {
    fn new(endpoints: Vec<(DdsTopic, EndpointInfo)>) -> Self {
        let mut offered = Self::default();
        for (topic, endpoint) in endpoints {
            offered.add(topic, endpoint.kind, endpoint.topic_type);
        }
        offered
    }

    fn add(&mut self, topic: DdsTopic, kind: EndpointKind, type_name: String) {
        let publishes = kind == EndpointKind::Publisher;
        let (names, name, type_name) = match topic {
            DdsTopic::Topic(name) => {
                if let Some(action) = name.strip_suffix("/_action/feedback") {
                    let actions = if publishes {
                        &mut self.action_servers
                    } else {
                        &mut self.action_clients
                    };
                    insert(
                        actions,
                        action,
                        without_suffix(&type_name, "_FeedbackMessage"),
                    );
                }
                let names = if publishes {
                    &mut self.publishers
                } else {
                    &mut self.subscribers
                };
                (names, name, type_name.as_str())
            }
            // A server reads requests, a client writes them.
            DdsTopic::ServiceRequest(name) => {
                let names = if publishes {
                    &mut self.service_clients
                } else {
                    &mut self.service_servers
                };
                (names, name, without_suffix(&type_name, "_Request"))
            }
            DdsTopic::ServiceReply(_) | DdsTopic::NonRos(_) => return,
        };
        insert(names, &name, type_name);
    }
}

fn insert(names: &mut NamesWithTypes, name: &str, type_name: &str) {
    names
        .entry(name.to_string())
        .or_default()
        .insert(type_name.to_string());
}

fn without_suffix<'a>(type_name: &'a str, suffix: &str) -> &'a str {
    type_name.strip_suffix(suffix).unwrap_or(type_name)
}

/// Prints an empty line for an empty part, as ros2 does.
fn part_text(heading: &str, rows: &NamesWithTypes) -> String {
    let mut text = format!("  {heading}:\n");
    for (name, types) in rows {
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        let row = format!("{name}: {}", types.join(", "));
        text += &format!("    {}\n", escape_line(&row));
    }
    if rows.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_become_topics_services_and_actions() {
        let mut offered = NodeInterfaces::default();
        let publisher = EndpointKind::Publisher;
        let subscription = EndpointKind::Subscription;
        let endpoints = [
            (
                DdsTopic::Topic("/chatter".into()),
                publisher,
                "std_msgs/msg/String",
            ),
            (
                DdsTopic::ServiceRequest("/add".into()),
                subscription,
                "a/srv/Add_Request",
            ),
            (
                DdsTopic::ServiceReply("/add".into()),
                publisher,
                "a/srv/Add_Response",
            ),
            (
                DdsTopic::Topic("/go/_action/feedback".into()),
                subscription,
                "a/action/Go_FeedbackMessage",
            ),
        ];
        for (topic, kind, type_name) in endpoints {
            offered.add(topic, kind, type_name.into());
        }
        assert_eq!(
            part_text("Publishers", &offered.publishers),
            "  Publishers:\n    /chatter: std_msgs/msg/String\n"
        );
        let forged = "/b\n  Publishers:\n    /c";
        offered.add(
            DdsTopic::Topic(forged.into()),
            publisher,
            "a/msg/\x1b[2J".into(),
        );
        assert_eq!(
            part_text("Publishers", &offered.publishers).lines().count(),
            3,
            "a name is no line of its own"
        );
        assert_eq!(
            part_text("Service Servers", &offered.service_servers),
            "  Service Servers:\n    /add: a/srv/Add\n"
        );
        assert_eq!(
            part_text("Action Clients", &offered.action_clients),
            "  Action Clients:\n    /go: a/action/Go\n"
        );
        assert_eq!(
            part_text("Service Clients", &offered.service_clients),
            "  Service Clients:\n\n"
        );
    }
}

//! `pteros component list`.

use super::lookup::{all_containers, call, find_container};
use crate::cli_context::CliContext;
use crate::exit_errors::Interrupted;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::interfaces::composition_interfaces::srv::{ListNodes, ListNodesRequest};
use pteros::log::escape_line;
use serde_json::{Value, json};

/// Arguments of `component list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Only print the containers
    #[arg(long)]
    containers_only: bool,
    /// Include hidden containers
    #[arg(long)]
    include_hidden_nodes: bool,
    /// Full name of a container (e.g. /ComponentManager) [default: all of them]
    container_node_name: Option<String>,
}

impl List {
    /// Prints containers, each with the numbers and names of its components.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let names = match &self.container_node_name {
            Some(name) => vec![find_container(&session, &graph, name)?],
            None => all_containers(&graph, self.include_hidden_nodes),
        };
        let (console, mut rows) = (cli.console, Vec::new());
        for name in names {
            let loaded = if self.containers_only {
                Vec::new()
            } else {
                match self.loaded(&session, &name) {
                    Ok(loaded) => loaded,
                    Err(error) if error.is::<Interrupted>() => return Err(error),
                    // The other containers are listed nevertheless.
                    Err(error) => {
                        console.note(format!("container '{name}' does not respond: {error}"));
                        continue;
                    }
                }
            };
            if console.json {
                let of_one = |(id, node): &(u64, String)| json!({ "unique_id": id, "name": node });
                let mut row = json!({ "container": name });
                if !self.containers_only {
                    row["components"] = loaded.iter().map(of_one).collect();
                }
                rows.push(row);
                continue;
            }
            console.line(escape_line(&name))?;
            for (id, node) in loaded {
                console.line(escape_line(&format!("  {id}  {node}")))?;
            }
        }
        if console.json {
            Ok(console.json(&Value::from(rows))?)
        } else {
            Ok(())
        }
    }

    fn loaded(&self, session: &Session, container: &str) -> Result<Vec<(u64, String)>> {
        let response = call::<ListNodes>(session, container, "list_nodes", &ListNodesRequest {})?;
        let names = response.full_node_names.iter().cloned();
        Ok(response.unique_ids.iter().copied().zip(names).collect())
    }
}

//! `pteros component list`.

use super::known::{ask, container, containers};
use crate::outcome::Interrupted;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros::interfaces::composition_interfaces::srv::{ListNodes, ListNodes_Request};
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
    /// Prints containers, and their components indented below, with numbers.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let names = match &self.container_node_name {
            Some(name) => vec![container(&session, &graph, name)?],
            None => containers(&graph, self.include_hidden_nodes),
        };
        let (console, mut rows) = (shared.console, Vec::new());
        for name in names {
            let loaded = match self.containers_only {
                true => Vec::new(),
                false => match self.loaded(&session, &name) {
                    Ok(loaded) => loaded,
                    Err(error) if error.is::<Interrupted>() => return Err(error),
                    // The others are told all the same.
                    Err(error) => {
                        console.remark(format!("container '{name}' does not answer: {error}"));
                        continue;
                    }
                },
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
            console.line(&name)?;
            for (id, node) in loaded {
                console.line(format!("  {id}  {node}"))?;
            }
        }
        match console.json {
            true => Ok(console.json(&Value::from(rows))?),
            false => Ok(()),
        }
    }

    fn loaded(&self, session: &Session, container: &str) -> Result<Vec<(u64, String)>> {
        let answer = ask::<ListNodes>(session, container, "list_nodes", &ListNodes_Request {})?;
        let names = answer.full_node_names.iter().cloned();
        Ok(answer.unique_ids.iter().copied().zip(names).collect())
    }
}

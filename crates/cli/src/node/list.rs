//! `pteros node list`.

use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::Graph;
use pteros::names::node_path;

/// Arguments of `node list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Include hidden nodes
    #[arg(short = 'a', long)]
    all: bool,
    /// Only print how many nodes there are
    #[arg(short = 'c', long)]
    count_nodes: bool,
}

impl List {
    /// Prints the full names of the nodes, sorted.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let names = node_names(&graph, self.all);
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            cli.console.note(
                "WARNING: some nodes share an exact name, which can have unintended side effects: give them different names or namespaces (--ros-args -r __node:=NAME)",
            );
        }
        Ok(cli.console.names(&names, self.count_nodes)?)
    }
}

/// Full names, sorted, one for each node. A node is hidden if its own name starts
/// with `_`, whatever its namespace, as in ros2.
pub fn node_names(graph: &Graph, include_hidden: bool) -> Vec<String> {
    let mut names: Vec<String> = graph
        .nodes()
        .into_iter()
        .filter(|node| include_hidden || !node.name.starts_with('_'))
        .map(|node| node_path(&node.namespace, &node.name))
        .collect();
    names.sort_unstable();
    names
}

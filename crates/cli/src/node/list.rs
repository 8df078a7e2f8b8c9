//! `pteros node list`.

use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
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
    /// Prints the nodes' full names, sorted.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let names = node_names(&graph, self.all);
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            shared.console.remark(
                "WARNING: some nodes share an exact name, which can have unintended side effects: give them different names or namespaces (--ros-args -r __node:=NAME)",
            );
        }
        Ok(shared.console.names(&names, self.count_nodes)?)
    }
}

/// Full names, sorted, one for each node. A node is hidden if its own name
/// starts with `_`, whatever its namespace, as in ros2.
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

//! `pteros param delete`.

use super::nodes::NodeFlags;
use super::set::report;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;

/// Arguments of `param delete`.
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    nodes: NodeFlags,
    /// Name of the node, or a pattern (/robot/*)
    node_name: String,
    /// Name of the parameter
    parameter_name: String,
}

impl Delete {
    /// Deletes the parameter, of each node.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let nodes = self.nodes.find(shared, Some(&self.node_name))?;
        let name = [self.parameter_name.as_str()];
        let said = nodes.ask(|client, patience| client.delete(&name, patience));
        let words = (
            "Deleted parameter successfully",
            "Deleting parameter failed",
        );
        report(shared, &nodes, said, words)
    }
}

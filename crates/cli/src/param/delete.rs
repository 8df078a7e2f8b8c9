//! `pteros param delete`.

use super::nodes::NodeFlags;
use super::set::{NodeOutcome, report};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use std::time::Instant;

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
    /// Deletes the parameter of each node.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let nodes = self.nodes.find(cli, Some(&self.node_name))?;
        let name = [self.parameter_name.as_str()];
        let responses = nodes.call_all(|client, timeout| {
            let until = Instant::now() + timeout;
            let results = client.delete(&name, timeout);
            NodeOutcome::of(client, &self.parameter_name, results, until)
        });
        report(
            cli,
            &nodes,
            responses,
            "Deleted parameter successfully",
            "Deleting parameter failed",
        )
    }
}

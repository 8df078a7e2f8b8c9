//! `pteros lifecycle nodes`.

use super::lookup::managed_nodes;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;

/// Arguments of `lifecycle nodes`.
#[derive(Debug, Args)]
pub struct Nodes {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Include hidden nodes
    #[arg(short = 'a', long)]
    all: bool,
    /// Only print how many nodes there are
    #[arg(short = 'c', long)]
    count_nodes: bool,
}

impl Nodes {
    /// Prints the managed nodes' full names, sorted.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let names = managed_nodes(&graph, self.all);
        Ok(cli.console.names(&names, self.count_nodes)?)
    }
}

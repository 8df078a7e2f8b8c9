//! `pteros lifecycle nodes`.

use super::known::managed_nodes;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
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
    /// Only print how many there are
    #[arg(short = 'c', long)]
    count_nodes: bool,
}

impl Nodes {
    /// Prints the managed nodes' full names, sorted.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let graph = session.discover(&self.discovery);
        let names = managed_nodes(&graph, self.all);
        Ok(shared.console.names(&names, self.count_nodes)?)
    }
}

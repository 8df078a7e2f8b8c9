//! `pteros pkg list`.

use crate::cli_context::CliContext;
use crate::launch::packages;
use anyhow::Result;
use clap::Args;
use pteros_container::ComponentIndex;

/// Arguments of `pkg list`.
#[derive(Debug, Args)]
pub struct List {
    /// Only print how many packages there are
    #[arg(short = 'c', long)]
    count: bool,
}

impl List {
    /// Prints names, sorted.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let names = packages(&ComponentIndex::from_environment()).names();
        Ok(cli.console.names(&names, self.count)?)
    }
}

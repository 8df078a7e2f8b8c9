//! `pteros pkg list`.

use crate::launch::packages;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros_component::Index;

/// Arguments of `pkg list`.
#[derive(Debug, Args)]
pub struct List {
    /// Only say how many there are
    #[arg(short = 'c', long)]
    count: bool,
}

impl List {
    /// Prints names, sorted.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let names = packages(&Index::from_environment()).names();
        Ok(shared.console.names(&names, self.count)?)
    }
}

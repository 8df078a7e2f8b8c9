//! `pteros action list`.

use super::lookup::all_actions;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;

/// Arguments of `action list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Show the types too
    #[arg(short = 't', long)]
    show_types: bool,
    /// Only print how many actions there are
    #[arg(short = 'c', long)]
    count_actions: bool,
}

impl List {
    /// Prints the actions, sorted.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let actions = all_actions(&session.discover(&self.discovery));
        let rows = actions
            .iter()
            .map(|a| (a.name.as_str(), a.types.as_slice()));
        Ok(cli
            .console
            .typed_names(rows, self.show_types, self.count_actions)?)
    }
}

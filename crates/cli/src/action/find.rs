//! `pteros action find`.

use super::lookup::all_actions;
use crate::cli_context::CliContext;
use crate::interface::type_names::{full_or_as_written, warn_of_unknown};
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;

/// Arguments of `action find`.
#[derive(Debug, Args)]
pub struct Find {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Only print how many actions there are
    #[arg(short = 'c', long)]
    count_actions: bool,
    /// Type to look for (e.g. example_interfaces/action/Fibonacci)
    action_type: String,
}

impl Find {
    /// Prints the actions of the type, sorted. An unused type gives an empty
    /// result.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let full = |name: &str| full_or_as_written(&library, name);
        let wanted = full(&self.action_type);
        let session = Session::open(cli, None)?;
        let names: Vec<String> = all_actions(&session.discover(&self.discovery))
            .into_iter()
            .filter(|action| action.types.iter().any(|ty| full(ty) == wanted))
            .map(|action| action.name)
            .collect();
        if names.is_empty() {
            warn_of_unknown(cli.console, &library, &self.action_type);
        }
        Ok(cli.console.names(&names, self.count_actions)?)
    }
}

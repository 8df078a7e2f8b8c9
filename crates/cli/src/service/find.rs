//! `pteros service find`.

use super::lookup::shown_services;
use crate::cli_context::CliContext;
use crate::interface::type_names::{full_or_as_written, warn_of_unknown};
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;

/// Arguments of `service find`.
#[derive(Debug, Args)]
pub struct Find {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Only print how many services there are
    #[arg(short = 'c', long)]
    count_services: bool,
    /// Type to look for (e.g. example_interfaces/srv/AddTwoInts)
    service_type: String,
}

impl Find {
    /// Prints the services of the type, sorted. An unused type gives an empty
    /// result.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let full = |name: &str| full_or_as_written(&library, name);
        let wanted = full(&self.service_type);
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let names: Vec<String> = shown_services(&graph, cli.include_hidden)
            .into_iter()
            .filter(|service| service.types.iter().any(|name| full(name) == wanted))
            .map(|service| service.name)
            .collect();
        if names.is_empty() {
            warn_of_unknown(cli.console, &library, &self.service_type);
        }
        Ok(cli.console.names(&names, self.count_services)?)
    }
}

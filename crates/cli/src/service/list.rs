//! `pteros service list`.

use super::lookup::shown_services;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;

/// Arguments of `service list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Show the types too
    #[arg(short = 't', long)]
    show_types: bool,
    /// Only print how many services there are
    #[arg(short = 'c', long)]
    count_services: bool,
}

impl List {
    /// Prints the services, sorted.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let graph = session.discover(&self.discovery);
        let services = shown_services(&graph, cli.include_hidden);
        let rows = services
            .iter()
            .map(|s| (s.name.as_str(), s.types.as_slice()));
        Ok(cli
            .console
            .typed_names(rows, self.show_types, self.count_services)?)
    }
}

//! `pteros service type`.

use super::lookup::find_service;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::log::escape_line;
use serde_json::json;

/// Arguments of `service type`.
#[derive(Debug, Args)]
pub struct TypeOf {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Name of the service (e.g. /add_two_ints)
    service_name: String,
}

impl TypeOf {
    /// Prints the types of the service, one per line.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let name = session.service(&self.service_name)?;
        let graph = session.discover(&self.discovery);
        let service = find_service(&session, &graph, &name)?;
        if cli.console.json {
            let output = json!({ "name": service.name, "types": service.types });
            return Ok(cli.console.json(&output)?);
        }
        for name in service.types {
            cli.console.line(escape_line(&name))?;
        }
        Ok(())
    }
}

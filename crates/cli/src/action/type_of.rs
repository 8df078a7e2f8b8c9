//! `pteros action type`.

use super::lookup::find_action;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::log::escape_line;
use serde_json::json;

/// Arguments of `action type`.
#[derive(Debug, Args)]
pub struct TypeOf {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Name of the action (e.g. /fibonacci)
    action_name: String,
}

impl TypeOf {
    /// Prints the types of the action, one per line.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let name = session.topic(&self.action_name)?;
        let graph = session.discover(&self.discovery);
        let action = find_action(&session, &graph, &name)?;
        if cli.console.json {
            let output = json!({ "name": action.name, "types": action.types });
            return Ok(cli.console.json(&output)?);
        }
        for name in action.types {
            cli.console.line(escape_line(&name))?;
        }
        Ok(())
    }
}

//! `pteros action list`.

use super::lookup::{ActionEntry, all_actions};
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

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
        let console = cli.console;
        if console.json && !self.count_actions {
            let row = |action: &ActionEntry| json!({ "name": action.name, "types": action.types });
            return Ok(console.json(&actions.iter().map(row).collect::<Value>())?);
        }
        let shown = |action: ActionEntry| {
            if self.show_types {
                format!("{} [{}]", action.name, action.types.join(", "))
            } else {
                action.name
            }
        };
        let lines: Vec<String> = actions.into_iter().map(shown).collect();
        Ok(console.names(&lines, self.count_actions)?)
    }
}

//! `pteros action list`.

use super::known::{Known, actions};
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
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
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let actions = actions(&session.discover(&self.discovery));
        let console = shared.console;
        if console.json && !self.count_actions {
            let row = |action: &Known| json!({ "name": action.name, "types": action.types });
            return Ok(console.json(&actions.iter().map(row).collect::<Value>())?);
        }
        let shown = |action: Known| match self.show_types {
            true => format!("{} [{}]", action.name, action.types.join(", ")),
            false => action.name,
        };
        let lines: Vec<String> = actions.into_iter().map(shown).collect();
        Ok(console.names(&lines, self.count_actions)?)
    }
}

//! `pteros bag`: the noun is reserved. It says how to record without it.

use crate::cli_context::CliContext;
use anyhow::{Result, bail};
use clap::Args;

/// Arguments of `bag`.
#[derive(Debug, Args)]
pub struct Bag {
    /// Verb and options, as of ros2 bag
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<String>,
}

impl Bag {
    /// Always an error, with what to do instead.
    pub fn run(self, _: &CliContext) -> Result<()> {
        let asked = self.arguments.first().map_or("", String::as_str);
        let space = if asked.is_empty() { "" } else { " " };
        bail!(
            "bag{space}{asked}: Pteros does not record or play bags yet; use ros2 bag beside Pteros nodes, or write one topic as JSON lines: pteros topic echo /TOPIC --json > topic.jsonl"
        )
    }
}

//! `pteros interface list`.

use super::kinds::{InterfaceKindFlags, heading};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use serde_json::{Map, Value};

/// Arguments of `interface list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    kinds: InterfaceKindFlags,
}

impl List {
    /// Prints all known types below a heading per kind.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let mut text = String::new();
        let mut json = Map::new();
        for kind in self.kinds.kinds() {
            let infix = format!("/{kind}/");
            let names: Vec<&str> = library.names().filter(|n| n.contains(&infix)).collect();
            text += &format!("{}:\n", heading(kind));
            for name in &names {
                text += &format!("    {name}\n");
            }
            json.insert(heading(kind).to_lowercase(), Value::from(names));
        }
        if cli.console.json {
            cli.console.json(&Value::Object(json))?;
        } else {
            cli.console.text(&text)?;
        }
        Ok(())
    }
}

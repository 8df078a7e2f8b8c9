//! `pteros interface list`.

use super::kinds::{KindFlags, heading};
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use serde_json::{Map, Value};

/// Arguments of `interface list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    kinds: KindFlags,
}

impl List {
    /// Prints all known types below a heading per kind.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let library = shared.library()?;
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
        if shared.console.json {
            shared.console.json(&Value::Object(json))?;
        } else {
            shared.console.text(&text)?;
        }
        Ok(())
    }
}

//! `pteros lab compare`.

use crate::outcome::Failed;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros_lab::compare::compare;
use pteros_lab::store::Store;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `lab compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Folder of the earlier run
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// Folder of the later run
    #[arg(value_name = "AFTER")]
    after: PathBuf,
}

impl Compare {
    /// Prints what differs beyond noise.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let found = compare(&Store::open(&self.before)?, &Store::open(&self.after)?)?;
        if shared.console.json {
            let row = |row: &Vec<pteros_lab::exhibit::Entry>| -> Value {
                row.iter().map(|entry| json!(entry.text)).collect()
            };
            let rows: Vec<Value> = found.table.rows.iter().map(row).collect();
            shared.console.json(&json!({
                "figures": found.cells, "better": found.better, "worse": found.worse,
                "columns": found.table.columns, "rows": rows,
            }))?;
        } else {
            if !found.table.rows.is_empty() {
                shared
                    .console
                    .text(&pteros_lab::report::table(&found.table))?;
            }
            shared.console.line(format!(
                "{} figures in both runs: {} better, {} worse, the others within noise",
                found.cells, found.better, found.worse
            ))?;
        }
        match found.worse {
            0 => Ok(()),
            _ => Err(Failed.into()),
        }
    }
}

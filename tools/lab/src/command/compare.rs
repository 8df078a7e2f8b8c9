//! `pteros-lab compare`.

use super::setting::{Ending, Setting};
use anyhow::Result;
use clap::Args;
use pteros_lab::compare::compare;
use pteros_lab::store::Store;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `compare`.
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
    /// Prints the differences beyond noise.
    pub fn run(self, cli: &Setting) -> Result<Ending> {
        let found = compare(&Store::open(&self.before)?, &Store::open(&self.after)?)?;
        if cli.console.json {
            let row = |row: &Vec<pteros_lab::report_items::TableEntry>| -> Value {
                row.iter().map(|entry| json!(entry.text)).collect()
            };
            let rows: Vec<Value> = found.table.rows.iter().map(row).collect();
            cli.console.json(&json!({
                "figures": found.configurations, "better": found.better, "worse": found.worse,
                "columns": found.table.columns, "rows": rows,
            }))?;
        } else {
            if !found.table.rows.is_empty() {
                cli.console.text(&pteros_lab::report::table(&found.table))?;
            }
            cli.console.line(format!(
                "{} figures in both runs: {} better, {} worse, the others within noise",
                found.configurations, found.better, found.worse
            ))?;
        }
        match found.worse {
            0 => Ok(Ending::Done),
            _ => Ok(Ending::Failed),
        }
    }
}

//! `pteros-lab report`.

use super::setting::{Ending, Setting};
use anyhow::Result;
use clap::Args;
use pteros_lab::report::{Report as Loaded, summary};
use pteros_lab::store::Store;
use std::path::PathBuf;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Folder of the run
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Report {
    /// Writes report.html and results.json from the raw samples, and prints the summary.
    pub fn run(self, cli: &Setting) -> Result<Ending> {
        let store = Store::open(&self.folder)?;
        let report = Loaded::load(&store)?;
        // On a read-only or full disk the summary is printed nevertheless.
        if let Err(error) = report.write(&store) {
            cli.console
                .note(format!("the report is not updated: {error:#}"));
        }
        if cli.console.json {
            let text = store.read("results.json").unwrap_or_default();
            cli.console.text(&text)?;
        } else {
            cli.console.text(&summary(&report))?;
        }
        Ok(Ending::Done)
    }
}

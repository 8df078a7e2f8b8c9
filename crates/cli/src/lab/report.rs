//! `pteros lab report`.

use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros_lab::report::{Report as Loaded, summary};
use pteros_lab::store::Store;
use std::path::PathBuf;

/// Arguments of `lab report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Folder of the run
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Report {
    /// Writes report.html and results.json from the raw samples, and prints the summary.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let store = Store::open(&self.folder)?;
        let report = Loaded::load(&store)?;
        // Whoever may only read, or has a full disk, still gets the summary.
        if let Err(error) = report.write(&store) {
            shared
                .console
                .remark(format!("the page is as it was: {error:#}"));
        }
        if shared.console.json {
            let text = store.read("results.json").unwrap_or_default();
            return Ok(shared.console.text(&text)?);
        }
        Ok(shared.console.text(&summary(&report))?)
    }
}

//! `pteros man FOLDER`: writes the man pages, for packages (feature `man`).

use std::path::PathBuf;

use crate::arguments::CommandLine;
use crate::cli_context::CliContext;
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use serde_json::json;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Folder for the pages, one per verb; it must exist
    folder: PathBuf,
}

impl Man {
    /// Writes the pages.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        clap_mangen::generate_to(CommandLine::command(), &self.folder)
            .with_context(|| format!("write man pages to {}", self.folder.display()))?;
        if cli.console.json {
            return Ok(cli.console.json(&json!({ "folder": self.folder }))?);
        }
        Ok(())
    }
}

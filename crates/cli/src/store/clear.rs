//! `pteros store clear`.

use super::folder_flags::StoreFolderFlags;
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::store::clear;
use serde_json::json;

/// Arguments of `store clear`.
#[derive(Debug, Args)]
pub struct Clear {
    #[command(flatten)]
    folder: StoreFolderFlags,
    /// Name of the store as `store list` shows it, or path of its file
    name: String,
}

impl Clear {
    /// Removes the file, even a damaged one, unless a publisher has it open.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let path = self.folder.store(&self.name)?;
        clear(&path)?;
        if cli.console.json {
            let removed = json!({ "removed": path.display().to_string() });
            return Ok(cli.console.json(&removed)?);
        }
        Ok(cli.console.line(format!("removed {}", path.display()))?)
    }
}

//! `pteros store clear`.

use super::Folder;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros::store::clear;
use serde_json::json;

/// Arguments of `store clear`.
#[derive(Debug, Args)]
pub struct Clear {
    #[command(flatten)]
    folder: Folder,
    /// Name of the store as `store list` shows it, or its file
    name: String,
}

impl Clear {
    /// Removes the file, damaged or not, unless a publisher has it open.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let path = self.folder.store(&self.name)?;
        clear(&path)?;
        if shared.console.json {
            let removed = json!({ "removed": path.display().to_string() });
            return Ok(shared.console.json(&removed)?);
        }
        Ok(shared.console.line(format!("removed {}", path.display()))?)
    }
}

//! `pteros bag reindex`.

use super::selection::StorageFlag;
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_bag::BagReader;
use std::path::PathBuf;

/// Arguments of `bag reindex`.
#[derive(Debug, Args)]
pub struct Reindex {
    /// Folder of the bag
    bag_path: PathBuf,
    /// Refuse a bag of another storage
    #[arg(short, long, value_name = "STORAGE", value_enum)]
    storage: Option<StorageFlag>,
}

impl Reindex {
    /// Writes `metadata.yaml`, which must not be there yet.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let bag = BagReader::open_with(&self.bag_path, &cli.library()?)?;
        StorageFlag::check(self.storage, &bag)?;
        let metadata = bag.reindex()?;
        if !bag.is_complete() {
            cli.console.note_row(format!(
                "WARNING: not every file is whole; other tools may need a copy: pteros bag recover {} -o NEW",
                self.bag_path.display()
            ));
        }
        if cli.console.json {
            cli.console.json(&serde_json::json!({
                "bag": self.bag_path.display().to_string(),
                "messages": metadata.message_count,
            }))?;
        } else {
            cli.console.row(format!(
                "{}: metadata.yaml written, {} messages",
                self.bag_path.display(),
                metadata.message_count
            ))?;
        }
        Ok(())
    }
}

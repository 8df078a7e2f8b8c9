//! `pteros bag recover`.

use super::convert::{copy_shown, report_copy};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use anyhow::Result;
use clap::Args;
use pteros_bag::{BagOptions, BagReader, MessageFilter};
use std::path::PathBuf;

/// Arguments of `bag recover`.
#[derive(Debug, Args)]
pub struct Recover {
    /// Folder of the damaged bag, or a file
    bag_path: PathBuf,
    /// Folder of the new bag
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

impl Recover {
    /// Copies every message that can be read. The damaged bag stays as it is.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut bag = BagReader::open_with(&self.bag_path, &cli.library()?)?;
        let all = MessageFilter::default();
        let metadata = copy_shown(&mut bag, all, &self.output, BagOptions::default())?;
        match report_copy(cli, &bag, &self.output, metadata.message_count) {
            // Damage is why it was called.
            Err(error) if error.is::<Failed>() => Ok(()),
            result => result,
        }
    }
}

//! `pteros bag split`: a bag in files of a size or a duration.

use super::convert::{copy_shown, report_copy};
use super::selection::OutputFlags;
use crate::cli_context::CliContext;
use anyhow::{Result, bail};
use clap::Args;
use pteros_bag::{BagReader, MessageFilter};
use std::path::PathBuf;

/// Arguments of `bag split`.
#[derive(Debug, Args)]
pub struct Split {
    /// Folder of the bag, or a file
    bag_path: PathBuf,
    /// Folder of the new bag
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    output_flags: OutputFlags,
}

impl Split {
    /// Copies the bag into several files. Each can be played alone: it begins with the
    /// latest messages of transient local topics.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        if !self.output_flags.splits() {
            bail!("say when a file ends: give --max-bag-size BYTES or --max-bag-duration SECONDS");
        }
        let mut bag = BagReader::open_with(&self.bag_path, &cli.library()?)?;
        let options = self.output_flags.options()?;
        let all = MessageFilter::default();
        let metadata = copy_shown(&mut bag, all, &self.output, options)?;
        report_copy(cli, &bag, &self.output, metadata.message_count)
    }
}

//! `pteros bag merge`: several bags as one, in the order of time.

use super::convert::{copy_shown, report_copy};
use super::selection::OutputFlags;
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_bag::{BagReader, MessageFilter};
use std::path::PathBuf;

/// Arguments of `bag merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// Bags to merge: folders or files
    #[arg(value_name = "BAG", num_args = 1.., required = true)]
    bags: Vec<PathBuf>,
    /// Folder of the new bag
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    output_flags: OutputFlags,
}

impl Merge {
    /// Copies the messages of all bags. The exit code is 1 if something could not be
    /// read.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut bag = BagReader::open_all(&self.bags, &cli.library()?)?;
        let options = self.output_flags.options()?;
        let all = MessageFilter::default();
        let metadata = copy_shown(&mut bag, all, &self.output, options)?;
        report_copy(cli, &bag, &self.output, metadata.message_count)
    }
}

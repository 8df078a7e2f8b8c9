//! `pteros bag filter`: a part of a bag as a new bag.

use super::convert::{copy_shown, report_copy};
use super::selection::{OutputFlags, TimeFlags, TopicFlags};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_bag::BagReader;
use std::path::PathBuf;

/// Arguments of `bag filter`.
#[derive(Debug, Args)]
pub struct Filter {
    /// Folder of the bag, or a file
    bag_path: PathBuf,
    /// Folder of the new bag
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    topics: TopicFlags,
    #[command(flatten)]
    times: TimeFlags,
    #[command(flatten)]
    output_flags: OutputFlags,
}

impl Filter {
    /// Copies the chosen messages. The exit code is 1 if something could not be read.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut bag = BagReader::open_with(&self.bag_path, &cli.library()?)?;
        let filter = self.topics.chosen(&bag)?;
        let filter = self.times.restrict(filter, &bag);
        let options = self.output_flags.options()?;
        let metadata = copy_shown(&mut bag, filter, &self.output, options)?;
        report_copy(cli, &bag, &self.output, metadata.message_count)
    }
}

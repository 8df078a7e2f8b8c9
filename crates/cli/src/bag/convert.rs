//! `pteros bag convert`: filters, merges, splits and compresses in one pass.

use super::selection::{OutputFlags, TopicFlags};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use anyhow::Result;
use clap::Args;
use pteros_bag::{BagReader, MessageFilter, copy};
use std::path::PathBuf;

/// Arguments of `bag convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// Bags to read: folders or .mcap files. Several are merged in the order of time
    #[arg(short = 'i', long, value_name = "BAG", num_args = 1.., required = true)]
    input: Vec<PathBuf>,
    /// Folder of the new bag
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    topics: TopicFlags,
    /// First time to copy, in nanoseconds since 1970
    #[arg(long, value_name = "NANOSECONDS")]
    start_time_ns: Option<u64>,
    /// Last time to copy, in nanoseconds since 1970
    #[arg(long, value_name = "NANOSECONDS")]
    end_time_ns: Option<u64>,
    #[command(flatten)]
    output_flags: OutputFlags,
}

impl Convert {
    /// Copies the chosen messages. The exit code is 1 if something could not be read.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut bag = BagReader::open_all(&self.input)?;
        let filter = self.topics.filter()?;
        let chosen = bag.topics().iter().enumerate();
        let chosen = chosen.filter(|(_, t)| filter.chooses(&t.topic.name, &t.topic.type_name));
        let wanted = MessageFilter {
            topics: Some(chosen.map(|(at, _)| at).collect()),
            from: self.start_time_ns,
            until: self.end_time_ns.map(|last| last.saturating_add(1)),
        };
        let metadata = copy(&mut bag, wanted, &self.output, self.output_flags.options())?;
        report_copy(cli, &bag, &self.output, metadata.message_count)
    }
}

/// Prints the number of copied messages, and what could not be read.
pub fn report_copy(
    cli: &CliContext,
    bag: &BagReader,
    output: &std::path::Path,
    count: u64,
) -> Result<()> {
    for problem in bag.problems() {
        cli.console.note(format!("WARNING: {problem}"));
    }
    if cli.console.json {
        cli.console.json(&serde_json::json!({
            "bag": output.display().to_string(),
            "messages": count,
            "problems": bag.problems(),
        }))?;
    } else {
        cli.console
            .line(format!("{}: {count} messages", output.display()))?;
    }
    if bag.is_complete() && bag.problems().is_empty() {
        Ok(())
    } else {
        Err(Failed.into())
    }
}

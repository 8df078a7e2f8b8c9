//! `pteros bag convert`: filters, merges, splits and compresses in one pass.

use super::copy_progress::CopyProgress;
use super::selection::{OutputFlags, TimeFlags, TopicFlags, chosen, option_file};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use anyhow::{Result, bail};
use clap::Args;
use pteros_bag::metadata::BagMetadata;
use pteros_bag::{
    BagError, BagOptions, BagReader, MessageFilter, copy_and_report, read_conversion,
};
use std::path::{Path, PathBuf};

/// Arguments of `bag convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// Bags to read: folders or files. Several are merged in the order of time. A word
    /// behind a bag may name its storage, as with ros2 bag
    #[arg(short = 'i', long, value_name = "BAG", num_args = 1.., required = true)]
    input: Vec<PathBuf>,
    /// Folder of the new bag, or a .yaml file with the output_bags of ros2 bag convert
    #[arg(short, long, value_name = "DIR", visible_alias = "output-options")]
    output: PathBuf,
    #[command(flatten)]
    topics: TopicFlags,
    #[command(flatten)]
    times: TimeFlags,
    #[command(flatten)]
    output_flags: OutputFlags,
}

impl Convert {
    /// Copies the chosen messages. The exit code is 1 if something could not be read.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut bag = BagReader::open_all(&self.inputs(), &cli.library()?)?;
        if self.output.extension().is_some_and(|end| end == "yaml") {
            return self.write_outputs(cli, &mut bag);
        }
        let filter = self.topics.chosen(&bag)?;
        let filter = self.times.restrict(filter, &bag);
        let options = self.output_flags.options()?;
        let metadata = copy_shown(&mut bag, filter, &self.output, options)?;
        report_copy(cli, &bag, &self.output, metadata.message_count)
    }

    /// The inputs without the words that name a storage.
    fn inputs(&self) -> Vec<PathBuf> {
        let is_storage = |path: &PathBuf| {
            let words = ["mcap", "sqlite3", "rosbag1"];
            words.iter().any(|word| path.as_os_str() == *word) && !path.exists()
        };
        let inputs = self.input.iter().filter(|path| !is_storage(path));
        inputs.cloned().collect()
    }

    /// Writes the bags that the file of `--output` lists.
    fn write_outputs(&self, cli: &CliContext, bag: &mut BagReader) -> Result<()> {
        let shown = self.output.display();
        let text = option_file("--output", &self.output)?;
        let outputs = read_conversion(&text, &self.output_flags.options()?);
        let outputs = outputs.map_err(|problem| anyhow::anyhow!("--output {shown}: {problem}"))?;
        if let Some(known) = outputs.iter().find(|output| output.folder.exists()) {
            // Before the first is written.
            bail!("{}", BagError::Exists(known.folder.clone()));
        }
        let mut is_whole = true;
        for output in outputs {
            let filter = MessageFilter {
                from: output.from,
                until: output.until,
                ..chosen(bag, &output.filter)
            };
            let metadata = copy_shown(bag, filter, &output.folder, output.options)?;
            match report_copy(cli, bag, &output.folder, metadata.message_count) {
                Err(error) if error.is::<Failed>() => is_whole = false,
                other => other?,
            }
        }
        if is_whole { Ok(()) } else { Err(Failed.into()) }
    }
}

/// Copies the chosen messages, and shows the progress of a long copy.
pub fn copy_shown(
    bag: &mut BagReader,
    filter: MessageFilter,
    output: &Path,
    options: BagOptions,
) -> Result<BagMetadata, BagError> {
    let mut progress = CopyProgress::new(bag);
    copy_and_report(bag, filter, output, options, |message| {
        progress.count(message)
    })
}

/// Prints the number of copied messages, and what could not be read.
pub fn report_copy(cli: &CliContext, bag: &BagReader, output: &Path, count: u64) -> Result<()> {
    for problem in bag.problems() {
        cli.console.note_row(format!("WARNING: {problem}"));
    }
    if cli.console.json {
        cli.console.json(&serde_json::json!({
            "bag": output.display().to_string(),
            "messages": count,
            "problems": bag.problems(),
        }))?;
    } else {
        cli.console
            .row(format!("{}: {count} messages", output.display()))?;
    }
    if bag.is_complete() && bag.problems().is_empty() {
        Ok(())
    } else {
        Err(Failed.into())
    }
}

//! `pteros bag check`.

use super::copy_progress::CopyProgress;
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use anyhow::Result;
use clap::Args;
use pteros_bag::{BagReader, MessageFilter};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `bag check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Folder of the bag, or a file
    bag_path: PathBuf,
}

impl Check {
    /// Reads every message and checks checksums, counts and completeness. The exit code
    /// is 1 if something is wrong.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut bag = BagReader::open_with(&self.bag_path, &cli.library()?)?;
        let announced = bag.message_count();
        let mut progress = CopyProgress::new(&bag);
        let messages = bag.messages(MessageFilter::default());
        let count = messages.inspect(|message| progress.count(message)).count() as u64;
        drop(progress);
        let mut problems = bag.problems().to_vec();
        if count != announced {
            problems.push(format!(
                "{announced} messages are announced and {count} can be read"
            ));
        }
        if let Some(metadata) = bag.metadata()
            && metadata.message_count != announced
        {
            problems.push(format!(
                "metadata.yaml announces {} messages, the files {announced}",
                metadata.message_count
            ));
        }
        if cli.console.json {
            cli.console
                .json(&json!({ "messages": count, "problems": problems }))?;
        } else {
            for problem in &problems {
                cli.console.row(problem)?;
            }
            let verdict = match problems.len() {
                0 => "no problems".to_owned(),
                1 => "1 problem".to_owned(),
                n => format!("{n} problems"),
            };
            cli.console
                .row(format!("{count} messages read, {verdict}"))?;
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Failed.into())
        }
    }
}

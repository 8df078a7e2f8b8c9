//! `pteros bag topics`.

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_bag::BagReader;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `bag topics`.
#[derive(Debug, Args)]
pub struct Topics {
    /// Folder of the bag, or a file
    bag_path: PathBuf,
}

impl Topics {
    /// Prints name, type and number of messages of each topic.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let bag = BagReader::open_with(&self.bag_path, &cli.library()?)?;
        if cli.console.json {
            let row = |recorded: &pteros_bag::RecordedTopic| {
                json!({
                    "name": recorded.topic.name,
                    "type": recorded.topic.type_name,
                    "count": recorded.message_count,
                })
            };
            cli.console
                .json(&bag.topics().iter().map(row).collect::<Value>())?;
        } else {
            for recorded in bag.topics() {
                cli.console.row(format!(
                    "{} [{}] {}",
                    recorded.topic.name, recorded.topic.type_name, recorded.message_count
                ))?;
            }
        }
        for problem in bag.problems() {
            cli.console.note_row(format!("WARNING: {problem}"));
        }
        Ok(())
    }
}

//! `pteros bag cat`.

use super::selection::{TopicFlags, seconds};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::log::{escape_line, escape_row};
use pteros::msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use pteros_bag::BagReader;
use pteros_bag::definitions::message_type;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `bag cat`.
#[derive(Debug, Args)]
pub struct Cat {
    /// Folder of the bag, or a file
    bag_path: PathBuf,
    #[command(flatten)]
    topics: TopicFlags,
    /// Stop after this many messages
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = crate::value_parsers::positive_count)]
    count: Option<usize>,
}

/// Elements of arrays and strings that are printed, as in `topic echo`.
const TRUNCATE_LENGTH: usize = 128;

impl Cat {
    /// Prints the messages in the order of their times, as YAML or a line of JSON each.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let mut bag = BagReader::open_with(&self.bag_path, &library)?;
        let filter = self.topics.chosen(&bag)?;
        let topics = bag.topics().to_vec();
        let types: Vec<Result<DynamicType, String>> = topics
            .iter()
            .map(|t| message_type(&t.topic, &library))
            .collect();
        let options = YamlOptions {
            truncate_length: (!cli.console.json).then_some(TRUNCATE_LENGTH),
            ..YamlOptions::default()
        };
        for message in bag.messages(filter).take(self.count.unwrap_or(usize::MAX)) {
            let (Some(recorded), Some(ty)) = (topics.get(message.topic), types.get(message.topic))
            else {
                continue;
            };
            let decoded = match ty {
                Ok(ty) => DynamicMessage::from_payload(ty, &message.payload)
                    .map_err(|error| error.to_string()),
                Err(problem) => Err(problem.clone()),
            };
            if cli.console.json {
                let content = decoded.map(|decoded| decoded.to_json_with(&options));
                let content = content.map(|text| serde_json::from_str::<Value>(&text));
                let mut line = json!({
                    "topic": recorded.topic.name,
                    "log_time": message.log_time,
                    "publish_time": message.publish_time,
                });
                match content {
                    Ok(Ok(value)) => line["message"] = value,
                    Ok(Err(error)) => line["error"] = error.to_string().into(),
                    Err(problem) => line["error"] = problem.into(),
                }
                cli.console.json_line(&line)?;
            } else {
                let content = decoded.map(|decoded| decoded.to_yaml(&options));
                let content = content.unwrap_or_else(|problem| {
                    let (problem, size) = (escape_row(&problem), message.payload.len());
                    format!("# {size} bytes: {problem}\n")
                });
                cli.console.text(&format!(
                    "# {} at {}\n{content}---\n",
                    escape_line(&recorded.topic.name),
                    seconds(message.log_time)
                ))?;
            }
        }
        for problem in bag.problems() {
            cli.console.note_row(format!("WARNING: {problem}"));
        }
        Ok(())
    }
}

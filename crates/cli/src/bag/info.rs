//! `pteros bag info`.

use super::selection::{date, seconds, size};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros_bag::accounting::LOSS_RECORD;
use pteros_bag::{BagReader, RecordedTopic};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `bag info`.
#[derive(Debug, Args)]
pub struct Info {
    /// Folder of the bag, or an .mcap file
    bag_path: PathBuf,
    /// Print only the names of the topics
    #[arg(short, long)]
    topic_name: bool,
}

/// End of the names of service event topics, which are shown as services.
const EVENT_SUFFIX: &str = "/_service_event";

impl Info {
    /// Prints what a bag holds. A torn bag is described as far as it goes.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let bag = BagReader::open(&self.bag_path)?;
        if self.topic_name {
            let names = bag.topics().iter().map(|t| t.topic.name.clone());
            cli.console.names(&names.collect::<Vec<_>>(), false)?;
            return Ok(());
        }
        if cli.console.json {
            cli.console.json(&to_json(&bag))?;
        } else {
            cli.console.text(&to_text(&bag))?;
        }
        for problem in bag.problems() {
            cli.console.note(format!("WARNING: {problem}"));
        }
        Ok(())
    }
}

fn to_text(bag: &BagReader) -> String {
    let described = bag.describe();
    let mut out = String::new();
    let mut row = |label: &str, value: String| {
        out += &format!("{label:<19}{value}\n");
    };
    let files = bag.files().map(|file| {
        let name = file.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    });
    rows(&mut row, "Files:", files);
    row("Bag size:", size(bag.bytes()));
    row("Storage id:", described.storage.clone());
    row("ROS Distro:", described.ros_distro.clone());
    row("Duration:", format!("{}s", seconds(described.duration)));
    row("Start:", date(described.start));
    row("End:", date(described.start + described.duration));
    let is_service = |topic: &&RecordedTopic| topic.topic.name.ends_with(EVENT_SUFFIX);
    let topics: Vec<_> = bag
        .topics()
        .iter()
        .filter(|topic| !is_service(topic))
        .collect();
    let services: Vec<_> = bag.topics().iter().filter(is_service).collect();
    let messages: u64 = topics.iter().map(|topic| topic.message_count).sum();
    row("Messages:", messages.to_string());
    let line = |topic: &RecordedTopic, label: &str, count: &str, name: &str| {
        format!(
            "{label}: {name} | Type: {} | {count}: {} | Serialization Format: {}",
            topic.topic.type_name, topic.message_count, topic.topic.serialization_format
        )
    };
    let lines = topics
        .iter()
        .map(|t| line(t, "Topic", "Count", &t.topic.name));
    rows(&mut row, "Topic information:", lines);
    row("Service:", services.len().to_string());
    let lines = services.iter().map(|t| {
        let name = t.topic.name.trim_end_matches(EVENT_SUFFIX);
        line(t, "Service", "Event Count", name)
    });
    rows(&mut row, "Service information:", lines);
    let accounts = bag.accounts();
    if !accounts.is_empty() {
        let lost: u64 = accounts.values().map(|account| account.lost()).sum();
        row("Lost messages:", lost.to_string());
        let losses = accounts.iter().filter(|(_, account)| account.lost() > 0);
        let lines = losses.map(|(name, account)| {
            format!(
                "Topic: {name} | Wire: {} | Queue: {} | Buffer: {} | Writer: {}",
                account.lost_wire, account.lost_queue, account.lost_buffer, account.lost_writer
            )
        });
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            rows(&mut row, "Loss information:", lines.into_iter());
        }
    }
    let custom = described.custom_data.iter();
    let custom = custom.filter(|(key, _)| !key.starts_with(LOSS_RECORD));
    let custom: Vec<String> = custom
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    if !custom.is_empty() {
        rows(&mut row, "Custom data:", custom.into_iter());
    }
    out
}

/// One line per value, the label before the first. The label's line is there even
/// without values.
fn rows(row: &mut impl FnMut(&str, String), label: &str, values: impl Iterator<Item = String>) {
    let mut label = label;
    for value in values {
        row(label, value);
        label = "";
    }
    if !label.is_empty() {
        row(label, String::new());
    }
}

fn to_json(bag: &BagReader) -> Value {
    let described = bag.describe();
    let accounts = bag.accounts();
    let topics: Vec<Value> = bag
        .topics()
        .iter()
        .map(|recorded| {
            let lost = accounts.get(&recorded.topic.name).map(|account| {
                json!({
                    "wire": account.lost_wire,
                    "queue": account.lost_queue,
                    "buffer": account.lost_buffer,
                    "writer": account.lost_writer,
                })
            });
            json!({
                "name": recorded.topic.name,
                "type": recorded.topic.type_name,
                "count": recorded.message_count,
                "serialization_format": recorded.topic.serialization_format,
                "type_hash": recorded.topic.type_hash,
                "lost": lost,
            })
        })
        .collect();
    let files: Vec<String> = bag.files().map(|file| file.display().to_string()).collect();
    json!({
        "files": files,
        "bytes": bag.bytes(),
        "storage": described.storage,
        "ros_distro": described.ros_distro,
        "start_ns": described.start,
        "duration_ns": described.duration,
        "messages": described.message_count,
        "complete": bag.is_complete(),
        "topics": topics,
        "custom_data": described.custom_data,
        "problems": bag.problems(),
    })
}

//! `pteros bag info`.

use super::selection::{StorageFlag, date, seconds, size};
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Args;
use pteros::log::escape_row;
use pteros_bag::accounting::LOSS_RECORD;
use pteros_bag::{BagReader, MessageFilter, RecordedTopic};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Arguments of `bag info`.
#[derive(Debug, Args)]
pub struct Info {
    /// Folder of the bag, or a file
    bag_path: PathBuf,
    /// Refuse a bag of another storage
    #[arg(short, long, value_name = "STORAGE", value_enum)]
    storage: Option<StorageFlag>,
    /// Print only the names of the topics
    #[arg(short, long)]
    topic_name: bool,
    /// Read the messages, and count requests and responses of services
    #[arg(short, long)]
    verbose: bool,
    /// Order of the topics
    #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
    sort: SortOrder,
}

/// rosbag2's words for the order of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum SortOrder {
    /// By name
    #[default]
    Name,
    /// By type
    Type,
    /// By number of messages, the fewest first
    Count,
}

/// Requests and responses of a service.
#[derive(Clone, Copy, Debug, Default)]
struct ServiceCounts {
    /// By kind of event: sent and received requests, sent and received responses.
    events: [u64; 4],
}

impl ServiceCounts {
    /// Client and server may both have events of the same call.
    fn requests(self) -> u64 {
        self.events[0].max(self.events[1])
    }

    fn responses(self) -> u64 {
        self.events[2].max(self.events[3])
    }
}

/// Where the kind of a service event lies, behind the encapsulation header.
const EVENT_KIND_AT: usize = 4;

/// Reads the events of all services, by index of the topic.
fn count_services(bag: &mut BagReader) -> BTreeMap<usize, ServiceCounts> {
    let topics = bag.topics().iter().enumerate();
    let services = topics.filter(|(_, topic)| topic.topic.name.ends_with(EVENT_SUFFIX));
    let services: Vec<usize> = services.map(|(at, _)| at).collect();
    let mut counts: BTreeMap<usize, ServiceCounts> = BTreeMap::new();
    for at in &services {
        counts.insert(*at, ServiceCounts::default());
    }
    let filter = MessageFilter {
        topics: Some(services),
        ..MessageFilter::default()
    };
    for message in bag.messages(filter) {
        let kind = message.payload.get(EVENT_KIND_AT).copied();
        let count = counts.get_mut(&message.topic);
        let event = count.and_then(|count| count.events.get_mut(usize::from(kind?)));
        if let Some(event) = event {
            *event += 1;
        }
    }
    counts
}

/// End of the names of service event topics, which are shown as services.
const EVENT_SUFFIX: &str = "/_service_event";
/// End of the types of these topics.
const EVENT_TYPE_SUFFIX: &str = "_Event";

impl Info {
    /// Prints what a bag holds. A torn bag is described as far as it goes.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut bag = BagReader::open_with(&self.bag_path, &cli.library()?)?;
        StorageFlag::check(self.storage, &bag)?;
        let services = if self.verbose {
            count_services(&mut bag)
        } else {
            BTreeMap::new()
        };
        if self.topic_name && self.verbose {
            cli.console
                .note_row("WARNING: -t has no effect with -v, as with ros2 bag");
        } else if self.topic_name {
            // Without services, as with ros2 bag.
            let topics = sorted(&bag, self.sort).into_iter();
            let topics = topics.filter(|(_, topic)| !topic.topic.name.ends_with(EVENT_SUFFIX));
            let names = topics.map(|(_, topic)| topic.topic.name.clone());
            cli.console.names(&names.collect::<Vec<_>>(), false)?;
            return Ok(());
        }
        if cli.console.json {
            cli.console.json(&to_json(&bag, self.sort, &services))?;
        } else {
            cli.console.text(&to_text(&bag, self.sort, &services))?;
        }
        for problem in bag.problems() {
            cli.console.note_row(format!("WARNING: {problem}"));
        }
        Ok(())
    }
}

/// The topics in the asked order, with their indexes.
fn sorted(bag: &BagReader, order: SortOrder) -> Vec<(usize, &RecordedTopic)> {
    let mut topics: Vec<_> = bag.topics().iter().enumerate().collect();
    match order {
        SortOrder::Name => topics.sort_by(|a, b| a.1.topic.name.cmp(&b.1.topic.name)),
        SortOrder::Type => {
            topics.sort_by(|a, b| a.1.topic.type_name.cmp(&b.1.topic.type_name));
        }
        SortOrder::Count => topics.sort_by_key(|(_, topic)| topic.message_count),
    }
    topics
}

fn to_text(bag: &BagReader, order: SortOrder, counts: &BTreeMap<usize, ServiceCounts>) -> String {
    let described = bag.describe();
    let mut out = String::new();
    let mut row = |label: &str, value: String| {
        out += &format!("{label:<19}{}\n", escape_row(&value));
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
    let (services, topics): (Vec<_>, Vec<_>) = sorted(bag, order)
        .into_iter()
        .partition(|(_, topic)| topic.topic.name.ends_with(EVENT_SUFFIX));
    let messages: u64 = topics.iter().map(|(_, topic)| topic.message_count).sum();
    row("Messages:", messages.to_string());
    let line = |topic: &RecordedTopic, label: &str, count: &str, name: &str| {
        format!(
            "{label}: {name} | Type: {} | {count}: {} | Serialization Format: {}",
            shown_type(topic),
            topic.message_count,
            topic.topic.serialization_format
        )
    };
    let lines = topics
        .iter()
        .map(|(_, t)| line(t, "Topic", "Count", &t.topic.name));
    rows(&mut row, "Topic information:", lines);
    row("Service:", services.len().to_string());
    let lines = services.iter().map(|(at, t)| {
        let name = t.topic.name.trim_end_matches(EVENT_SUFFIX);
        match counts.get(at) {
            None => line(t, "Service", "Event Count", name),
            Some(counts) => format!(
                "Service: {name} | Type: {} | Request Count: {} | Response Count: {} | Serialization Format: {}",
                shown_type(t),
                counts.requests(),
                counts.responses(),
                t.topic.serialization_format
            ),
        }
    });
    // The label is longer than the others', so its column begins later.
    let indents = std::iter::once("").chain(std::iter::repeat("  "));
    let lines = lines
        .zip(indents)
        .map(|(line, indent)| format!("{indent}{line}"));
    let label = if services.is_empty() {
        "Service information:"
    } else {
        "Service information: "
    };
    rows(&mut row, label, lines);
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

/// The type of a topic, or of the service whose events it has.
fn shown_type(topic: &RecordedTopic) -> &str {
    let name = topic.topic.type_name.as_str();
    if topic.topic.name.ends_with(EVENT_SUFFIX) {
        name.strip_suffix(EVENT_TYPE_SUFFIX).unwrap_or(name)
    } else {
        name
    }
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

fn to_json(bag: &BagReader, order: SortOrder, counts: &BTreeMap<usize, ServiceCounts>) -> Value {
    let described = bag.describe();
    let accounts = bag.accounts();
    let topics: Vec<Value> = sorted(bag, order)
        .into_iter()
        .map(|(at, recorded)| {
            let lost = accounts.get(&recorded.topic.name).map(|account| {
                json!({
                    "wire": account.lost_wire,
                    "queue": account.lost_queue,
                    "buffer": account.lost_buffer,
                    "writer": account.lost_writer,
                })
            });
            let mut topic = json!({
                "name": recorded.topic.name,
                "type": recorded.topic.type_name,
                "count": recorded.message_count,
                "serialization_format": recorded.topic.serialization_format,
                "type_hash": recorded.topic.type_hash,
                "lost": lost,
            });
            if let Some(counts) = counts.get(&at) {
                topic["requests"] = counts.requests().into();
                topic["responses"] = counts.responses().into();
            }
            topic
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

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_bag::{BagOptions, BagTopic, BagWriter};
    use pteros_test_support::folder::Folder;

    #[test]
    fn services_are_shown_as_ros2_bag_shows_them() {
        let folder = Folder::absent("info-services");
        let mut writer = BagWriter::create(&folder, BagOptions::default()).unwrap();
        for name in ["/add", "/sub"] {
            let topic = BagTopic {
                name: format!("{name}{EVENT_SUFFIX}"),
                type_name: "example_interfaces/srv/AddTwoInts_Event".into(),
                serialization_format: "cdr".into(),
                ..BagTopic::default()
            };
            let channel = writer.add_topic(topic).unwrap();
            writer.write(channel, 7, 7, &[0, 1, 0, 0]).unwrap();
        }
        writer.finish(&BTreeMap::new()).unwrap();
        let bag = BagReader::open(&folder).unwrap();
        let text = to_text(&bag, SortOrder::Name, &BTreeMap::new());
        let kind =
            "Type: example_interfaces/srv/AddTwoInts | Event Count: 1 | Serialization Format: cdr";
        let first = format!("Service information: Service: /add | {kind}\n");
        let second = format!("                     Service: /sub | {kind}\n");
        assert!(text.contains(&(first + &second)), "{text}");
    }
}

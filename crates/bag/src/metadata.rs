//! `metadata.yaml` of a bag: writes version 9, as rosbag2 of Jazzy, and reads all earlier
//! versions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pteros::msg::dynamic::yaml_string;
use pteros::msg::yaml::{YamlContent, YamlEntry, YamlNode};
use pteros::qos::QosProfile;

use crate::qos_text::{read_profiles, scalar, write_profiles};

/// The file's name in a bag's folder.
pub const METADATA_FILE: &str = "metadata.yaml";
/// Version that is written.
const VERSION: u32 = 9;

/// Parsed `metadata.yaml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BagMetadata {
    /// `mcap` or `sqlite3`.
    pub storage: String,
    /// Time from the first to the last message, nanoseconds.
    pub duration: u64,
    /// Log time of the first message, nanoseconds since 1970.
    pub start: u64,
    /// Messages in all files.
    pub message_count: u64,
    /// Recorded topics with their message counts.
    pub topics: Vec<TopicMetadata>,
    /// Compression beside that of the storage; Pteros writes none.
    pub compression_format: String,
    /// `FILE`, `MESSAGE`, or empty.
    pub compression_mode: String,
    /// Files of the bag, in order.
    pub files: Vec<FileMetadata>,
    /// Custom texts, and the accounts of [`crate::accounting`].
    pub custom_data: BTreeMap<String, String>,
    /// ROS distribution of the recorder.
    pub ros_distro: String,
}

/// Metadata of a recorded topic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicMetadata {
    /// Fully qualified topic name.
    pub name: String,
    /// ROS type, for example `std_msgs/msg/String`.
    pub type_name: String,
    /// Always `cdr` for ROS 2.
    pub serialization_format: String,
    /// QoS profiles of its publishers when recording started.
    pub offered_qos: Vec<QosProfile>,
    /// RIHS01 type hash; empty if unknown.
    pub type_hash: String,
    /// Number of its messages in all files.
    pub message_count: u64,
}

/// Metadata of a file of the bag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileMetadata {
    /// Path relative to the bag's folder.
    pub path: String,
    /// First log time, nanoseconds since 1970.
    pub start: u64,
    /// Time from its first to its last message, nanoseconds.
    pub duration: u64,
    /// Number of messages in this file.
    pub message_count: u64,
}

impl BagMetadata {
    /// The text of `metadata.yaml`.
    pub fn to_yaml(&self) -> String {
        let body = self.to_yaml_body();
        let mut out = String::from("rosbag2_bagfile_information:\n");
        for line in body.lines() {
            let _ = writeln!(out, "  {line}");
        }
        out
    }

    /// The text without the outer key, as embedded in each file.
    pub(crate) fn to_yaml_body(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = writeln!(out, "version: {VERSION}");
        let _ = writeln!(out, "storage_identifier: {}", self.storage);
        let _ = writeln!(out, "duration:\n  nanoseconds: {}", self.duration);
        let _ = writeln!(
            out,
            "starting_time:\n  nanoseconds_since_epoch: {}",
            self.start
        );
        let _ = writeln!(out, "message_count: {}", self.message_count);
        self.write_topics(&mut out);
        let _ = writeln!(
            out,
            "compression_format: {}",
            quoted(&self.compression_format)
        );
        let _ = writeln!(out, "compression_mode: {}", quoted(&self.compression_mode));
        let _ = writeln!(
            out,
            "relative_file_paths:{}",
            none_if(self.files.is_empty())
        );
        for file in &self.files {
            let _ = writeln!(out, "  - {}", quoted(&file.path));
        }
        let _ = writeln!(out, "files:{}", none_if(self.files.is_empty()));
        for file in &self.files {
            let _ = writeln!(out, "  - path: {}", quoted(&file.path));
            let _ = writeln!(
                out,
                "    starting_time:\n      nanoseconds_since_epoch: {}",
                file.start
            );
            let _ = writeln!(out, "    duration:\n      nanoseconds: {}", file.duration);
            let _ = writeln!(out, "    message_count: {}", file.message_count);
        }
        if self.custom_data.is_empty() {
            out.push_str("custom_data: ~\n");
        } else {
            out.push_str("custom_data:\n");
            for (key, value) in &self.custom_data {
                let _ = writeln!(out, "  {}: {}", quoted(key), quoted(value));
            }
        }
        let _ = writeln!(out, "ros_distro: {}", quoted(&self.ros_distro));
        out
    }

    fn write_topics(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "topics_with_message_count:{}",
            none_if(self.topics.is_empty())
        );
        for topic in &self.topics {
            let _ = writeln!(out, "  - topic_metadata:");
            let _ = writeln!(out, "      name: {}", quoted(&topic.name));
            let _ = writeln!(out, "      type: {}", quoted(&topic.type_name));
            let _ = writeln!(
                out,
                "      serialization_format: {}",
                quoted(&topic.serialization_format)
            );
            let none = none_if(topic.offered_qos.is_empty());
            let _ = writeln!(out, "      offered_qos_profiles:{none}");
            out.push_str(&write_profiles(&topic.offered_qos, "        "));
            let _ = writeln!(
                out,
                "      type_description_hash: {}",
                quoted(&topic.type_hash)
            );
            let _ = writeln!(out, "    message_count: {}", topic.message_count);
        }
    }

    /// Parses `metadata.yaml`, or the text embedded in a file.
    ///
    /// # Errors
    /// The text is no YAML, or a value does not fit: with its position.
    pub fn read(text: &str) -> Result<Self, String> {
        let root = YamlNode::read(text).map_err(|error| error.to_string())?;
        let outer = entries(&root)?;
        let inner = outer
            .iter()
            .find(|entry| entry.key == "rosbag2_bagfile_information");
        let all = match inner {
            Some(entry) => entries(&entry.value)?,
            None => outer,
        };
        let mut bag = Self::default();
        let mut paths = Vec::new();
        for entry in all {
            let value = &entry.value;
            match entry.key.as_str() {
                "storage_identifier" => bag.storage = text_of(entry),
                "duration" => bag.duration = inner_number(entry)?,
                "starting_time" => bag.start = inner_number(entry)?,
                "message_count" => bag.message_count = number(entry)?,
                "topics_with_message_count" => {
                    bag.topics = items(value)
                        .iter()
                        .map(read_topic)
                        .collect::<Result<_, _>>()?;
                }
                "compression_format" => bag.compression_format = text_of(entry),
                "compression_mode" => bag.compression_mode = text_of(entry),
                "relative_file_paths" => {
                    paths = items(value)
                        .iter()
                        .filter_map(scalar)
                        .map(String::from)
                        .collect();
                }
                "files" => {
                    bag.files = items(value)
                        .iter()
                        .map(read_file)
                        .collect::<Result<_, _>>()?;
                }
                "custom_data" if !value.is_null() => {
                    let pairs = entries(value)?.iter();
                    bag.custom_data = pairs
                        .map(|pair| (pair.key.clone(), text_of(pair)))
                        .collect();
                }
                "ros_distro" => bag.ros_distro = text_of(entry),
                _ => {}
            }
        }
        if bag.files.len() != paths.len() {
            let file = |path| FileMetadata {
                path,
                ..FileMetadata::default()
            };
            bag.files = paths.into_iter().map(file).collect();
        }
        Ok(bag)
    }
}

fn read_topic(node: &YamlNode) -> Result<TopicMetadata, String> {
    let mut topic = TopicMetadata::default();
    for entry in entries(node)? {
        match entry.key.as_str() {
            "message_count" => topic.message_count = number(entry)?,
            "topic_metadata" => {
                for field in entries(&entry.value)? {
                    match field.key.as_str() {
                        "name" => topic.name = text_of(field),
                        "type" => topic.type_name = text_of(field),
                        "serialization_format" => topic.serialization_format = text_of(field),
                        "offered_qos_profiles" => topic.offered_qos = read_profiles(&field.value)?,
                        "type_description_hash" => topic.type_hash = text_of(field),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(topic)
}

fn read_file(node: &YamlNode) -> Result<FileMetadata, String> {
    let mut file = FileMetadata::default();
    for entry in entries(node)? {
        match entry.key.as_str() {
            "path" => file.path = text_of(entry),
            "starting_time" => file.start = inner_number(entry)?,
            "duration" => file.duration = inner_number(entry)?,
            "message_count" => file.message_count = number(entry)?,
            _ => {}
        }
    }
    Ok(file)
}

fn entries(node: &YamlNode) -> Result<&[YamlEntry], String> {
    match &node.content {
        YamlContent::Mapping(entries) => Ok(entries),
        _ => Err(format!(
            "line {}: {} where a mapping belongs",
            node.place.line,
            node.found_text()
        )),
    }
}

fn items(node: &YamlNode) -> &[YamlNode] {
    match &node.content {
        YamlContent::List(items) => items,
        _ => &[],
    }
}

fn text_of(entry: &YamlEntry) -> String {
    scalar(&entry.value).unwrap_or_default().to_owned()
}

fn number(entry: &YamlEntry) -> Result<u64, String> {
    let parsed = scalar(&entry.value).and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        format!(
            "line {}: {} is {} and must be a whole number from 0",
            entry.place.line,
            entry.key,
            entry.value.found_text()
        )
    })
}

/// The number of a mapping with one entry, `nanoseconds: 5`.
fn inner_number(entry: &YamlEntry) -> Result<u64, String> {
    match entries(&entry.value)? {
        [only] => number(only),
        other => Err(format!(
            "line {}: {} has {} entries and must have one",
            entry.place.line,
            entry.key,
            other.len()
        )),
    }
}

fn none_if(is_empty: bool) -> &'static str {
    if is_empty { " []" } else { "" }
}

/// Quotes a text as rosbag2 does.
fn quoted(text: &str) -> String {
    if text.is_empty() {
        return "\"\"".to_owned();
    }
    yaml_string(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_as_it_was_written() {
        let bag = BagMetadata {
            storage: "mcap".into(),
            duration: 5,
            start: 1_700_000_000_000_000_000,
            message_count: 3,
            topics: vec![TopicMetadata {
                name: "/a".into(),
                type_name: "std_msgs/msg/String".into(),
                serialization_format: "cdr".into(),
                offered_qos: vec![QosProfile::default().keep_last(3)],
                type_hash: "RIHS01_00".into(),
                message_count: 3,
            }],
            files: vec![FileMetadata {
                path: "bag_0.mcap".into(),
                start: 7,
                duration: 5,
                message_count: 3,
            }],
            custom_data: [("a: b\"".into(), "yes\n".into())].into(),
            ros_distro: "jazzy".into(),
            ..BagMetadata::default()
        };
        let read = BagMetadata::read(&bag.to_yaml()).unwrap();
        assert_eq!(read.files, bag.files);
        assert_eq!(read.custom_data, bag.custom_data);
        assert_eq!(read.topics[0].type_hash, "RIHS01_00");
        assert_eq!(
            read.topics[0].offered_qos[0].history,
            bag.topics[0].offered_qos[0].history
        );
        assert_eq!(
            (read.start, read.duration, read.message_count),
            (bag.start, 5, 3)
        );
    }

    #[test]
    fn the_oldest_version_is_read() {
        let text = "rosbag2_bagfile_information:\n  version: 2\n  storage_identifier: mcap\n  relative_file_paths:\n    - old_0.mcap\n  duration:\n    nanoseconds: 9\n  starting_time:\n    nanoseconds_since_epoch: 4\n  message_count: 1\n  topics_with_message_count:\n    - topic_metadata:\n        name: /t\n        type: a/msg/B\n        serialization_format: cdr\n      message_count: 1\n";
        let read = BagMetadata::read(text).unwrap();
        assert_eq!(read.files[0].path, "old_0.mcap");
        assert_eq!(read.topics[0].name, "/t");
        let error = BagMetadata::read("rosbag2_bagfile_information:\n  message_count: many\n");
        assert_eq!(
            error.unwrap_err(),
            "line 2: message_count is many and must be a whole number from 0"
        );
    }
}

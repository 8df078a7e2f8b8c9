//! Output file of `ros2 bag convert`: lists the bags to write, each with topics, times,
//! splits and compression.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pteros::msg::regular_file;
use pteros::msg::yaml::{YamlContent, YamlEntry, YamlNode};

use crate::mcap::Compression;
use crate::qos_text::scalar;
use crate::storage_options::{StoragePreset, read_storage_config};
use crate::topic_filter::{NamePattern, TopicFilter};
use crate::writer::BagOptions;

/// Bags that one file may list.
const OUTPUTS_MAX: usize = 1000;
/// The largest storage configuration.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// One bag to write.
#[derive(Clone, Debug)]
pub struct ConversionOutput {
    /// Path of the bag's folder, which must not exist.
    pub folder: PathBuf,
    /// Selected topics. Without any selection the bag is empty, as with rosbag2.
    pub filter: TopicFilter,
    /// Compression, splits and other options of the bag.
    pub options: BagOptions,
    /// The first log time, in nanoseconds since 1970.
    pub from: Option<u64>,
    /// The log time after the last message.
    pub until: Option<u64>,
}

/// Parses the text of an output file. `defaults` apply to each bag.
///
/// # Errors
/// The text is no YAML, a key is unknown, or a value is invalid: with its line. A file
/// that it names is unreadable.
pub fn read_conversion(text: &str, defaults: &BagOptions) -> Result<Vec<ConversionOutput>, String> {
    let root = YamlNode::read(text).map_err(|error| error.to_string())?;
    let list = match &root.content {
        YamlContent::Mapping(entries) => entries
            .iter()
            .find(|entry| entry.key == "output_bags")
            .map(|entry| &entry.value),
        _ => None,
    };
    let Some(YamlContent::List(items)) = list.map(|list| &list.content) else {
        return Err(
            "it has no list output_bags; give output_bags: [{uri: new_bag, all_topics: true}]"
                .into(),
        );
    };
    if items.is_empty() || items.len() > OUTPUTS_MAX {
        return Err(format!(
            "output_bags has {} entries; give 1 to {OUTPUTS_MAX}",
            items.len()
        ));
    }
    items
        .iter()
        .map(|item| read_output(item, defaults))
        .collect()
}

fn read_output(node: &YamlNode, defaults: &BagOptions) -> Result<ConversionOutput, String> {
    let YamlContent::Mapping(entries) = &node.content else {
        return Err(format!(
            "line {}: {} where the keys of a bag belong",
            node.place.line,
            node.found_text()
        ));
    };
    let mut output = ConversionOutput {
        folder: PathBuf::new(),
        filter: TopicFilter {
            whole_names: true,
            ..TopicFilter::default()
        },
        options: defaults.clone(),
        from: None,
        until: None,
    };
    for entry in entries {
        apply(entry, &mut output)?;
    }
    if output.folder.as_os_str().is_empty() {
        return Err(format!("line {}: a bag without uri", node.place.line));
    }
    output.filter = output
        .filter
        .with_full_names()
        .map_err(|error| format!("line {}: {error}", node.place.line))?;
    Ok(output)
}

fn apply(entry: &YamlEntry, output: &mut ConversionOutput) -> Result<(), String> {
    let (key, line) = (entry.key.as_str(), entry.place.line);
    let text = scalar(&entry.value).unwrap_or_default();
    let wrong = |words: &str| format!("line {line}: {key} is {text:?}; use {words}");
    let number = || {
        text.parse::<u64>()
            .map_err(|_| wrong("a whole number from 0"))
    };
    // A negative time means none, as with rosbag2.
    let time = || match text.parse::<i64>() {
        Ok(time) => Ok(u64::try_from(time).ok()),
        Err(_) => Err(wrong("nanoseconds since 1970, or -1 for no limit")),
    };
    let flag = || match text {
        "true" | "True" => Ok(true),
        "false" | "False" => Ok(false),
        _ => Err(wrong("true or false")),
    };
    let pattern = || match text {
        "" => Ok(None),
        given => NamePattern::new(given)
            .map(Some)
            .map_err(|error| format!("line {line}: {error}")),
    };
    let names = || match &entry.value.content {
        YamlContent::List(items) => Ok(items
            .iter()
            .filter_map(scalar)
            .map(str::to_owned)
            .collect::<Vec<String>>()),
        _ => Err(wrong("a list")),
    };
    let ConversionOutput {
        filter, options, ..
    } = output;
    match key {
        "uri" => output.folder = PathBuf::from(text),
        "storage_id" if ["", "mcap"].contains(&text) => {}
        "storage_id" => return Err(wrong("mcap: Pteros writes nothing else")),
        "rmw_serialization_format" | "output_serialization_format"
            if ["", "cdr"].contains(&text) => {}
        "rmw_serialization_format" | "output_serialization_format" => return Err(wrong("cdr")),
        "max_bagfile_size" => options.split_bytes = Some(number()?).filter(|bytes| *bytes > 0),
        "max_bagfile_duration" => {
            let seconds = Some(number()?).filter(|seconds| *seconds > 0);
            options.split_duration = seconds.map(Duration::from_secs);
        }
        "storage_preset_profile" => {
            let preset: StoragePreset = text.parse().map_err(|p| format!("line {line}: {p}"))?;
            preset.apply(options);
        }
        "storage_config_uri" if text.is_empty() => {}
        "storage_config_uri" => {
            let read = regular_file::read_text(Path::new(text), CONFIG_BYTES_MAX);
            let config = read.map_err(|error| format!("line {line}: {text}: {error}"))?;
            read_storage_config(&config, options).map_err(|p| format!("{text}: {p}"))?;
        }
        "compression_mode" => match text.to_ascii_lowercase().as_str() {
            "" | "none" => options.compress_files = false,
            "file" => options.compress_files = true,
            _ => return Err(wrong("none or file; compression: zstd compresses chunks")),
        },
        "compression_format" if ["", "zstd"].contains(&text) => {}
        "compression_format" => return Err(wrong("zstd")),
        "compression" => {
            let kind: Compression = text.parse().map_err(|p| format!("line {line}: {p}"))?;
            options.compression = kind;
        }
        "compression_queue_size" | "compression_threads" | "compression_threads_priority" => {
            // One thread compresses, in the order of the files.
            number()?;
        }
        "start_time_ns" => output.from = time()?,
        "end_time_ns" => output.until = time()?.map(|last| last.saturating_add(1)),
        "all" => {
            let all = flag()?;
            (filter.all_topics, filter.all_services, filter.all_actions) = (all, all, all);
        }
        "all_topics" => filter.all_topics = flag()?,
        "all_services" => filter.all_services = flag()?,
        "all_actions" => filter.all_actions = flag()?,
        "topics" => filter.topics = names()?,
        "topic_types" => filter.types = names()?,
        "services" => filter.services = names()?,
        "actions" => filter.actions = names()?,
        "regex" => filter.pattern = pattern()?,
        "exclude_regex" | "exclude" => filter.exclude_pattern = pattern()?,
        "exclude_topics" => filter.exclude_topics = names()?,
        "exclude_topic_types" => filter.exclude_types = names()?,
        "exclude_services" => filter.exclude_services = names()?,
        "exclude_actions" => filter.exclude_actions = names()?,
        "include_hidden_topics" => filter.include_hidden = flag()?,
        "include_unpublished_topics" => {
            // All topics of a bag exist already.
            flag()?;
        }
        "custom_data" => {
            if let YamlContent::Mapping(pairs) = &entry.value.content {
                let pairs = pairs.iter();
                let texts = pairs.map(|pair| {
                    let value = scalar(&pair.value).unwrap_or_default();
                    (pair.key.clone(), value.to_owned())
                });
                options.custom_data.extend(texts);
            }
        }
        _ => {
            return Err(format!(
                "line {line}: the key {key:?} is unknown; use uri, topics, regex, all_topics, start_time_ns, max_bagfile_size, compression or another key of ros2 bag convert"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_as_ros2_bag_reads_them() {
        let text = "output_bags:\n- uri: front\n  storage_id: mcap\n  topics: [front/image, /tf]\n  start_time_ns: -1\n  end_time_ns: 99\n  compression_mode: file\n  compression_format: zstd\n- uri: rest\n  all: true\n  exclude: /front.*\n  max_bagfile_size: 5000\n  storage_preset_profile: zstd_small\n- uri: empty\n";
        let outputs = read_conversion(text, &BagOptions::default()).unwrap();
        let [front, rest, empty] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        assert_eq!(front.folder, PathBuf::from("front"));
        assert!(front.filter.chooses("/front/image", "") && !front.filter.chooses("/x", ""));
        assert_eq!((front.from, front.until), (None, Some(100)));
        assert!(front.options.compress_files);
        assert!(rest.filter.chooses("/x", "") && !rest.filter.chooses("/front/image", ""));
        assert_eq!(rest.options.split_bytes, Some(5000));
        assert_eq!(rest.options.compression, Compression::Zstd);
        assert!(empty.filter.is_empty());
    }

    #[test]
    fn a_wrong_key_or_value_is_named_with_its_line() {
        let error = |text: &str| read_conversion(text, &BagOptions::default()).unwrap_err();
        assert!(error("{}").contains("no list output_bags"));
        assert!(error("output_bags: []").contains("has 0 entries"));
        assert_eq!(
            error("output_bags:\n- all: true\n"),
            "line 2: a bag without uri"
        );
        let sqlite = "output_bags:\n- uri: a\n  storage_id: sqlite3\n";
        assert_eq!(
            error(sqlite),
            "line 3: storage_id is \"sqlite3\"; use mcap: Pteros writes nothing else"
        );
        assert!(error("output_bags:\n- uri: a\n  topic: /b\n").contains("\"topic\" is unknown"));
    }
}

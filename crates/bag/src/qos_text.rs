//! QoS profiles in rosbag2's text form: a YAML list in `metadata.yaml` and in each
//! channel's metadata, and the mappings of an override file.
//!
//! Policies are written as words (version 9 of the metadata). Numbers of older versions
//! are read as well, and so are the three infinities that vendors wrote earlier.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use pteros::msg::yaml::{YamlContent, YamlNode};
use pteros::qos::{
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QosProfile, ReliabilityPolicy,
};

/// rmw's infinite duration.
const INFINITE: (u64, u32) = (9_223_372_036, 854_775_807);
/// Longer durations count as infinite: Foxy's vendors wrote 2^31 - 1 seconds.
const SECONDS_MAX: u64 = 0x7fff_ffff;

/// Writes profiles as a list, with `indent` before each line.
pub(crate) fn write_profiles(profiles: &[QosProfile], indent: &str) -> String {
    let mut out = String::new();
    for profile in profiles {
        let (history, depth) = match profile.history {
            HistoryPolicy::KeepLast(depth) => ("keep_last", depth),
            HistoryPolicy::KeepAll => ("keep_all", 0),
            HistoryPolicy::SystemDefault => ("system_default", 0),
        };
        let reliability = match profile.reliability {
            ReliabilityPolicy::Reliable => "reliable",
            ReliabilityPolicy::BestEffort => "best_effort",
            ReliabilityPolicy::SystemDefault => "system_default",
            ReliabilityPolicy::BestAvailable => "best_available",
        };
        let durability = match profile.durability {
            DurabilityPolicy::Volatile => "volatile",
            // ROS 2 has no word for the stored kinds, which serve late joiners as well.
            DurabilityPolicy::TransientLocal
            | DurabilityPolicy::Transient
            | DurabilityPolicy::Persistent => "transient_local",
            DurabilityPolicy::SystemDefault => "system_default",
            DurabilityPolicy::BestAvailable => "best_available",
        };
        let liveliness = match profile.liveliness {
            LivelinessPolicy::ManualByTopic => "manual_by_topic",
            LivelinessPolicy::ManualByParticipant | LivelinessPolicy::Automatic => "automatic",
            LivelinessPolicy::SystemDefault => "system_default",
            LivelinessPolicy::BestAvailable => "best_available",
        };
        // Writing to a String does not fail.
        let _ = writeln!(out, "{indent}- history: {history}");
        let _ = writeln!(out, "{indent}  depth: {depth}");
        let _ = writeln!(out, "{indent}  reliability: {reliability}");
        let _ = writeln!(out, "{indent}  durability: {durability}");
        duration(&mut out, indent, "deadline", profile.deadline);
        duration(&mut out, indent, "lifespan", profile.lifespan);
        let _ = writeln!(out, "{indent}  liveliness: {liveliness}");
        duration(
            &mut out,
            indent,
            "liveliness_lease_duration",
            profile.liveliness_lease,
        );
        let avoid = profile.avoid_ros_namespace_conventions;
        let _ = writeln!(out, "{indent}  avoid_ros_namespace_conventions: {avoid}");
    }
    out
}

fn duration(out: &mut String, indent: &str, name: &str, value: Option<Duration>) {
    let (seconds, nanos) = value.map_or(INFINITE, |span| (span.as_secs(), span.subsec_nanos()));
    let _ = writeln!(out, "{indent}  {name}:");
    let _ = writeln!(out, "{indent}    sec: {seconds}");
    let _ = writeln!(out, "{indent}    nsec: {nanos}");
}

/// Parses a list of profiles.
pub(crate) fn read_profiles(node: &YamlNode) -> Result<Vec<QosProfile>, String> {
    match &node.content {
        YamlContent::List(items) => items
            .iter()
            .map(|item| read_profile(item, QosProfile::default()))
            .collect(),
        // Before version 9 the list is a text within the text.
        YamlContent::Scalar { text, .. } => parse_profiles(text),
        YamlContent::Mapping(_) => Err("a mapping where a list of QoS profiles belongs".into()),
    }
}

/// Parses the text of a list of profiles.
pub(crate) fn parse_profiles(text: &str) -> Result<Vec<QosProfile>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    read_profiles_list(&YamlNode::read(text).map_err(|error| error.to_string())?)
}

fn read_profiles_list(node: &YamlNode) -> Result<Vec<QosProfile>, String> {
    match &node.content {
        YamlContent::List(_) => read_profiles(node),
        _ if node.is_null() => Ok(Vec::new()),
        _ => Err(format!(
            "{} where a list of QoS profiles belongs",
            node.found_text()
        )),
    }
}

/// Parses an override file: a mapping from topics to policies.
///
/// # Errors
/// The text is no YAML, or a policy or value is unknown: with its position.
pub fn read_overrides(text: &str) -> Result<BTreeMap<String, QosProfile>, String> {
    let node = YamlNode::read(text).map_err(|error| error.to_string())?;
    let YamlContent::Mapping(entries) = &node.content else {
        return Err(format!(
            "{} where topics with their policies belong, for example /scan: {{reliability: best_effort}}",
            node.found_text()
        ));
    };
    let read = entries.iter().map(|entry| {
        let profile = read_profile(&entry.value, QosProfile::default());
        let profile = profile.map_err(|problem| format!("{}: {problem}", entry.key))?;
        Ok((entry.key.clone(), profile))
    });
    read.collect()
}

fn read_profile(node: &YamlNode, mut profile: QosProfile) -> Result<QosProfile, String> {
    let YamlContent::Mapping(entries) = &node.content else {
        return Err(format!("{} where a QoS profile belongs", node.found_text()));
    };
    let mut depth = None;
    for entry in entries {
        let value = &entry.value;
        let text = scalar(value).unwrap_or_default();
        let unknown = |words: &str| {
            format!(
                "line {}: {} {text:?} is unknown; use one of {words}",
                value.place.line, entry.key
            )
        };
        match entry.key.as_str() {
            "history" => {
                profile.history = match text {
                    "keep_last" | "1" | "3" | "unknown" => profile.history,
                    "keep_all" | "2" => HistoryPolicy::KeepAll,
                    "system_default" | "0" => HistoryPolicy::SystemDefault,
                    _ => return Err(unknown("keep_last, keep_all, system_default")),
                }
            }
            "depth" => {
                let parsed = text.parse::<usize>();
                depth = Some(parsed.map_err(|_| unknown("the whole numbers from 0"))?);
            }
            "reliability" => {
                profile.reliability = match text {
                    "reliable" | "1" => ReliabilityPolicy::Reliable,
                    "best_effort" | "2" => ReliabilityPolicy::BestEffort,
                    "system_default" | "0" | "3" | "unknown" => ReliabilityPolicy::SystemDefault,
                    "best_available" | "4" => ReliabilityPolicy::BestAvailable,
                    _ => return Err(unknown("reliable, best_effort, system_default")),
                }
            }
            "durability" => {
                profile.durability = match text {
                    "transient_local" | "1" => DurabilityPolicy::TransientLocal,
                    "volatile" | "2" => DurabilityPolicy::Volatile,
                    "system_default" | "0" | "3" | "unknown" => DurabilityPolicy::SystemDefault,
                    "best_available" | "4" => DurabilityPolicy::BestAvailable,
                    _ => return Err(unknown("transient_local, volatile, system_default")),
                }
            }
            "liveliness" => {
                profile.liveliness = match text {
                    "automatic" | "1" => LivelinessPolicy::Automatic,
                    "manual_by_topic" | "3" => LivelinessPolicy::ManualByTopic,
                    "manual_by_node" | "2" => LivelinessPolicy::Automatic,
                    "system_default" | "0" | "4" | "unknown" => LivelinessPolicy::SystemDefault,
                    "best_available" | "5" => LivelinessPolicy::BestAvailable,
                    _ => return Err(unknown("automatic, manual_by_topic, system_default")),
                }
            }
            "deadline" => profile.deadline = read_duration(value)?,
            "lifespan" => profile.lifespan = read_duration(value)?,
            "liveliness_lease_duration" => profile.liveliness_lease = read_duration(value)?,
            "avoid_ros_namespace_conventions" => {
                profile.avoid_ros_namespace_conventions = matches!(text, "true" | "True" | "1");
            }
            other => {
                return Err(format!(
                    "line {}: policy {other:?} is unknown; use history, depth, reliability, durability, deadline, lifespan, liveliness or liveliness_lease_duration",
                    entry.place.line
                ));
            }
        }
    }
    if let (HistoryPolicy::KeepLast(_), Some(depth)) = (profile.history, depth)
        && depth > 0
    {
        profile.history = HistoryPolicy::KeepLast(depth);
    }
    Ok(profile)
}

fn read_duration(node: &YamlNode) -> Result<Option<Duration>, String> {
    let YamlContent::Mapping(entries) = &node.content else {
        return Err(format!(
            "line {}: {} where sec and nsec belong",
            node.place.line,
            node.found_text()
        ));
    };
    let (mut seconds, mut nanos) = (0, 0);
    for entry in entries {
        let number = scalar(&entry.value).and_then(|text| text.parse::<u64>().ok());
        let number = number.ok_or_else(|| {
            format!(
                "line {}: {} must be a whole number from 0",
                entry.place.line, entry.key
            )
        })?;
        match entry.key.as_str() {
            "sec" => seconds = number,
            "nsec" => nanos = number,
            other => {
                return Err(format!(
                    "line {}: {other:?} where sec and nsec belong",
                    entry.place.line
                ));
            }
        }
    }
    let is_infinite = seconds >= SECONDS_MAX || nanos > 0xffff_fffe;
    let span =
        Duration::from_secs(seconds.min(SECONDS_MAX)).saturating_add(Duration::from_nanos(nanos));
    Ok((!is_infinite && !span.is_zero()).then_some(span))
}

pub(crate) fn scalar(node: &YamlNode) -> Option<&str> {
    match &node.content {
        YamlContent::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_as_they_were_written() {
        let profiles = [
            QosProfile::default().keep_last(7).transient_local(),
            QosProfile::sensor_data().deadline(Duration::from_millis(1500)),
        ];
        let read = parse_profiles(&write_profiles(&profiles, "")).unwrap();
        assert_eq!(read.len(), 2);
        for (read, wrote) in read.iter().zip(&profiles) {
            assert_eq!(read.history, wrote.history);
            assert_eq!(read.reliability, wrote.reliability);
            assert_eq!(read.durability, wrote.durability);
            assert_eq!(read.deadline, wrote.deadline);
            assert_eq!(read.lifespan, None);
        }
    }

    #[test]
    fn numbers_and_infinities_of_older_versions_are_read() {
        let text = "- history: 3\n  depth: 0\n  reliability: 2\n  durability: 1\n  deadline:\n    sec: 2147483647\n    nsec: 4294967295\n  lifespan:\n    sec: 0\n    nsec: 0\n  liveliness: 1\n  liveliness_lease_duration:\n    sec: 9223372036\n    nsec: 854775807\n  avoid_ros_namespace_conventions: false";
        let read = parse_profiles(text).unwrap();
        assert_eq!(read[0].reliability, ReliabilityPolicy::BestEffort);
        assert_eq!(read[0].durability, DurabilityPolicy::TransientLocal);
        assert_eq!((read[0].deadline, read[0].lifespan), (None, None));
        assert_eq!(read[0].liveliness_lease, None);
    }

    #[test]
    fn a_wrong_override_names_topic_line_and_words() {
        let error = read_overrides("/scan:\n  reliability: sure\n").unwrap_err();
        assert_eq!(
            error,
            "/scan: line 2: reliability \"sure\" is unknown; use one of reliable, best_effort, system_default"
        );
    }
}

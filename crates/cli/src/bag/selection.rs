//! Flags that several verbs of `bag` share, and how times are shown.

use anyhow::{Context as _, Result};
use clap::Args;
use pteros::QosProfile;
use pteros_bag::mcap::Compression;
use pteros_bag::topic_filter::NamePattern;
use pteros_bag::{BagOptions, TopicFilter};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Which topics of a bag are meant; all if no flag chooses any.
#[derive(Debug, Default, Args)]
pub struct TopicFlags {
    /// Only these topics
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    topics: Vec<String>,
    /// Only the events of these services
    #[arg(long, value_name = "SERVICE", num_args = 1..)]
    services: Vec<String>,
    /// Only topics whose whole name matches this regular expression
    #[arg(short = 'e', long, value_name = "REGEX")]
    regex: Option<String>,
    /// No topics whose whole name matches this regular expression
    #[arg(short = 'x', long, value_name = "REGEX")]
    exclude_regex: Option<String>,
    /// Not these topics
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    exclude_topics: Vec<String>,
    /// Not the events of these services
    #[arg(long, value_name = "SERVICE", num_args = 1..)]
    exclude_services: Vec<String>,
}

impl TopicFlags {
    /// The filter of these flags.
    pub fn filter(&self) -> Result<TopicFilter> {
        let pattern = |text: &Option<String>| text.as_deref().map(NamePattern::new).transpose();
        let filter = TopicFilter {
            topics: self.topics.clone(),
            services: self.services.clone(),
            pattern: pattern(&self.regex)?,
            exclude_topics: self.exclude_topics.clone(),
            exclude_services: self.exclude_services.clone(),
            exclude_pattern: pattern(&self.exclude_regex)?,
            include_hidden: true,
            whole_names: true,
            ..TopicFilter::default()
        };
        let chooses_all = filter.is_empty();
        let filter = TopicFilter {
            all_topics: chooses_all,
            all_services: chooses_all,
            ..filter
        };
        Ok(filter.with_full_names()?)
    }
}

/// How an output bag is written.
#[derive(Debug, Default, Args)]
pub struct OutputFlags {
    /// Compression of the chunks: none, lz4 or zstd
    #[arg(long, value_name = "KIND", default_value_t = Compression::None)]
    pub compression: Compression,
    /// Begin a file before it exceeds this many bytes; 0 never does
    #[arg(short = 'b', long, value_name = "BYTES", default_value_t = 0, value_parser = split_bytes)]
    max_bag_size: u64,
    /// Begin a file when its messages span this many seconds; 0 never does
    #[arg(short = 'd', long, value_name = "SECONDS", default_value = "0", value_parser = crate::value_parsers::non_negative_seconds)]
    max_bag_duration: Duration,
}

/// The smallest size at which a file is split, as with rosbag2.
const SPLIT_BYTES_MIN: u64 = 1024;

fn split_bytes(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(bytes) if bytes == 0 || bytes >= SPLIT_BYTES_MIN => Ok(bytes),
        _ => Err(format!(
            "give 0, or at least {SPLIT_BYTES_MIN} bytes as a whole number"
        )),
    }
}

impl OutputFlags {
    /// The options of these flags.
    pub fn options(&self) -> BagOptions {
        BagOptions {
            compression: self.compression,
            split_bytes: (self.max_bag_size > 0).then_some(self.max_bag_size),
            split_duration: (!self.max_bag_duration.is_zero()).then_some(self.max_bag_duration),
            ros_distro: std::env::var("ROS_DISTRO").unwrap_or_else(|_| "jazzy".into()),
            ..BagOptions::default()
        }
    }
}

/// Reads a QoS override file.
pub fn qos_overrides(path: Option<&Path>) -> Result<BTreeMap<String, QosProfile>> {
    let Some(path) = path else {
        return Ok(BTreeMap::new());
    };
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("--qos-profile-overrides-path {shown}"))?;
    pteros_bag::read_overrides(&text)
        .map_err(|problem| anyhow::anyhow!("--qos-profile-overrides-path {shown}: {problem}"))
}

/// Seconds with nine digits.
pub fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// A point in time as `ros2 bag info` shows it, in UTC.
pub fn date(nanos: u64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let total = nanos / 1_000_000_000;
    let (days, second) = (total / 86_400, total % 86_400);
    let (year, month, day) = civil(days);
    let month = usize::try_from(month).unwrap_or(0).saturating_sub(1);
    format!(
        "{} {day:2} {year} {:02}:{:02}:{:02}.{:09} ({})",
        MONTHS.get(month).unwrap_or(&""),
        second / 3600,
        second / 60 % 60,
        second % 60,
        nanos % 1_000_000_000,
        seconds(nanos)
    )
}

/// Year, month and day of a number of days since 1970: in the calendar that begins in
/// March, leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// A size with one decimal, as `ros2 bag info` shows it.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, "KiB");
    for &next in UNITS.iter().skip(1) {
        if value >= 1024.0 {
            (value, unit) = (value / 1024.0, next);
        }
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_sizes_are_shown_as_ros2_bag_shows_them() {
        assert_eq!(
            date(1_709_210_096_000_000_007),
            "Feb 29 2024 12:34:56.000000007 (1709210096.000000007)"
        );
        assert_eq!(date(0), "Jan  1 1970 00:00:00.000000000 (0.000000000)");
        assert_eq!(size(1000), "1000 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(3 << 30), "3.0 GiB");
    }
}

//! Flags that several verbs of `bag` share, and how times are shown.

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use pteros::QosProfile;
use pteros::local_time::LocalTime;
use pteros::msg::regular_file;
use pteros_bag::mcap::Compression;
use pteros_bag::topic_filter::NamePattern;
use pteros_bag::{BagOptions, BagReader, MessageFilter, StoragePreset, TopicFilter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// rosbag2's words for what a bag is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StorageFlag {
    /// MCAP
    Mcap,
    /// rosbag2's SQLite 3 database
    Sqlite3,
    /// A bag of ROS 1
    Rosbag1,
}

impl StorageFlag {
    /// Refuses a bag whose storage is not the wanted one.
    pub fn check(wanted: Option<Self>, bag: &BagReader) -> Result<()> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let wanted = match wanted {
            Self::Mcap => "mcap",
            Self::Sqlite3 => "sqlite3",
            Self::Rosbag1 => "rosbag1",
        };
        let storage = bag.storage_id();
        if storage != wanted {
            bail!("--storage {wanted}: the bag is {storage}; leave the option out to read it");
        }
        Ok(())
    }
}

/// Which topics of a bag are meant; all if no flag chooses any.
#[derive(Debug, Default, Args)]
pub struct TopicFlags {
    /// Only these topics
    #[arg(long, value_name = "TOPIC", num_args = 1..)]
    topics: Vec<String>,
    /// Only the events of these services
    #[arg(long, value_name = "SERVICE", num_args = 1..)]
    services: Vec<String>,
    /// Only the topics of these actions: feedback, status, and the events of their services
    #[arg(long, value_name = "ACTION", num_args = 1..)]
    actions: Vec<String>,
    /// Only topics of these types
    #[arg(long, value_name = "TYPE", num_args = 1..)]
    topic_types: Vec<String>,
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
            actions: self.actions.clone(),
            types: self.topic_types.clone(),
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

impl TopicFlags {
    /// The messages of a bag that these flags choose.
    ///
    /// # Errors
    /// They choose none of its topics: with those that it has.
    pub fn chosen(&self, bag: &BagReader) -> Result<MessageFilter> {
        let filter = chosen(bag, &self.filter()?);
        if filter.topics.as_ref().is_some_and(Vec::is_empty) && !bag.topics().is_empty() {
            let names = bag.topics().iter().map(|known| known.topic.name.as_str());
            let names: Vec<&str> = names.collect();
            let (path, names) = (bag.path().display(), names.join(", "));
            bail!("{path}: no topic is chosen; the bag has: {names}");
        }
        Ok(filter)
    }
}

/// Which part of a bag's time is meant; all by default.
#[derive(Debug, Default, Args)]
pub struct TimeFlags {
    /// First time, in nanoseconds since 1970
    #[arg(long, value_name = "NANOSECONDS", conflicts_with = "start_offset")]
    start_time_ns: Option<u64>,
    /// Last time, in nanoseconds since 1970
    #[arg(long, value_name = "NANOSECONDS", conflicts_with = "duration")]
    end_time_ns: Option<u64>,
    /// Leave out this many seconds at the beginning
    #[arg(long, value_name = "SECONDS", value_parser = crate::value_parsers::non_negative_seconds)]
    start_offset: Option<Duration>,
    /// This many seconds, from the start or the offset on
    #[arg(long, value_name = "SECONDS", value_parser = crate::value_parsers::positive_seconds)]
    duration: Option<Duration>,
}

impl TimeFlags {
    /// Restricts a filter to these times of the bag.
    pub fn restrict(&self, filter: MessageFilter, bag: &BagReader) -> MessageFilter {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let (start, _) = bag.span().unwrap_or((0, 0));
        let offset = self
            .start_offset
            .map(|span| start.saturating_add(nanos(span)));
        let from = self.start_time_ns.or(offset);
        let last = self.end_time_ns.map(|last| last.saturating_add(1));
        let duration = self.duration.map(nanos);
        let end = duration.map(|span| from.unwrap_or(start).saturating_add(span));
        MessageFilter {
            from,
            until: last.or(end),
            ..filter
        }
    }
}

/// The messages of the topics that a filter chooses.
pub fn chosen(bag: &BagReader, filter: &TopicFilter) -> MessageFilter {
    let topics = bag.topics().iter().enumerate();
    let chosen = topics.filter(|(_, t)| filter.chooses(&t.topic.name, &t.topic.type_name));
    MessageFilter {
        topics: Some(chosen.map(|(at, _)| at).collect()),
        ..MessageFilter::default()
    }
}

/// Compression beside that of chunks, in the words of rosbag2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CompressionMode {
    /// No file is compressed as a whole
    #[default]
    None,
    /// Each file is compressed when it is complete
    File,
    /// Refused: MCAP compresses chunks
    #[value(hide = true)]
    Message,
}

/// How an output bag is written.
#[derive(Debug, Default, Args)]
pub struct OutputFlags {
    /// Compression of the chunks: none, lz4 or zstd
    #[arg(long, value_name = "KIND", default_value_t = Compression::None)]
    pub compression: Compression,
    /// Storage of the new bag: mcap
    #[arg(short, long, value_name = "ID", default_value = "mcap", value_parser = written_storage)]
    storage: String,
    /// Settings for a purpose: none, fastwrite, zstd_fast or zstd_small
    #[arg(long, value_name = "PRESET", default_value_t)]
    storage_preset_profile: StoragePreset,
    /// YAML file with settings of MCAP, as rosbag2 reads it: compression,
    /// compressionLevel, chunkSize, noChunkCRC
    #[arg(long, value_name = "FILE")]
    storage_config_file: Option<PathBuf>,
    /// Compress each file as a whole when it is complete
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    compression_mode: CompressionMode,
    /// Format of whole compressed files: zstd
    #[arg(long, value_name = "FORMAT", default_value = "zstd", value_parser = ["zstd"])]
    compression_format: String,
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

fn written_storage(text: &str) -> Result<String, String> {
    match text {
        "mcap" => Ok(text.to_owned()),
        other => Err(format!(
            "Pteros reads {other} where it can, and writes mcap only"
        )),
    }
}

impl OutputFlags {
    /// The options of these flags.
    pub fn options(&self) -> Result<BagOptions> {
        let mut options = BagOptions {
            ros_distro: std::env::var("ROS_DISTRO").unwrap_or_else(|_| "jazzy".into()),
            ..BagOptions::default()
        };
        self.storage_preset_profile.apply(&mut options);
        if let Some(path) = &self.storage_config_file {
            let shown = path.display();
            let text = option_file("--storage-config-file", path)?;
            pteros_bag::read_storage_config(&text, &mut options)
                .map_err(|problem| anyhow::anyhow!("--storage-config-file {shown}: {problem}"))?;
        }
        if self.compression != Compression::None {
            options.compression = self.compression;
        }
        options.compress_files = match self.compression_mode {
            CompressionMode::None => false,
            CompressionMode::File => true,
            CompressionMode::Message => {
                bail!("--compression-mode message: MCAP compresses chunks; use --compression zstd")
            }
        };
        options.split_bytes = (self.max_bag_size > 0).then_some(self.max_bag_size);
        options.split_duration =
            (!self.max_bag_duration.is_zero()).then_some(self.max_bag_duration);
        Ok(options)
    }

    /// Whether a flag says when a new file begins.
    pub fn splits(&self) -> bool {
        self.max_bag_size > 0 || !self.max_bag_duration.is_zero()
    }
}

/// Reads a QoS override file.
pub fn qos_overrides(path: Option<&Path>) -> Result<BTreeMap<String, QosProfile>> {
    let Some(path) = path else {
        return Ok(BTreeMap::new());
    };
    let shown = path.display();
    let text = option_file("--qos-profile-overrides-path", path)?;
    pteros_bag::read_overrides(&text)
        .map_err(|problem| anyhow::anyhow!("--qos-profile-overrides-path {shown}: {problem}"))
}

/// Largest file that a flag names.
const OPTION_FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the file of a flag.
///
/// # Errors
/// It is no regular file, too large or unreadable: with the flag and the path.
pub fn option_file(flag: &str, path: &Path) -> Result<String> {
    let text = regular_file::read_text(path, OPTION_FILE_BYTES_MAX);
    text.with_context(|| format!("{flag} {}", path.display()))
}

/// Seconds with nine digits.
pub fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// A point in time as `ros2 bag info` shows it, in local time.
pub fn date(nanos: u64) -> String {
    shown_date(LocalTime::of(nanos.into()), nanos)
}

fn shown_date(time: LocalTime, nanos: u64) -> String {
    format!(
        "{} {:2} {} {:02}:{:02}:{:02}.{:09} ({})",
        time.month_name(),
        time.day,
        time.year,
        time.hour,
        time.minute,
        time.second,
        time.nanos,
        seconds(nanos)
    )
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
    use pteros::local_time::TimeZone;

    #[test]
    fn dates_and_sizes_are_shown_as_ros2_bag_shows_them() {
        let zone = TimeZone::of_variable("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let shown = |nanos: u64| shown_date(zone.at(nanos.into()), nanos);
        assert_eq!(
            shown(1_709_210_096_000_000_007),
            "Feb 29 2024 13:34:56.000000007 (1709210096.000000007)"
        );
        assert_eq!(shown(0), "Jan  1 1970 01:00:00.000000000 (0.000000000)");
        assert_eq!(size(1000), "1000 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(3 << 30), "3.0 GiB");
    }
}

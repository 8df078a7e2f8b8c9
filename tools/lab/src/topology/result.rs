//! Result of a process of a run, as a value and as the JSON line for its parent.

use std::fmt;

use serde_json::{Value, json};

use super::resources::Resources;
use super::tracker::Tracker;

/// Table row of one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `subscription`, `client` or `publisher`.
    pub kind: String,
    /// Name of the node.
    pub node: String,
    /// Name of the topic or service.
    pub entity: String,
    /// Payload bytes of a message.
    pub bytes: u64,
    /// Received messages. For a publisher published ones.
    pub received: u64,
    /// Number of late messages.
    pub late: u64,
    /// Number of messages that were too late.
    pub too_late: u64,
    /// Number of lost messages.
    pub lost: u64,
    /// Number of duplicates.
    pub duplicates: u64,
    /// Number of messages received out of order.
    pub reordered: u64,
    /// Latency in microseconds: mean, standard deviation, minimum, maximum. For a
    /// publisher the duration of publish calls. NaN without messages.
    pub latency_us: [f64; 4],
    /// Intended messages per second.
    pub frequency: f64,
    /// Payload bytes per second.
    pub bytes_per_second: f64,
}

/// An event of `events.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Milliseconds since the process was ready.
    pub time_ms: u64,
    /// `topic->node`, or SYSTEM.
    pub caller: String,
    /// Number of the framework: 0 discovery, 1 late, 2 too late, 3 lost, 4 no
    /// service. Of Pteros: 5 a message could not be published.
    pub code: u8,
    pub description: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessResult {
    /// Its name in files and tables.
    pub label: String,
    /// Rows of its entities.
    pub rows: Vec<Row>,
    /// CPU time of the whole run in percent of one core.
    pub cpu_percent_of_one: f64,
    /// Resource usage at the end.
    pub resources: Resources,
    /// Entities that were not matched before the start.
    pub unmatched: Vec<String>,
    /// Number of messages that could not be published.
    pub publish_errors: u64,
}

impl Row {
    /// The row of a tracker.
    pub fn of(kind: &str, tracker: &Tracker) -> Self {
        Self {
            kind: kind.into(),
            node: tracker.node.clone(),
            entity: tracker.entity.clone(),
            bytes: tracker.bytes,
            received: tracker.received,
            late: tracker.late,
            too_late: tracker.too_late,
            lost: tracker.lost,
            duplicates: tracker.duplicates,
            reordered: tracker.reordered,
            latency_us: [
                tracker.mean_us(),
                tracker.sd_us(),
                tracker.min_us(),
                tracker.max_us(),
            ],
            frequency: tracker.frequency,
            bytes_per_second: tracker.bytes_per_second(),
        }
    }

    fn to_json(&self) -> Value {
        // JSON has no NaN. Such a latency is null.
        json!({
            "kind": self.kind, "node": self.node, "entity": self.entity,
            "bytes": self.bytes, "received": self.received, "late": self.late,
            "too_late": self.too_late, "lost": self.lost,
            "duplicates": self.duplicates, "reordered": self.reordered,
            "mean_us": self.latency_us[0], "sd_us": self.latency_us[1],
            "min_us": self.latency_us[2], "max_us": self.latency_us[3],
            "frequency_hz": self.frequency, "bytes_per_second": self.bytes_per_second,
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let count = |key: &str| value.get(key)?.as_u64();
        let number = |key: &str| value.get(key)?.as_f64();
        let latency = |key: &str| number(key).unwrap_or(f64::NAN);
        Some(Self {
            kind: text("kind")?,
            node: text("node")?,
            entity: text("entity")?,
            bytes: count("bytes")?,
            received: count("received")?,
            late: count("late")?,
            too_late: count("too_late")?,
            lost: count("lost")?,
            duplicates: count("duplicates")?,
            reordered: count("reordered")?,
            latency_us: ["mean_us", "sd_us", "min_us", "max_us"].map(latency),
            frequency: number("frequency_hz")?,
            bytes_per_second: number("bytes_per_second")?,
        })
    }
}

impl ProcessResult {
    pub fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(Row::to_json).collect();
        json!({
            "process": self.label,
            "cpu_percent_of_one": self.cpu_percent_of_one,
            "rss_kb": self.resources.rss_kb,
            "vsz_kb": self.resources.vsz_kb,
            "pss_kb": self.resources.pss_kb,
            "threads": self.resources.threads,
            "publish_errors": self.publish_errors,
            "unmatched": self.unmatched,
            "rows": rows,
        })
    }

    /// Parses [`Self::to_json`]. `None` for anything else.
    pub fn from_json(value: &Value) -> Option<Self> {
        let count = |key: &str| value.get(key)?.as_u64();
        let list = |key: &str| value.get(key)?.as_array();
        let unmatched = list("unmatched")?.iter();
        Some(Self {
            label: value.get("process")?.as_str()?.into(),
            rows: list("rows")?
                .iter()
                .map(Row::from_json)
                .collect::<Option<_>>()?,
            cpu_percent_of_one: value.get("cpu_percent_of_one")?.as_f64()?,
            resources: Resources {
                rss_kb: count("rss_kb")?,
                vsz_kb: count("vsz_kb")?,
                pss_kb: count("pss_kb")?,
                threads: count("threads")?,
                ..Resources::default()
            },
            unmatched: unmatched
                .filter_map(|text| Some(text.as_str()?.into()))
                .collect(),
            publish_errors: count("publish_errors")?,
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time_ms,
            caller,
            code,
            description,
        } = self;
        write!(f, "{time_ms:<11} {caller:<24} {code:<5} {description}")
    }
}

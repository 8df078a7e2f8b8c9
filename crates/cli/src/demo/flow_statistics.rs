//! Flow statistics of one subscription of the demo: count, latency, delivery path
//! and loss.

use pteros::{Sample, graph::Guid, subscription::DeliveryPath};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// Statistics of a subscription, shared between its callback and the report.
#[derive(Clone)]
pub struct FlowStatistics {
    topic: &'static str,
    type_name: &'static str,
    from: &'static str,
    to: &'static str,
    counters: Arc<Mutex<FlowCounters>>,
}

#[derive(Default)]
struct FlowCounters {
    count: u64,
    lost: u64,
    payload_bytes: usize,
    path: Option<DeliveryPath>,
    first: Option<Instant>,
    last: Option<Instant>,
    latencies_ns: VecDeque<u64>,
    sequences: HashMap<Guid, i64>,
}

/// Number of newest latencies that are kept for the quantiles.
const LATENCIES_MAX: usize = 4096;

impl FlowStatistics {
    /// Empty statistics of one connection of the robot.
    pub fn new(
        topic: &'static str,
        type_name: &'static str,
        from: &'static str,
        to: &'static str,
    ) -> Self {
        Self {
            topic,
            type_name,
            from,
            to,
            counters: Arc::default(),
        }
    }

    /// Records a message at its callback; `payload_bytes` is called once.
    pub fn record<T>(&self, sample: &Sample<T>, payload_bytes: impl FnOnce() -> usize) {
        let info = sample.info();
        let now = Instant::now();
        let latency = info
            .source_timestamp
            .and_then(|source| SystemTime::now().duration_since(source).ok());
        let mut tally = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if tally.count == 0 {
            tally.payload_bytes = payload_bytes();
            tally.first = Some(now);
        }
        tally.count += 1;
        tally.last = Some(now);
        tally.path = Some(info.delivery_path);
        let previous = tally.sequences.insert(info.publisher_gid, info.sequence);
        if let Some(previous) = previous {
            let missing = info.sequence.saturating_sub(previous).saturating_sub(1);
            tally.lost += u64::try_from(missing).unwrap_or(0);
        }
        if let Some(latency) = latency {
            if tally.latencies_ns.len() == LATENCIES_MAX {
                tally.latencies_ns.pop_front();
            }
            let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
            tally.latencies_ns.push_back(nanoseconds);
        }
    }

    /// The current values.
    pub fn row(&self) -> FlowRow {
        let tally = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latencies: Vec<u64> = tally.latencies_ns.iter().copied().collect();
        latencies.sort_unstable();
        let seconds = match (tally.first, tally.last) {
            (Some(first), Some(last)) => last.duration_since(first).as_secs_f64(),
            _ => 0.0,
        };
        FlowRow {
            topic: self.topic.into(),
            type_name: self.type_name.into(),
            from: self.from.into(),
            to: self.to.into(),
            path: tally.path.map(|path| path.name().to_string()),
            count: tally.count,
            lost: tally.lost,
            payload_bytes: tally.payload_bytes,
            rate: if seconds > 0.0 {
                (tally.count - 1) as f64 / seconds
            } else {
                0.0
            },
            p50_ns: quantile(&latencies, 50),
            p95_ns: quantile(&latencies, 95),
        }
    }
}

/// The nearest-rank quantile of sorted values.
fn quantile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.max(1) - 1).copied()
}

/// One row of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRow {
    pub topic: String,
    pub type_name: String,
    /// The publishing node.
    pub from: String,
    /// The subscribing node.
    pub to: String,
    /// Delivery path of the last message, if any.
    pub path: Option<String>,
    /// Number of received messages.
    pub count: u64,
    /// Number of missing messages between the first and the last.
    pub lost: u64,
    /// Serialized size of a message.
    pub payload_bytes: usize,
    /// Messages per second, from the first to the last.
    pub rate: f64,
    /// Median latency from publish to callback, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 95th percentile of the latency, in nanoseconds.
    pub p95_ns: Option<u64>,
}

impl FlowRow {
    /// JSON for `--json` and for the pipe between the processes.
    pub fn to_json(&self) -> Value {
        json!({
            "topic": self.topic, "type": self.type_name, "from": self.from, "to": self.to,
            "path": self.path, "count": self.count, "lost": self.lost,
            "payload_bytes": self.payload_bytes, "rate": self.rate,
            "p50_ns": self.p50_ns, "p95_ns": self.p95_ns,
        })
    }

    /// Parses [`to_json`](Self::to_json). Missing fields stay empty.
    pub fn from_json(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().map(str::to_string);
        let number = |key: &str| value[key].as_u64();
        Self {
            topic: text("topic").unwrap_or_default(),
            type_name: text("type").unwrap_or_default(),
            from: text("from").unwrap_or_default(),
            to: text("to").unwrap_or_default(),
            path: text("path"),
            count: number("count").unwrap_or(0),
            lost: number("lost").unwrap_or(0),
            payload_bytes: number("payload_bytes")
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(0),
            rate: value["rate"].as_f64().unwrap_or(0.0),
            p50_ns: number("p50_ns"),
            p95_ns: number("p95_ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&values, 50), Some(50));
        assert_eq!(quantile(&values, 95), Some(95));
        assert_eq!(quantile(&[7], 95), Some(7));
        assert_eq!(quantile(&[], 50), None);
    }

    #[test]
    fn a_row_is_unchanged_after_a_json_round_trip() {
        let row = FlowRow {
            topic: "/scan".into(),
            path: Some("UDP".into()),
            count: 3,
            rate: 19.5,
            p50_ns: Some(80_000),
            ..FlowRow::default()
        };
        assert_eq!(FlowRow::from_json(&row.to_json()), row);
    }
}

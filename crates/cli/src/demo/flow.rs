//! What one subscription of the demonstration has seen: how much, how late, by
//! which path, and what is missing.

use pteros::{Guid, Path, Sample};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// A subscription's tally, shared between its callback and whoever reports.
#[derive(Clone)]
pub struct Flow {
    topic: &'static str,
    type_name: &'static str,
    from: &'static str,
    to: &'static str,
    tally: Arc<Mutex<Tally>>,
}

#[derive(Default)]
struct Tally {
    count: u64,
    lost: u64,
    payload_bytes: usize,
    path: Option<Path>,
    first: Option<Instant>,
    last: Option<Instant>,
    latencies_ns: VecDeque<u64>,
    sequences: HashMap<Guid, i64>,
}

/// Latencies kept for the quantiles: the newest so many.
const LATENCIES_MAX: usize = 4096;

impl Flow {
    /// An empty tally for one connection of the robot.
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
            tally: Arc::default(),
        }
    }

    /// Notes a message that has just reached its callback. `payload_bytes` is
    /// asked once.
    pub fn note<T>(&self, sample: &Sample<T>, payload_bytes: impl FnOnce() -> usize) {
        let info = sample.info();
        let now = Instant::now();
        let latency = info
            .source_time
            .and_then(|source| SystemTime::now().duration_since(source).ok());
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        if tally.count == 0 {
            tally.payload_bytes = payload_bytes();
            tally.first = Some(now);
        }
        tally.count += 1;
        tally.last = Some(now);
        tally.path = Some(info.path);
        let previous = tally.sequences.insert(info.publisher, info.sequence);
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

    /// What there is to show now.
    pub fn row(&self) -> Row {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latencies: Vec<u64> = tally.latencies_ns.iter().copied().collect();
        latencies.sort_unstable();
        let seconds = match (tally.first, tally.last) {
            (Some(first), Some(last)) => last.duration_since(first).as_secs_f64(),
            _ => 0.0,
        };
        Row {
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

/// One line of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The topic.
    pub topic: String,
    /// Its type.
    pub type_name: String,
    /// The publishing node.
    pub from: String,
    /// The subscribing node.
    pub to: String,
    /// How messages came, once one has come.
    pub path: Option<String>,
    /// How many came.
    pub count: u64,
    /// How many between the first and the last are missing.
    pub lost: u64,
    /// Serialized size of one.
    pub payload_bytes: usize,
    /// Messages a second, from the first to the last.
    pub rate: f64,
    /// Median of publish to callback, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// Of 100 messages, 95 took no longer than this many nanoseconds.
    pub p95_ns: Option<u64>,
}

impl Row {
    /// As JSON, for `--json` and for the pipe between the processes.
    pub fn to_json(&self) -> Value {
        json!({
            "topic": self.topic, "type": self.type_name, "from": self.from, "to": self.to,
            "path": self.path, "count": self.count, "lost": self.lost,
            "payload_bytes": self.payload_bytes, "rate": self.rate,
            "p50_ns": self.p50_ns, "p95_ns": self.p95_ns,
        })
    }

    /// Reads [`to_json`](Self::to_json) back; what is missing stays empty.
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
    fn a_row_survives_the_pipe() {
        let row = Row {
            topic: "/scan".into(),
            path: Some("UDP".into()),
            count: 3,
            rate: 19.5,
            p50_ns: Some(80_000),
            ..Row::default()
        };
        assert_eq!(Row::from_json(&row.to_json()), row);
    }
}

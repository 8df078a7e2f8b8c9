//! Statuses, counters and events of an endpoint in the notation of scenarios
//! (communication statuses, DDS 1.4 §2.2.4.1).
//!
//! | of | status and event | value |
//! |---|---|---|
//! | both | `matched` | total/current |
//! | both | `incompatible_qos` | total/policy+policy, or the total alone |
//! | both | `incompatible_type` | total |
//! | both | `deadline_missed` | total |
//! | writers | `liveliness_lost` | total |
//! | readers | `liveliness` | alive/not alive |
//! | readers | `sample_lost`, `sample_rejected` | total |
//!
//! Counters have no event. Readers: `received`, `overwritten`, `lost`, `expired`,
//! `filtered`, `content_filtered`, `not_owner`, `late`, `rejected`, `purged`,
//! `incomplete_sets`. Writers: `published`, `delivered_locally`, `content_filtered`,
//! `replaced_before_send`, `unsent`, and `acknowledged`, 0 or 1.

use std::fmt;

use pteros_runtime::event::EndpointEvent;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::writer::WriterEndpoint;

/// A status or an event with its value in the notation of scenarios.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub name: &'static str,
    pub value: String,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// Statuses with events of both kinds of endpoints.
const OF_BOTH: [&str; 4] = [
    "matched",
    "incompatible_qos",
    "incompatible_type",
    "deadline_missed",
];
const OF_WRITERS: [&str; 1] = ["liveliness_lost"];
const OF_READERS: [&str; 3] = ["liveliness", "sample_lost", "sample_rejected"];
const WRITER_COUNTERS: [&str; 6] = [
    "published",
    "delivered_locally",
    "kept_back",
    "replaced_unsent",
    "unsent",
    "acknowledged",
];
const READER_COUNTERS: [&str; 11] = [
    "received",
    "overwritten",
    "lost",
    "expired",
    "filtered",
    "unwanted",
    "outranked",
    "late",
    "rejected",
    "purged",
    "incomplete_sets",
];
/// Statuses whose value has two numbers.
const PAIRS: [&str; 2] = ["matched", "liveliness"];
const POLICIES: [&str; 10] = [
    "durability",
    "presentation",
    "deadline",
    "latency_budget",
    "ownership",
    "liveliness",
    "partition",
    "reliability",
    "destination_order",
    "data_representation",
];

/// The names that a step may use, for events or for statuses and counters.
pub fn names(is_writer: bool, events: bool) -> Vec<&'static str> {
    let (own, counters): (&[&str], &[&str]) = if is_writer {
        (&OF_WRITERS, &WRITER_COUNTERS)
    } else {
        (&OF_READERS, &READER_COUNTERS)
    };
    let counters = if events { &[] } else { counters };
    [&OF_BOTH[..], own, counters].concat()
}

impl Expected {
    /// Parses a value of the status `name`.
    pub fn read(name: &'static str, value: &str) -> Result<Self, String> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let mut parts = value.splitn(2, '/');
        let (first, second) = (parts.next().unwrap_or(""), parts.next());
        let is_policy = |word: &str| POLICIES.contains(&word);
        let fits = is_number(first)
            && match second {
                None => !PAIRS.contains(&name),
                Some(second) if PAIRS.contains(&name) => is_number(second),
                Some(policies) => name == "incompatible_qos" && policies.split('+').all(is_policy),
            };
        if fits {
            Ok(Self {
                name,
                value: value.into(),
            })
        } else {
            Err(match name {
                _ if PAIRS.contains(&name) => format!("{name} is two numbers, as 1/1"),
                "incompatible_qos" => format!(
                    "{name} is a number, or a number and policies as 1/deadline+ownership; \
                     policies are {}",
                    POLICIES.join(", ")
                ),
                _ => format!("{name} is a number"),
            })
        }
    }

    /// An event that no scenario causes.
    pub fn never_reported() -> Self {
        Self {
            name: "incompatible_type",
            value: "4711".into(),
        }
    }

    /// Another value of the same kind.
    pub fn falsified(&self) -> Self {
        let (first, second) = match self.value.split_once('/') {
            None => (self.value.as_str(), None),
            Some((first, second)) => (first, Some(second)),
        };
        let more = |text: &str| text.parse::<u64>().map_or(0, |n| n + 1).to_string();
        let value = match second {
            None => more(first),
            Some(second) if PAIRS.contains(&self.name) => format!("{first}/{}", more(second)),
            Some("deadline") => format!("{first}/ownership"),
            Some(_) => format!("{first}/deadline"),
        };
        Self {
            name: self.name,
            value,
        }
    }

    /// Whether the observed value equals the expected one.
    pub fn matches(&self, seen: &Expected) -> bool {
        let value = match self.value.contains('/') {
            false if self.name == "incompatible_qos" => {
                seen.value.split('/').next().unwrap_or_default()
            }
            _ => &seen.value,
        };
        self.name == seen.name && self.value == value
    }
}

/// An event in the notation of scenarios.
pub fn event(event: &EndpointEvent) -> Expected {
    let (name, value) = match event {
        EndpointEvent::Matched { total, current, .. } => ("matched", format!("{total}/{current}")),
        EndpointEvent::IncompatibleQos {
            total, policies, ..
        } => {
            let names: Vec<_> = policies.iter().map(|p| p.name().to_lowercase()).collect();
            ("incompatible_qos", format!("{total}/{}", names.join("+")))
        }
        EndpointEvent::IncompatibleType { total, .. } => ("incompatible_type", total.to_string()),
        EndpointEvent::DeadlineMissed { total } => ("deadline_missed", total.to_string()),
        EndpointEvent::LivelinessLost { total } => ("liveliness_lost", total.to_string()),
        EndpointEvent::LivelinessChanged {
            alive, not_alive, ..
        } => ("liveliness", format!("{alive}/{not_alive}")),
        EndpointEvent::SampleLost { total, .. } => ("sample_lost", total.to_string()),
        EndpointEvent::SampleRejected { total } => ("sample_rejected", total.to_string()),
        EndpointEvent::NotStored { total, .. } => ("not_stored", total.to_string()),
        EndpointEvent::ReaderStalled { current, .. } => ("stalled", current.to_string()),
    };
    Expected { name, value }
}

/// The value of a status before its first event.
pub fn initial_value(name: &str) -> &'static str {
    if PAIRS.contains(&name) { "0/0" } else { "0" }
}

/// A writer's counter.
pub fn of_writer(writer: &WriterEndpoint, name: &str) -> Option<u64> {
    let counts = writer.counts();
    Some(match name {
        "published" => counts.published,
        "delivered_locally" => counts.delivered_locally,
        "kept_back" => counts.content_filtered,
        "replaced_unsent" => counts.replaced_before_send,
        "unsent" => writer.unsent_count() as u64,
        "acknowledged" => u64::from(writer.is_acknowledged()),
        _ => return None,
    })
}

/// A reader's counter.
pub fn of_reader(reader: &ReaderEndpoint, name: &str) -> Option<u64> {
    let counts = reader.counts();
    Some(match name {
        "received" => counts.received,
        "overwritten" => counts.overwritten,
        "lost" => counts.lost,
        "expired" => counts.expired,
        "filtered" => counts.filtered,
        "unwanted" => counts.content_filtered,
        "outranked" => counts.not_owner,
        "late" => counts.late,
        "rejected" => counts.rejected,
        "purged" => counts.purged,
        "incomplete_sets" => counts.incomplete_sets,
        _ => return None,
    })
}

//! Options of endpoints and groups, in the parentheses after their names.
//!
//! Flags:
//! `reliable best_effort keep_all volatile transient_local transient persistent automatic manual_by_participant manual_by_topic by_source exclusive coherent ordered no_autodispose keyed flow_controlled`.
//! With a duration:
//! `deadline lifespan lease blocking budget minimum_separation purge_no_writers purge_disposed`.
//! With a number:
//! `depth max_samples max_instances per_instance strength priority size`. With a
//! word: `scope=instance|topic|group`, `partition=A|B`,
//! `representation=xcdr1|xcdr2`, `topic=`, `type=`, `in=g` (the writer's group),
//! `filter="x > 3"`.
//!
//! `size` is the padding of each message in bytes. `flow_controlled` writers use a
//! flow controller that sends 10 kB every 10 ms.

use std::time::Duration;

use pteros_runtime::qos::{
    DestinationOrder, DurabilityPolicy, HistoryPolicy, LivelinessPolicy, Ownership, Presentation,
    QosProfile, ReliabilityPolicy, Representation,
};

/// An endpoint to create.
#[derive(Clone, Debug)]
pub struct EndpointPlan {
    pub name: String,
    /// Index of its context.
    pub context: usize,
    pub options: Options,
}

/// A publisher group to create.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    pub name: String,
    pub context: usize,
    pub presentation: Presentation,
}

/// All options of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub qos: QosProfile,
    pub topic: String,
    pub type_name: Option<String>,
    pub keyed: bool,
    pub group: Option<String>,
    pub filter: Option<String>,
    pub flow_controlled: bool,
    pub size: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            qos: QosProfile::default(),
            topic: "rt/t".into(),
            type_name: None,
            keyed: false,
            group: None,
            filter: None,
            flow_controlled: false,
            size: 0,
        }
    }
}

impl Options {
    /// Whether nothing but QoS policies differs from the default.
    pub fn is_all_policies(&self) -> bool {
        let others = Self {
            qos: QosProfile::default(),
            ..self.clone()
        };
        others == Self::default()
    }

    /// Sets an option.
    ///
    /// # Errors
    /// Why it is not one.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        match value {
            None => self.set_flag(name),
            Some(value) => self.set_value(name, value),
        }
    }

    fn set_flag(&mut self, name: &str) -> Result<(), String> {
        let qos = &mut self.qos;
        match name {
            "reliable" => qos.reliability = ReliabilityPolicy::Reliable,
            "best_effort" => qos.reliability = ReliabilityPolicy::BestEffort,
            "keep_all" => qos.history = HistoryPolicy::KeepAll,
            "volatile" => qos.durability = DurabilityPolicy::Volatile,
            "transient_local" => qos.durability = DurabilityPolicy::TransientLocal,
            "transient" => qos.durability = DurabilityPolicy::Transient,
            "persistent" => qos.durability = DurabilityPolicy::Persistent,
            "automatic" => qos.liveliness = LivelinessPolicy::Automatic,
            "manual_by_participant" => qos.liveliness = LivelinessPolicy::ManualByParticipant,
            "manual_by_topic" => qos.liveliness = LivelinessPolicy::ManualByTopic,
            "by_source" => qos.destination_order = DestinationOrder::BySource,
            "exclusive" => qos.ownership = Ownership::Exclusive,
            "coherent" => qos.presentation.coherent = true,
            "ordered" => qos.presentation.ordered = true,
            "no_autodispose" => qos.autodispose_unregistered_instances = false,
            "keyed" => self.keyed = true,
            "flow_controlled" => self.flow_controlled = true,
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    fn set_value(&mut self, name: &str, value: &str) -> Result<(), String> {
        let qos = &mut self.qos;
        let limits = &mut qos.resource_limits;
        match name {
            "deadline" => qos.deadline = Some(span(value)?),
            "lifespan" => qos.lifespan = Some(span(value)?),
            "lease" => qos.liveliness_lease = Some(span(value)?),
            "blocking" => qos.max_blocking_time = Some(span(value)?),
            "budget" => qos.latency_budget = span(value)?,
            "minimum_separation" => qos.time_based_filter = span(value)?,
            "purge_no_writers" => qos.autopurge_nowriter_samples_delay = Some(span(value)?),
            "purge_disposed" => qos.autopurge_disposed_samples_delay = Some(span(value)?),
            "depth" => qos.history = HistoryPolicy::KeepLast(number(value)?),
            "max_samples" => limits.max_samples = Some(number(value)?),
            "max_instances" => limits.max_instances = Some(number(value)?),
            "per_instance" => limits.max_samples_per_instance = Some(number(value)?),
            "strength" => qos.ownership_strength = number(value)?,
            "priority" => qos.transport_priority = number(value)?,
            "size" => self.size = number(value)?,
            "scope" => qos.presentation.access_scope = scope(value)?,
            "partition" => qos.partition = value.split('|').map(str::to_owned).collect(),
            "representation" => qos.representation = Some(representation(value)?),
            "topic" => self.topic = format!("rt/{value}"),
            "type" => self.type_name = Some(format!("sim::msg::dds_::{value}_")),
            "in" => self.group = Some(value.into()),
            "filter" => self.filter = Some(value.into()),
            _ => return Err(unknown(name)),
        }
        Ok(())
    }
}

fn unknown(name: &str) -> String {
    format!("no option is called {name:?}, or it needs a value, or has none")
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let what = || format!("{text:?} is not a number that fits here");
    text.parse().map_err(|_| what())
}

fn span(text: &str) -> Result<Duration, String> {
    let nanos = nanos(text)?;
    match u64::try_from(nanos) {
        Ok(nanos) => Ok(Duration::from_nanos(nanos)),
        Err(_) => Err(format!("{text:?} is in the past")),
    }
}

/// Parses `350ms` or `-2h` to nanoseconds.
pub fn nanos(text: &str) -> Result<i64, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic());
    let (count, unit) = text.split_at(at.unwrap_or(text.len()));
    let unit: i64 = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        "d" => 86_400 * 1_000_000_000,
        _ => return Err(format!("{text:?} is not a time, as 350ms; us ms s min h d")),
    };
    let count: i64 = number(count)?;
    count
        .checked_mul(unit)
        .ok_or_else(|| format!("{text:?} is too long"))
}

fn scope(word: &str) -> Result<u8, String> {
    match word {
        "instance" => Ok(0),
        "topic" => Ok(1),
        "group" => Ok(2),
        _ => Err(format!("{word:?} is no scope; instance topic group")),
    }
}

fn representation(word: &str) -> Result<Representation, String> {
    match word {
        "xcdr1" => Ok(Representation::Xcdr1),
        "xcdr2" => Ok(Representation::Xcdr2),
        _ => Err(format!("{word:?} is no representation; xcdr1 xcdr2")),
    }
}

//! QoS of topology files.

use pteros::QosProfile;
use pteros::qos::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};
use serde_json::Value;

use super::fields::Fields;
use super::problem::TopologyProblem;

/// Maximum history depth.
const DEPTH_MAX: u64 = 1_000_000;

/// Reads the profile of an entity, with defaults from `base`.
pub(super) fn read(
    fields: &mut Fields<'_>,
    base: QosProfile,
) -> Result<QosProfile, TopologyProblem> {
    let mut qos = base;
    let depth = fields.integer("qos_depth", 0, DEPTH_MAX)?;
    if let Some(depth) = depth {
        // A depth of 0 is the default of DDS in ROS 2: the last sample.
        qos = qos.keep_last(usize::try_from(depth).unwrap_or(usize::MAX).max(1));
    }
    let histories = ["system_default", "keep_last", "keep_all"];
    match fields.word("qos_history", &histories)? {
        Some("keep_all") => qos.history = HistoryPolicy::KeepAll,
        Some("system_default") => qos.history = HistoryPolicy::SystemDefault,
        _ => {}
    }
    let reliabilities = ["system_default", "reliable", "best_effort"];
    match fields.word("qos_reliability", &reliabilities)? {
        Some("reliable") => qos.reliability = ReliabilityPolicy::Reliable,
        Some("best_effort") => qos.reliability = ReliabilityPolicy::BestEffort,
        Some(_) => qos.reliability = ReliabilityPolicy::SystemDefault,
        None => {}
    }
    let durabilities = ["system_default", "transient_local", "volatile"];
    match fields.word("qos_durability", &durabilities)? {
        Some("transient_local") => qos.durability = DurabilityPolicy::TransientLocal,
        Some("volatile") => qos.durability = DurabilityPolicy::Volatile,
        Some(_) => qos.durability = DurabilityPolicy::SystemDefault,
        None => {}
    }
    let livelinesses = ["system_default", "automatic", "manual_by_topic"];
    match fields.word("qos_liveliness", &livelinesses)? {
        Some("manual_by_topic") => qos.liveliness = LivelinessPolicy::ManualByTopic,
        Some("automatic") => qos.liveliness = LivelinessPolicy::Automatic,
        Some(_) => qos.liveliness = LivelinessPolicy::SystemDefault,
        None => {}
    }
    if let Some(yes) = switch(fields)? {
        qos.avoid_ros_namespace_conventions = yes;
    }
    // The framework has no other values of these.
    for name in [
        "qos_deadline",
        "qos_lifespan",
        "qos_liveliness_lease_duration",
    ] {
        fields.word(name, &["default"])?;
    }
    Ok(qos)
}

/// A word in files of the framework. A JSON boolean is accepted, too.
fn switch(fields: &mut Fields<'_>) -> Result<Option<bool>, TopologyProblem> {
    const NAME: &str = "qos_avoid_ros_namespace_conventions";
    if let Some(Value::Bool(yes)) = fields.peek(NAME) {
        let yes = *yes;
        fields.take(NAME);
        return Ok(Some(yes));
    }
    let word = fields.word(NAME, &["true", "false"])?;
    Ok(word.map(|word| word == "true"))
}

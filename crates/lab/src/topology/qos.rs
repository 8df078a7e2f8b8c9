//! The words of a topology file for QoS, and what they mean here.

use pteros::QosProfile;
use pteros::qos::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};
use serde_json::Value;

use super::fields::Fields;
use super::problem::Problem;

/// Samples that a history may keep.
const DEPTH_MAX: u64 = 1_000_000;

/// The profile of one entity: `base` where the file says nothing.
pub(super) fn read(fields: &mut Fields<'_>, base: QosProfile) -> Result<QosProfile, Problem> {
    let mut qos = base;
    let depth = fields.integer("qos_depth", 0, DEPTH_MAX)?;
    if let Some(depth) = depth {
        // Nothing, to ROS 2, is DDS's default: the last sample.
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
    // The framework knows no other word for these.
    for name in [
        "qos_deadline",
        "qos_lifespan",
        "qos_liveliness_lease_duration",
    ] {
        fields.word(name, &["default"])?;
    }
    Ok(qos)
}

/// The files write it as a word; a JSON truth value says the same.
fn switch(fields: &mut Fields<'_>) -> Result<Option<bool>, Problem> {
    const NAME: &str = "qos_avoid_ros_namespace_conventions";
    if let Some(Value::Bool(yes)) = fields.peek(NAME) {
        let yes = *yes;
        fields.take(NAME);
        return Ok(Some(yes));
    }
    let word = fields.word(NAME, &["true", "false"])?;
    Ok(word.map(|word| word == "true"))
}

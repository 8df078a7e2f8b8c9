//! QoS policies that are immutable after creation, for error texts.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use pteros_rtps::qos::{DurabilityService, EndpointQos, PolicyId, ResourceLimits};

use super::profile::QosProfile;
use super::report::{history_text, policy_text, span_text};
use crate::user_data::free_user_data;

/// An immutable policy that was asked to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImmutablePolicy {
    /// The policy's name as in DDS.
    pub policy: &'static str,
    /// Its present value.
    pub current: String,
    /// The value asked for.
    pub requested: String,
}

impl fmt::Display for ImmutablePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, requested {})",
            self.policy, self.current, self.requested
        )
    }
}

impl QosProfile {
    /// The topic naming, if `other` changes it. Not a policy of DDS, but immutable
    /// like one.
    pub fn topic_naming_change(&self, other: &QosProfile) -> Option<ImmutablePolicy> {
        let (is, asked) = (
            self.avoid_ros_namespace_conventions,
            other.avoid_ros_namespace_conventions,
        );
        (is != asked).then(|| ImmutablePolicy {
            policy: "avoid_ros_namespace_conventions",
            current: is.to_string(),
            requested: asked.to_string(),
        })
    }
}

/// All of them in one line.
pub fn format_immutable(policies: &[ImmutablePolicy]) -> String {
    let all: Vec<_> = policies.iter().map(ImmutablePolicy::to_string).collect();
    all.join(", ")
}

/// The QoS policies that an endpoint announces after a change to `requested`. ROS 2's
/// entries of USER_DATA stay, and so does the presentation if it belongs to a group.
///
/// # Errors
/// The immutable policies that differ (RETCODE_IMMUTABLE_POLICY).
pub fn changed_qos(
    before: &EndpointQos,
    requested: EndpointQos,
    is_grouped: bool,
) -> Result<EndpointQos, Vec<ImmutablePolicy>> {
    let mut qos = requested;
    if is_grouped {
        qos.presentation = before.presentation;
    }
    let free = free_user_data(&before.user_data).len();
    let prefix = before.user_data.len().saturating_sub(free);
    let prefix = before.user_data.iter().take(prefix).copied();
    qos.user_data.splice(0..0, prefix);
    let fixed = immutable_changes(before, &qos);
    if fixed.is_empty() {
        Ok(qos)
    } else {
        Err(fixed)
    }
}

/// All immutable policies that differ between the two.
fn immutable_changes(before: &EndpointQos, after: &EndpointQos) -> Vec<ImmutablePolicy> {
    let differing = before.immutable_differences(after).into_iter();
    let changes = differing.map(|policy| ImmutablePolicy {
        policy,
        current: text(before, policy),
        requested: text(after, policy),
    });
    changes.collect()
}

fn text(qos: &EndpointQos, policy: &str) -> String {
    let id = match policy {
        "RELIABILITY" => {
            let kind = policy_text(qos, PolicyId::Reliability);
            let blocking = span_text(qos.max_blocking_time);
            return format!("{kind}, max blocking time {blocking}");
        }
        "HISTORY" => return history_text(qos.history),
        "RESOURCE_LIMITS" => return limits_text(&qos.resource_limits),
        "DURABILITY_SERVICE" => return service_text(&qos.durability_service),
        "DURABILITY" => PolicyId::Durability,
        "LIVELINESS" => PolicyId::Liveliness,
        "DESTINATION_ORDER" => PolicyId::DestinationOrder,
        "OWNERSHIP" => PolicyId::Ownership,
        "PRESENTATION" => PolicyId::Presentation,
        _ => PolicyId::DataRepresentation,
    };
    policy_text(qos, id)
}

fn limits_text(limits: &ResourceLimits) -> String {
    let bound = |n: Option<u32>| n.map_or("any".into(), |n| n.to_string());
    format!(
        "{} samples, {} instances, {} per instance",
        bound(limits.max_samples),
        bound(limits.max_instances),
        bound(limits.max_samples_per_instance)
    )
}

fn service_text(service: &DurabilityService) -> String {
    format!(
        "{}, {}, cleanup after {}",
        history_text(service.history),
        limits_text(&service.resource_limits),
        span_text(service.cleanup_delay)
    )
}

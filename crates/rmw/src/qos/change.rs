//! What cannot be changed while an endpoint lives, in words.

use std::fmt;

use pteros_rtps::qos::{DurabilityService, EndpointQos, PolicyId, ResourceLimits};

use super::QosProfile;
use super::report::{history_text, policy_text, span_text};

/// A policy that an endpoint keeps for its life, and was asked to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedPolicy {
    /// The policy's name as in DDS.
    pub policy: &'static str,
    /// Its value.
    pub is: String,
    /// The value asked for.
    pub asked: String,
}

impl fmt::Display for FixedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, asked for {})", self.policy, self.is, self.asked)
    }
}

impl QosProfile {
    /// How the topic is named on the wire, if `other` names it otherwise: no
    /// policy of DDS's, but fixed like one.
    pub fn name_differs(&self, other: &QosProfile) -> Option<FixedPolicy> {
        let (is, asked) = (
            self.avoid_ros_namespace_conventions,
            other.avoid_ros_namespace_conventions,
        );
        (is != asked).then(|| FixedPolicy {
            policy: "avoid_ros_namespace_conventions",
            is: is.to_string(),
            asked: asked.to_string(),
        })
    }
}

/// All of them, in one line.
pub(crate) fn list(policies: &[FixedPolicy]) -> String {
    let all: Vec<_> = policies.iter().map(FixedPolicy::to_string).collect();
    all.join(", ")
}

/// Every policy that stands in the way from one to the other.
pub(crate) fn fixed(before: &EndpointQos, after: &EndpointQos) -> Vec<FixedPolicy> {
    let differing = before.fixed_differences(after).into_iter();
    let told = differing.map(|policy| FixedPolicy {
        policy,
        is: text(before, policy),
        asked: text(after, policy),
    });
    told.collect()
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

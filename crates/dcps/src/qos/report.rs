//! QoS compatibility report (request/offered): why two endpoints do not match, and
//! what to change.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use pteros_rtps::qos::{
    DestinationOrder, Durability, EndpointQos, History, Liveliness, Ownership, PolicyId,
    Reliability, XCDR1, XCDR2, XML, incompatibilities,
};
use pteros_rtps::time::Duration as Span;

use super::policy::{DurabilityPolicy, HistoryPolicy, ReliabilityPolicy};
use super::profile::QosProfile;
use super::text::duration_text;

/// One policy in which a publisher offers less than a subscription requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QosMismatch {
    /// The policy of which both values follow.
    pub policy: PolicyId,
    /// The publisher's value.
    pub offered: String,
    /// The subscription's value.
    pub requested: String,
    /// The remedy, on either side.
    pub advice: String,
}

impl fmt::Display for QosMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: offered {}, requested {}; {}",
            self.policy.name(),
            self.offered,
            self.requested,
            self.advice
        )
    }
}

/// All incompatible policies of a publisher and a subscription; empty if they
/// match.
pub fn mismatches(offered: &EndpointQos, requested: &EndpointQos) -> Vec<QosMismatch> {
    incompatibilities(offered, requested)
        .into_iter()
        .map(|policy| QosMismatch {
            policy,
            offered: policy_text(offered, policy),
            requested: policy_text(requested, policy),
            advice: change_advice(policy).into(),
        })
        .collect()
}

/// The text of a policy's value.
pub fn policy_text(qos: &EndpointQos, policy: PolicyId) -> String {
    match policy {
        PolicyId::Reliability => match qos.reliability {
            Reliability::BestEffort => "best effort".into(),
            Reliability::Reliable => "reliable".into(),
        },
        PolicyId::Durability => match qos.durability {
            Durability::Volatile => "volatile".into(),
            Durability::TransientLocal => "transient local".into(),
            Durability::Transient => "transient".into(),
            Durability::Persistent => "persistent".into(),
        },
        PolicyId::Deadline => span_text(qos.deadline),
        PolicyId::LatencyBudget => span_text(qos.latency_budget),
        PolicyId::Liveliness => format!(
            "{}, lease {}",
            match qos.liveliness {
                Liveliness::Automatic => "automatic",
                Liveliness::ManualByParticipant => "manual by participant",
                Liveliness::ManualByTopic => "manual by topic",
            },
            span_text(qos.lease_duration)
        ),
        PolicyId::Ownership => match qos.ownership {
            Ownership::Shared => "shared".into(),
            Ownership::Exclusive => "exclusive".into(),
        },
        PolicyId::DestinationOrder => match qos.destination_order {
            DestinationOrder::ByReception => "by reception".into(),
            DestinationOrder::BySource => "by source".into(),
        },
        PolicyId::Presentation => presentation_text(qos),
        PolicyId::Partition if qos.partition.is_empty() => "the default partition".into(),
        PolicyId::Partition => format!("{:?}", qos.partition),
        PolicyId::DataRepresentation => representation_text(&qos.representation),
    }
}

/// The change that makes the policy compatible.
pub fn change_advice(policy: PolicyId) -> &'static str {
    match policy {
        PolicyId::Reliability => "make the publisher reliable or the subscription best effort",
        PolicyId::Durability => {
            "make the publisher at least as durable as the subscription (volatile, transient \
             local, transient, persistent), or the subscription less"
        }
        PolicyId::Deadline => {
            "give the publisher a deadline no longer than the subscription's, or drop the \
             subscription's"
        }
        PolicyId::Liveliness => {
            "give the publisher at least the subscription's liveliness kind and a lease no \
             longer than its"
        }
        PolicyId::LatencyBudget => {
            "give the publisher a latency budget no longer than the subscription's"
        }
        PolicyId::Ownership => "use the same ownership on both sides",
        PolicyId::DestinationOrder => {
            "order by source at the publisher or by reception at the subscription"
        }
        PolicyId::Presentation => "offer at least the requested access scope, coherence and order",
        PolicyId::Partition => "give both sides a common partition name",
        PolicyId::DataRepresentation => {
            "let the publisher send XCDR1, which every ROS 2 peer accepts, or the subscription \
             take what is sent"
        }
    }
}

impl QosProfile {
    /// The profile in one line: the four main policies and every other non-default
    /// one.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        let endpoint = self.to_endpoint();
        parts.push(match self.reliability {
            ReliabilityPolicy::BestAvailable => "best available reliability".into(),
            ReliabilityPolicy::SystemDefault => "system default reliability".into(),
            _ => policy_text(&endpoint, PolicyId::Reliability),
        });
        parts.push(match self.durability {
            DurabilityPolicy::BestAvailable => "best available durability".into(),
            DurabilityPolicy::SystemDefault => "system default durability".into(),
            _ => policy_text(&endpoint, PolicyId::Durability),
        });
        parts.push(match self.history {
            HistoryPolicy::SystemDefault => "system default history".into(),
            _ => history_text(endpoint.history),
        });
        let plain = EndpointQos::default();
        let mut add = |differs: bool, name: &str, text: String| {
            if differs {
                parts.push(format!("{name} {text}"));
            }
        };
        add(
            endpoint.deadline != plain.deadline,
            "deadline",
            span_text(endpoint.deadline),
        );
        add(
            endpoint.lifespan != plain.lifespan,
            "lifespan",
            span_text(endpoint.lifespan),
        );
        add(
            endpoint.liveliness != plain.liveliness
                || endpoint.lease_duration != plain.lease_duration,
            "liveliness",
            policy_text(&endpoint, PolicyId::Liveliness),
        );
        for (policy, name) in [
            (PolicyId::LatencyBudget, "latency budget"),
            (PolicyId::Ownership, "ownership"),
            (PolicyId::DestinationOrder, "destination order"),
            (PolicyId::Presentation, "presentation"),
            (PolicyId::Partition, "partition"),
            (PolicyId::DataRepresentation, "representation"),
        ] {
            let text = policy_text(&endpoint, policy);
            add(text != policy_text(&plain, policy), name, text);
        }
        parts.join(", ")
    }
}

pub(super) fn history_text(history: History) -> String {
    match history {
        History::KeepLast(depth) => format!("keep last {depth}"),
        History::KeepAll => "keep all".into(),
    }
}

pub(super) fn span_text(span: Span) -> String {
    duration_text(span.to_std())
}

fn presentation_text(qos: &EndpointQos) -> String {
    let p = qos.presentation;
    let mut text = String::from(match p.access_scope {
        0 => "instance",
        1 => "topic",
        _ => "group",
    });
    if p.coherent {
        text.push_str(", coherent");
    }
    if p.ordered {
        text.push_str(", ordered");
    }
    text
}

fn representation_text(ids: &[i16]) -> String {
    if ids.is_empty() {
        return "XCDR1".into();
    }
    let names: Vec<String> = ids
        .iter()
        .map(|id| match *id {
            XCDR1 => "XCDR1".into(),
            XML => "XML".into(),
            XCDR2 => "XCDR2".into(),
            other => format!("representation {other}"),
        })
        .collect();
    names.join(", ")
}

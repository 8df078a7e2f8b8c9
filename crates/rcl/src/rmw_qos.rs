//! QoS profiles with the numbers of rmw (`rmw/types.h`, `rmw/qos_profiles.h`): what rmw's
//! C structs and rclpy's classes hold, and the conversion to and from a [`QosProfile`].

use std::time::Duration;

use pteros_runtime::graph::Graph;
use pteros_runtime::qos::{
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QosProfile, ReliabilityPolicy,
};
use pteros_runtime::rtps::qos::{
    Durability, EndpointQos, History, Liveliness, PolicyId, Reliability,
};
use pteros_runtime::rtps::time::Duration as Span;

/// RMW_DURATION_INFINITE in nanoseconds.
pub const DURATION_INFINITE: i64 = i64::MAX;

/// RMW_QOS_DEADLINE_BEST_AVAILABLE and RMW_QOS_LIVELINESS_LEASE_DURATION_BEST_AVAILABLE in
/// nanoseconds.
pub const DURATION_BEST_AVAILABLE: i64 = i64::MAX - 1;

/// `rmw_qos_profile_t`. Spans are in nanoseconds; 0 is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmwQosProfile {
    /// `rmw_qos_history_policy_t`.
    pub history: u32,
    /// Depth of keep last.
    pub depth: usize,
    /// `rmw_qos_reliability_policy_t`.
    pub reliability: u32,
    /// `rmw_qos_durability_policy_t`.
    pub durability: u32,
    /// Longest time between two messages.
    pub deadline: i64,
    /// How long a message is valid.
    pub lifespan: i64,
    /// `rmw_qos_liveliness_policy_t`.
    pub liveliness: u32,
    /// Longest time between two assertions of liveliness.
    pub liveliness_lease_duration: i64,
    /// Topic names are DDS topic names.
    pub avoid_ros_namespace_conventions: bool,
}

/// The values of policies and their numbers. rmw has no other durabilities than these.
const RELIABILITY: [(u32, ReliabilityPolicy); 4] = [
    (0, ReliabilityPolicy::SystemDefault),
    (1, ReliabilityPolicy::Reliable),
    (2, ReliabilityPolicy::BestEffort),
    (4, ReliabilityPolicy::BestAvailable),
];
const DURABILITY: [(u32, DurabilityPolicy); 4] = [
    (0, DurabilityPolicy::SystemDefault),
    (1, DurabilityPolicy::TransientLocal),
    (2, DurabilityPolicy::Volatile),
    (4, DurabilityPolicy::BestAvailable),
];
const LIVELINESS: [(u32, LivelinessPolicy); 4] = [
    (0, LivelinessPolicy::SystemDefault),
    (1, LivelinessPolicy::Automatic),
    (3, LivelinessPolicy::ManualByTopic),
    (5, LivelinessPolicy::BestAvailable),
];

fn value_of<T: Copy>(
    values: &[(u32, T)],
    policy: &'static str,
    value: u32,
) -> Result<T, UnusableQosValue> {
    let found = values.iter().find(|(number, _)| *number == value);
    found
        .map(|(_, value)| *value)
        .ok_or(UnusableQosValue { policy, value })
}

/// The number of a value; 1 for one that rmw does not have.
fn number_of<T: PartialEq>(values: &[(u32, T)], value: T) -> u32 {
    let found = values.iter().find(|(_, known)| *known == value);
    found.map_or(1, |(number, _)| *number)
}

/// A policy is UNKNOWN, or its number is none of its enumeration.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("QoS policy {policy} has no usable value: {value}")]
pub struct UnusableQosValue {
    /// Such as `history`.
    pub policy: &'static str,
    /// Its number.
    pub value: u32,
}

pteros_msg::debug_as_display!(UnusableQosValue);

/// `rmw_qos_compatibility_type_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum QosCompatibility {
    /// They match.
    Ok = 0,
    /// They may match: a policy is the system's default, or unknown.
    Warning = 1,
    /// They do not match.
    Error = 2,
}

impl RmwQosProfile {
    /// The request of a publisher or subscription.
    ///
    /// # Errors
    /// See [`UnusableQosValue`].
    pub fn to_profile(self) -> Result<QosProfile, UnusableQosValue> {
        Ok(QosProfile {
            history: match self.history {
                0 if self.depth == 0 => HistoryPolicy::SystemDefault,
                0 | 1 => HistoryPolicy::KeepLast(self.depth.max(1)),
                2 => HistoryPolicy::KeepAll,
                value => {
                    return Err(UnusableQosValue {
                        policy: "history",
                        value,
                    });
                }
            },
            reliability: value_of(&RELIABILITY, "reliability", self.reliability)?,
            durability: value_of(&DURABILITY, "durability", self.durability)?,
            liveliness: value_of(&LIVELINESS, "liveliness", self.liveliness)?,
            deadline: duration(self.deadline),
            lifespan: duration(self.lifespan),
            liveliness_lease: duration(self.liveliness_lease_duration),
            avoid_ros_namespace_conventions: self.avoid_ros_namespace_conventions,
            ..QosProfile::default()
        })
    }

    /// This profile with the policies of another. Values stay that the other cannot hold: the
    /// depth of keep all, and infinite spans.
    #[must_use]
    pub fn updated(self, profile: &QosProfile) -> Self {
        let span = |own: i64, span: Option<Duration>| match span {
            None if duration(own).is_none() => own,
            None => 0,
            Some(span) => i64::try_from(span.as_nanos()).unwrap_or(DURATION_INFINITE),
        };
        let (history, depth) = match profile.history {
            HistoryPolicy::SystemDefault => (0, self.depth),
            HistoryPolicy::KeepLast(depth) => (1, depth),
            HistoryPolicy::KeepAll => (2, self.depth),
        };
        Self {
            history,
            depth,
            reliability: number_of(&RELIABILITY, profile.reliability),
            durability: number_of(&DURABILITY, profile.durability),
            liveliness: number_of(&LIVELINESS, profile.liveliness),
            deadline: span(self.deadline, profile.deadline),
            lifespan: span(self.lifespan, profile.lifespan),
            liveliness_lease_duration: span(
                self.liveliness_lease_duration,
                profile.liveliness_lease,
            ),
            avoid_ros_namespace_conventions: profile.avoid_ros_namespace_conventions,
        }
    }

    /// The QoS in use.
    pub fn actual(qos: &EndpointQos, avoid_ros_namespace_conventions: bool) -> Self {
        let (history, depth) = match qos.history {
            History::KeepLast(depth) => (1, depth as usize),
            History::KeepAll => (2, 0),
        };
        Self {
            history,
            depth,
            reliability: match qos.reliability {
                Reliability::Reliable => 1,
                Reliability::BestEffort => 2,
            },
            durability: match qos.durability {
                Durability::Volatile => 2,
                _ => 1,
            },
            deadline: nanoseconds(qos.deadline),
            lifespan: nanoseconds(qos.lifespan),
            liveliness: match qos.liveliness {
                Liveliness::Automatic => 1,
                Liveliness::ManualByTopic => 3,
                Liveliness::ManualByParticipant => 4,
            },
            liveliness_lease_duration: nanoseconds(qos.lease_duration),
            avoid_ros_namespace_conventions,
        }
    }

    /// The QoS that an endpoint announces. The history of remote endpoints is not part
    /// of discovery.
    pub fn announced(qos: &EndpointQos, is_local: bool) -> Self {
        let mut announced = Self::actual(qos, false);
        if !is_local {
            (announced.history, announced.depth) = (3, 0);
        }
        announced
    }

    /// Compares what a publisher offers with what a subscription requests, with the
    /// reasons and their texts in ROS 2 (`rmw_qos_profile_check_compatible`). As there, a
    /// duration of 0 is not given, and any other is a request: an infinite deadline of a
    /// subscription does not fit a publisher whose deadline is 0, although they match.
    pub fn compatibility(&self, requested: &Self) -> (QosCompatibility, String) {
        let (mut errors, mut warnings) = (String::new(), String::new());
        for policy in comparisons(self, requested) {
            policy.compare(&mut errors, &mut warnings);
        }
        for (offer, request, absent, less) in [
            (
                self.deadline,
                requested.deadline,
                "deadline",
                "deadline is less than publisher deadline",
            ),
            (
                self.liveliness_lease_duration,
                requested.liveliness_lease_duration,
                "liveliness lease duration",
                "liveliness lease duration is less than publisher",
            ),
        ] {
            if request != 0 && offer == 0 {
                errors += &format!("ERROR: Subscription has a {absent}, but publisher does not;");
            } else if request != 0 && request < offer {
                errors += &format!("ERROR: Subscription {less};");
            }
        }
        if !errors.is_empty() {
            (QosCompatibility::Error, errors)
        } else if !warnings.is_empty() {
            (QosCompatibility::Warning, warnings)
        } else {
            (QosCompatibility::Ok, String::new())
        }
    }
}

/// A policy whose weak offer does not give what a strong request wants.
struct Comparison {
    offered: u32,
    requested: u32,
    weak: u32,
    strong: u32,
    unknown: u32,
    /// As ROS 2 spells it.
    names: (&'static str, &'static str),
    error: &'static str,
    weak_offer: &'static str,
    strong_request: &'static str,
}

fn comparisons(offered: &RmwQosProfile, requested: &RmwQosProfile) -> [Comparison; 3] {
    [
        Comparison {
            offered: offered.reliability,
            requested: requested.reliability,
            weak: 2,
            strong: 1,
            unknown: 3,
            names: ("reliability", "reliability"),
            error: "Best effort publisher and reliable subscription",
            weak_offer: "Best effort publisher, but subscription is",
            strong_request: "Reliable subscription, but publisher is",
        },
        Comparison {
            offered: offered.durability,
            requested: requested.durability,
            weak: 2,
            strong: 1,
            unknown: 3,
            names: ("durabilty", "durability"),
            error: "Volatile publisher and transient local subscription",
            weak_offer: "Volatile publisher, but subscription is",
            strong_request: "Transient local subscription, but publisher is",
        },
        Comparison {
            offered: offered.liveliness,
            requested: requested.liveliness,
            weak: 1,
            strong: 3,
            unknown: 4,
            names: ("liveliness", "liveliness"),
            error: "Publisher's liveliness is automatic and subscription's is manual by topic",
            weak_offer: "Publisher's liveliness is automatic, but subscription's is",
            strong_request: "Subscription's liveliness is manual by topic, but publisher's is",
        },
    ]
}

impl Comparison {
    fn compare(&self, errors: &mut String, warnings: &mut String) {
        let undecided = |value: u32| match value {
            0 => Some("system_default"),
            value if value == self.unknown => Some("unknown"),
            _ => None,
        };
        let (offered, requested) = (undecided(self.offered), undecided(self.requested));
        match (offered, requested) {
            _ if self.offered == self.weak && self.requested == self.strong => {
                *errors += &format!("ERROR: {};", self.error);
            }
            (_, Some(requested)) if self.offered == self.weak => {
                *warnings += &format!("WARNING: {} {requested};", self.weak_offer);
            }
            (Some(offered), _) if self.requested == self.strong => {
                *warnings += &format!("WARNING: {} {offered};", self.strong_request);
            }
            (Some(offered), Some(requested)) => {
                let (of_publisher, of_subscription) = self.names;
                *warnings += &format!(
                    "WARNING: Publisher {of_publisher} is {offered} and subscription {of_subscription} is {requested};"
                );
            }
            _ => {}
        }
    }
}

/// A duration; `None` is infinite or not given.
fn duration(nanoseconds: i64) -> Option<Duration> {
    let given = u64::try_from(nanoseconds).ok().filter(|span| *span > 0)?;
    (nanoseconds < DURATION_INFINITE).then(|| Duration::from_nanos(given))
}

/// A profile whose policies that are "best available" are resolved: by the endpoints of the
/// other side that the graph knows of a DDS topic. Publishers and subscriptions are created
/// with it.
pub fn resolve_best_available(
    graph: &Graph,
    dds_topic: &str,
    is_publisher: bool,
    profile: QosProfile,
) -> QosProfile {
    if !profile.is_best_available() {
        return profile;
    }
    let known = graph.endpoints_on(dds_topic);
    let others = known
        .iter()
        .filter(|one| one.data.is_writer() != is_publisher);
    let others = others.map(|one| &*one.data.qos);
    if is_publisher {
        profile.resolved_for_subscriptions(others)
    } else {
        profile.resolved_for_publishers(others)
    }
}

fn nanoseconds(span: Span) -> i64 {
    span.to_std().map_or(DURATION_INFINITE, |span| {
        i64::try_from(span.as_nanos()).unwrap_or(DURATION_INFINITE)
    })
}

/// `rmw_qos_policy_kind_t` of a policy; RMW_QOS_POLICY_INVALID without one, and for one
/// that rmw does not have.
pub(crate) fn policy_kind(policy: Option<PolicyId>) -> u32 {
    match policy {
        Some(PolicyId::Durability) => 2,
        Some(PolicyId::Deadline) => 4,
        Some(PolicyId::Liveliness) => 8,
        Some(PolicyId::Reliability) => 16,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use pteros_runtime::qos::SPAN_BEST_AVAILABLE;

    use super::*;

    const RELIABLE: RmwQosProfile = RmwQosProfile {
        history: 1,
        depth: 10,
        reliability: 1,
        durability: 2,
        deadline: 0,
        lifespan: 0,
        liveliness: 1,
        liveliness_lease_duration: 0,
        avoid_ros_namespace_conventions: false,
    };

    #[test]
    fn a_weak_offer_is_an_error_and_an_undecided_one_a_warning() {
        let best_effort = RmwQosProfile {
            reliability: 2,
            ..RELIABLE
        };
        let cases = [
            (RELIABLE, RELIABLE, QosCompatibility::Ok, ""),
            (RELIABLE, best_effort, QosCompatibility::Ok, ""),
            (
                best_effort,
                RELIABLE,
                QosCompatibility::Error,
                "ERROR: Best effort publisher and reliable subscription;",
            ),
            (
                RmwQosProfile {
                    durability: 0,
                    ..RELIABLE
                },
                RmwQosProfile {
                    durability: 3,
                    ..RELIABLE
                },
                QosCompatibility::Warning,
                "WARNING: Publisher durabilty is system_default and subscription durability is unknown;",
            ),
            (
                RELIABLE,
                RmwQosProfile {
                    deadline: 5,
                    liveliness: 3,
                    ..RELIABLE
                },
                QosCompatibility::Error,
                "ERROR: Publisher's liveliness is automatic and subscription's is manual by topic;\
                 ERROR: Subscription has a deadline, but publisher does not;",
            ),
            (
                RmwQosProfile {
                    liveliness_lease_duration: 9,
                    ..RELIABLE
                },
                RmwQosProfile {
                    liveliness_lease_duration: 8,
                    ..RELIABLE
                },
                QosCompatibility::Error,
                "ERROR: Subscription liveliness lease duration is less than publisher;",
            ),
        ];
        for (offered, requested, compatibility, text) in cases {
            let found = offered.compatibility(&requested);
            assert_eq!(found, (compatibility, text.to_owned()));
        }
    }

    #[test]
    fn an_unusable_number_is_named() {
        let unknown = RmwQosProfile {
            durability: 3,
            ..RELIABLE
        };
        let error = unknown.to_profile().unwrap_err();
        assert_eq!(
            error.to_string(),
            "QoS policy durability has no usable value: 3"
        );
        let best = Some(SPAN_BEST_AVAILABLE);
        for (span, expected) in [
            (0, None),
            (DURATION_BEST_AVAILABLE, best),
            (DURATION_INFINITE, None),
        ] {
            let asked = RmwQosProfile {
                deadline: span,
                ..RELIABLE
            };
            let profile = asked.to_profile().unwrap();
            assert_eq!(profile.deadline, expected);
            assert_eq!(asked.updated(&profile), asked);
        }
    }
}

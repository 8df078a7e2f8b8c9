//! Conversion of QoS profiles between rmw and Pteros (rmw `types.h`, `qos_profiles.h`).

use std::time::Duration;

use pteros_runtime::qos::{
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QosProfile, ReliabilityPolicy,
};
use pteros_runtime::rtps::qos::{
    Durability, EndpointQos, History, Liveliness, PolicyId, Reliability,
};
use pteros_runtime::rtps::time::Duration as Span;

use crate::abi;
use crate::error::{Failure, Outcome};

/// RMW_DURATION_INFINITE.
const INFINITE: abi::Time = abi::Time {
    sec: 9_223_372_036,
    nsec: 854_775_807,
};

/// Converts the requested profile of a publisher or subscription.
///
/// # Errors
/// A policy is UNKNOWN, or not a value of its enumeration.
pub(crate) fn profile(qos: &abi::QosProfile) -> Outcome<QosProfile> {
    let unknown = |policy: &str, value: u32| {
        Failure::argument(format!("QoS policy {policy} has no usable value: {value}"))
    };
    let history = match qos.history {
        0 if qos.depth == 0 => HistoryPolicy::SystemDefault,
        0 | 1 => HistoryPolicy::KeepLast(qos.depth.max(1)),
        2 => HistoryPolicy::KeepAll,
        other => return Err(unknown("history", other)),
    };
    let reliability = match qos.reliability {
        0 => ReliabilityPolicy::SystemDefault,
        1 => ReliabilityPolicy::Reliable,
        2 => ReliabilityPolicy::BestEffort,
        4 => ReliabilityPolicy::BestAvailable,
        other => return Err(unknown("reliability", other)),
    };
    let durability = match qos.durability {
        0 => DurabilityPolicy::SystemDefault,
        1 => DurabilityPolicy::TransientLocal,
        2 => DurabilityPolicy::Volatile,
        4 => DurabilityPolicy::BestAvailable,
        other => return Err(unknown("durability", other)),
    };
    let liveliness = match qos.liveliness {
        0 => LivelinessPolicy::SystemDefault,
        1 => LivelinessPolicy::Automatic,
        3 => LivelinessPolicy::ManualByTopic,
        5 => LivelinessPolicy::BestAvailable,
        other => return Err(unknown("liveliness", other)),
    };
    Ok(QosProfile {
        history,
        reliability,
        durability,
        deadline: duration(qos.deadline),
        lifespan: duration(qos.lifespan),
        liveliness,
        liveliness_lease: duration(qos.liveliness_lease_duration),
        avoid_ros_namespace_conventions: qos.avoid_ros_namespace_conventions,
        ..QosProfile::default()
    })
}

/// A duration; `None` is infinite or not given.
fn duration(time: abi::Time) -> Option<Duration> {
    let is_infinite = time.sec > INFINITE.sec || time == INFINITE;
    // Without peers, BEST_AVAILABLE durations have no offer to adopt.
    let is_best_available = time == BEST_AVAILABLE;
    let nanoseconds = u32::try_from(time.nsec % 1_000_000_000).unwrap_or(0);
    let seconds = time.sec.saturating_add(time.nsec / 1_000_000_000);
    let given = Duration::new(seconds, nanoseconds);
    (!is_infinite && !is_best_available && !given.is_zero()).then_some(given)
}

/// RMW_QOS_DEADLINE_BEST_AVAILABLE and its sibling.
const BEST_AVAILABLE: abi::Time = abi::Time {
    sec: 9_223_372_036,
    nsec: 854_775_806,
};

fn time(span: Span) -> abi::Time {
    span.to_std().map_or(INFINITE, |span| abi::Time {
        sec: span.as_secs(),
        nsec: u64::from(span.subsec_nanos()),
    })
}

/// Converts the QoS in use.
pub(crate) fn actual(qos: &EndpointQos, avoid_ros_namespace_conventions: bool) -> abi::QosProfile {
    let (history, depth) = match qos.history {
        History::KeepLast(depth) => (1, depth as usize),
        History::KeepAll => (2, 0),
    };
    abi::QosProfile {
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
        deadline: time(qos.deadline),
        lifespan: time(qos.lifespan),
        liveliness: match qos.liveliness {
            Liveliness::Automatic => 1,
            Liveliness::ManualByTopic => 3,
            Liveliness::ManualByParticipant => 4,
        },
        liveliness_lease_duration: time(qos.lease_duration),
        avoid_ros_namespace_conventions,
    }
}

/// Converts the announced QoS of an endpoint. Discovery does not include the history of
/// remote endpoints.
pub(crate) fn announced(qos: &EndpointQos, is_local: bool) -> abi::QosProfile {
    let mut profile = actual(qos, false);
    if !is_local {
        profile.history = 3;
        profile.depth = 0;
    }
    profile
}

/// `rmw_qos_policy_kind_t` of a policy.
pub(crate) fn policy_kind(policy: PolicyId) -> u32 {
    match policy {
        PolicyId::Durability => 2,
        PolicyId::Deadline => 4,
        PolicyId::Liveliness => 8,
        PolicyId::Reliability => 16,

        _ => 1,
    }
}

/// `rmw_qos_compatibility_type_t`.
mod compatibility {
    pub(super) const OK: u32 = 0;
    pub(super) const WARNING: u32 = 1;
    pub(super) const ERROR: u32 = 2;
}

/// Lists differences that prevent a match (errors), and that may prevent it (warnings).
fn compare(
    offered: &abi::QosProfile,
    requested: &abi::QosProfile,
) -> (Vec<&'static str>, Vec<&'static str>) {
    /// Whether a value means "not decided".
    fn is_open(value: u32) -> bool {
        matches!(value, 0 | 3 | 4)
    }
    fn is_open_liveliness(value: u32) -> bool {
        matches!(value, 0 | 4 | 5)
    }
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    if offered.reliability == 2 && requested.reliability == 1 {
        errors.push("best effort publisher and reliable subscription");
    } else if (is_open(offered.reliability) && requested.reliability == 1)
        || (offered.reliability == 2 && is_open(requested.reliability))
        || (is_open(offered.reliability) && is_open(requested.reliability))
    {
        warnings.push("reliability is not decided");
    }
    if offered.durability == 2 && requested.durability == 1 {
        errors.push("volatile publisher and transient local subscription");
    } else if (is_open(offered.durability) && requested.durability == 1)
        || (offered.durability == 2 && is_open(requested.durability))
        || (is_open(offered.durability) && is_open(requested.durability))
    {
        warnings.push("durability is not decided");
    }
    if offered.liveliness == 1 && requested.liveliness == 3 {
        errors.push("automatic publisher and manual-by-topic subscription");
    } else if (is_open_liveliness(offered.liveliness) && requested.liveliness == 3)
        || (offered.liveliness == 1 && is_open_liveliness(requested.liveliness))
        || (is_open_liveliness(offered.liveliness) && is_open_liveliness(requested.liveliness))
    {
        warnings.push("liveliness is not decided");
    }
    let is_later = |offer: abi::Time, request: abi::Time| match (duration(offer), duration(request))
    {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(offer), Some(request)) => offer > request,
    };
    if is_later(offered.deadline, requested.deadline) {
        errors.push("the publisher's deadline is longer than the subscription's");
    }
    if is_later(
        offered.liveliness_lease_duration,
        requested.liveliness_lease_duration,
    ) {
        errors.push("the publisher's liveliness lease is longer than the subscription's");
    }
    (errors, warnings)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_qos_profile_check_compatible(
    publisher: abi::QosProfile,
    subscription: abi::QosProfile,
    result: *mut u32,
    reason: *mut std::ffi::c_char,
    reason_size: usize,
) -> abi::Ret {
    crate::error::run("rmw_qos_profile_check_compatible", || {
        // SAFETY: by contract of rmw.
        let result = unsafe { crate::error::non_null_mut(result, "compatibility") }?;
        if reason.is_null() && reason_size != 0 {
            return Err(Failure::argument("reason is null, but its size is not 0"));
        }
        let (errors, warnings) = compare(&publisher, &subscription);
        *result = match (errors.is_empty(), warnings.is_empty()) {
            (false, _) => compatibility::ERROR,
            (true, false) => compatibility::WARNING,
            (true, true) => compatibility::OK,
        };
        let mut text = String::new();
        for (kind, list) in [("ERROR", &errors), ("WARNING", &warnings)] {
            for one in list {
                text.push_str(&format!("{kind}: {one};"));
            }
        }
        if let Some(space) = reason_size.checked_sub(1) {
            let len = text.len().min(space);
            // SAFETY: the buffer has `reason_size` bytes.
            unsafe {
                reason
                    .cast::<u8>()
                    .copy_from_nonoverlapping(text.as_ptr(), len);
                reason.add(len).write(0);
            }
        }
        Ok(())
    })
}

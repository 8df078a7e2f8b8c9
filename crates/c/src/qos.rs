//! QoS profiles of C.

use std::time::Duration;

use pteros::QosProfile;
use pteros_runtime::qos::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};

use crate::error::{Error, Outcome};

/// `pteros_qos_t`.
#[repr(C)]
pub struct CQos {
    /// 0 keep last, 1 keep all.
    history: u32,
    depth: u32,
    /// 0 reliable, 1 best effort.
    reliability: u32,
    /// 0 volatile, 1 transient local, 2 transient, 3 persistent.
    durability: u32,
    /// 0 automatic, 1 manual by topic.
    liveliness: u32,
    /// Nanoseconds; 0 without.
    deadline: i64,
    lifespan: i64,
    liveliness_lease: i64,
}

// `tests/programs/services.c` has the same numbers.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<CQos>() == 48
        && std::mem::offset_of!(CQos, liveliness) == 16
        && std::mem::offset_of!(CQos, deadline) == 24
        && std::mem::offset_of!(CQos, liveliness_lease) == 40
);

/// The profile; that of `default` for a null pointer.
pub(crate) fn profile(qos: Option<&CQos>, default: QosProfile) -> Outcome<QosProfile> {
    let Some(qos) = qos else {
        return Ok(default);
    };
    let unknown = |what: &str, value: u32| {
        Error::argument(format!(
            "{what} is {value}, which is no value of pteros_qos_t; begin with PTEROS_QOS_DEFAULT"
        ))
    };
    Ok(QosProfile {
        history: match qos.history {
            0 => HistoryPolicy::KeepLast(qos.depth as usize),
            1 => HistoryPolicy::KeepAll,
            other => return Err(unknown("history", other)),
        },
        reliability: match qos.reliability {
            0 => ReliabilityPolicy::Reliable,
            1 => ReliabilityPolicy::BestEffort,
            other => return Err(unknown("reliability", other)),
        },
        durability: match qos.durability {
            0 => DurabilityPolicy::Volatile,
            1 => DurabilityPolicy::TransientLocal,
            2 => DurabilityPolicy::Transient,
            3 => DurabilityPolicy::Persistent,
            other => return Err(unknown("durability", other)),
        },
        liveliness: match qos.liveliness {
            0 => LivelinessPolicy::Automatic,
            1 => LivelinessPolicy::ManualByTopic,
            other => return Err(unknown("liveliness", other)),
        },
        deadline: span("deadline_ns", qos.deadline)?,
        lifespan: span("lifespan_ns", qos.lifespan)?,
        liveliness_lease: span("liveliness_lease_ns", qos.liveliness_lease)?,
        ..default
    })
}

fn span(what: &str, nanoseconds: i64) -> Outcome<Option<Duration>> {
    match u64::try_from(nanoseconds) {
        Ok(0) => Ok(None),
        Ok(nanoseconds) => Ok(Some(Duration::from_nanos(nanoseconds))),
        Err(_) => Err(Error::argument(format!(
            "{what} is {nanoseconds}; use 0 for none, or more"
        ))),
    }
}

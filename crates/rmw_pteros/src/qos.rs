//! Conversion of QoS profiles between rmw and Pteros (rmw `types.h`, `qos_profiles.h`).

use pteros_rcl::rmw_qos::{DURATION_INFINITE, RmwQosProfile};
use pteros_runtime::qos::QosProfile;
use pteros_runtime::rtps::qos::EndpointQos;

use crate::abi;
use crate::error::{Failure, Outcome};

/// Converts the requested profile of a publisher or subscription.
///
/// # Errors
/// A policy is UNKNOWN, or not a value of its enumeration.
pub(crate) fn profile(qos: &abi::QosProfile) -> Outcome<QosProfile> {
    let requested = RmwQosProfile::from(qos).to_profile();
    requested.map_err(|error| Failure::argument(error.to_string()))
}

/// Converts the QoS in use.
pub(crate) fn actual(qos: &EndpointQos, avoid_ros_namespace_conventions: bool) -> abi::QosProfile {
    RmwQosProfile::actual(qos, avoid_ros_namespace_conventions).into()
}

const SECOND: u64 = 1_000_000_000;

fn nanoseconds(time: abi::Time) -> i64 {
    let nanoseconds = time.sec.saturating_mul(SECOND).saturating_add(time.nsec);
    i64::try_from(nanoseconds).unwrap_or(DURATION_INFINITE)
}

fn time(nanoseconds: i64) -> abi::Time {
    let nanoseconds = nanoseconds.unsigned_abs();
    abi::Time {
        sec: nanoseconds / SECOND,
        nsec: nanoseconds % SECOND,
    }
}

impl From<&abi::QosProfile> for RmwQosProfile {
    fn from(qos: &abi::QosProfile) -> Self {
        Self {
            history: qos.history,
            depth: qos.depth,
            reliability: qos.reliability,
            durability: qos.durability,
            deadline: nanoseconds(qos.deadline),
            lifespan: nanoseconds(qos.lifespan),
            liveliness: qos.liveliness,
            liveliness_lease_duration: nanoseconds(qos.liveliness_lease_duration),
            avoid_ros_namespace_conventions: qos.avoid_ros_namespace_conventions,
        }
    }
}

impl From<RmwQosProfile> for abi::QosProfile {
    fn from(qos: RmwQosProfile) -> Self {
        Self {
            history: qos.history,
            depth: qos.depth,
            reliability: qos.reliability,
            durability: qos.durability,
            deadline: time(qos.deadline),
            lifespan: time(qos.lifespan),
            liveliness: qos.liveliness,
            liveliness_lease_duration: time(qos.liveliness_lease_duration),
            avoid_ros_namespace_conventions: qos.avoid_ros_namespace_conventions,
        }
    }
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
        // SAFETY: the contract of rmw (lib.rs).
        let result = unsafe { crate::error::non_null_mut(result, "compatibility") }?;
        if reason.is_null() && reason_size != 0 {
            return Err(Failure::argument("reason is null, but its size is not 0"));
        }
        let offered = RmwQosProfile::from(&publisher);
        let (compatibility, text) = offered.compatibility(&RmwQosProfile::from(&subscription));
        *result = compatibility as u32;
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

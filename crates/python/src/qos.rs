//! QoS profiles with rmw's values (rmw `types.h`, `qos_profiles.h`).

use std::time::Duration;

use pteros_runtime::qos::{
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QosProfile, ReliabilityPolicy,
};
use pteros_runtime::rtps::qos::{
    Durability, EndpointQos, History, Liveliness, PolicyId, Reliability,
};
use pteros_runtime::rtps::time::Duration as Span;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// RMW_DURATION_INFINITE.
pub(crate) const INFINITE: i64 = i64::MAX;
/// RMW_QOS_DEADLINE_BEST_AVAILABLE and its sibling.
pub(crate) const BEST_AVAILABLE: i64 = i64::MAX - 1;

/// A QoS profile; the stub lists the values.
#[pyclass(
    name = "rmw_qos_profile_t",
    module = "pteros._native",
    get_all,
    set_all,
    eq,
    from_py_object
)]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    history: u32,
    depth: usize,
    reliability: u32,
    durability: u32,
    lifespan: i64,
    deadline: i64,
    liveliness: u32,
    liveliness_lease_duration: i64,
    avoid_ros_namespace_conventions: bool,
}

/// A profile of rmw's header by history, depth, reliability, durability.
const fn profile(history: u32, depth: usize, reliability: u32, durability: u32) -> Profile {
    Profile {
        history,
        depth,
        reliability,
        durability,
        lifespan: 0,
        deadline: 0,
        liveliness: 0,
        liveliness_lease_duration: 0,
        avoid_ros_namespace_conventions: false,
    }
}

#[pymethods]
impl Profile {
    #[new]
    #[pyo3(signature = (history=1, depth=10, reliability=1, durability=2, lifespan=0, deadline=0, liveliness=0, liveliness_lease_duration=0, avoid_ros_namespace_conventions=false))]
    #[allow(clippy::too_many_arguments, reason = "one per policy, by keyword")]
    fn new(
        history: u32,
        depth: usize,
        reliability: u32,
        durability: u32,
        lifespan: i64,
        deadline: i64,
        liveliness: u32,
        liveliness_lease_duration: i64,
        avoid_ros_namespace_conventions: bool,
    ) -> Self {
        Self {
            history,
            depth,
            reliability,
            durability,
            lifespan,
            deadline,
            liveliness,
            liveliness_lease_duration,
            avoid_ros_namespace_conventions,
        }
    }

    /// All values by name.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        values.set_item("history", self.history)?;
        values.set_item("depth", self.depth)?;
        values.set_item("reliability", self.reliability)?;
        values.set_item("durability", self.durability)?;
        values.set_item("lifespan", self.lifespan)?;
        values.set_item("deadline", self.deadline)?;
        values.set_item("liveliness", self.liveliness)?;
        values.set_item("liveliness_lease_duration", self.liveliness_lease_duration)?;
        values.set_item(
            "avoid_ros_namespace_conventions",
            self.avoid_ros_namespace_conventions,
        )?;
        Ok(values)
    }

    /// One of rmw's and rcl's profiles.
    #[staticmethod]
    fn predefined(name: &str) -> PyResult<Self> {
        Ok(match name {
            "qos_profile_sensor_data" => profile(1, 5, 2, 2),
            "qos_profile_default" | "qos_profile_services_default" => profile(1, 10, 1, 2),
            "qos_profile_system_default" => profile(0, 0, 0, 0),
            "qos_profile_unknown" => Profile {
                liveliness: 4,
                ..profile(3, 0, 3, 3)
            },
            "qos_profile_parameters" | "qos_profile_parameter_events" => profile(1, 1000, 1, 2),
            "qos_profile_best_available" => Profile {
                deadline: BEST_AVAILABLE,
                liveliness: 5,
                liveliness_lease_duration: BEST_AVAILABLE,
                ..profile(1, 10, 4, 4)
            },
            "qos_profile_rosout_default" => Profile {
                lifespan: 10_000_000_000,
                ..profile(1, 1000, 1, 1)
            },
            "qos_profile_action_status_default" => profile(1, 1, 1, 1),
            other => {
                return Err(PyValueError::new_err(format!(
                    "there is no QoS profile {other:?}; see rclpy.qos.QoSPresetProfiles"
                )));
            }
        })
    }

    fn __repr__(&self) -> String {
        format!("{self:?}").replacen("Profile", "rmw_qos_profile_t", 1)
    }
}

impl Profile {
    /// The request of a publisher or subscription.
    ///
    /// # Errors
    /// A policy is UNKNOWN or no value of its enumeration.
    pub(crate) fn to_profile(&self) -> PyResult<QosProfile> {
        let unusable = |policy: &str, value: u32| {
            PyValueError::new_err(format!(
                "QoS policy {policy} has no usable value: {value}; use one of rclpy.qos"
            ))
        };
        Ok(QosProfile {
            history: match self.history {
                0 if self.depth == 0 => HistoryPolicy::SystemDefault,
                0 | 1 => HistoryPolicy::KeepLast(self.depth.max(1)),
                2 => HistoryPolicy::KeepAll,
                other => return Err(unusable("history", other)),
            },
            reliability: match self.reliability {
                0 => ReliabilityPolicy::SystemDefault,
                1 => ReliabilityPolicy::Reliable,
                2 => ReliabilityPolicy::BestEffort,
                4 => ReliabilityPolicy::BestAvailable,
                other => return Err(unusable("reliability", other)),
            },
            durability: match self.durability {
                0 => DurabilityPolicy::SystemDefault,
                1 => DurabilityPolicy::TransientLocal,
                2 => DurabilityPolicy::Volatile,
                4 => DurabilityPolicy::BestAvailable,
                other => return Err(unusable("durability", other)),
            },
            liveliness: match self.liveliness {
                0 => LivelinessPolicy::SystemDefault,
                1 => LivelinessPolicy::Automatic,
                3 => LivelinessPolicy::ManualByTopic,
                5 => LivelinessPolicy::BestAvailable,
                other => return Err(unusable("liveliness", other)),
            },
            deadline: duration(self.deadline),
            lifespan: duration(self.lifespan),
            liveliness_lease: duration(self.liveliness_lease_duration),
            avoid_ros_namespace_conventions: self.avoid_ros_namespace_conventions,
            ..QosProfile::default()
        })
    }

    /// The QoS in use.
    pub(crate) fn actual(qos: &EndpointQos, avoid_ros_namespace_conventions: bool) -> Self {
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
    pub(crate) fn announced(qos: &EndpointQos, is_local: bool) -> Self {
        let mut announced = Self::actual(qos, false);
        if !is_local {
            (announced.history, announced.depth) = (3, 0);
        }
        announced
    }
}

/// A duration; `None` is infinite or not given.
fn duration(nanoseconds: i64) -> Option<Duration> {
    let given = u64::try_from(nanoseconds).ok().filter(|span| *span > 0)?;
    (nanoseconds < BEST_AVAILABLE).then(|| Duration::from_nanos(given))
}

fn nanoseconds(span: Span) -> i64 {
    span.to_std().map_or(INFINITE, |span| {
        i64::try_from(span.as_nanos()).unwrap_or(INFINITE)
    })
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

//! QoS profiles with rmw's values (rmw `types.h`, `qos_profiles.h`).

use pteros_rcl::parameter::QosPolicyKind;
use pteros_rcl::rmw_qos::{DURATION_BEST_AVAILABLE, RmwQosProfile};
use pteros_runtime::qos::QosProfile;
use pteros_runtime::rtps::qos::EndpointQos;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::parameters::object;

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
                deadline: DURATION_BEST_AVAILABLE,
                liveliness: 5,
                liveliness_lease_duration: DURATION_BEST_AVAILABLE,
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
        self.to_rmw()
            .to_profile()
            .map_err(|error| PyValueError::new_err(format!("{error}; use one of rclpy.qos")))
    }

    /// The QoS in use.
    pub(crate) fn actual(qos: &EndpointQos, avoid_ros_namespace_conventions: bool) -> Self {
        RmwQosProfile::actual(qos, avoid_ros_namespace_conventions).into()
    }

    pub(crate) fn to_rmw(&self) -> RmwQosProfile {
        RmwQosProfile {
            history: self.history,
            depth: self.depth,
            reliability: self.reliability,
            durability: self.durability,
            deadline: self.deadline,
            lifespan: self.lifespan,
            liveliness: self.liveliness,
            liveliness_lease_duration: self.liveliness_lease_duration,
            avoid_ros_namespace_conventions: self.avoid_ros_namespace_conventions,
        }
    }
}

impl From<RmwQosProfile> for Profile {
    fn from(qos: RmwQosProfile) -> Self {
        Self {
            history: qos.history,
            depth: qos.depth,
            reliability: qos.reliability,
            durability: qos.durability,
            lifespan: qos.lifespan,
            deadline: qos.deadline,
            liveliness: qos.liveliness,
            liveliness_lease_duration: qos.liveliness_lease_duration,
            avoid_ros_namespace_conventions: qos.avoid_ros_namespace_conventions,
        }
    }
}

/// The value that a policy has as a QoS override parameter.
#[pyfunction]
pub(crate) fn qos_policy_parameter<'py>(
    py: Python<'py>,
    profile: &Profile,
    policy: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let kind = QosPolicyKind::from_word(policy);
    let kind = kind.ok_or_else(|| PyValueError::new_err(format!("no QoS policy {policy:?}")))?;
    object(py, kind.value(&profile.to_profile()?))
}

/// Compares an offer with a request: 0 (they match), 1 (a policy is left to the
/// middleware) or 2 (they do not), and the reasons.
#[pyfunction]
pub(crate) fn qos_check_compatible(offered: &Profile, requested: &Profile) -> (u8, String) {
    let (compatibility, reasons) = offered.to_rmw().compatibility(&requested.to_rmw());
    (compatibility as u8, reasons)
}

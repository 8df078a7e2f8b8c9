//! QoS profiles with rmw's values (rmw `types.h`, `qos_profiles.h`).

use pteros_rcl::parameter::QosPolicyKind;
use pteros_rcl::rmw_qos::RmwQosProfile;
use pteros_runtime::qos::QosProfile;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::parameters::object;

/// A QoS profile; the stub lists the values.
#[pyclass(
    name = "rmw_qos_profile_t",
    module = "pteros._native",
    frozen,
    eq,
    from_py_object
)]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile(pub(crate) RmwQosProfile);

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
        Self(RmwQosProfile {
            history,
            depth,
            reliability,
            durability,
            deadline,
            lifespan,
            liveliness,
            liveliness_lease_duration,
            avoid_ros_namespace_conventions,
        })
    }

    /// All values by name.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let qos = self.0;
        let values = PyDict::new(py);
        values.set_item("history", qos.history)?;
        values.set_item("depth", qos.depth)?;
        values.set_item("reliability", qos.reliability)?;
        values.set_item("durability", qos.durability)?;
        values.set_item("lifespan", qos.lifespan)?;
        values.set_item("deadline", qos.deadline)?;
        values.set_item("liveliness", qos.liveliness)?;
        values.set_item("liveliness_lease_duration", qos.liveliness_lease_duration)?;
        values.set_item(
            "avoid_ros_namespace_conventions",
            qos.avoid_ros_namespace_conventions,
        )?;
        Ok(values)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0).replacen("RmwQosProfile", "rmw_qos_profile_t", 1)
    }
}

impl Profile {
    /// The request of a publisher or subscription.
    ///
    /// # Errors
    /// A policy is UNKNOWN or no value of its enumeration.
    pub(crate) fn to_profile(&self) -> PyResult<QosProfile> {
        self.0
            .to_profile()
            .map_err(|error| PyValueError::new_err(format!("{error}; use one of rclpy.qos")))
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
    let (compatibility, reasons) = offered.0.compatibility(&requested.0);
    (compatibility as u8, reasons)
}

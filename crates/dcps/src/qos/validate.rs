//! Validation of a QoS profile: the first inconsistency, with value and remedy
//! (RETCODE_INCONSISTENT_POLICY).

use alloc::format;
use alloc::string::String;

use pteros_rtps::qos::History;

use super::policy::HistoryPolicy;
use super::profile::{DEPTH_MAX, QosProfile, given};
use super::text;

/// The longest partition name that is announced, as for topic names.
pub const PARTITION_NAME_BYTES_MAX: usize = 255;
/// The most bytes of user, topic or group data that are announced.
pub const FREE_DATA_BYTES_MAX: usize = 1024;

/// An invalid or inconsistent profile.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("QoS {policy} {value}: {reason}; {hint}")]
pub struct QosError {
    /// The policy's name as in [`pteros_rtps::qos::PolicyId::name`].
    pub policy: &'static str,
    /// The value asked for.
    pub value: String,
    /// The problem.
    pub reason: String,
    /// The remedy.
    pub hint: String,
}

pteros_msg::debug_as_display!(QosError);

impl QosProfile {
    /// Checks the profile. The first inconsistency is the error.
    pub fn validate(&self) -> Result<(), QosError> {
        self.validate_history()?;
        self.validate_service()?;
        if let (Some(period), filter) = (given(self.deadline), self.time_based_filter)
            && period < filter
        {
            return Err(QosError {
                policy: "DEADLINE",
                value: text::duration_text(Some(period)),
                reason: format!(
                    "shorter than the time-based filter of {}, so it would always be missed",
                    text::duration_text(Some(filter))
                ),
                hint: "lengthen the deadline or shorten the filter".into(),
            });
        }
        if self.presentation.access_scope > 2 {
            return Err(QosError {
                policy: "PRESENTATION",
                value: format!("access scope {}", self.presentation.access_scope),
                reason: "unknown access scope".into(),
                hint: "use 0 (instance), 1 (topic) or 2 (group)".into(),
            });
        }
        if let Some(name) = self
            .partition
            .iter()
            .find(|name| name.len() > PARTITION_NAME_BYTES_MAX || name.contains('\0'))
        {
            return Err(QosError {
                policy: "PARTITION",
                value: format!("{name:?}"),
                reason: format!("longer than {PARTITION_NAME_BYTES_MAX} bytes or holding a NUL"),
                hint: "shorten the name".into(),
            });
        }
        self.validate_free_data()
    }

    fn validate_history(&self) -> Result<(), QosError> {
        let limits = &self.resource_limits;
        let wrong = |policy, value: String, reason: String, hint: &str| {
            Err(QosError {
                policy,
                value,
                reason,
                hint: hint.into(),
            })
        };
        if let HistoryPolicy::KeepLast(depth) = self.history {
            if depth == 0 {
                return wrong(
                    "HISTORY",
                    "keep last 0".into(),
                    "would keep no sample, not even the one just published".into(),
                    "use a depth of 1 or more, or keep all",
                );
            }
            if depth > DEPTH_MAX {
                return wrong(
                    "HISTORY",
                    format!("keep last {depth}"),
                    format!("the protocol allows depths up to {DEPTH_MAX}"),
                    "use a smaller depth, or keep all",
                );
            }
            let bounds = [
                ("max samples", limits.max_samples),
                ("max samples per instance", limits.max_samples_per_instance),
            ];
            for (name, bound) in bounds {
                if let Some(bound) = bound.filter(|b| (*b as usize) < depth) {
                    return wrong(
                        "RESOURCE_LIMITS",
                        format!("{name} {bound}"),
                        format!("less than the history depth {depth}"),
                        "raise the limit or lower the depth",
                    );
                }
            }
        }
        if let (Some(all), Some(each)) = (limits.max_samples, limits.max_samples_per_instance)
            && all < each
        {
            return wrong(
                "RESOURCE_LIMITS",
                format!("max samples {all}"),
                format!("less than max samples per instance {each}"),
                "raise the first or lower the second",
            );
        }
        if [
            limits.max_samples,
            limits.max_instances,
            limits.max_samples_per_instance,
        ]
        .contains(&Some(0))
        {
            return wrong(
                "RESOURCE_LIMITS",
                "0".into(),
                "leaves no space for any sample".into(),
                "use 1 or more, or None for the default bound",
            );
        }
        Ok(())
    }

    fn validate_free_data(&self) -> Result<(), QosError> {
        let kinds = [
            ("USER_DATA", &self.user_data),
            ("TOPIC_DATA", &self.topic_data),
            ("GROUP_DATA", &self.group_data),
        ];
        match kinds.iter().find(|(_, d)| d.len() > FREE_DATA_BYTES_MAX) {
            None => Ok(()),
            Some((policy, data)) => Err(QosError {
                policy,
                value: format!("of {} bytes", data.len()),
                reason: format!("more than the {FREE_DATA_BYTES_MAX} bytes that peers accept"),
                hint: "announce less, and publish the rest on a topic".into(),
            }),
        }
    }

    fn validate_service(&self) -> Result<(), QosError> {
        let Some(service) = &self.durability_service else {
            return Ok(());
        };
        let limits = &service.resource_limits;
        let wrong = |value: String, reason: String, hint: &str| {
            Err(QosError {
                policy: "DURABILITY_SERVICE",
                value,
                reason,
                hint: hint.into(),
            })
        };
        if let History::KeepLast(depth) = service.history {
            if depth == 0 {
                return wrong(
                    "keep last 0".into(),
                    "would store nothing".into(),
                    "use a depth of 1 or more, or keep all",
                );
            }
            for bound in [limits.max_samples, limits.max_samples_per_instance] {
                if let Some(bound) = bound.filter(|bound| *bound < depth) {
                    return wrong(
                        format!("limit of {bound} samples"),
                        format!("less than its depth {depth}"),
                        "raise the limit or lower the depth",
                    );
                }
            }
        }
        if let (Some(all), Some(each)) = (limits.max_samples, limits.max_samples_per_instance)
            && all < each
        {
            return wrong(
                format!("max samples {all}"),
                format!("less than max samples per instance {each}"),
                "raise the first or lower the second",
            );
        }
        let all = [
            limits.max_samples,
            limits.max_instances,
            limits.max_samples_per_instance,
        ];
        if all.contains(&Some(0)) {
            wrong(
                "limit of 0".into(),
                "leaves no space for any sample".into(),
                "use 1 or more, or None for the default bound",
            )
        } else {
            Ok(())
        }
    }
}

//! DURABILITY_SERVICE (durability service) as users set it: what the store of a
//! transient or persistent publisher keeps (DDS 1.4 §2.2.3.5).

use std::time::Duration;

use pteros_rtps::qos as wire;
use pteros_rtps::qos::{Durability, EndpointQos, History, ResourceLimits};

use super::{DurabilityPolicy, QosError, QosProfile, span, wire_history};

/// DURABILITY_SERVICE: the samples that a transient or persistent publisher's store
/// keeps (DDS 1.4 §2.2.3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DurabilityService {
    /// How long a disposed instance is kept; zero by default. `None`: for ever.
    pub cleanup_delay: Option<Duration>,
    /// Samples kept of each instance; the last one by default.
    pub history: History,
    /// Bounds of what is kept; none by default.
    pub resource_limits: ResourceLimits,
}

impl Default for DurabilityService {
    fn default() -> Self {
        wire::DurabilityService::default().into()
    }
}

impl From<wire::DurabilityService> for DurabilityService {
    fn from(service: wire::DurabilityService) -> Self {
        Self {
            cleanup_delay: service.cleanup_delay.to_std(),
            history: service.history,
            resource_limits: service.resource_limits,
        }
    }
}

impl DurabilityService {
    pub(super) fn to_wire(self) -> wire::DurabilityService {
        wire::DurabilityService {
            cleanup_delay: span(self.cleanup_delay),
            history: self.history,
            resource_limits: self.resource_limits,
        }
    }
}

/// The durability service that an endpoint announced, if any.
pub(super) fn announced(endpoint: &EndpointQos) -> Option<DurabilityService> {
    let service = endpoint.durability_service;
    let says = endpoint.durability >= Durability::Transient || service != <_>::default();
    says.then(|| service.into())
}

impl QosProfile {
    /// The effective settings: those given, else, for a transient or persistent
    /// publisher, those of its own history.
    pub(super) fn effective_service(&self) -> DurabilityService {
        match (self.durability_service, self.durability) {
            (Some(service), _) => service,
            (None, DurabilityPolicy::Transient | DurabilityPolicy::Persistent) => {
                DurabilityService {
                    history: wire_history(self.history),
                    resource_limits: self.resource_limits,
                    ..DurabilityService::default()
                }
            }
            (None, _) => DurabilityService::default(),
        }
    }

    pub(super) fn validate_service(&self) -> Result<(), QosError> {
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

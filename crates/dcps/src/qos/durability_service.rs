//! DURABILITY_SERVICE (durability service) as users set it: what the store of a
//! transient or persistent publisher keeps (DDS 1.4 §2.2.3.5).

use core::time::Duration;

use pteros_rtps::qos as wire;
use pteros_rtps::qos::{Durability, EndpointQos, History, ResourceLimits};

use super::policy::DurabilityPolicy;
use super::profile::{QosProfile, span, wire_history};

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
}

//! Flags of the durability service: the history that a transient or persistent
//! publisher stores.

use crate::value_parsers::{count, non_negative_seconds};
use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use pteros::qos::{DurabilityPolicy, DurabilityService, History, QosProfile};
use std::time::Duration;

const HISTORY: [&str; 2] = ["keep_last", "keep_all"];

/// Overrides of the publisher's own history.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Durability service of a transient or persistent publisher")]
pub struct DurabilityServiceFlags {
    /// Which samples are stored [default: as the publisher's history]
    #[arg(long, value_name = "HISTORY", value_parser = PossibleValuesParser::new(HISTORY))]
    qos_durability_service_history: Option<String>,
    /// Number of stored samples per instance
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    qos_durability_service_depth: Option<u32>,
    /// Largest number of stored samples
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    qos_durability_service_max_samples: Option<u32>,
    /// Largest number of stored instances
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    qos_durability_service_max_instances: Option<u32>,
    /// Largest number of stored samples per instance
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    qos_durability_service_max_samples_per_instance: Option<u32>,
    /// How long a disposed or unregistered instance stays stored
    #[arg(long, value_name = "SECONDS", value_parser = non_negative_seconds)]
    qos_durability_service_cleanup_delay_seconds: Option<Duration>,
}

impl DurabilityServiceFlags {
    /// The profile with these overrides.
    pub fn apply(&self, mut qos: QosProfile) -> Result<QosProfile> {
        let limits = [
            self.qos_durability_service_max_samples,
            self.qos_durability_service_max_instances,
            self.qos_durability_service_max_samples_per_instance,
        ];
        let delay = self.qos_durability_service_cleanup_delay_seconds;
        let history = self.qos_durability_service_history.as_deref();
        let depth = self.qos_durability_service_depth;
        let any = limits.iter().any(Option::is_some);
        if !any && delay.is_none() && history.is_none() && depth.is_none() {
            return Ok(qos);
        }
        if !matches!(
            qos.durability,
            DurabilityPolicy::Transient | DurabilityPolicy::Persistent
        ) {
            bail!(
                "--qos-durability-service-* sets the stored history, and {} stores nothing; add --qos-durability transient or persistent",
                qos.durability.to_string().to_lowercase()
            );
        }
        let announced = DurabilityService::from(qos.to_endpoint().durability_service);
        let mut service = DurabilityService {
            history: match (history, depth, announced.history) {
                (Some("keep_all"), Some(depth), _) => bail!(
                    "--qos-durability-service-depth {depth}: keep_all has no depth; leave it out, or use --qos-durability-service-history keep_last"
                ),
                (Some("keep_all"), None, _) => History::KeepAll,
                (_, Some(depth), _) => History::KeepLast(depth),
                (Some(_), None, History::KeepAll) => History::KeepLast(1),
                (_, None, announced) => announced,
            },
            ..announced
        };
        let [samples, instances, of_instance] = limits;
        let own = &mut service.resource_limits;
        own.max_samples = samples.or(own.max_samples);
        own.max_instances = instances.or(own.max_instances);
        own.max_samples_per_instance = of_instance.or(own.max_samples_per_instance);
        if delay.is_some() {
            service.cleanup_delay = delay;
        }
        qos.durability_service = Some(service);
        Ok(qos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_override_the_publishers_history() {
        let flags = DurabilityServiceFlags {
            qos_durability_service_max_samples: Some(100),
            qos_durability_service_cleanup_delay_seconds: Some(Duration::from_secs(3)),
            ..DurabilityServiceFlags::default()
        };
        let base = QosProfile::default().keep_last(7);
        let qos = flags.apply(base.clone().transient()).unwrap();
        let service = qos.durability_service.unwrap();
        assert_eq!(service.history, History::KeepLast(7));
        assert_eq!(service.resource_limits.max_samples, Some(100));
        assert_eq!(service.cleanup_delay, Some(Duration::from_secs(3)));
        assert!(flags.apply(base).is_err());
        let both = DurabilityServiceFlags {
            qos_durability_service_history: Some("keep_all".into()),
            qos_durability_service_depth: Some(3),
            ..DurabilityServiceFlags::default()
        };
        assert!(both.apply(QosProfile::default().persistent()).is_err());
    }
}

//! QoS flags with ros2's names (`--qos-*`).

use crate::dds_flags::DdsFlags;
use crate::durability_service_flags::DurabilityServiceFlags;
use crate::value_parsers::{count, positive_seconds};
use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use pteros::qos::{
    DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QosProfile, ReliabilityPolicy,
};
use std::time::Duration;

/// A QoS preset and its overrides.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Quality of service")]
pub struct QosFlags {
    /// QoS preset
    #[arg(long, value_name = "PRESET", value_parser = PossibleValuesParser::new(QosProfile::PRESETS), hide_possible_values = true)]
    qos_profile: Option<String>,
    /// History depth in samples
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    qos_depth: Option<usize>,
    /// History policy
    #[arg(long, value_name = "HISTORY", value_parser = PossibleValuesParser::new(HistoryPolicy::WORDS))]
    qos_history: Option<String>,
    /// Reliability policy: whether lost samples are retransmitted
    #[arg(long, value_name = "RELIABILITY", value_parser = PossibleValuesParser::new(ReliabilityPolicy::WORDS))]
    qos_reliability: Option<String>,
    /// Durability policy: whether late joiners get earlier samples
    #[arg(long, value_name = "DURABILITY", value_parser = PossibleValuesParser::new(DurabilityPolicy::WORDS))]
    qos_durability: Option<String>,
    /// Liveliness policy: who asserts that a publisher is alive
    #[arg(long, value_name = "LIVELINESS", value_parser = PossibleValuesParser::new(LivelinessPolicy::WORDS))]
    qos_liveliness: Option<String>,
    /// Lease duration of a liveliness assertion
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_liveliness_lease_duration_seconds: Option<Duration>,
    #[command(flatten)]
    dds: DdsFlags,
    #[command(flatten)]
    service: DurabilityServiceFlags,
}

impl QosFlags {
    /// Whether any override was given. If so, `topic echo` does not adapt its QoS
    /// to the publishers. Flags that ros2 lacks do not count.
    pub fn has_overrides(&self) -> bool {
        self.qos_depth.is_some()
            || self.qos_history.is_some()
            || self.qos_reliability.is_some()
            || self.qos_durability.is_some()
            || self.qos_liveliness.is_some()
            || self.qos_liveliness_lease_duration_seconds.is_some()
    }

    /// The requested profile; `preset` if no preset is given.
    pub fn profile(&self, preset: &str) -> Result<QosProfile> {
        let mut qos = QosProfile::preset(self.qos_profile.as_deref().unwrap_or(preset))?;
        if let Some(word) = &self.qos_history {
            qos.history = match (word.parse()?, qos.history) {
                (HistoryPolicy::KeepLast(_), HistoryPolicy::KeepLast(depth)) => {
                    HistoryPolicy::KeepLast(depth)
                }
                (history, _) => history,
            };
        }
        if let Some(word) = &self.qos_reliability {
            qos.reliability = word.parse()?;
        }
        if let Some(word) = &self.qos_durability {
            qos.durability = word.parse()?;
        }
        if let Some(word) = &self.qos_liveliness {
            qos.liveliness = word.parse()?;
        }
        if let Some(lease) = self.qos_liveliness_lease_duration_seconds {
            qos.liveliness_lease = Some(lease);
        }
        match (self.qos_depth, qos.history) {
            (None, _) => {}
            (Some(0), _) => {
                bail!("--qos-depth 0: a queue of no samples delivers nothing; give at least 1")
            }
            (Some(depth), HistoryPolicy::KeepAll) => bail!(
                "--qos-depth {depth}: keep_all has no depth; leave it out, or use --qos-history keep_last"
            ),
            (Some(depth), _) => qos.history = HistoryPolicy::KeepLast(depth),
        }
        let qos = self.service.apply(self.dds.apply(qos)?)?;
        qos.validate()?;
        Ok(qos)
    }
}

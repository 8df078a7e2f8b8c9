//! Flags of `topic pub` that say when its messages are sent.

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use pteros::{ContextOptions, FlowController, PublisherOptions};
use std::time::Duration;

use crate::values::positive_seconds;

const MODES: [&str; 2] = ["synchronous", "asynchronous"];
/// The one publisher's own controller.
const CONTROLLER: &str = "topic pub";

/// Whether publishing sends, or a flow controller does.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "When messages are sent")]
pub struct PublishMode {
    /// Whether messages are sent at once or left to a flow controller
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(MODES))]
    qos_publish_mode: Option<String>,
    /// Bytes sent in one period at most, with asynchronous mode [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    qos_flow_bytes_per_period: Option<u32>,
    /// Length of the period, with asynchronous mode and a limit [default: 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_flow_period_seconds: Option<Duration>,
}

impl PublishMode {
    /// Whether a flow controller sends.
    pub fn is_asynchronous(&self) -> bool {
        self.qos_publish_mode.as_deref() == Some("asynchronous")
    }

    /// A context with the controller that the flags ask for, if they do.
    pub fn context(&self, mut options: ContextOptions) -> Result<ContextOptions> {
        if !self.is_asynchronous() {
            if self.qos_flow_bytes_per_period.is_some() || self.qos_flow_period_seconds.is_some() {
                bail!(
                    "--qos-flow-bytes-per-period and --qos-flow-period-seconds pace an asynchronous \
                     publisher; add --qos-publish-mode asynchronous"
                );
            }
            return Ok(options);
        }
        if self.qos_flow_period_seconds.is_some() && self.qos_flow_bytes_per_period.is_none() {
            bail!(
                "--qos-flow-period-seconds is the time for --qos-flow-bytes-per-period; give both"
            );
        }
        let mut controller = FlowController::new(CONTROLLER);
        if let Some(bytes) = self.qos_flow_bytes_per_period {
            controller = controller.bytes_per_period(bytes);
        }
        if let Some(period) = self.qos_flow_period_seconds {
            controller = controller.period(period);
        }
        options.flow_controllers.push(controller);
        Ok(options)
    }

    /// The publisher that the flags ask for.
    pub fn publisher(&self, options: PublisherOptions) -> PublisherOptions {
        match self.is_asynchronous() {
            true => options.asynchronous(CONTROLLER),
            false => options,
        }
    }
}

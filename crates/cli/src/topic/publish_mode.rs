//! Publish mode flags of `topic pub`: synchronous or asynchronous with flow
//! control.

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use pteros::msg::dynamic::DynamicMessage;
use pteros::{ContextOptions, PublisherOptions, publisher::FlowController};
use std::time::Duration;

use crate::value_parsers::positive_seconds;

const MODES: [&str; 2] = ["synchronous", "asynchronous"];
/// Name of the flow controller.
const CONTROLLER: &str = "topic pub";

/// Publish mode: the publisher sends, or a flow controller does.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Publish mode")]
pub struct PublishMode {
    /// Whether messages are sent immediately or by a flow controller
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(MODES))]
    qos_publish_mode: Option<String>,
    /// Largest number of bytes per period, for asynchronous mode
    /// [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    qos_flow_bytes_per_period: Option<u32>,
    /// Period of the limit, for asynchronous mode [default: 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_flow_period_seconds: Option<Duration>,
}

impl PublishMode {
    /// Whether a flow controller sends.
    pub fn is_asynchronous(&self) -> bool {
        self.qos_publish_mode.as_deref() == Some("asynchronous")
    }

    /// The context options with the flow controller of these flags, if any.
    pub fn context(&self, mut options: ContextOptions) -> Result<ContextOptions> {
        if !self.is_asynchronous() {
            if self.qos_flow_bytes_per_period.is_some() || self.qos_flow_period_seconds.is_some() {
                bail!(
                    "--qos-flow-bytes-per-period and --qos-flow-period-seconds limit an asynchronous \
                     publisher; add --qos-publish-mode asynchronous"
                );
            }
            return Ok(options);
        }
        if self.qos_flow_period_seconds.is_some() && self.qos_flow_bytes_per_period.is_none() {
            bail!(
                "--qos-flow-period-seconds is the period of --qos-flow-bytes-per-period; give both"
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

    /// The publisher options with these flags.
    pub fn publisher(
        &self,
        options: PublisherOptions<DynamicMessage>,
    ) -> PublisherOptions<DynamicMessage> {
        if self.is_asynchronous() {
            options.asynchronous(CONTROLLER)
        } else {
            options
        }
    }
}

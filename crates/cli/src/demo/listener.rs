//! `pteros demo listener`: same node, topic, type, QoS and text as `listener`
//! of ROS 2's demo nodes.

use crate::cli_context::CliContext;
use crate::session::Session;
use anyhow::Result;
use clap::Args;
use pteros::NamedQosExt;
use pteros::Sample;
use pteros::info;
use pteros::interfaces::std_msgs::msg;
use serde_json::json;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Arguments of `demo listener`.
#[derive(Debug, Args)]
pub struct Listener {
    /// Stop after this many messages
    #[arg(short = 't', long, value_name = "N")]
    times: Option<u64>,
}

impl Listener {
    /// Prints messages until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open_visible(cli, "listener")?;
        let logger = session.node.logger();
        let (sender, received) = channel();
        let forward = move |sample: Sample<msg::String>| {
            // The receiver lives as long as the subscription.
            let _ = sender.send(sample.data.clone());
        };
        let _subscription = session
            .node
            .create_subscription("chatter".keep_last(10), forward)?;
        let mut count = 0;
        while !session.context.is_shut_down() {
            session.spin_once(SPIN_TIMEOUT);
            while let Ok(data) = received.try_recv() {
                info!(logger, "I heard: [{data}]");
                if cli.console.json {
                    let output = json!({ "node": session.node.name(), "heard": data });
                    cli.console.json_line(&output)?;
                }
                count += 1;
                if Some(count) == self.times {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Largest time between two checks for Ctrl-C.
const SPIN_TIMEOUT: Duration = Duration::from_secs(1);

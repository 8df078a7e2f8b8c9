//! `pteros demo listener`: same node, topic, type, QoS and text as `listener`
//! of ROS 2's demo nodes.

use crate::session::Session;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
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
    /// Prints what is heard until Ctrl-C.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open_as(shared, "listener")?;
        let logger = session.node.logger();
        let (sender, heard) = channel();
        let forward = move |sample: Sample<msg::String>| {
            // The receiver lives as long as the subscription.
            let _ = sender.send(sample.data.clone());
        };
        let _subscription = session.node.create_subscription("chatter", 10, forward)?;
        let mut count = 0;
        while !session.context.is_shut_down() {
            session.spin_once(TURN);
            while let Ok(data) = heard.try_recv() {
                info!(logger, "I heard: [{data}]");
                if shared.console.json {
                    let answer = json!({ "node": session.node.name(), "heard": data });
                    shared.console.json_line(&answer)?;
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

/// The longest sleep between looks at Ctrl-C.
const TURN: Duration = Duration::from_secs(1);

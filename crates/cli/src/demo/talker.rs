//! `pteros demo talker`: same node, topic, type, QoS and text as `talker` of
//! ROS 2's demo nodes.

use crate::cli_context::CliContext;
use crate::session::Session;
use anyhow::Result;
use clap::Args;
use pteros::NamedQosExt;
use pteros::info;
use pteros::interfaces::std_msgs::msg;
use pteros::qos::QosProfile;
use serde_json::json;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Arguments of `demo talker`.
#[derive(Debug, Args)]
pub struct Talker {
    /// Stop after this many messages
    #[arg(short = 't', long, value_name = "N", value_parser = crate::value_parsers::count::<u64>)]
    times: Option<u64>,
}

impl Talker {
    /// Publishes until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open_visible(cli, "talker")?;
        let logger = session.node.logger();
        let qos = QosProfile::default().keep_last(7);
        let publisher = session
            .node
            .create_publisher::<msg::String>("chatter".qos(qos))?;
        let (tick, ticks) = channel();
        let _timer = session.node.create_timer(PERIOD, move || {
            // The receiver lives as long as the timer.
            let _ = tick.send(());
        })?;
        let mut count = 0;
        while !session.context.is_shut_down() {
            session.spin_once(PERIOD);
            for () in ticks.try_iter() {
                count += 1;
                let data = format!("Hello World: {count}");
                info!(logger, "Publishing: '{data}'");
                if cli.console.json {
                    let output = json!({ "node": session.node.name(), "published": data });
                    cli.console.json_line(&output)?;
                }
                publisher.publish_owned(msg::String { data })?;
                if Some(count) == self.times {
                    publisher.wait_for_all_acked(PERIOD);
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

const PERIOD: Duration = Duration::from_secs(1);

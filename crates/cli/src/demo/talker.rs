//! `pteros demo talker`: same node, topic, type, QoS and text as `talker` of
//! ROS 2's demo nodes.

use crate::log_line::Logger;
use crate::session::Session;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros::interfaces::std_msgs::msg;
use pteros::qos::QosProfile;
use serde_json::json;
use std::time::{Duration, Instant};

/// Arguments of `demo talker`.
#[derive(Debug, Args)]
pub struct Talker {
    /// Stop after this many messages
    #[arg(short = 't', long, value_name = "N")]
    times: Option<u64>,
}

impl Talker {
    /// Publishes until Ctrl-C.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, Some("talker"))?;
        let logger = Logger::new(shared, session.node.name());
        let qos = QosProfile::default().keep_last(7);
        let publisher = session
            .node
            .create_publisher::<msg::String>("chatter", qos)?;
        let mut next = Instant::now() + PERIOD;
        let mut count = 0;
        while !session.context.is_shut_down() {
            let left = next.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                session.spin_once(left);
                continue;
            }
            next += PERIOD;
            count += 1;
            let data = format!("Hello World: {count}");
            if shared.console.json {
                let answer = json!({ "node": session.node.name(), "published": data });
                shared.console.json_line(&answer)?;
            } else {
                logger.info(&format!("Publishing: '{data}'"))?;
            }
            publisher.publish_owned(msg::String { data })?;
            if Some(count) == self.times {
                publisher.wait_for_all_acked(PERIOD);
                break;
            }
        }
        Ok(())
    }
}

const PERIOD: Duration = Duration::from_secs(1);

//! Says hello once a second.

use std::time::Duration;

use pteros::component::{Component, ComponentError};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

/// Publishes `Hello World: N` on `chatter`, once a second.
pub struct Talker {
    node: Node,
    _timer: Timer,
}

impl Component for Talker {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.node_with(options.name("talker"))?;
        let publisher = node.create_publisher::<Text>("chatter", QosProfile::default())?;
        let (mut count, name) = (0_u64, node.logger_name());
        let timer = node.create_timer(Duration::from_secs(1), move || {
            count += 1;
            let data = format!("Hello World: {count}");
            tracing::info!("[{name}] Publishing: '{data}'");
            if let Err(error) = publisher.publish_owned(Text { data }) {
                tracing::warn!("[{name}] {error}");
            }
        })?;
        Ok(Self {
            node,
            _timer: timer,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

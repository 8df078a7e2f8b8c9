//! Talker component.

use pteros::component::{Component, ComponentError};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::period::period;

/// Publishes `Hello World: N` on `chatter`. Parameter `rate` in Hz, 1 by default.
pub struct Talker {
    node: Node,
    _timer: Timer,
}

impl Component for Talker {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("talker"))?;
        let publisher = node.create_publisher::<Text>("chatter")?;
        let rate = node.declare_parameter("rate", 1.0)?.value();
        let (mut count, log) = (0_u64, node.logger());
        let timer = node.create_timer(period(rate)?, move || {
            count += 1;
            let data = format!("Hello World: {count}");
            pteros::info!(log, "Publishing: '{data}'");
            if let Err(error) = publisher.publish_owned(Text { data }) {
                pteros::warn!(log, "{error}");
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

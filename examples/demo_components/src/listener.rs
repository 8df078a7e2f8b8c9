//! Listener component.

use pteros::component::{Component, ComponentError};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

/// Logs the messages of `chatter`.
pub struct Listener {
    node: Node,
    _subscription: Subscription<Text>,
}

impl Component for Listener {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("listener"))?;
        let log = node.logger();
        let subscription = node.create_subscription::<Text>("chatter", move |text| {
            pteros::info!(log, "I heard: [{}]", text.data);
        })?;
        Ok(Self {
            node,
            _subscription: subscription,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

//! Repeats what it hears.

use pteros::component::{Component, ComponentError};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

/// Logs what comes on `chatter`.
pub struct Listener {
    node: Node,
    _heard: Subscription<Text>,
}

impl Component for Listener {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.node_with(options.name("listener"))?;
        let log = node.logger();
        let heard =
            node.create_subscription::<Text>("chatter", QosProfile::default(), move |text| {
                pteros::info!(log, "I heard: [{}]", text.data);
            })?;
        Ok(Self {
            node,
            _heard: heard,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

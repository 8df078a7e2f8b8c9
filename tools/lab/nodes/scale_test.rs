//! Node for scale tests, the same as those of the worker's verb `nodes`.

use pteros::component::{Component, ComponentError};
use pteros::interfaces::std_msgs::msg::UInt8MultiArray as Bytes;
use pteros::prelude::*;

/// A node with a publisher and a subscription of bytes and nothing else.
///
/// Parameters: `topic`, the common prefix of the topics; `index`, its number from
/// 0; `of`, the number of nodes. The last node prints `ready`.
pub struct ScaleTestNode {
    node: Node,
    _publisher: Publisher<Bytes>,
    _subscription: Subscription<Bytes>,
}

impl Component for ScaleTestNode {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let bare = options
            .name("crowd")
            .start_parameter_services(false)
            .start_parameter_event_publisher(false);
        let node = context.create_node(bare)?;
        let topic = node
            .declare_parameter("topic", String::from("crowd"))?
            .value();
        let index = node.declare_parameter("index", 0_i64)?.value();
        let of = node.declare_parameter("of", 1_i64)?.value().max(1);
        let name = |index: i64| format!("{topic}/node{}", index.rem_euclid(of));
        let publisher = node.create_publisher::<Bytes>(name(index).keep_last(10))?;
        let subscription =
            node.create_subscription::<Bytes>(name(index + 1).keep_last(10), drop)?;
        if index + 1 == of {
            println!("ready");
        }
        Ok(Self {
            node,
            _publisher: publisher,
            _subscription: subscription,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

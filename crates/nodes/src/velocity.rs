//! Velocities of the teleoperation nodes: `Twist` messages, or `TwistStamped` ones.

use pteros::component::ComponentError;
use pteros::error;
use pteros::interfaces::geometry_msgs::msg::{Twist, TwistStamped};
use pteros::prelude::*;

/// The publisher of `cmd_vel`, in one of the two types.
pub(crate) struct VelocityPublisher {
    node: Node,
    output: Output,
}

enum Output {
    Plain(Publisher<Twist>),
    Stamped(Publisher<TwistStamped>, String),
}

impl VelocityPublisher {
    /// Publishes stamped velocities in `frame` if there is one.
    pub(crate) fn new(node: &Node, frame: Option<String>) -> Result<Self, ComponentError> {
        let topic = "cmd_vel".keep_last(10);
        let output = match frame {
            None => Output::Plain(node.create_publisher(topic)?),
            Some(frame) => Output::Stamped(node.create_publisher(topic)?, frame),
        };
        Ok(Self {
            node: node.clone(),
            output,
        })
    }

    pub(crate) fn publish(&self, twist: Twist) {
        let sent = match &self.output {
            Output::Plain(publisher) => publisher.publish_owned(twist),
            Output::Stamped(publisher, frame) => {
                let mut stamped = TwistStamped {
                    twist,
                    ..TwistStamped::default()
                };
                stamped.header.frame_id.clone_from(frame);
                stamped.header.stamp = self.node.now().into();
                publisher.publish_owned(stamped)
            }
        };
        if let Err(problem) = sent {
            error!(self.node.logger(), "{problem}");
        }
    }
}

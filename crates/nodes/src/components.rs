//! The nodes of this crate as components, under the names of upstream's plugins.

use pteros::Node;
use pteros::component::{AnyComponent, ComponentClass};

use crate::running_node::RunningNode;
use crate::{
    joy, map_server, republish, robot_state_publisher, static_transform_publisher,
    teleop_twist_joy, topic_tools,
};

impl AnyComponent for RunningNode {
    fn node(&self) -> &Node {
        self.node()
    }
}

macro_rules! component {
    ($class:literal, $start:path) => {
        ComponentClass {
            class: $class,
            constructor: |context, options| Ok(Box::new($start(context, options, &[])?)),
        }
    };
}

/// The component classes, for containers of machines without their packages. Their
/// parameters take the place of the programs' arguments.
pub const COMPONENTS: &[ComponentClass] = &[
    component!("image_transport::Republisher", republish::start),
    component!("joy::Joy", joy::start),
    component!("nav2_map_server::MapServer", map_server::start),
    component!(
        "robot_state_publisher::RobotStatePublisher",
        robot_state_publisher::start
    ),
    component!("teleop_twist_joy::TeleopTwistJoy", teleop_twist_joy::start),
    component!(
        "tf2_ros::StaticTransformBroadcasterNode",
        static_transform_publisher::start_component
    ),
    component!("topic_tools::DelayNode", topic_tools::start_delay),
    component!("topic_tools::DropNode", topic_tools::start_drop),
    component!("topic_tools::MuxNode", topic_tools::start_mux),
    component!("topic_tools::RelayNode", topic_tools::start_relay),
    component!("topic_tools::ThrottleNode", topic_tools::start_throttle),
];

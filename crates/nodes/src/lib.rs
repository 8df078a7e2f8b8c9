//! Built-in nodes: the nodes that most robots start, under ROS 2's package and
//! executable names.
//!
//! `pteros run` and launch files start one where the real package is not installed.
//! Each file is one node (or one package of small nodes) and says what it does as
//! upstream. [`find`] looks a node up, [`BuiltInNode::start`] starts it in a context.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod analyzers;
mod any_parameter;
mod buffer_server;
mod components;
mod diagnostic_aggregator;
mod image_codec;
mod joint_state_publisher;
mod joy;
mod joystick;
mod map_file;
mod map_server;
mod mux;
mod republish;
mod robot_state_publisher;
mod running_node;
mod static_transform_publisher;
mod teleop_twist_joy;
mod teleop_twist_keyboard;
mod topic_tools;
mod twist_mux;
pub mod urdf;
mod velocity;
mod viewer;

use std::fmt;

use pteros::component::ComponentError;
use pteros::prelude::*;

pub use components::COMPONENTS;
pub use running_node::{CommandRequest, RunningNode};

/// Starts a node in a context, with the arguments outside of `--ros-args`.
type Start = fn(&Context, NodeOptions, &[String]) -> Result<RunningNode, ComponentError>;

/// A node of this crate, under ROS 2's names.
#[derive(Clone, Copy)]
pub struct BuiltInNode {
    /// ROS 2's package.
    pub package: &'static str,
    /// The program's name in that package.
    pub executable: &'static str,
    start: Start,
}

/// Every built-in node, sorted.
pub const NODES: &[BuiltInNode] = &[
    node(
        "diagnostic_aggregator",
        "aggregator_node",
        diagnostic_aggregator::start,
    ),
    node("image_transport", "republish", republish::start),
    node(
        "joint_state_publisher",
        "joint_state_publisher",
        joint_state_publisher::start,
    ),
    node(
        "joint_state_publisher_gui",
        "joint_state_publisher_gui",
        viewer::start_joint_sliders,
    ),
    node("joy", "joy_node", joy::start),
    node("nav2_map_server", "map_server", map_server::start),
    node(
        "robot_state_publisher",
        "robot_state_publisher",
        robot_state_publisher::start,
    ),
    node("rviz2", "rviz2", viewer::start_rviz),
    node("teleop_twist_joy", "teleop_node", teleop_twist_joy::start),
    node(
        "teleop_twist_keyboard",
        "teleop_twist_keyboard",
        teleop_twist_keyboard::start,
    ),
    node("tf2_ros", "buffer_server", buffer_server::start),
    node(
        "tf2_ros",
        "static_transform_publisher",
        static_transform_publisher::start,
    ),
    node("topic_tools", "delay", topic_tools::start_delay),
    node("topic_tools", "drop", topic_tools::start_drop),
    node("topic_tools", "mux", topic_tools::start_mux),
    node("topic_tools", "relay", topic_tools::start_relay),
    node("topic_tools", "throttle", topic_tools::start_throttle),
    node("twist_mux", "twist_mux", twist_mux::start),
];

const fn node(package: &'static str, executable: &'static str, start: Start) -> BuiltInNode {
    BuiltInNode {
        package,
        executable,
        start,
    }
}

/// The built-in node of that package and program.
pub fn find(package: &str, executable: &str) -> Option<&'static BuiltInNode> {
    let mut nodes = NODES.iter();
    nodes.find(|node| node.package == package && node.executable == executable)
}

impl BuiltInNode {
    /// Starts the node. Names, remaps and parameters are those of the context's
    /// arguments; `arguments` are the others of the command line.
    ///
    /// # Errors
    /// Wrong arguments or parameters, as upstream refuses them; an endpoint that cannot be
    /// created; a [`CommandRequest`] where the command
    /// line asks for something else.
    pub fn start(
        &self,
        context: &Context,
        arguments: &[String],
    ) -> Result<RunningNode, ComponentError> {
        (self.start)(context, NodeOptions::default(), arguments)
    }
}

impl fmt::Debug for BuiltInNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuiltInNode({}/{})", self.package, self.executable)
    }
}

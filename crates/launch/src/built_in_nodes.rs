//! Built-in node: one of ROS 2's programs that the command has itself, for machines
//! without its package.
//!
//! `pteros run PACKAGE EXECUTABLE` starts one. An installed program and one of a Cargo
//! workspace always come first.

use std::path::PathBuf;

pub use pteros_container::{BUILT_IN_SWITCH as SWITCH, are_built_in_nodes_on as are_on};

/// Package and program of each built-in node, sorted.
pub const NAMES: &[(&str, &str)] = &[
    ("diagnostic_aggregator", "aggregator_node"),
    ("image_transport", "republish"),
    ("joint_state_publisher", "joint_state_publisher"),
    ("joint_state_publisher_gui", "joint_state_publisher_gui"),
    ("joy", "joy_node"),
    ("nav2_map_server", "map_server"),
    ("robot_state_publisher", "robot_state_publisher"),
    ("rviz2", "rviz2"),
    ("teleop_twist_joy", "teleop_node"),
    ("teleop_twist_keyboard", "teleop_twist_keyboard"),
    ("tf2_ros", "buffer_server"),
    ("tf2_ros", "static_transform_publisher"),
    ("topic_tools", "delay"),
    ("topic_tools", "drop"),
    ("topic_tools", "mux"),
    ("topic_tools", "relay"),
    ("topic_tools", "throttle"),
    ("twist_mux", "twist_mux"),
];

/// A program, and the arguments that precede the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file to execute.
    pub path: PathBuf,
    /// None, but for a built-in node.
    pub arguments: Vec<String>,
}

impl Program {
    /// The name of a built-in node; `None` for a file.
    pub fn built_in_name(&self) -> Option<&str> {
        self.arguments.last().map(String::as_str)
    }

    /// The beginning of a command line.
    pub fn words(self) -> impl Iterator<Item = String> {
        std::iter::once(self.path.display().to_string()).chain(self.arguments)
    }

    /// The command that runs a built-in node; `None` if there is none of that name.
    pub(crate) fn built_in(command: PathBuf, package: &str, name: &str) -> Option<Self> {
        NAMES.contains(&(package, name)).then(|| Self {
            path: command,
            arguments: ["run", package, name].map(str::to_owned).to_vec(),
        })
    }
}

/// The end of an error about a program that is not found, of a command without built-in
/// nodes.
pub(crate) fn feature_hint(package: &str, name: &str) -> &'static str {
    if NAMES.contains(&(package, name)) {
        "; the command has this node built in, with feature `nodes` (part of `full`) and without PTEROS_BUILT_IN_NODES=off"
    } else {
        ""
    }
}

/// The end of an error about a package that is not found: its built-in nodes.
pub(crate) fn hint(package: &str) -> String {
    let programs = NAMES.iter().filter(|(of, _)| *of == package);
    let programs: Vec<&str> = programs.map(|(_, name)| *name).collect();
    if programs.is_empty() {
        return String::new();
    }
    format!("; built in of it: {}", programs.join(", "))
}

//! Built-in node: one of ROS 2's programs that the command has itself, for machines
//! without its package.
//!
//! `pteros run PACKAGE EXECUTABLE` starts one. An installed program and one of a Cargo
//! workspace always come first.

use std::ffi::OsStr;
use std::path::PathBuf;

/// Environment variable: `off` leaves the built-in nodes out.
pub const SWITCH: &str = "PTEROS_BUILT_IN_NODES";

/// Package and program of each built-in node, sorted.
pub const NAMES: &[(&str, &str)] = &[
    ("joint_state_publisher", "joint_state_publisher"),
    ("nav2_map_server", "map_server"),
    ("robot_state_publisher", "robot_state_publisher"),
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

/// Whether the value of [`SWITCH`] leaves the built-in nodes in.
pub fn are_on(switch: Option<&OsStr>) -> bool {
    switch.is_none_or(|value| value != "off")
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

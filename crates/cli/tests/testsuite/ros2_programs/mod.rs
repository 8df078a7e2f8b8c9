//! Programs of an installed ROS 2 on the plug-in, unchanged: demos and examples of
//! rclcpp and rclpy, and the verbs of `ros2`. Other graphs mix the plug-in with
//! rmw_cyclonedds_cpp, rmw_fastrtps_cpp and native Pteros nodes.
//!
//! Needs a ROS 2 that PTEROS_ROS2 names, or that is sourced, and the plug-in beside the
//! command (`cargo build -p pteros-rmw`), or built with the tests. Elsewhere each test is skipped with a
//! sentence. A program that is not installed leaves its line out.

#![allow(
    clippy::disallowed_methods,
    reason = "deadlines of programs that run in real time"
)]

mod bags;
mod graphs;
mod humble;
mod native;
pub mod ros2;
mod survival;
mod verbs;

use std::time::Duration;

pub const PLUG_IN: &str = "rmw_pteros_cpp";
/// Middlewares of others, where they are installed.
const OTHERS: [&str; 2] = ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"];
/// How long a line of output may take. Python starts slowly on a busy machine.
const LINE_MAX: Duration = Duration::from_secs(60);

//! The standard ROS 2 interface packages as Rust types: `std_msgs::msg::String`,
//! `example_interfaces::srv::AddTwoInts`, `test_msgs::action::Fibonacci` …
//!
//! Types keep their ROS names, also derived ones (`AddTwoIntsRequest`). Modules
//! are `package::msg`, `package::srv` and `package::action`. The definitions are
//! included: [`library`] describes every type at run time, without any file.
//!
//! `cargo xtask generate` writes everything in `generated` from the folder
//! `definitions`; do not edit it. Type hashes equal those of ROS 2 Jazzy.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(feature = "build")]
pub mod build;
#[cfg(feature = "types")]
mod describe;
mod generated;
#[cfg(feature = "types")]
mod time;

pub use generated::*;
pub use pteros_msg;

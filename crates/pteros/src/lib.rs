//! ROS 2 without the weight: nodes, publishers, subscriptions, executors.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod args;
pub mod log;

pub use pteros_rmw::{config, names, qos};

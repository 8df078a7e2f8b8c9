//! `rmw_pteros_cpp`: the plug-in that runs rclcpp and rclpy on Pteros.
//!
//! `RMW_IMPLEMENTATION=rmw_pteros_cpp` makes rmw_implementation load this library.
//! Each exported `rmw_*` function checks its arguments and calls a private function. It
//! converts a failure or a panic to an error state and a return code. The thread that
//! calls `rmw_wait` polls the sockets and runs the protocol itself (`wait`).
//!
//! `abi` has the C structures, `typesupport` the serialization, and each further
//! module one kind of entity. No exported function calls another one: the loader
//! could resolve it to rmw_implementation's function of that name.
#![allow(
    clippy::missing_safety_doc,
    reason = "the contract of each exported function is rmw's header"
)]

pub mod abi;
mod build_note;
mod client;
mod content_filter;
mod context;
pub mod counts;
mod error;
mod event;
mod fork;
mod further_wires;
mod graph;
mod guard_condition;
mod handle;
#[cfg(test)]
mod header_check;
mod host;
mod identity;
mod init_options;
mod listener;
mod loan;
mod memory;
mod network_flow;
mod node;
pub mod platform;
mod publisher;
mod qos;
mod serialized;
mod service;
mod shared_message;
mod subscription;
mod typesupport;
mod unsupported;
mod user_message;
mod wait;

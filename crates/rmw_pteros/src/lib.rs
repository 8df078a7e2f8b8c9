//! `rmw_pteros_cpp`: the plug-in that runs rclcpp and rclpy on Pteros.
//!
//! `RMW_IMPLEMENTATION=rmw_pteros_cpp` makes rmw_implementation load this library.
//! Each exported `rmw_*` function checks its arguments and calls a private function. It
//! converts a failure or a panic to an error state and a return code. The thread that
//! calls `rmw_wait` polls the sockets and runs the protocol itself (`wait`).
//!
//! `abi` has the C structures, `distribution` what of them differs between distributions of
//! ROS 2, `typesupport` the serialization, and each further
//! module one kind of entity. No exported function calls another one: the loader
//! could resolve it to rmw_implementation's function of that name.
//!
//! # The contract of rmw
//! The comments `SAFETY: the contract of rmw` mean what rmw's headers demand of the
//! caller of an exported function:
//!
//! - A pointer is null or points to an initialized value of its type. The value stays
//!   there for the call. A null pointer is refused before its use.
//! - An entity was made by its `create` function, in any rmw implementation, and is not
//!   destroyed yet. Its identifier says whether this plug-in made it.
//! - What a function writes or destroys is used by nobody else during the call.
//! - A C string ends with NUL. An array has as many elements as the caller says.
//! - A message, a request or a response has the type of the entity's type support.
//! - A callback or an allocator may be called, with the data it came with, until it is
//!   replaced or its entity is destroyed.
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
pub mod distribution;
mod error;
mod event;
mod fork;
mod further_transports;
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
#[cfg(distribution = "lyrical")]
mod service_endpoints;
mod shared_message;
mod subscription;
mod typesupport;
mod unsupported;
mod user_message;
mod wait;

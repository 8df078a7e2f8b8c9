//! Peers: how programs of other stacks are built, the private networks and emulated
//! links between which they run, and where ROS 2 is.
//!
//! It is a crate of its own, because `xtask` needs it for the tests and must build
//! without Pteros, and the lab and tests of the command need the same. Nothing else
//! belongs here: what only the lab needs of a machine is `pteros_lab::testbed`.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "runs on a real machine")]

mod address_translation;
pub mod frame_relay;
mod ipv4_frame;
pub mod network;
pub mod peer_build;
pub mod ros2;

pub use peer_build::PeerBuild;

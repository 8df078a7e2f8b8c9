//! The integration tests of the command: one program, a module for each subject.

mod action;
mod bag;
mod bag_types;
#[cfg(feature = "full")]
mod book;
#[cfg(feature = "nodes")]
mod built_in_nodes;
#[cfg(feature = "full")]
mod checker;
mod code_points;
mod dds_names;
mod demo;
mod discovery_server;
mod doctor;
mod folder;
mod forged_packets;
mod graph;
mod interface;
mod interop;
mod ipv6;
#[cfg(feature = "full")]
mod lab;
mod launch;
mod launch_graph;
mod lifecycle;
mod namespaces;
mod networks;
mod packages;
mod param;
mod publish_mode;
mod qos;
#[cfg(feature = "full")]
mod rclpy_of_the_index;
mod remote_types;
mod rmw;
mod ros2_programs;
mod ros2_side_by_side;
#[cfg(feature = "security")]
mod security;
mod services;
mod sim_time;
mod stalled;
mod stopped_processes;
#[cfg(feature = "durable")]
mod store;
mod support;
mod tf;
mod trace;
#[cfg(feature = "full")]
mod wrong_inputs;
#[cfg(feature = "zenoh")]
mod zenoh_networks;

use pteros_test_support::{peer, spin_thread};

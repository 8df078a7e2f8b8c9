//! Deterministic simulation of whole ROS graphs on one thread, from one seed.
//!
//! Processes are real contexts of the engine ([`pteros_runtime::Core`]) with a
//! simulated clock, network and random source (`simulation`, `network`). The
//! [`harness`] runs a seed of a workload: it applies the steps of its [`world`],
//! lets simulated time pass, and checks invariants. A seed and a commit reproduce a
//! failure.
//!
//! Mutants ([`mutants`]) test the simulator itself. Each is a seeded bug of the engine
//! ([`fault_points`]), which a run switches on. Some seed must detect it.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "a tool; names say what they can")]

pub mod fault_points;
pub mod harness;
pub mod mutants;
mod network;
mod simulation;
pub mod world;

pub use network::link::Link;
pub use network::sample_transport::TransportBus;
pub use simulation::Simulation;
pub use simulation::threads::{SimThread, ThreadBody};

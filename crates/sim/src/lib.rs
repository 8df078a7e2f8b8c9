//! Deterministic simulation of whole ROS graphs on one thread, from one seed.
//!
//! Processes are real contexts of the engine ([`pteros_runtime::Core`]) with a
//! simulated clock, network and random source. A run has three phases: fault
//! injection, healing, and convergence checks. An oracle (`model`) that is
//! simpler than the engine checks the invariants I1 to I17 throughout. A seed and a
//! commit reproduce a failure.
//!
//! Mutants ([`mutants`]) test the simulator itself: each is a bug that a fault
//! point of the engine switches on, and some seed must detect it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod apply;
mod coherent_sets;
mod convergence_checks;
mod datagram_text;
mod endpoint_checks;
mod env;
mod external_context;
mod fault_injection;
pub mod faults;
mod generators;
mod message;
mod model;
pub mod mutants;
mod network;
pub mod nodes;
pub mod plan;
mod run;
pub mod scenario;
mod schedule;
mod scheduler;
mod service;
mod shared_memory;
mod shrink;
mod simulation;
mod trace;
mod world;

pub use external_context::Runner;
pub use network::Link;
pub use run::{RunOutcome, run, run_guarded};
pub use scheduler::{SimThread, ThreadBody};
pub use shrink::shrink;
pub use simulation::Simulation;

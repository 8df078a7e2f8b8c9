//! Whole ROS graphs on one thread from one seed.
//!
//! Processes are real contexts of the engine ([`pteros_rmw::Core`]) whose clock,
//! network and chance are simulated. A run has a phase with faults, then heals,
//! then must converge. Invariants (named I1 to I17 in reports) are checked
//! throughout against an oracle simpler than the engine. A seed and a commit
//! replay a failure.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod act;
mod cast;
mod check;
mod coherence;
mod describe;
mod env;
mod expect;
pub mod faults;
mod guest;
mod link;
mod message;
mod misfortune;
pub mod mutants;
pub mod nodes;
pub mod plan;
mod reduce;
mod relay;
mod run;
pub mod scenario;
mod script;
mod service;
mod shared;
mod simulation;
mod trace;
mod variety;
mod world;

pub use guest::Runner;
pub use link::Link;
pub use reduce::reduce;
pub use relay::{Companion, Work};
pub use run::{Outcome, run, run_guarded};
pub use simulation::Simulation;

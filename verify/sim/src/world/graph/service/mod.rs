//! Service clients and servers of a simulated graph.
//!
//! Clients call, and some abandon their calls. Servers reply at once, later or
//! never. Both come, go, and die with their processes.
//!
//! I13 (`checks.rs`, service correlation): an accepted call ends once, with its own
//! reply or with an error that its client sees.

mod calls;
mod checks;
pub mod cyclone_header;
mod ends;
pub mod records;

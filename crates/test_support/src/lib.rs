//! Helpers that the test programs of several crates share, and the fuzz targets, which
//! those programs run without a fuzzer.
//!
//! It is a dev-dependency only (xtask and sim excepted). A crate's unit tests cannot pass their
//! own types to it: cargo builds them against a second copy of the crate.
#![allow(
    clippy::disallowed_methods,
    reason = "tests start threads and other vendors' programs, and wait for them"
)]
#![allow(
    clippy::new_without_default,
    clippy::should_implement_trait,
    reason = "harnesses are not values, and a generator is no iterator"
)]

pub mod allocations;
pub mod behaviour;
pub mod folder;
pub mod fuzz;
pub mod introspection;
#[cfg(feature = "security")]
pub mod keystore;
pub mod mutation;
pub mod own_process;
pub mod peer;
pub mod program;
pub mod random;
#[cfg(feature = "rtps")]
pub mod rtps;
#[cfg(feature = "pteros")]
pub mod spin_thread;

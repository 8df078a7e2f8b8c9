//! Test bed of tests, benches and the lab: private networks, programs of other
//! stacks, and process statistics from /proc.
//!
//! It does not depend on Pteros, so that `xtask` builds without it. It works on a
//! real machine in real time.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "starts programs and measures them in real time"
)]

pub mod frame_relay;
pub mod hosts;
pub mod implementation;
pub mod network;
pub mod peer_build;
pub mod process;
pub mod procfs;
pub mod programs;

pub use hosts::{EmulatedLink, TwoHosts};
pub use implementation::Implementation;
pub use peer_build::PeerBuild;
pub use process::{MeasurementFailure, PeerProcess};

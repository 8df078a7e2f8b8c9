//! What tests, benches and the lab ask of a machine: networks of their own, the
//! other stacks' programs built and started, processes watched through /proc.
//!
//! Knows nothing of Pteros, so that `xtask` builds without it. Everything here
//! works on a real machine in real time; nothing runs in a robot.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "starts programs and watches them in real time"
)]

pub mod contestant;
pub mod hosts;
pub mod network;
pub mod process;
pub mod programs;
pub mod relay;
pub mod watch;
pub mod workplace;

pub use contestant::Contestant;
pub use hosts::{Link, TwoHosts};
pub use process::{Failure, Process};
pub use workplace::Workplace;

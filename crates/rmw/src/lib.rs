//! Where protocol, sockets, clock and threads meet, type-erased.
#![deny(missing_docs)]

pub mod config;
pub mod names;
pub mod qos;

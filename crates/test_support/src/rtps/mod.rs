//! Harnesses of the RTPS state machines on fake time, and attackers' packets.

pub mod discovery_harness;
pub mod discovery_server;
pub mod domain;
pub mod endpoint_harness;
pub mod meter;
pub mod packet;
pub mod pair;

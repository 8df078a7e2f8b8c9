//! Fuzz targets as functions: bytes in, a panic when a rule is broken. The programs
//! in `fuzz_targets` only call these.
//!
//! Stateful targets read their bytes as a script ([`steps::Steps`]). They run it on
//! the harnesses of the regression tests (`crates/rtps/tests/regressions`), with
//! the same checks at the end.
#![forbid(unsafe_code)]

pub mod bag;
pub mod cdr;
pub mod discovery;
#[path = "../../../crates/rtps/tests/regressions/discovery_harness.rs"]
mod discovery_harness;
#[path = "../../../crates/rtps/tests/domain/mod.rs"]
mod domain;
#[path = "../../../crates/rtps/tests/regressions/endpoint_harness.rs"]
mod endpoint_harness;
pub mod message;
mod meter;
#[path = "../../../crates/rtps/tests/regressions/packet.rs"]
mod packet;
#[path = "../../../crates/rtps/tests/pair/mod.rs"]
mod pair;
pub mod pair_attack;
pub mod participant_attack;
pub mod security;
mod steps;
pub mod text;
pub mod types;

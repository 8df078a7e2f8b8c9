//! Fuzz targets as functions: bytes in, a panic when a rule is broken. The
//! programs in `fuzz_targets` are nothing but calls of these.
//!
//! Stateful targets read their bytes as a script ([`steps::Steps`]) and play it
//! on the stages of the museum of failures (`crates/rtps/tests/museum`), with
//! the same rules at the end.
#![forbid(unsafe_code)]

pub mod cdr;
pub mod discovery;
#[path = "../../crates/rtps/tests/domain/mod.rs"]
mod domain;
#[path = "../../crates/rtps/tests/museum/hall.rs"]
mod hall;
pub mod message;
mod meter;
#[path = "../../crates/rtps/tests/museum/packet.rs"]
mod packet;
#[path = "../../crates/rtps/tests/pair/mod.rs"]
mod pair;
pub mod pair_attack;
pub mod participant_attack;
pub mod security;
mod steps;
pub mod text;
#[path = "../../crates/rtps/tests/museum/town.rs"]
mod town;
pub mod types;

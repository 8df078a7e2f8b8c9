//! Fuzz targets as functions: bytes in, a panic when a rule is broken. The programs of
//! `verify/fuzz/fuzz_targets` only call these. [`seeds`] runs them without a fuzzer.
//!
//! Stateful targets read their bytes as a script ([`steps::Steps`]). They run it on
//! the harnesses of the regression tests (`crate::rtps`), with the same checks at
//! the end.

#[cfg(feature = "bag")]
pub mod bag;
#[cfg(feature = "rtps")]
pub mod cdr;
#[cfg(feature = "rtps")]
pub mod discovery;
#[cfg(feature = "rtps")]
pub mod message;
#[cfg(feature = "rtps")]
pub mod pair_attack;
#[cfg(feature = "rtps")]
pub mod participant_attack;
#[cfg(feature = "security")]
pub mod security;
pub mod seeds;
pub mod steps;
#[cfg(feature = "rtps")]
pub mod text;
#[cfg(feature = "rtps")]
pub mod types;

//! `libpteros` as programs use it: C and C++ programs, built by the compilers of this
//! machine with sanitizers, talk to nodes of Rust. Every context is on this host alone.

#![allow(
    clippy::disallowed_methods,
    reason = "programs of C are other processes, with deadlines of real time"
)]

mod behaviour;
mod harness;
mod languages;
mod programs;
mod topics;

//! The RTPS 2.5 protocol as state machines without IO.
//!
//! Bytes and `now` go in; bytes, events and the next deadline come out. There
//! is no clock, socket, thread, lock or randomness in this crate, and no
//! `unsafe`. What a peer sends never panics and never sizes an allocation.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod discovery;
pub mod id;
pub mod locator;
pub mod outbox;
pub mod qos;
pub mod receiver;
pub mod seq;
pub mod time;
pub mod wire;
mod defrag;
pub mod history;
pub mod interval;
mod reorder;
pub mod timer;
pub mod reader;
pub mod stats;
pub mod writer;

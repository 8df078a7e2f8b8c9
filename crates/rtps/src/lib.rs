//! The RTPS 2.5 protocol as state machines without IO.
//!
//! Bytes and `now` go in; bytes, events and the next deadline come out. There
//! is no clock, socket, thread, lock or randomness in this crate, and no
//! `unsafe`. What a peer sends never panics and never sizes an allocation.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::arithmetic_side_effects,
    )
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
pub mod fault;

mod changeable;
mod changes;
pub mod content_filter;
mod counts;
mod defrag;
pub mod discovery;
pub mod history;
pub mod id;
pub mod interval;
pub mod locator;
pub mod mark;
pub mod matching;
pub mod outbox;
mod pace;
pub mod participant;
pub mod qos;
pub mod reader;
pub mod receiver;
mod reorder;
pub mod seq;
pub mod shared_qos;
pub mod stats;
pub mod time;
pub mod timer;
pub mod wire;
pub mod writer;

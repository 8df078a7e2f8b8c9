//! The RTPS 2.5 protocol as sans-IO state machines.
//!
//! Bytes and `now` go in. Bytes, events and the next deadline come out. This crate
//! has no clock, socket, thread, lock or randomness, and no `unsafe`. Received data
//! never causes a panic and never determines the size of an allocation.
//!
//! Where to look: [`writer`] (heartbeat period, retransmission, flow control,
//! batching), [`reader`] (ACKNACK, GAP, reorder buffer, fragment reassembly),
//! [`history`] (history cache), [`participant`] and [`discovery`] (SPDP, SEDP, WLP,
//! participant lease), [`matching`] (endpoint matching), [`wire`] (submessages).
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

mod change;
mod change_store;
mod changeable_qos;
pub mod coherent_mark;
pub mod content_filter;
mod defrag;
pub mod discovery;
mod heartbeat_counts;
pub mod history;
pub mod id;
pub mod interval;
mod ip_address;
pub mod late_samples;
pub mod locator;
pub mod matching;
pub mod memory_budget;
pub mod outbox;
pub mod participant;
pub mod qos;
pub mod reader;
pub mod receiver;
mod reorder;
pub mod retransmission_window;
mod retry_backoff;
pub mod seq;
pub mod shared_qos;
pub mod stats;
pub mod time;
pub mod timer;
pub mod user_data;
pub mod wire;
pub mod writer;

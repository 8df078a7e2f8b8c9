//! Data-centric publish-subscribe: the semantics of DDS (DDS 1.4 §2.2) without
//! input or output.
//!
//! `pteros-runtime` puts it between the protocol machines (`pteros-rtps`) and user
//! code. The runtime holds the locks, measures the time and wakes threads.
//!
//! - *In*: samples and received changes, matched endpoints, requested QoS, and `now`
//!   of the monotonic clock.
//! - *Out*: samples in the order of delivery, status events with totals, the QoS to
//!   announce, and the next deadline, at which `handle_timeout` has work.
//! - *Never*: a clock, socket, thread, lock or random source, `unsafe`, an upward
//!   call, or a queue without a limit.
//!
//! | module | content | clause |
//! |---|---|---|
//! | [`qos`] | QoS profiles, validation, changeable policies, mismatch texts | DDS 1.4 §2.2.3 |
//! | [`event`] | status events and totals of one endpoint | DDS 1.4 §2.2.4.1 |
//! | [`sample`] | a sample, its metadata and its limits | DDS 1.4 §2.2.2.5.5, §2.2.3.19 |
//! | [`filter`] | content, duplicates, ownership, time-based filter, order by source | DDS 1.4 §2.2.2.3.3, §2.2.3.9, .12, .17 |
//! | [`instance`] | instances of keyed topics, on both sides | DDS 1.4 §2.2.2.5.1, §2.2.3.21–23 |
//! | [`coherent`] | coherent sets and ordered access | DDS 1.4 §2.2.3.6 |
//! | [`cache`] | the reader history cache, which uses all of the above | DDS 1.4 §2.2.2.5, §2.2.3.18 |
//! | [`history`] | samples for late joiners of the process | DDS 1.4 §2.2.3.4 |
//! | [`correlation`] | how a reply names its request | DDS-RPC 1.0 §7.8.2 |
//! | [`timeout_table`] | when each owner of timeouts must be called again | – |
//! | [`mismatch`] | endpoints that match and still deserve a warning | XTypes 1.3 §7.6.3 |
//! | [`user_data`] | ROS 2's entries of USER_DATA | DDS 1.4 §2.2.3.1 |
//! | [`names`] | ROS names, and their topic names in DDS | – |
//! | [`printable`] | text of peers, escaped for terminals and logs | – |
//! | [`limits`] | what remote peers can fill | – |
//!
//! Folders use each other in this order: `sample`, `qos`, `filter`, `instance` and
//! `coherent`, `cache`.
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
    )
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cache;
pub mod coherent;
pub mod correlation;
pub mod event;
pub mod filter;
pub mod history;
pub mod instance;
pub mod limits;
pub mod mismatch;
pub mod names;
pub mod printable;
pub mod qos;
pub mod sample;
pub mod timeout_table;
pub use pteros_rtps::user_data;

//! Data-centric publish-subscribe: the semantics of DDS (DDS 1.4 §2.2) without
//! input or output.
//!
//! Samples, announced endpoints and `now` go in. Samples, events and the next
//! deadline come out. This crate has no clock, socket, thread, lock or randomness,
//! and no `unsafe`. `pteros-runtime` puts it between the protocol machines
//! (`pteros-rtps`) and the queues of user code, holds the locks and measures the
//! time.
//!
//! | module | content | clause |
//! |---|---|---|
//! | [`qos`] | QoS profiles, validation, changeable policies, mismatch texts | DDS 1.4 §2.2.3 |
//! | [`event`] | status events and totals of one endpoint | DDS 1.4 §2.2.4.1 |
//! | [`sample`] | a sample, its metadata and its limits | DDS 1.4 §2.2.2.5.5, §2.2.3.19 |
//! | [`filter`] | duplicates, ownership, time-based filter, order by source | DDS 1.4 §2.2.3.9, .12, .17 |
//! | [`instance`] | instances of keyed topics, on both sides | DDS 1.4 §2.2.2.5.1, §2.2.3.21–23 |
//! | [`coherent`] | coherent sets and ordered access | DDS 1.4 §2.2.3.6 |
//! | [`cache`] | the reader history cache, which uses all of the above | DDS 1.4 §2.2.2.5, §2.2.3.18 |
//! | [`history`] | samples for late joiners of the process | DDS 1.4 §2.2.3.4 |
//! | [`names`] | ROS names, and their topic names in DDS | – |
//! | [`limits`] | what remote peers can fill | – |
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cache;
pub mod coherent;
pub mod event;
pub mod filter;
pub mod history;
pub mod instance;
pub mod limits;
pub mod names;
pub mod qos;
pub mod sample;

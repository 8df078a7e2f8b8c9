//! Everything about a ROS 2 message type, without a clock, socket or thread.
//!
//! - [`message`]: the traits that generated types implement
//! - [`cdr`]: the bytes on the wire, XCDR1 and XCDR2
//! - [`plain`]: slices of numbers as bytes; the only `unsafe` here
//! - [`view`]: messages read where they lie, without copying what is large
//! - [`describe`]: what a type is made of, as `type_description_interfaces` says
//! - [`schema`]: `.msg`, `.srv` and `.action` files
//! - [`library`]: a set of definitions and all types that follow from them
//! - [`key`]: what tells a topic's instances apart, and its hash
//! - [`hash`]: RIHS01, the fingerprint of a type
//! - [`generate`]: definitions to Rust text
//! - [`dynamic`]: messages whose type is known at run time only; YAML, JSON, CSV
//! - [`typeobject`]: types as other DDS vendors' tools see them
//! - [`filter`]: which messages a reader wants, in DDS's SQL
//! - `yaml`: text that people write, as a tree that knows its places
//!
//! `no_std` with `alloc`. The feature `std` adds what reads text and folders.

#![no_std]
#![deny(missing_docs)]
#![deny(unsafe_code)]
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
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "std")]
#[allow(clippy::arithmetic_side_effects, reason = "counts of files")]
pub mod build;
pub mod cdr;
pub mod describe;
pub mod dynamic;
pub mod filter;
#[cfg(feature = "std")]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    reason = "reads installed files, at places that it has just found"
)]
pub mod folder;
#[allow(
    clippy::arithmetic_side_effects,
    reason = "our own text, at build time"
)]
pub mod generate;
pub mod hash;
pub mod key;
pub mod library;
pub mod message;
#[allow(unsafe_code, reason = "the one file that sees numbers as bytes")]
pub mod plain;
pub mod schema;
pub mod typeobject;
pub mod view;
#[cfg(feature = "std")]
pub mod yaml;

pub use cdr::{Representation, from_payload, to_payload};
pub use describe::Extensibility;
pub use key::{KeyHash, KeyReader};
pub use message::{Action, BoundError, Decode, Encode, Message, Service, WString};
pub use view::Viewable;

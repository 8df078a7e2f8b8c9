//! ROS 2 message types: CDR serialization, type descriptions, dynamic messages. No
//! clock, socket or thread.
//!
//! - [`message`]: the traits that generated types implement
//! - [`cdr`]: serialization, XCDR1 and XCDR2
//! - [`plain`]: slices of numbers as bytes; the only `unsafe` here
//! - [`view`]: zero-copy views of serialized messages
//! - [`describe`]: type descriptions, as `type_description_interfaces` has them
//! - [`schema`]: parser of `.msg`, `.srv` and `.action` files
//! - [`library`]: a set of definitions and all types derived from them
//! - [`key`]: instance keys of a topic and their hash
//! - [`hash`]: RIHS01 type hash
//! - `generate`: Rust code generator
//! - [`dynamic`]: messages whose type is known at run time only; YAML, JSON, CSV
//! - [`type_support`]: what an endpoint needs of a type, generated or dynamic
//! - [`typeobject`]: TypeObject, for type compatibility with other DDS vendors'
//!   tools
//! - [`filter`]: content filter, DDS's SQL subset
//! - `suggest`: close names, for error texts
//! - `yaml`: YAML text as a tree with line and column numbers
//!
//! `no_std` with `alloc`. The feature `std` adds what reads text and folders, and the
//! feature `generate` what build scripts need.

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

mod borrowed;
#[cfg(feature = "generate")]
#[allow(clippy::arithmetic_side_effects, reason = "counts of files")]
pub mod build;
pub mod cdr;
pub mod describe;
pub mod dynamic;
mod error_text;
pub mod filter;
#[cfg(feature = "std")]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    reason = "reads installed files, at places that it has just found"
)]
pub mod folder;
#[cfg(feature = "generate")]
#[allow(
    clippy::arithmetic_side_effects,
    reason = "our own text, at build time"
)]
pub mod generate;
pub mod hash;
pub mod key;
pub mod library;
pub mod message;
#[cfg(feature = "std")]
pub mod package_folders;
#[cfg(feature = "std")]
pub mod package_manifest;
#[allow(unsafe_code, reason = "the one file that sees numbers as bytes")]
pub mod plain;
#[cfg(feature = "std")]
pub mod regular_file;
pub mod schema;
#[cfg(feature = "std")]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts and indexes letters of two names, within their lengths"
)]
pub mod suggest;
pub mod type_support;
pub mod typeobject;
pub mod view;
mod wstring;
#[cfg(feature = "std")]
pub mod yaml;

pub use cdr::{Representation, from_payload, to_payload};
pub use describe::Extensibility;
pub use key::{KeyHash, KeyReader};
pub use message::{Action, BoundError, Decode, Encode, Message, Service, WString};
pub use type_support::{ActionTypeSupport, MessageTypeSupport, ServiceTypeSupport};
pub use view::Viewable;

//! Shared library of Pteros. A crate with `use pteros_dylib as _;` is linked with
//! it instead of with its own copy. A container and its component libraries then
//! share code, statics, thread-locals and types (docs/tutorials/components.md).
//! This crate defines no items.
#![forbid(unsafe_code)]

pub use pteros;

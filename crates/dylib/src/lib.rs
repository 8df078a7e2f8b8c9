//! Pteros as one shared library. A crate that says `use pteros_dylib as _;` is
//! linked with it instead of with a copy of its own, so that a container and the
//! component libraries it loads share code, statics, thread-locals and types
//! (docs/components.md). It holds nothing itself.
#![forbid(unsafe_code)]

pub use pteros;

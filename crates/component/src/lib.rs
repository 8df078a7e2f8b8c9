//! Nodes placed into processes at will: which component libraries there are
//! ([`Index`]), what stands in them ([`inspect`]), how they are loaded
//! ([`Loader`]), and the container that does so on request ([`Container`],
//! [`main`]).
//!
//! A library is read before it is loaded, so that what does not fit is refused
//! with words instead of a crash. The `unsafe` of loading is in `loader` alone.
#![deny(missing_docs)]

mod container;
mod elf;
mod error;
mod index;
mod inspect;
mod loader;
mod program;

pub use container::{Container, ContainerError, ContainerOptions, ExecutorKind};
pub use error::{LibraryError, LoadError};
pub use index::{Index, Listed, Origin, PATH_VARIABLE, PREFIX_VARIABLE};
pub use inspect::{LibraryRecord, inspect};
pub use loader::Loader;
pub use program::{PROGRAM, main};

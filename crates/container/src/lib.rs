//! Component container: composes nodes into processes at run time.
//!
//! The parts are the index of component libraries ([`ComponentIndex`]), the
//! inspection of their files ([`inspect`]), loading ([`Loader`]), and the container
//! that serves load requests ([`Container`], [`main`]).
//!
//! A library is inspected before it is loaded, so that an incompatible one gives an
//! error and not a crash. All `unsafe` code for loading is in `loader`.
#![deny(missing_docs)]

mod container;
mod elf;
mod error;
mod index;
mod inspect;
mod loader;
mod log_format;
mod program;

pub use container::{Container, ContainerError, ContainerOptions, ExecutorKind};
pub use error::{LibraryError, LoadError};
pub use index::{
    BUILT_IN_SWITCH, ComponentEntry, ComponentIndex, ComponentOrigin, PATH_VARIABLE,
    PREFIX_VARIABLE, are_built_in_nodes_on,
};
pub use inspect::{LibraryRecord, inspect};
pub use loader::Loader;
pub use log_format::RosLogFormat;
pub use program::{PROGRAM, main, main_with};

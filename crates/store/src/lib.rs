//! Samples on disk: what a publisher of durability TRANSIENT or PERSISTENT
//! keeps beyond its own life (DDS 1.4 §2.2.3.4 and §2.2.3.5).
//!
//! A [`Store`] is one file of one publisher, written by the process's one
//! storing thread in batches, so that publishing waits for no disk. What is
//! kept is decided by [`Retention`], the DURABILITY_SERVICE policy. A batch is
//! in the file whole or not at all, whenever the process is killed.
//!
//! This crate knows bytes: no protocol, no message types, no clock.

mod backend;
mod error;
mod file;
mod index;
mod location;
mod retention;
mod sample;
mod store;
mod thread;

pub use error::StoreError;
pub use file::{Contents, read};
pub use location::{FILE_EXTENSION, Listed, NAME_BYTES_MAX, clear, default_name, file_name, list};
pub use retention::{BYTES_MAX_DEFAULT, Depth, Retention, SAMPLES_MAX_DEFAULT};
pub use sample::{Origin, StoredSample};
pub use store::{Loss, OnLoss, Safety, Store, StoreCounts, StoreSpec, WAITING_BYTES_MAX};

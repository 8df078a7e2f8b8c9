//! Durability service: samples on disk, which a publisher of durability TRANSIENT
//! or PERSISTENT keeps beyond its own life (DDS 1.4 §2.2.3.4 and §2.2.3.5).
//!
//! A [`Store`] is one file of one publisher. The process's storing thread writes it
//! in batches, so that publishing does not wait for the disk. [`Retention`], the
//! DURABILITY_SERVICE policy, decides which samples stay. A batch is written whole
//! or not at all, whenever the process is killed.
//!
//! This crate handles bytes: no protocol, no message types, no clock. Without its
//! feature `database`, every store refuses to open ([`StoreError::NotBuilt`]).

#![cfg_attr(
    not(feature = "database"),
    allow(dead_code, reason = "what only the database's file uses")
)]

#[cfg(feature = "database")]
mod backend;
mod error;
#[cfg(feature = "database")]
mod file;
#[cfg(not(feature = "database"))]
#[path = "file_disabled.rs"]
mod file;
mod index;
mod listing;
mod location;
mod retention;
mod sample;
mod simulated_disk;
mod spec;
mod store;
mod thread;

pub use error::StoreError;
pub use file::read;
pub use listing::{StoreListing, clear, list};
pub use location::{FILE_EXTENSION, NAME_BYTES_MAX, default_name, file_name};
pub use retention::{BYTES_MAX_DEFAULT, Depth, Retention, SAMPLES_MAX_DEFAULT};
pub use sample::{Origin, StoreContents, StoredSample};
pub use spec::{Safety, StoreSpec};
pub use store::{Loss, OnLoss, Store, StoreCounts, WAITING_BYTES_MAX};

//! Parameters of a store: where it lies, what it is for, and what it survives.

use std::path::PathBuf;

use crate::location::file_name;
use crate::retention::Retention;

/// Failures that a stored sample survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Safety {
    /// Any end of the process. The file is synced only when it is closed: a power
    /// cut may lose all of it.
    Process,
    /// Also a power cut: every batch is synced to the disk (`fdatasync`).
    Disk,
}

/// Parameters of a store.
#[derive(Clone, Debug)]
pub struct StoreSpec {
    /// The folder of its file; created if missing.
    pub folder: PathBuf,
    /// Its name there, see [`file_name`].
    pub name: String,
    /// The topic, stored to detect another one.
    pub topic: String,
    /// The type, stored to detect another one.
    pub type_name: String,
    /// Its limits.
    pub retention: Retention,
    /// Failures that its samples survive.
    pub safety: Safety,
    /// Largest file size, bytes; `u64::MAX` for no limit.
    pub file_bytes_max: u64,
}

impl StoreSpec {
    /// The path of the file. For an empty name, which opening refuses, the folder.
    pub fn path(&self) -> PathBuf {
        match file_name(&self.name) {
            Ok(file) => self.folder.join(file),
            Err(_) => self.folder.clone(),
        }
    }
}

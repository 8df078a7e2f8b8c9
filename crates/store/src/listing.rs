//! The stores of a folder: listing and removing them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{StoreError, io_error};
use crate::file::read;
use crate::location::FILE_EXTENSION;
use crate::sample::StoreContents;

/// A file in a folder of stores.
#[derive(Debug)]
pub struct StoreListing {
    /// The file.
    pub path: PathBuf,
    /// Its size, bytes.
    pub file_bytes: u64,
    /// Its content, or why it cannot be read.
    pub contents: Result<StoreContents, StoreError>,
}

/// Lists the stores of a folder, by file name. A missing folder has none.
///
/// # Errors
/// [`StoreError::Io`] if the folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<StoreListing>, StoreError> {
    let failed = |e| io_error(folder, "list it", e, "check the rights of the folder");
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut stores = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if path.extension().is_some_and(|e| e == FILE_EXTENSION) {
            stores.push(StoreListing {
                file_bytes: entry.metadata().map_err(failed)?.len(),
                contents: read(&path),
                path,
            });
        }
    }
    stores.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(stores)
}

/// Removes a store, damaged or not.
///
/// # Errors
/// [`StoreError::Locked`] while a publisher has it open, [`StoreError::Io`]
/// if it cannot be removed.
pub fn clear(path: &Path) -> Result<(), StoreError> {
    if let Err(error @ (StoreError::Locked { .. } | StoreError::Io { .. })) = read(path) {
        return Err(error);
    }
    fs::remove_file(path).map_err(|e| io_error(path, "remove it", e, "check the rights"))
}

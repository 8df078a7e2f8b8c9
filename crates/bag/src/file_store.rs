//! File store: creates and writes the files of a bag, and makes them durable.
//!
//! Programs use the [`FileSystem`]. Tests and simulations use stores that are slow, full,
//! or lose unsynced data at a power cut.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Creates the files of a bag. Thread-safe.
pub trait FileStore: fmt::Debug + Send + Sync {
    /// Creates a file for writing. Blocks.
    ///
    /// # Errors
    /// The system's. [`io::ErrorKind::AlreadyExists`] if the file exists: no file is ever
    /// overwritten.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn BagFile>>;
}

/// An open file of a bag. Thread-safe: one thread may sync it while another writes.
pub trait BagFile: fmt::Debug + Send + Sync {
    /// Appends all bytes. Blocks.
    ///
    /// # Errors
    /// The system's. Some of the bytes may be written.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the written bytes durable, also across a power cut. Blocks until the device
    /// has stored them.
    ///
    /// # Errors
    /// The system's. Bytes written since the last successful call may be lost then.
    fn sync(&self) -> io::Result<()>;
}

/// The file system of the host. Syncing succeeds on file systems without sync.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl FileStore for FileSystem {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn BagFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Arc::new(DiskFile {
            file,
            folder: path.parent().map(Path::to_owned),
            is_named: AtomicBool::new(false),
        }))
    }
}

#[derive(Debug)]
struct DiskFile {
    file: File,
    folder: Option<PathBuf>,
    /// Whether the entry in the folder is durable as well.
    is_named: AtomicBool,
}

impl BagFile for DiskFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        unless_missing(self.file.sync_data())?;
        if let Some(folder) = &self.folder
            && !self.is_named.swap(true, Ordering::Relaxed)
        {
            // Some file systems refuse it; those that need it do not.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }
}

/// Outcome of a sync. A file system without sync is no failure: its files are as durable
/// as they can be.
pub(crate) fn unless_missing(synced: io::Result<()>) -> io::Result<()> {
    synced.or_else(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_sync_is_no_failure_and_a_broken_device_is_one() {
        for kind in [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported] {
            assert!(unless_missing(Err(kind.into())).is_ok(), "{kind}");
        }
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
            let outcome = unless_missing(Err(kind.into()));
            assert_eq!(outcome.map_err(|error| error.kind()), Err(kind));
        }
        assert!(unless_missing(Ok(())).is_ok());
    }
}

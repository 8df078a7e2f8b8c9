//! Storage backend of the database: as the database's own file backend, but without
//! the sync for a store that need not survive a power cut.

use std::io;
use std::ops::Bound;

use redb::{BackendError, StorageBackend};

use crate::simulated_disk::has_mutant;

/// The database's file.
#[derive(Debug)]
pub(crate) struct Backend {
    pub file: Box<dyn StorageBackend>,
    /// Whether a commit syncs to the disk. Without a sync the kernel has the bytes,
    /// in order: a killed process loses nothing, a power cut may lose all.
    pub syncs: bool,
    /// Largest file size, bytes, for tests of a full disk.
    pub file_bytes_max: u64,
}

type Locked = Result<bool, BackendError>;

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > self.file_bytes_max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.syncs && !has_mutant("not-synced") {
            self.file.sync_data()
        } else {
            Ok(())
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.file.query_lock_range(start, end)
    }
}

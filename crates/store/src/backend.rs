//! How the database reaches its file: as the database's own backend does, but
//! for the sync, which a store that need not outlive a power cut leaves out.

use std::io;
use std::ops::Bound;

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

/// The database's file.
#[derive(Debug)]
pub(crate) struct Backend {
    pub file: FileBackend,
    /// Whether a commit waits for the disk. Without it the system has the
    /// bytes, in order: a killed process loses nothing, a power cut may.
    pub syncs: bool,
    /// The most bytes the file may have, for tests of a disk that is full.
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
        match self.syncs {
            true => self.file.sync_data(),
            false => Ok(()),
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

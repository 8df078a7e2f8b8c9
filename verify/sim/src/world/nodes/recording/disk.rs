//! The disk of a recorder: real files, of which it knows what was written and synced.
//! Once in a run it fills up, tears a write, or fails a sync or the start of a file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros_bag::{BagFile, FileStore, FileSystem};

/// All errors of the disk contain it.
pub const DISK_ERROR: &str = "simulated disk";

/// The faults of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Nothing,
    /// No more than so many bytes fit.
    Full(u64),
    /// The write that reaches this byte ends there, with an error. Later ones succeed.
    TornWrite(u64),
    /// The sync of this number fails. Later ones succeed.
    Sync(u64),
    /// The file of this number cannot be created. Later ones can.
    Create(u64),
}

impl Trouble {
    /// Every second disk has some.
    pub fn random(random: &mut Rng) -> Self {
        match random.u32(0..8) {
            0 => Self::Full(random.u64(5_000..60_000)),
            1 => Self::TornWrite(random.u64(5_000..60_000)),
            2 => Self::Sync(random.u64(1..6)),
            // The first file is created at the start, where no recording begins.
            3 => Self::Create(random.u64(2..4)),
            _ => Self::Nothing,
        }
    }
}

/// A file and how much of it there is.
#[derive(Clone, Debug)]
pub struct FileState {
    pub path: PathBuf,
    pub bytes: u64,
    /// Of these, the first that are durable.
    pub synced: u64,
}

/// A disk. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Disk {
    state: Arc<Mutex<DiskState>>,
}

#[derive(Debug)]
struct DiskState {
    trouble: Trouble,
    has_struck: bool,
    appended: u64,
    syncs: u64,
    files: Vec<FileState>,
}

impl Disk {
    pub fn new(trouble: Trouble) -> Self {
        let state = DiskState {
            trouble,
            has_struck: false,
            appended: 0,
            syncs: 0,
            files: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Whether something has gone wrong.
    pub fn has_struck(&self) -> bool {
        self.state.lock().has_struck
    }

    /// The files in the order in which they began.
    pub fn files(&self) -> Vec<FileState> {
        self.state.lock().files.clone()
    }
}

impl DiskState {
    fn fail(&mut self, kind: io::ErrorKind) -> io::Error {
        self.has_struck = true;
        io::Error::new(kind, format!("{DISK_ERROR}: {:?}", self.trouble))
    }

    /// How many of `bytes` are written.
    fn room_for(&self, bytes: u64) -> u64 {
        match self.trouble {
            Trouble::Full(limit) => bytes.min(limit.saturating_sub(self.appended)),
            Trouble::TornWrite(limit) if !self.has_struck => {
                bytes.min(limit.saturating_sub(self.appended))
            }
            _ => bytes,
        }
    }
}

impl FileStore for Disk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn BagFile>> {
        let mut state = self.state.lock();
        let number = state.files.len() as u64 + 1;
        if state.trouble == Trouble::Create(number) && !state.has_struck {
            return Err(state.fail(io::ErrorKind::PermissionDenied));
        }
        let file = FileSystem.create(path)?;
        state.files.push(FileState {
            path: path.to_owned(),
            bytes: 0,
            synced: 0,
        });
        Ok(Arc::new(DiskFile {
            file,
            number: state.files.len() - 1,
            disk: self.clone(),
        }))
    }
}

#[derive(Debug)]
struct DiskFile {
    file: Arc<dyn BagFile>,
    number: usize,
    disk: Disk,
}

impl BagFile for DiskFile {
    /// An error comes after the first part is written, as of a real disk.
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let room = state.room_for(bytes.len() as u64);
        let part = usize::try_from(room).unwrap_or(bytes.len());
        self.file.append(bytes.get(..part).unwrap_or_default())?;
        state.appended += room;
        state.files[self.number].bytes += room;
        if part < bytes.len() {
            return Err(state.fail(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.syncs += 1;
        if state.trouble == Trouble::Sync(state.syncs) {
            return Err(state.fail(io::ErrorKind::Other));
        }
        let file = &mut state.files[self.number];
        file.synced = file.bytes;
        Ok(())
    }
}

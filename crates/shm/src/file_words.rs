//! Memory-mapped words in a file, which stay when the process ends in any way. A
//! store needs no system call; the kernel writes the page.
//!
//! Unlike all other memory of this crate it has a name in a file system. A process
//! that may write the file may change or truncate it, and then the next access is a
//! SIGBUS. It is for a process's own recordings in its own folder, never for data
//! of a peer.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::memory::FileMemory;
use crate::sync::AtomicU64;

/// A new file, mapped while this lives. Thread-safe.
#[derive(Debug)]
pub struct FileWords {
    memory: FileMemory,
}

impl FileWords {
    /// Creates the file with this many zero words. Blocks for the disk, which
    /// allocates all blocks now: a later store cannot fail with a full disk.
    ///
    /// # Errors
    /// From the operating system: the file exists, the folder does not exist or is
    /// not writable, the disk is full.
    pub fn create(path: &Path, words: usize) -> io::Result<Self> {
        let bytes = words.saturating_mul(8);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        let made = Self::map(&file, bytes);
        if made.is_err() {
            // A partly allocated file is useless.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    fn map(file: &File, bytes: usize) -> io::Result<Self> {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes as u64) {
            Ok(()) => {}
            // Some file systems cannot allocate ahead; written zeros can be
            // overwritten.
            Err(Errno::OPNOTSUPP) => write_zeros(file, bytes)?,
            Err(error) => return Err(error.into()),
        }
        let memory = FileMemory::map(file, bytes)?;
        Ok(Self { memory })
    }

    /// The words. Other threads see a store as with any atomic, and readers of the
    /// file see it too.
    pub fn words(&self) -> &[AtomicU64] {
        self.memory.words()
    }
}

fn write_zeros(mut file: &File, bytes: usize) -> io::Result<()> {
    let zeros = [0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        let some = left.min(zeros.len());
        file.write_all(zeros.get(..some).unwrap_or_default())?;
        left -= some;
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn stored_words_are_in_the_file_after_it_is_unmapped() {
        let folder = std::env::temp_dir().join(format!("pteros-words-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("kept");
        let words = FileWords::create(&path, 1000).unwrap();
        words.words()[999].store(0x0102_0304_0506_0708, Ordering::Relaxed);
        drop(words);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 8000);
        assert_eq!(bytes[7992..], 0x0102_0304_0506_0708_u64.to_ne_bytes());
        let again = FileWords::create(&path, 1000).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

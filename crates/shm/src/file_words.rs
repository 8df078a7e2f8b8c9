//! Words in a file that stay when the process ends, however it ends: what is
//! stored is the kernel's at once, and no system call stores it.
//!
//! Unlike everything else here it has a name in a file system, and whoever may
//! write the file may change it or cut it off: then the next access is a SIGBUS.
//! For recordings of one's own, in a folder of one's own; never for what a peer
//! is trusted with.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::memory::FileMemory;
use crate::sync::AtomicU64;

/// A new file, mapped for as long as this lives. Thread-safe.
#[derive(Debug)]
pub struct FileWords {
    memory: FileMemory,
}

impl FileWords {
    /// Makes the file, with so many words, all zero. Blocks for the disk, which
    /// gives all of the room now: storing cannot fail for want of it later.
    ///
    /// # Errors
    /// The operating system's: the file exists already, the folder does not or
    /// may not be written, the disk is full.
    pub fn create(path: &Path, words: usize) -> io::Result<Self> {
        let bytes = words.saturating_mul(8);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        let made = Self::map(&file, bytes);
        if made.is_err() {
            // Half of it is of no use to anybody.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    fn map(file: &File, bytes: usize) -> io::Result<Self> {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes as u64) {
            Ok(()) => {}
            // Some file systems cannot reserve; zeros that are written can be stored over.
            Err(Errno::OPNOTSUPP) => write_zeros(file, bytes)?,
            Err(error) => return Err(error.into()),
        }
        let memory = FileMemory::map(file, bytes)?;
        Ok(Self { memory })
    }

    /// The words. What one thread stores others see as with any atomic, and who
    /// reads the file sees it too.
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
    fn what_is_stored_is_in_the_file_when_nobody_maps_it_any_more() {
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

//! Trace file: the copy of a trace ring on disk, which outlives the process.
//!
//! The ring itself is private memory. A mapped file would be shared with every process
//! that may write it, and truncating it would end this process (SIGBUS). So new parts of
//! the ring are written regularly, at most [`WRITE_DELAY`] after they were recorded. The
//! file size limit is checked before each write, because exceeding it would also end the
//! process (SIGXFSZ).
//!
//! The driver calls it, see `core/trace_writing.rs`. No record waits for the disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pteros_net::{allocate_file, check_file_size};
use pteros_rtps::time::Duration;

use super::ring::{HEAD_WORDS, TraceWords};

/// Longest time until a record is written, while a thread drives the context.
pub(crate) const WRITE_DELAY: Duration = Duration::from_millis(50);

/// The file of a ring, and which parts of the ring it has.
#[derive(Debug)]
pub(super) struct TraceFile {
    file: File,
    path: PathBuf,
    bytes: u64,
    /// Records below this ticket were written.
    records: u64,
    /// Words of names that were written completely.
    names_words: usize,
    /// The failure that was logged last.
    failed: Option<io::ErrorKind>,
    buffer: Vec<u8>,
}

impl TraceFile {
    /// Creates the file with its final size. Blocks for the disk.
    pub fn create(path: &Path, words: usize) -> io::Result<Self> {
        let bytes = words as u64 * 8;
        check_file_size(bytes)?;
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        if let Err(error) = allocate_file(&file, bytes) {
            // A partly allocated file is useless.
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            bytes,
            records: 0,
            names_words: 0,
            failed: None,
            buffer: Vec::new(),
        })
    }

    /// Writes new records and names. A failure is logged once, until a write succeeds.
    pub fn write(&mut self, ring: &TraceWords) {
        match self.try_write(ring) {
            Ok(()) => self.failed = None,
            Err(error) => {
                if self.failed.replace(error.kind()) != Some(error.kind()) {
                    tracing::warn!(
                        "trace file {} is incomplete: {error}; recording goes on in memory",
                        self.path.display()
                    );
                }
            }
        }
    }

    fn try_write(&mut self, ring: &TraceWords) -> io::Result<()> {
        check_file_size(self.bytes)?;
        if self.file.metadata()?.len() < self.bytes {
            tracing::warn!(
                "trace file {} was truncated by another process; what memory still has is written again",
                self.path.display()
            );
            allocate_file(&self.file, self.bytes)?;
            (self.records, self.names_words) = (0, 0);
        }
        let names = ring.names_words_used();
        let from = HEAD_WORDS + self.names_words;
        self.write_words(ring, from, HEAD_WORDS + names)?;
        // The last word may be incomplete.
        self.names_words = names.saturating_sub(1);
        let end = ring.complete_below(self.records);
        let begin = self.records.max(end.saturating_sub(ring.capacity()));
        for (from, to) in ring.slots(begin, end).into_iter().flatten() {
            self.write_words(ring, from, to)?;
        }
        self.records = end;
        // Last, because it announces the other parts.
        let head = ring.header_with_next(end);
        self.buffer.clear();
        self.buffer
            .extend(head.iter().flat_map(|w| w.to_le_bytes()));
        self.file.write_all_at(&self.buffer, 0)
    }

    fn write_words(&mut self, ring: &TraceWords, from: usize, to: usize) -> io::Result<()> {
        self.buffer.clear();
        self.buffer
            .extend(ring.load_range(from, to).flat_map(u64::to_le_bytes));
        self.file.write_all_at(&self.buffer, from as u64 * 8)
    }
}

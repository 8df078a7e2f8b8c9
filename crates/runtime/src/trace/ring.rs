//! Trace ring of a context: a ring of fixed size in memory, preceded by a table of
//! names. `trace/file.rs` copies it to a file that outlives the process.
//!
//! ```text
//! 4096 bytes  header, see `TraceHeader`
//! names       lines of text, append-only
//! ring        records of eleven words; the oldest is overwritten
//! ```
//! Any thread writes. It takes a ticket, which determines its slot, and stores that
//! as the record's first word after the rest was written.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use pteros_rtps::id::GuidPrefix;

use super::file::TraceFile;
use super::record::{TraceRecord, WORDS};
use crate::lock::{Mutex, rank};

/// The first word of a trace: `PTEROSTR` as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PTEROSTR");

/// The layout version.
pub const VERSION: u64 = 1;

/// Words before the names.
pub const HEAD_WORDS: usize = 512;

/// The smallest size of a trace.
pub const BYTES_MIN: usize = 64 << 10;

/// The largest size of a trace.
pub const BYTES_MAX: usize = 1 << 30;

/// Word indices of the header; see the fields of [`TraceHeader`].
mod header_word {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const RECORD_WORDS: usize = 2;
    pub const CAPACITY: usize = 3;
    pub const NAMES_WORDS: usize = 4;
    pub const NAMES_BYTES: usize = 5;
    pub const NAMES_LOST: usize = 6;
    pub const NEXT: usize = 7;
    pub const PROCESS: usize = 8;
    pub const PREFIX: usize = 9;
    pub const ORIGIN: usize = 11;
    pub const WALL: usize = 12;
    pub const STAMP: usize = 13;
    /// Words in use.
    pub const END: usize = 14;
}

/// The origin of a trace, and the meaning of its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHeader {
    /// Process id of the traced context.
    pub process: u32,
    /// The context's participant.
    pub prefix: GuidPrefix,
    /// The host's monotonic clock when the context's clock was zero.
    pub origin: u64,
    /// The wall clock at that moment, nanoseconds since 1970.
    pub wall: i64,
    /// The cost of one clock read, picoseconds.
    pub clock_read_picos: u64,
}

/// The words of a ring: header, names and records.
#[derive(Debug)]
pub(super) struct TraceWords {
    words: Box<[AtomicU64]>,
    names_words: usize,
    capacity: u64,
}

impl TraceWords {
    fn new(bytes_max: usize) -> Self {
        let all = bytes_max / 8;
        let names_words = all / 16;
        let capacity = all.saturating_sub(HEAD_WORDS + names_words) / WORDS;
        let count = HEAD_WORDS + names_words + capacity * WORDS;
        Self {
            words: (0..count).map(|_| AtomicU64::new(0)).collect(),
            names_words,
            capacity: capacity as u64,
        }
    }

    fn store(&self, at: usize, value: u64) {
        if let Some(word) = self.words.get(at) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn load(&self, at: usize) -> u64 {
        let word = self.words.get(at);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Number of records that fit.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Words of names that have a byte.
    pub fn names_words_used(&self) -> usize {
        let bytes = usize::try_from(self.load(header_word::NAMES_BYTES)).unwrap_or(0);
        bytes.div_ceil(8).min(self.names_words)
    }

    /// Loads words `from..to`, each atomically.
    pub fn load_range(&self, from: usize, to: usize) -> impl Iterator<Item = u64> + '_ {
        (from..to).map(|at| self.load(at))
    }

    /// The index of a ticket's first word.
    fn slot(&self, ticket: u64) -> usize {
        let slot = usize::try_from(ticket % self.capacity.max(1)).unwrap_or(0);
        HEAD_WORDS + self.names_words + slot * WORDS
    }

    /// First ticket from `from` on whose record is incomplete. A record overtaken by a
    /// whole ring is skipped.
    pub fn complete_below(&self, from: u64) -> u64 {
        let next = self.load(header_word::NEXT);
        let from = from.max(next.saturating_sub(self.capacity));
        (from..next)
            .find(|ticket| self.load(self.slot(*ticket)) <= *ticket)
            .unwrap_or(next)
    }

    /// The words of the records `begin..end`, at most a ring, in one or two runs.
    pub fn slots(&self, begin: u64, end: u64) -> [Option<(usize, usize)>; 2] {
        if begin >= end {
            return [None, None];
        }
        let (from, last) = (self.slot(begin), self.slot(end - 1));
        if from <= last {
            return [Some((from, last + WORDS)), None];
        }
        [
            Some((from, self.words.len())),
            Some((HEAD_WORDS + self.names_words, last + WORDS)),
        ]
    }

    /// The header, as of the time when `next` was the next ticket.
    pub fn header_with_next(&self, next: u64) -> [u64; header_word::END] {
        let mut head = std::array::from_fn(|at| self.load(at));
        head[header_word::NEXT] = next;
        head
    }
}

/// See the module documentation.
pub struct TraceRing {
    words: TraceWords,
    file: Option<Mutex<TraceFile, rank::TraceFile>>,
    /// The number of bytes of names, and the last, incomplete word of them.
    names: Mutex<(usize, [u8; 8]), rank::TraceNames>,
}

impl TraceRing {
    /// Creates a ring of about so many bytes, with a new file if a path is given.
    pub fn create(bytes_max: usize, file: Option<&Path>, header: &TraceHeader) -> io::Result<Self> {
        let words = TraceWords::new(bytes_max);
        let create = |path| TraceFile::create(path, words.words.len());
        let file = file.map(create).transpose()?.map(Mutex::new);
        let (high, low) = prefix_words(header.prefix);
        let head = [
            (header_word::MAGIC, MAGIC),
            (header_word::VERSION, VERSION),
            (header_word::RECORD_WORDS, WORDS as u64),
            (header_word::CAPACITY, words.capacity),
            (header_word::NAMES_WORDS, words.names_words as u64),
            (header_word::PROCESS, u64::from(header.process)),
            (header_word::PREFIX, high),
            (header_word::PREFIX + 1, low),
            (header_word::ORIGIN, header.origin),
            (header_word::WALL, header.wall.cast_unsigned()),
            (header_word::STAMP, header.clock_read_picos),
        ];
        for (at, word) in head {
            words.store(at, word);
        }
        let ring = Self {
            words,
            file,
            names: Mutex::default(),
        };
        ring.write_file();
        Ok(ring)
    }

    /// Whether the ring is copied to a file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Writes new records and names to the file, if there is one. Blocks for the disk.
    pub fn write_file(&self) {
        if let Some(file) = &self.file {
            file.lock().write(&self.words);
        }
    }

    /// Overwrites the oldest record. Never blocks, never fails.
    pub fn push(&self, record: TraceRecord) {
        let words = &self.words.words;
        let capacity = self.words.capacity;
        let Some(next) = words.get(header_word::NEXT).filter(|_| capacity > 0) else {
            return;
        };
        let ticket = next.fetch_add(1, Ordering::Relaxed);
        let from = self.words.slot(ticket);
        let Some([first, rest @ ..]) = words.get(from..from + WORDS) else {
            return;
        };
        first.store(0, Ordering::Relaxed);
        // Pairs with the Acquire fence of the reader. A reader that finds the
        // ticket again after reading the rest has read nothing of a later record.
        fence(Ordering::Release);
        for (word, value) in rest.iter().zip(record.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
        first.store(ticket + 1, Ordering::Release);
    }

    /// Appends a line to the names; lines that do not fit are counted.
    pub fn append_name(&self, line: &str) {
        let mut names = self.names.lock();
        let (len, tail) = &mut *names;
        let words = &self.words;
        if *len + line.len() + 1 > words.names_words * 8 {
            words.store(
                header_word::NAMES_LOST,
                words.load(header_word::NAMES_LOST) + 1,
            );
            return;
        }
        for byte in line.bytes().chain([b'\n']) {
            if len.is_multiple_of(8) {
                *tail = [0; 8];
            }
            tail[*len % 8] = byte;
            words.store(HEAD_WORDS + *len / 8, u64::from_le_bytes(*tail));
            *len += 1;
        }
        if let Some(word) = words.words.get(header_word::NAMES_BYTES) {
            // The counted bytes are written.
            word.store(*len as u64, Ordering::Release);
        }
    }

    /// A copy of the ring as in the file. Records written during the copy are left
    /// out.
    pub fn copy(&self) -> Vec<u64> {
        let words = &self.words.words;
        let mut copy: Vec<u64> = words.iter().map(|w| w.load(Ordering::Acquire)).collect();
        // Pairs with the Release fence in `push`.
        fence(Ordering::Acquire);
        let first = HEAD_WORDS + self.words.names_words;
        for at in (first..copy.len()).step_by(WORDS) {
            if words[at].load(Ordering::Relaxed) != copy[at] {
                copy[at] = 0;
            }
        }
        copy
    }
}

impl Drop for TraceRing {
    fn drop(&mut self) {
        self.write_file();
    }
}

/// Content of a trace.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Origin of the trace.
    pub header: TraceHeader,
    /// Lines of names.
    pub names: String,
    /// Endpoints and nodes whose names did not fit.
    pub names_lost: u64,
    /// The records, oldest first.
    pub records: Vec<TraceRecord>,
    /// Records that were overwritten, or were being written when the trace was read
    /// or its process killed.
    pub lost: u64,
}

/// Why something is not a readable trace.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceReadError {
    /// It has no magic number of a trace.
    #[error("it is not a trace of Pteros")]
    NotATrace,
    /// It was written by another version.
    #[error(
        "its layout has version {version}, this program reads {VERSION}; show it with the program that recorded it"
    )]
    Version {
        /// Layout version in the header.
        version: u64,
    },
    /// It is shorter than its header says.
    #[error("it is truncated: {bytes} bytes of {expected}; copy it again")]
    Truncated {
        /// Actual size, bytes.
        bytes: usize,
        /// Size in the header, bytes.
        expected: u64,
    },
}

pteros_msg::debug_as_display!(TraceReadError);

impl Recording {
    /// Reads a context's trace, also one that is still being written.
    ///
    /// # Errors
    /// See [`TraceReadError`].
    pub fn read(words: &[u64]) -> Result<Self, TraceReadError> {
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        if word(header_word::MAGIC) != MAGIC {
            return Err(TraceReadError::NotATrace);
        }
        let version = word(header_word::VERSION);
        if version != VERSION || word(header_word::RECORD_WORDS) != WORDS as u64 {
            return Err(TraceReadError::Version { version });
        }
        let (capacity, names_words) = (word(header_word::CAPACITY), word(header_word::NAMES_WORDS));
        let expected = capacity
            .saturating_mul(WORDS as u64)
            .saturating_add(names_words)
            .saturating_add(HEAD_WORDS as u64);
        if (words.len() as u64) < expected {
            return Err(TraceReadError::Truncated {
                bytes: words.len() * 8,
                expected: expected.saturating_mul(8),
            });
        }
        let names_words = usize::try_from(names_words).unwrap_or(0);
        let (names, ring) = words.split_at(HEAD_WORDS).1.split_at(names_words);
        let mut text: Vec<u8> = names.iter().flat_map(|word| word.to_le_bytes()).collect();
        text.truncate(usize::try_from(word(header_word::NAMES_BYTES)).unwrap_or(0));
        let (records, lost) = records(ring, capacity, word(header_word::NEXT));
        Ok(Self {
            header: TraceHeader {
                process: u32::try_from(word(header_word::PROCESS)).unwrap_or(0),
                prefix: prefix_of(word(header_word::PREFIX), word(header_word::PREFIX + 1)),
                origin: word(header_word::ORIGIN),
                wall: word(header_word::WALL).cast_signed(),
                clock_read_picos: word(header_word::STAMP),
            },
            names: String::from_utf8_lossy(&text).into_owned(),
            names_lost: word(header_word::NAMES_LOST),
            records,
            lost,
        })
    }
}

fn records(ring: &[u64], capacity: u64, next: u64) -> (Vec<TraceRecord>, u64) {
    let mut found: Vec<(u64, TraceRecord)> = ring
        .chunks_exact(WORDS)
        .zip(0_u64..capacity)
        .filter_map(|(words, slot)| {
            let (ticket, rest) = words.split_first()?;
            let number = ticket.checked_sub(1)?;
            let is_its = number % capacity == slot;
            let record = TraceRecord::from_words(rest).filter(|_| is_its)?;
            Some((number, record))
        })
        .collect();
    found.sort_by_key(|(number, _)| *number);
    let lost = next.saturating_sub(found.len() as u64);
    (found.into_iter().map(|(_, record)| record).collect(), lost)
}

fn prefix_words(prefix: GuidPrefix) -> (u64, u64) {
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&prefix.0);
    let all = u128::from_be_bytes(bytes);
    ((all >> 64) as u64, all as u64)
}

fn prefix_of(high: u64, low: u64) -> GuidPrefix {
    let bytes = ((u128::from(high) << 64) | u128::from(low)).to_be_bytes();
    let mut prefix = [0; 12];
    prefix.copy_from_slice(&bytes[..12]);
    GuidPrefix(prefix)
}

#[cfg(test)]
mod tests {
    use pteros_rtps::id::Guid;

    use super::super::record::TraceEvent;
    use super::*;
    use crate::sample::DeliveryPath;

    const HEADER: TraceHeader = TraceHeader {
        process: 4_711,
        prefix: GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        origin: 17,
        wall: -18,
        clock_read_picos: 19,
    };

    fn record(sequence: i64) -> TraceRecord {
        TraceRecord {
            event: TraceEvent::Arrived,
            path: DeliveryPath::Network,
            bytes: 3,
            first_time: 5,
            later_times: [None; 4],
            writer: Guid::from_bytes([7; 16]),
            sequence,
            entity: 1,
            thread: 2,
            span: 0,
            cause: 0,
        }
    }

    fn sequences(recording: &Recording) -> Vec<i64> {
        recording.records.iter().map(|r| r.sequence).collect()
    }

    fn file_words(path: &Path) -> Vec<u64> {
        let bytes = std::fs::read(path).unwrap();
        let words = bytes.chunks_exact(8).map(|word| word.try_into().unwrap());
        words.map(u64::from_le_bytes).collect()
    }

    #[test]
    fn a_ring_fills_the_size_that_it_was_given() {
        for bytes in [BYTES_MIN, 1 << 20, (1 << 20) + 8 * WORDS - 1] {
            let ring = TraceRing::create(bytes, None, &HEADER).unwrap();
            let all = ring.copy().len() * 8;
            assert!(
                all <= bytes && bytes - all < 8 * (WORDS + 1),
                "{all} of {bytes}"
            );
            let names = ring.words.names_words * 8;
            assert!(
                names <= bytes / 16 && names + 8 > bytes / 16,
                "{names} of {bytes}"
            );
        }
        let tiny = TraceRing::create(64, None, &HEADER).unwrap();
        tiny.push(record(1));
        tiny.append_name("n");
        let recording = Recording::read(&tiny.copy()).unwrap();
        assert_eq!((recording.records.len(), recording.names_lost), (0, 1));
    }

    #[test]
    fn the_oldest_records_are_overwritten_and_counted() {
        let ring = TraceRing::create(BYTES_MIN, None, &HEADER).unwrap();
        let capacity = i64::try_from(ring.words.capacity()).unwrap();
        for last in [1, capacity - 1, capacity, capacity + 1, 3 * capacity + 2] {
            let ring = TraceRing::create(BYTES_MIN, None, &HEADER).unwrap();
            (1..=last).for_each(|sequence| ring.push(record(sequence)));
            let recording = Recording::read(&ring.copy()).unwrap();
            let first = 1.max(last - capacity + 1);
            assert_eq!(sequences(&recording), (first..=last).collect::<Vec<_>>());
            assert_eq!(recording.lost, u64::try_from(first - 1).unwrap());
            assert_eq!(recording.header, HEADER);
        }
    }

    #[test]
    fn a_name_that_does_not_fit_is_counted_and_others_are_kept() {
        let ring = TraceRing::create(BYTES_MIN, None, &HEADER).unwrap();
        let space = ring.words.names_words * 8;
        ring.append_name("first");
        let rest = "x".repeat(space - "first\n".len() - 1);
        ring.append_name(&format!("{rest}x"));
        assert_eq!(Recording::read(&ring.copy()).unwrap().names, "first\n");
        ring.append_name(&rest);
        ring.append_name("");
        let recording = Recording::read(&ring.copy()).unwrap();
        assert_eq!(recording.names, format!("first\n{rest}\n"));
        assert_eq!(recording.names_lost, 2);
        assert!(recording.records.is_empty());
    }

    #[test]
    fn the_file_has_after_each_write_what_memory_has() {
        let path = std::env::temp_dir().join(format!("pteros-ring-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let ring = TraceRing::create(BYTES_MIN, Some(&path), &HEADER).unwrap();
        assert!(ring.has_file());
        assert_eq!(file_words(&path), ring.copy());
        let capacity = i64::try_from(ring.words.capacity()).unwrap();
        let mut sequence = 0;
        for count in [1, 2, capacity - 3, 1, capacity, 2 * capacity + 5, 0, 7] {
            for _ in 0..count {
                sequence += 1;
                ring.push(record(sequence));
            }
            ring.append_name(&format!("line {sequence}"));
            ring.write_file();
            assert_eq!(file_words(&path), ring.copy(), "after {count} more");
        }
        // A truncated file is completed again.
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(100).unwrap();
        ring.write_file();
        assert_eq!(file_words(&path), ring.copy());
        // Records since the last write are written at the end.
        ring.push(record(sequence + 1));
        let all = ring.copy();
        drop(ring);
        assert_eq!(file_words(&path), all);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_record_is_written_to_the_file_once() {
        let path = std::env::temp_dir().join(format!("pteros-once-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let ring = TraceRing::create(BYTES_MIN, Some(&path), &HEADER).unwrap();
        ring.push(record(1));
        ring.write_file();
        let recorded = file_words(&path);
        // A mark in the last word of that record remains when others are written.
        let (from, to) = ring.words.slots(0, 1)[0].unwrap();
        let changed = |all: &[u64]| (from..to).find(|at| all[*at] != recorded[*at]);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mark = (!recorded[to - 1]).to_le_bytes();
        std::os::unix::fs::FileExt::write_all_at(&file, &mark, (to as u64 - 1) * 8).unwrap();
        ring.push(record(2));
        ring.write_file();
        assert_eq!(changed(&file_words(&path)), Some(to - 1));
        assert_eq!(sequences(&Recording::read(&ring.copy()).unwrap()), [1, 2]);
        drop(ring);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_file_waits_for_a_record_that_is_being_written() {
        let path = std::env::temp_dir().join(format!("pteros-slow-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let ring = TraceRing::create(BYTES_MIN, Some(&path), &HEADER).unwrap();
        let in_file = || Recording::read(&file_words(&path)).unwrap();
        ring.push(record(1));
        // Another thread has taken the second ticket, and nothing more.
        let next = &ring.words.words[header_word::NEXT];
        next.fetch_add(1, Ordering::Relaxed);
        ring.push(record(3));
        ring.write_file();
        assert_eq!((sequences(&in_file()), in_file().lost), (vec![1], 0));
        // A whole ring later that record is skipped.
        let capacity = i64::try_from(ring.words.capacity()).unwrap();
        (4..capacity + 3).for_each(|sequence| ring.push(record(sequence)));
        ring.write_file();
        let recording = in_file();
        assert_eq!(sequences(&recording), (3..capacity + 3).collect::<Vec<_>>());
        assert_eq!(recording.lost, 2);
        drop(ring);
        std::fs::remove_file(&path).unwrap();
    }
}

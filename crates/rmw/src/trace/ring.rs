//! Where a context's records lie: a ring of fixed size, in memory or in a file
//! that outlives the process, with a table of names before it.
//!
//! ```text
//! 4096 bytes  what follows, see `Head`
//! names       lines of text, only ever appended
//! ring        records of eleven words; the oldest makes room
//! ```
//! Any thread writes: it takes a ticket, which is its place, and stores that
//! again as the record's first word when the rest is there.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use parking_lot::Mutex;
use pteros_rtps::id::GuidPrefix;
use pteros_shm::FileWords;

use super::record::{Record, WORDS};

/// The first word of a trace: `PTEROSTR` as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PTEROSTR");

/// The layout described here.
pub const VERSION: u64 = 1;

/// Words before the names.
pub const HEAD_WORDS: usize = 512;

/// Where the head has what; see the fields of [`Head`].
mod place {
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
}

/// Whose trace it is, and what its times mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The process.
    pub process: u32,
    /// The context's participant.
    pub prefix: GuidPrefix,
    /// What the host's monotonic clock said when the context's was zero.
    pub origin: u64,
    /// What the wall clock said then, nanoseconds since 1970.
    pub wall: i64,
    /// What one look at the clock takes, picoseconds.
    pub stamp_picos: u64,
}

enum Words {
    InMemory(Box<[AtomicU64]>),
    InFile(FileWords),
}

impl Words {
    fn get(&self) -> &[AtomicU64] {
        match self {
            Self::InMemory(words) => words,
            Self::InFile(file) => file.words(),
        }
    }
}

/// See the module's description.
pub struct Ring {
    words: Words,
    names_words: usize,
    capacity: u64,
    /// The bytes of names there are, and of the last word of them.
    names: Mutex<(usize, [u8; 8])>,
}

impl Ring {
    /// One of about so many bytes, in a new file if a path is given.
    pub fn create(bytes_max: usize, file: Option<&Path>, head: &Head) -> io::Result<Self> {
        let all = bytes_max / 8;
        let names_words = all / 16;
        let capacity = all.saturating_sub(HEAD_WORDS + names_words) / WORDS;
        let count = HEAD_WORDS + names_words + capacity * WORDS;
        let words = match file {
            Some(path) => Words::InFile(FileWords::create(path, count)?),
            None => Words::InMemory((0..count).map(|_| AtomicU64::new(0)).collect()),
        };
        let ring = Self {
            words,
            names_words,
            capacity: capacity as u64,
            names: Mutex::default(),
        };
        let (high, low) = prefix_words(head.prefix);
        let told = [
            (place::VERSION, VERSION),
            (place::RECORD_WORDS, WORDS as u64),
            (place::CAPACITY, capacity as u64),
            (place::NAMES_WORDS, names_words as u64),
            (place::PROCESS, u64::from(head.process)),
            (place::PREFIX, high),
            (place::PREFIX + 1, low),
            (place::ORIGIN, head.origin),
            (place::WALL, head.wall.cast_unsigned()),
            (place::STAMP, head.stamp_picos),
        ];
        for (at, word) in told {
            ring.store(at, word);
        }
        // Last: what has it is complete.
        if let Some(word) = ring.words.get().get(place::MAGIC) {
            word.store(MAGIC, Ordering::Release);
        }
        Ok(ring)
    }

    fn store(&self, at: usize, value: u64) {
        if let Some(word) = self.words.get().get(at) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn load(&self, at: usize) -> u64 {
        let word = self.words.get().get(at);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Writes a record in place of the oldest. Never blocks, never fails.
    pub fn push(&self, record: Record) {
        let words = self.words.get();
        let Some(next) = words.get(place::NEXT).filter(|_| self.capacity > 0) else {
            return;
        };
        let ticket = next.fetch_add(1, Ordering::Relaxed);
        let slot = usize::try_from(ticket % self.capacity).unwrap_or(0);
        let from = HEAD_WORDS + self.names_words + slot * WORDS;
        let Some([first, rest @ ..]) = words.get(from..from + WORDS) else {
            return;
        };
        first.store(0, Ordering::Relaxed);
        // Pairs with the Acquire fence of who reads: who finds the ticket after
        // reading the rest has read nothing of the record after it.
        fence(Ordering::Release);
        for (word, value) in rest.iter().zip(record.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
        first.store(ticket + 1, Ordering::Release);
    }

    /// Appends a line to the names; one that does not fit is counted.
    pub fn name(&self, line: &str) {
        let mut names = self.names.lock();
        let (len, tail) = &mut *names;
        if *len + line.len() + 1 > self.names_words * 8 {
            self.store(place::NAMES_LOST, self.load(place::NAMES_LOST) + 1);
            return;
        }
        for byte in line.bytes().chain([b'\n']) {
            if len.is_multiple_of(8) {
                *tail = [0; 8];
            }
            tail[*len % 8] = byte;
            self.store(HEAD_WORDS + *len / 8, u64::from_le_bytes(*tail));
            *len += 1;
        }
        if let Some(word) = self.words.get().get(place::NAMES_BYTES) {
            // What it counts is there.
            word.store(*len as u64, Ordering::Release);
        }
    }

    /// All of it, as the file has it. Copies; others go on writing meanwhile, and
    /// what they write while it is copied is left out.
    pub fn copy(&self) -> Vec<u64> {
        let words = self.words.get();
        let mut copy: Vec<u64> = words.iter().map(|w| w.load(Ordering::Acquire)).collect();
        // Pairs with the Release fence in `push`.
        fence(Ordering::Acquire);
        let first = HEAD_WORDS + self.names_words;
        for at in (first..copy.len()).step_by(WORDS) {
            if words[at].load(Ordering::Relaxed) != copy[at] {
                copy[at] = 0;
            }
        }
        copy
    }
}

/// What was read of a context's trace.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Whose it is.
    pub head: Head,
    /// Its lines of names.
    pub names: String,
    /// Endpoints and nodes for whose names there was no room.
    pub names_lost: u64,
    /// What is there, oldest first.
    pub records: Vec<Record>,
    /// Records that made room for newer ones, or were being written when the
    /// trace was read or its process killed.
    pub lost: u64,
}

/// Why something is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTrace {
    /// It does not begin as one.
    #[error("it is no trace of this stack")]
    Other,
    /// It was written by another version.
    #[error(
        "its layout is version {version}, this program reads {VERSION}; show it with the program that recorded it"
    )]
    Version {
        /// Its version.
        version: u64,
    },
    /// It is shorter than it says.
    #[error("it is cut off: {bytes} bytes of {expected}; copy it again")]
    CutOff {
        /// How long it is.
        bytes: usize,
        /// How long it says that it is.
        expected: u64,
    },
}

impl Recording {
    /// Reads a context's trace, also one that is still written.
    ///
    /// # Errors
    /// See [`NoTrace`].
    pub fn read(words: &[u64]) -> Result<Self, NoTrace> {
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        if word(place::MAGIC) != MAGIC {
            return Err(NoTrace::Other);
        }
        let version = word(place::VERSION);
        if version != VERSION || word(place::RECORD_WORDS) != WORDS as u64 {
            return Err(NoTrace::Version { version });
        }
        let (capacity, names_words) = (word(place::CAPACITY), word(place::NAMES_WORDS));
        let expected = capacity
            .saturating_mul(WORDS as u64)
            .saturating_add(names_words)
            .saturating_add(HEAD_WORDS as u64);
        if (words.len() as u64) < expected {
            return Err(NoTrace::CutOff {
                bytes: words.len() * 8,
                expected: expected.saturating_mul(8),
            });
        }
        let names_words = usize::try_from(names_words).unwrap_or(0);
        let (names, ring) = words.split_at(HEAD_WORDS).1.split_at(names_words);
        let mut text: Vec<u8> = names.iter().flat_map(|word| word.to_le_bytes()).collect();
        text.truncate(usize::try_from(word(place::NAMES_BYTES)).unwrap_or(0));
        let (records, lost) = records(ring, capacity, word(place::NEXT));
        Ok(Self {
            head: Head {
                process: u32::try_from(word(place::PROCESS)).unwrap_or(0),
                prefix: prefix_of(word(place::PREFIX), word(place::PREFIX + 1)),
                origin: word(place::ORIGIN),
                wall: word(place::WALL).cast_signed(),
                stamp_picos: word(place::STAMP),
            },
            names: String::from_utf8_lossy(&text).into_owned(),
            names_lost: word(place::NAMES_LOST),
            records,
            lost,
        })
    }
}

fn records(ring: &[u64], capacity: u64, next: u64) -> (Vec<Record>, u64) {
    let mut found: Vec<(u64, Record)> = ring
        .chunks_exact(WORDS)
        .zip(0_u64..capacity)
        .filter_map(|(words, slot)| {
            let (ticket, rest) = words.split_first()?;
            let number = ticket.checked_sub(1)?;
            let is_its = number % capacity == slot;
            let record = Record::of_words(rest).filter(|_| is_its)?;
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

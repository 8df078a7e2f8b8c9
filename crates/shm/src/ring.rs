//! Descriptor ring: a queue of records between one writing and one reading process.
//! Neither writes memory that the other writes.
//!
//! ```text
//!  producer's memory             consumer's memory
//!  tail ──► end of the last      head ──► end of the last
//!  ring [w0 w1 w2 w3 head… body… tail…][…]   record read
//! ```
//! A record consists of 8-byte words and wraps at the end of the ring. It exists
//! once `tail` was stored (release). A process that dies before that has written
//! nothing. A position counts words since the ring was last restarted, together
//! with the number of restarts (`epoch`). A producer that finds everything read
//! restarts at the first word, so a quiet ring touches one page only.
//!
//! Neither side trusts the other: an impossible position, or a record with
//! inconsistent lengths, is a [`ProtocolViolation`].

use crate::sync::{AtomicU64, Ordering, load_peer_word, load_read_only};

/// Words of a record's header.
pub(crate) const HEADER_WORDS: u64 = 4;
/// Words of a ring that are used before the producer checks whether it can restart:
/// one page.
const RESTART_WORDS: u64 = 512;
/// Limit of a position within one epoch: half of its field. Reached only by a ring
/// that is never empty during a petabyte.
const POSITION_MAX: u64 = 1 << 47;

/// The peer wrote data that no correct peer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolViolation(pub(crate) &'static str);

/// Why a record was not pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPushed {
    /// The consumer has not read enough yet.
    Full,
    /// Longer than the whole ring.
    TooLong,
    /// The consumer's position is impossible.
    ProtocolViolation(ProtocolViolation),
}

/// How far a ring was written or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    epoch: u16,
    words: u64,
}

impl Position {
    fn decode(raw: u64) -> Self {
        Self {
            epoch: (raw >> 48) as u16,
            words: raw & ((1 << 48) - 1),
        }
    }

    fn encode(self) -> u64 {
        (u64::from(self.epoch) << 48) | self.words
    }
}

/// Descriptor of a body that is not in the ring: a piece of one of the producer's
/// segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkDescriptor {
    pub segment: u32,
    pub offset: u32,
    pub bytes: u32,
    pub slot: u16,
    pub generation: u32,
}

/// The header of a record: four words before its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    words: u64,
    /// Bytes of the head, of a body in the ring, and of the tail.
    pub head: u32,
    pub body: u32,
    pub tail: u32,
    pub chunk: Option<ChunkDescriptor>,
}

const KIND_INLINE: u64 = 1;
const KIND_CHUNK: u64 = 2;

fn words_of(bytes: usize) -> u64 {
    bytes.div_ceil(8) as u64
}

/// Words of a record with these parts.
pub(crate) fn record_words(parts: [usize; 3]) -> u64 {
    parts.into_iter().map(words_of).sum::<u64>() + HEADER_WORDS
}

impl RecordHeader {
    fn encode(self) -> [u64; 4] {
        let low = |value: u32| u64::from(value);
        let high = |value: u32| u64::from(value) << 32;
        match self.chunk {
            None => [
                self.words | KIND_INLINE << 32,
                low(self.head) | high(self.tail),
                low(self.body),
                0,
            ],
            Some(descriptor) => [
                self.words | KIND_CHUNK << 32 | u64::from(descriptor.slot) << 48,
                low(self.head) | high(self.tail),
                low(descriptor.bytes) | high(descriptor.segment),
                low(descriptor.offset) | high(descriptor.generation),
            ],
        }
    }

    fn decode(raw: [u64; 4], available: u64) -> Result<Self, ProtocolViolation> {
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let words = u64::from(low(raw[0]));
        let (head, tail) = (low(raw[1]), high(raw[1]));
        let (body, descriptor) = match (raw[0] >> 32) & 0xffff {
            KIND_INLINE => (low(raw[2]), None),
            KIND_CHUNK => {
                let descriptor = ChunkDescriptor {
                    bytes: low(raw[2]),
                    segment: high(raw[2]),
                    offset: low(raw[3]),
                    generation: high(raw[3]),
                    slot: (raw[0] >> 48) as u16,
                };
                (0, Some(descriptor))
            }
            _ => return Err(ProtocolViolation("a record of unknown kind")),
        };
        if words > available {
            return Err(ProtocolViolation(
                "a record beyond the end of what was written",
            ));
        }
        if words != record_words([head as usize, body as usize, tail as usize]) {
            return Err(ProtocolViolation("a record with inconsistent lengths"));
        }
        Ok(Self {
            words,
            head,
            body,
            tail,
            chunk: descriptor,
        })
    }
}

/// The writing side's private state; never in shared memory.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    tail: Position,
    /// The consumer's position as last seen, in our epoch.
    read: u64,
}

impl Producer {
    /// Appends one record. `words` is our ring (a power of two), `tail` our word,
    /// `head` the consumer's. Does not wait, does not allocate.
    pub(crate) fn push(
        &mut self,
        words: &[AtomicU64],
        tail: &AtomicU64,
        head: &AtomicU64,
        parts: [&[u8]; 3],
        descriptor: Option<ChunkDescriptor>,
    ) -> Result<(), NotPushed> {
        let capacity = words.len() as u64;
        let needed = record_words(parts.map(<[u8]>::len));
        if needed > capacity {
            return Err(NotPushed::TooLong);
        }
        if self.tail.words >= RESTART_WORDS.min(capacity) {
            self.refresh(capacity, head)?;
            if self.read == self.tail.words {
                let epoch = self.tail.epoch.wrapping_add(1);
                self.tail = Position { epoch, words: 0 };
                self.read = 0;
            }
        }
        let end = self.tail.words + needed;
        let is_full = |read: u64| end - read > capacity;
        if is_full(self.read) {
            self.refresh(capacity, head)?;
            if is_full(self.read) {
                return Err(NotPushed::Full);
            }
        }
        if self.tail.words > POSITION_MAX {
            return Err(NotPushed::Full);
        }
        let header = RecordHeader {
            words: needed,
            head: parts[0].len() as u32,
            body: parts[1].len() as u32,
            tail: parts[2].len() as u32,
            chunk: descriptor,
        };
        let mask = words.len() - 1;
        let mut at = self.tail.words as usize;
        for word in header.encode() {
            words[at & mask].store(word, Ordering::Relaxed);
            at += 1;
        }
        for part in parts {
            at = write(words, mask, at, part);
        }
        self.tail.words += needed;
        // Pairs with `load_peer_word(tail)` in `Consumer::next`.
        tail.store(self.tail.encode(), Ordering::Release);
        Ok(())
    }

    /// Whether at least half of the ring waits for the consumer. Reads its `head` only
    /// if that is so by what was known.
    pub(crate) fn is_half_full(&mut self, capacity: u64, head: &AtomicU64) -> bool {
        let is_it = |ring: &Self| 2 * (ring.tail.words - ring.read) >= capacity;
        // A violation shows at the next push.
        is_it(self) && self.refresh(capacity, head).is_ok() && is_it(self)
    }

    /// Reads the consumer's position. The consumer releases `head` after its last
    /// read of the words, so they may be overwritten.
    fn refresh(&mut self, capacity: u64, head: &AtomicU64) -> Result<(), NotPushed> {
        let theirs = Position::decode(load_peer_word(head));
        let read = if theirs.epoch == self.tail.epoch {
            theirs.words
        } else if theirs.epoch == self.tail.epoch.wrapping_sub(1) {
            // The consumer has not seen the restart yet.
            0
        } else {
            return Err(NotPushed::ProtocolViolation(ProtocolViolation(
                "an impossible epoch of the reader",
            )));
        };
        let behind = self.tail.words.checked_sub(read);
        if read < self.read || behind.is_none_or(|words| words > capacity) {
            return Err(NotPushed::ProtocolViolation(ProtocolViolation(
                "an impossible position of the reader",
            )));
        }
        self.read = read;
        Ok(())
    }
}

/// The reading side's private state; never in shared memory.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    at: Position,
    /// The tail as last seen, in our epoch.
    end: u64,
}

impl Consumer {
    /// Whether a record waits. Reads the peer's `tail` only if none is known to
    /// wait.
    pub(crate) fn has_record(&self, tail: &AtomicU64) -> bool {
        self.end != self.at.words || Position::decode(load_read_only(tail)) != self.at
    }

    /// Reads the header of the next record, without consuming it.
    pub(crate) fn next(
        &mut self,
        words: &[AtomicU64],
        tail: &AtomicU64,
    ) -> Result<Option<RecordHeader>, ProtocolViolation> {
        if self.end == self.at.words && !self.refresh(words.len() as u64, tail)? {
            return Ok(None);
        }
        let available = self.end - self.at.words;
        if available < HEADER_WORDS {
            return Err(ProtocolViolation("a record without a header"));
        }
        let mask = words.len() - 1;
        let at = self.at.words as usize;
        let word = |index: usize| load_read_only(&words[(at + index) & mask]);
        let raw = [word(0), word(1), word(2), word(3)];
        RecordHeader::decode(raw, available).map(Some)
    }

    /// Reads the producer's position. Returns whether there are new records.
    fn refresh(&mut self, capacity: u64, tail: &AtomicU64) -> Result<bool, ProtocolViolation> {
        let theirs = Position::decode(load_peer_word(tail));
        if theirs == self.at {
            return Ok(false);
        }
        if theirs.epoch == self.at.epoch.wrapping_add(1) {
            // The producer saw that everything was read, and restarted.
            self.at = Position {
                epoch: theirs.epoch,
                words: 0,
            };
        } else if theirs.epoch != self.at.epoch {
            return Err(ProtocolViolation("an impossible epoch of the writer"));
        }
        match theirs.words.checked_sub(self.at.words) {
            Some(words) if (1..=capacity).contains(&words) => {
                self.end = theirs.words;
                Ok(true)
            }
            _ => Err(ProtocolViolation("an impossible position of the writer")),
        }
    }

    /// Appends the bytes of the record that `next` gave to `out`: head, body,
    /// tail without gaps.
    pub(crate) fn copy(&self, words: &[AtomicU64], header: &RecordHeader, out: &mut Vec<u8>) {
        let mask = words.len() - 1;
        let mut at = self.at.words as usize + HEADER_WORDS as usize;
        for bytes in [header.head, header.body, header.tail] {
            at = read(words, mask, at, bytes as usize, out);
        }
    }

    /// Consumes the record that `next` returned. Its words may be overwritten.
    pub(crate) fn advance(&mut self, header: &RecordHeader, head: &AtomicU64) {
        self.at.words += header.words;
        // Pairs with `load_peer_word(head)` in `Producer::refresh`: our reads of
        // the record happen before this.
        head.store(self.at.encode(), Ordering::Release);
    }
}

/// Writes bytes into words from index `at` on. Returns the index after them.
fn write(words: &[AtomicU64], mask: usize, mut at: usize, bytes: &[u8]) -> usize {
    let (whole, rest) = bytes.as_chunks::<8>();
    for chunk in whole {
        words[at & mask].store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        at += 1;
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words[at & mask].store(u64::from_ne_bytes(last), Ordering::Relaxed);
        at += 1;
    }
    at
}

/// Appends `bytes` bytes from index `at` on to `out`.
fn read(words: &[AtomicU64], mask: usize, mut at: usize, bytes: usize, out: &mut Vec<u8>) -> usize {
    let from = out.len();
    out.resize(from + bytes.next_multiple_of(8), 0);
    let (chunks, _) = out[from..].as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = load_read_only(&words[at & mask]).to_ne_bytes();
        at += 1;
    }
    out.truncate(from + bytes);
    at
}

#[cfg(all(test, not(loom)))]
#[path = "ring_tests.rs"]
mod tests;

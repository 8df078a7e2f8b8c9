//! A ring of records, one process writing, one reading, neither writing what
//! the other writes.
//!
//! ```text
//!  producer's memory             consumer's memory
//!  tail ──► end of the last      head ──► end of the last
//!  ring [w0 w1 w2 w3 head… body… tail…][…]   record read
//! ```
//! A record is words of 8 bytes and wraps where the ring ends. It exists once
//! `tail` was stored (release); whoever dies before that has written nothing.
//! Positions count words since the ring was last begun anew, together with how
//! often that was (`epoch`): a producer that finds everything read begins
//! again at the first word, so a quiet ring touches one page, not all.
//!
//! Each side takes nothing on trust: a position that cannot be and a record
//! whose lengths do not add up are [`Nonsense`].

use crate::sync::{AtomicU64, Ordering, load_theirs};

/// Words of a record's header.
pub(crate) const HEADER_WORDS: u64 = 4;
/// Words of a ring that are used before the producer looks whether it can
/// begin again: one page.
const RESTART_WORDS: u64 = 512;
/// A position never goes further within one epoch. Half the field; reached
/// only by a ring that is never once empty for a petabyte.
const POSITION_MAX: u64 = 1 << 47;

/// The peer wrote what no correct peer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonsense(pub(crate) &'static str);

/// Why a record was not pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPushed {
    /// The consumer has not yet made room.
    Full,
    /// Longer than the whole ring.
    TooLong,
    /// The consumer's position cannot be.
    Nonsense(Nonsense),
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

/// The body that a record names: a piece of one of the producer's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub segment: u32,
    pub offset: u32,
    pub bytes: u32,
    pub slot: u16,
    pub generation: u32,
}

/// What the four words before a record's bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    words: u64,
    /// Bytes of head, of a body that follows it in the ring, of the tail.
    pub head: u32,
    pub body: u32,
    pub tail: u32,
    pub named: Option<Named>,
}

const KIND_INLINE: u64 = 1;
const KIND_NAMED: u64 = 2;

fn words_of(bytes: usize) -> u64 {
    bytes.div_ceil(8) as u64
}

/// Words that a record with these parts takes.
pub(crate) fn record_words(parts: [usize; 3]) -> u64 {
    parts.into_iter().map(words_of).sum::<u64>() + HEADER_WORDS
}

impl Header {
    fn encode(self) -> [u64; 4] {
        let low = |value: u32| u64::from(value);
        let high = |value: u32| u64::from(value) << 32;
        match self.named {
            None => [
                self.words | KIND_INLINE << 32,
                low(self.head) | high(self.tail),
                low(self.body),
                0,
            ],
            Some(named) => [
                self.words | KIND_NAMED << 32 | u64::from(named.slot) << 48,
                low(self.head) | high(self.tail),
                low(named.bytes) | high(named.segment),
                low(named.offset) | high(named.generation),
            ],
        }
    }

    fn decode(raw: [u64; 4], available: u64) -> Result<Self, Nonsense> {
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let words = u64::from(low(raw[0]));
        let (head, tail) = (low(raw[1]), high(raw[1]));
        let (body, named) = match (raw[0] >> 32) & 0xffff {
            KIND_INLINE => (low(raw[2]), None),
            KIND_NAMED => {
                let named = Named {
                    bytes: low(raw[2]),
                    segment: high(raw[2]),
                    offset: low(raw[3]),
                    generation: high(raw[3]),
                    slot: (raw[0] >> 48) as u16,
                };
                (0, Some(named))
            }
            _ => return Err(Nonsense("a record of unknown kind")),
        };
        if words > available {
            return Err(Nonsense("a record beyond the end of what was written"));
        }
        if words != record_words([head as usize, body as usize, tail as usize]) {
            return Err(Nonsense("a record whose lengths do not add up"));
        }
        Ok(Self {
            words,
            head,
            body,
            tail,
            named,
        })
    }
}

/// The writing side's own knowledge; never in shared memory.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    tail: Position,
    /// The last that was seen of the consumer's position, in our epoch.
    read: u64,
}

impl Producer {
    /// Appends one record. `words` is our ring (a power of two), `tail` our
    /// word, `head` the consumer's. Does not wait, does not allocate.
    pub(crate) fn push(
        &mut self,
        words: &[AtomicU64],
        tail: &AtomicU64,
        head: &AtomicU64,
        parts: [&[u8]; 3],
        named: Option<Named>,
    ) -> Result<(), NotPushed> {
        let capacity = words.len() as u64;
        let needed = record_words(parts.map(<[u8]>::len));
        if needed > capacity {
            return Err(NotPushed::TooLong);
        }
        if self.tail.words >= RESTART_WORDS.min(capacity) {
            self.look(capacity, head)?;
            if self.read == self.tail.words {
                let epoch = self.tail.epoch.wrapping_add(1);
                self.tail = Position { epoch, words: 0 };
                self.read = 0;
            }
        }
        if self.tail.words - self.read + needed > capacity {
            self.look(capacity, head)?;
            if self.tail.words - self.read + needed > capacity {
                return Err(NotPushed::Full);
            }
        }
        if self.tail.words > POSITION_MAX {
            return Err(NotPushed::Full);
        }
        let header = Header {
            words: needed,
            head: parts[0].len() as u32,
            body: parts[1].len() as u32,
            tail: parts[2].len() as u32,
            named,
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
        crate::fault!("record-written");
        self.tail.words += needed;
        // Pairs with `load_theirs(tail)` in `Consumer::next`.
        tail.store(self.tail.encode(), Ordering::Release);
        Ok(())
    }

    /// Learns how far the consumer is. Its release of `head` comes after its
    /// last look at the words, so they may be overwritten.
    fn look(&mut self, capacity: u64, head: &AtomicU64) -> Result<(), NotPushed> {
        let theirs = Position::decode(load_theirs(head));
        let read = if theirs.epoch == self.tail.epoch {
            theirs.words
        } else if theirs.epoch == self.tail.epoch.wrapping_sub(1) {
            // It has not seen yet that we began again.
            0
        } else {
            return Err(NotPushed::Nonsense(Nonsense("a reader's impossible epoch")));
        };
        let behind = self.tail.words.checked_sub(read);
        if read < self.read || behind.is_none_or(|words| words > capacity) {
            return Err(NotPushed::Nonsense(Nonsense(
                "a reader's impossible position",
            )));
        }
        self.read = read;
        Ok(())
    }
}

/// The reading side's own knowledge; never in shared memory.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    at: Position,
    /// The last tail that was seen, in our epoch.
    end: u64,
}

impl Consumer {
    /// Whether a record waits. Reads the peer's `tail` unless one is known of.
    pub(crate) fn waits(&self, tail: &AtomicU64) -> bool {
        self.end != self.at.words || Position::decode(tail.load(Ordering::Relaxed)) != self.at
    }

    /// The header of the next record, which stays where it is.
    pub(crate) fn next(
        &mut self,
        words: &[AtomicU64],
        tail: &AtomicU64,
    ) -> Result<Option<Header>, Nonsense> {
        if self.end == self.at.words && !self.look(words.len() as u64, tail)? {
            return Ok(None);
        }
        let available = self.end - self.at.words;
        if available < HEADER_WORDS {
            return Err(Nonsense("a record without a header"));
        }
        let mask = words.len() - 1;
        let at = self.at.words as usize;
        let word = |index: usize| words[(at + index) & mask].load(Ordering::Relaxed);
        let raw = [word(0), word(1), word(2), word(3)];
        Header::decode(raw, available).map(Some)
    }

    /// Whether there is more than was known.
    fn look(&mut self, capacity: u64, tail: &AtomicU64) -> Result<bool, Nonsense> {
        let theirs = Position::decode(load_theirs(tail));
        if theirs == self.at {
            return Ok(false);
        }
        if theirs.epoch == self.at.epoch.wrapping_add(1) {
            // It saw that we had read everything and began again.
            self.at = Position {
                epoch: theirs.epoch,
                words: 0,
            };
        } else if theirs.epoch != self.at.epoch {
            return Err(Nonsense("a writer's impossible epoch"));
        }
        match theirs.words.checked_sub(self.at.words) {
            Some(words) if (1..=capacity).contains(&words) => {
                self.end = theirs.words;
                Ok(true)
            }
            _ => Err(Nonsense("a writer's impossible position")),
        }
    }

    /// Appends the bytes of the record that `next` gave to `out`: head, body,
    /// tail without gaps.
    pub(crate) fn copy(&self, words: &[AtomicU64], header: &Header, out: &mut Vec<u8>) {
        let mask = words.len() - 1;
        let mut at = self.at.words as usize + HEADER_WORDS as usize;
        for bytes in [header.head, header.body, header.tail] {
            at = read(words, mask, at, bytes as usize, out);
        }
    }

    /// Lets the record that `next` gave go; its words may be overwritten.
    pub(crate) fn advance(&mut self, header: &Header, head: &AtomicU64) {
        self.at.words += header.words;
        // Pairs with `load_theirs(head)` in `Producer::look`: what we read of
        // the record was read before this.
        head.store(self.at.encode(), Ordering::Release);
    }
}

/// Puts bytes into words from index `at` on; returns the index behind them.
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
        *chunk = words[at & mask].load(Ordering::Relaxed).to_ne_bytes();
        at += 1;
    }
    out.truncate(from + bytes);
    at
}

#[cfg(all(test, not(loom)))]
#[path = "ring_tests.rs"]
mod tests;

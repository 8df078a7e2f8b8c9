//! Samples that come in pieces (RTPS 2.5 §8.4.14): each is put together in one
//! buffer, fragments in order by appending, others wherever they belong.
//!
//! The sizes come from the wire, so nothing is allocated or filled by them
//! alone: a buffer grows to at most [`GROWTH`] times what has really arrived.
//! The first accepted fragment fixes total and fragment size; later ones that
//! disagree are refused.

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};

use crate::history::ChangeKind;
use crate::interval::{IntervalSet, Run};
use crate::mark::Mark;
use crate::seq::{SampleIdentity, SequenceNumber};
use crate::time::Timestamp;

/// How much larger than the bytes received a buffer may be. 64 fragments of
/// 63 kB make a 4 MB camera image, so that one is allocated in one piece.
const GROWTH: usize = 64;
/// Below this size growth is free: reordering within it always works.
const GROWTH_FREE_BYTES: usize = 1 << 20;
/// Runs of fragments received out of order, per sample.
const RUNS_MAX: usize = 256;
/// Payloads from this size on have their buffer used again, when the
/// application has let go of it: fresh pages cost more than copying.
const REUSE_MIN_BYTES: usize = 64 << 10;

/// Bounds of what one writer may have in pieces at a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefragLimits {
    /// Samples in pieces at a time. When full, a reliable reader keeps the
    /// lowest numbers (the others are asked for again), a best-effort reader
    /// the highest.
    pub samples_max: usize,
    /// The largest sample put together.
    pub sample_bytes_max: usize,
    /// Bytes over all samples in pieces.
    pub bytes_max: usize,
}

impl Default for DefragLimits {
    fn default() -> Self {
        Self {
            samples_max: 8,
            sample_bytes_max: 64 << 20,
            bytes_max: 128 << 20,
        }
    }
}

/// What belongs to a sample besides its payload.
#[derive(Clone, Debug)]
pub(crate) struct SampleHead {
    pub sequence: SequenceNumber,
    pub kind: ChangeKind,
    /// A peer of this stack sends it with the last fragment alone.
    pub source_timestamp: Option<Timestamp>,
    pub by_link: bool,
    pub key_only: bool,
    pub key_hash: Option<[u8; 16]>,
    pub related: Option<SampleIdentity>,
    /// A peer may send it with the first fragment alone.
    pub mark: Option<Box<Mark>>,
    pub original: Option<SampleIdentity>,
    /// Whether our content filter lets it pass, where its writer said so; in the
    /// first fragment alone, too.
    pub passes: Option<bool>,
}

/// Consecutive fragments as one DATA_FRAG carries them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragments<'a> {
    /// Number of the first, from 1.
    pub first: u32,
    pub count: u16,
    pub fragment_size: u16,
    pub sample_size: u32,
    pub payload: &'a [u8],
}

/// What became of fragments.
#[derive(Debug)]
pub(crate) enum Assembly {
    /// The sample is whole.
    Whole(SampleHead, Bytes),
    /// Kept; more are needed.
    Kept,
    /// All of them were there already.
    Duplicate,
    /// They contradict themselves or what came before.
    Invalid,
    /// No room now; they may come again.
    NoRoom,
    /// The sample is larger than this reader takes, ever.
    TooLarge,
}

/// A sample in pieces.
#[derive(Debug)]
struct Partial {
    head: SampleHead,
    fragment_size: u16,
    sample_size: u32,
    received: IntervalSet,
    received_bytes: usize,
    buffer: BytesMut,
}

impl Partial {
    fn fragments_total(&self) -> u32 {
        self.sample_size
            .div_ceil(u32::from(self.fragment_size).max(1))
    }

    fn is_whole(&self) -> bool {
        let early = i64::from(fault!("whole-without-its-last-piece"));
        matches!(self.received.runs(), [run]
            if run.first == 1 && run.last.saturating_add(early) >= i64::from(self.fragments_total()))
    }

    /// The bytes that `fragments` must carry, and where they go.
    fn place(&self, fragments: &Fragments<'_>) -> Option<(usize, usize)> {
        let size = usize::from(self.fragment_size);
        let total = usize::try_from(self.sample_size).ok()?;
        let before = usize::try_from(fragments.first.checked_sub(1)?).ok()?;
        let before = before.saturating_sub(usize::from(
            before > 1 && fault!("piece-in-the-wrong-place"),
        ));
        let start = before.checked_mul(size)?;
        let end = start
            .checked_add(usize::from(fragments.count).checked_mul(size)?)?
            .min(total);
        let last = fragments
            .first
            .checked_add(u32::from(fragments.count))?
            .checked_sub(1)?;
        (start < end
            && last <= self.fragments_total()
            && fragments.payload.len() >= end.saturating_sub(start))
        .then_some((start, end))
    }

    fn store(&mut self, fragments: &Fragments<'_>) -> Assembly {
        let Some((start, end)) = self.place(fragments) else {
            return Assembly::Invalid;
        };
        let Some(bytes) = fragments.payload.get(..end.saturating_sub(start)) else {
            return Assembly::Invalid;
        };
        let first = i64::from(fragments.first);
        let last = first
            .saturating_add(i64::from(fragments.count))
            .saturating_sub(1);
        if self.received.count_missing(first, last) == 0 {
            return Assembly::Duplicate;
        }
        let arrived = self.received_bytes.saturating_add(bytes.len());
        if end > allowance(arrived) || !self.received.insert(first, last) {
            return Assembly::NoRoom;
        }
        self.received_bytes = arrived;
        let total = usize::try_from(self.sample_size).unwrap_or(usize::MAX);
        if end > self.buffer.capacity() {
            let wanted = allowance(arrived).min(total);
            self.buffer
                .reserve(wanted.saturating_sub(self.buffer.len()));
        }
        if start >= self.buffer.len() {
            // Only a hole left by missing fragments is filled with zeros.
            self.buffer.resize(start, 0);
            self.buffer.extend_from_slice(bytes);
        } else {
            let there = self.buffer.len().saturating_sub(start).min(bytes.len());
            let (over, append) = bytes.split_at(there);
            if let Some(place) = self.buffer.get_mut(start..start.saturating_add(there)) {
                place.copy_from_slice(over);
            }
            self.buffer.extend_from_slice(append);
        }
        Assembly::Kept
    }
}

fn allowance(arrived_bytes: usize) -> usize {
    arrived_bytes.saturating_mul(GROWTH).max(GROWTH_FREE_BYTES)
}

/// All samples in pieces of one writer. In steady state it allocates nothing
/// but payload buffers, and those only while the application holds the last.
#[derive(Debug)]
pub(crate) struct Defragmenter {
    limits: DefragLimits,
    reliable: bool,
    /// Sorted by number.
    partials: Vec<Partial>,
    /// The emptied set of a finished sample, to save its allocation.
    spare_set: Option<IntervalSet>,
    /// The last large payload delivered, to have its memory again.
    spare_buffer: Option<Bytes>,
}

impl Defragmenter {
    pub fn new(limits: DefragLimits, reliable: bool) -> Self {
        Self {
            limits,
            reliable,
            partials: Vec::new(),
            spare_set: None,
            spare_buffer: None,
        }
    }

    /// Takes fragments of a sample that has not been delivered.
    pub fn handle(&mut self, head: SampleHead, fragments: &Fragments<'_>) -> Assembly {
        if fragments.fragment_size == 0 || fragments.count == 0 || fragments.sample_size == 0 {
            return Assembly::Invalid;
        }
        let found = self
            .partials
            .binary_search_by_key(&head.sequence, |partial| partial.head.sequence);
        // Of a sample that has begun the size is known: another one is a lie,
        // and must not cost what has come so far.
        let size = usize::try_from(fragments.sample_size).unwrap_or(usize::MAX);
        if found.is_err() && size > self.limits.sample_bytes_max {
            return Assembly::TooLarge;
        }
        let at = match found {
            Ok(at) => {
                if let Some(partial) = self.partials.get_mut(at) {
                    let known = &mut partial.head;
                    known.passes = known.passes.or(head.passes);
                    known.source_timestamp = known.source_timestamp.or(head.source_timestamp);
                    if known.mark.is_none() {
                        known.mark = head.mark;
                    }
                }
                at
            }
            Err(_) if fault!("no-room-for-pieces") => return Assembly::NoRoom,
            Err(at) => match self.begin(at, head, fragments) {
                Some(at) => at,
                None => return Assembly::NoRoom,
            },
        };
        let Some(partial) = self.partials.get_mut(at) else {
            return Assembly::NoRoom;
        };
        if partial.fragment_size != fragments.fragment_size
            || partial.sample_size != fragments.sample_size
        {
            return Assembly::Invalid;
        }
        let outcome = partial.store(fragments);
        if partial.received.is_empty() {
            // Nothing of it was good: it must not hold a place.
            self.discard(at);
            return outcome;
        }
        if !partial.is_whole() {
            return outcome;
        }
        let (head, payload) = self.finish(at);
        Assembly::Whole(head, payload)
    }

    /// Makes room for a new sample in pieces; the place it then has; `None` if there is none.
    fn begin(&mut self, at: usize, head: SampleHead, fragments: &Fragments<'_>) -> Option<usize> {
        let size = usize::try_from(fragments.sample_size).unwrap_or(usize::MAX);
        let mut at = at;
        while self.partials.len() >= self.limits.samples_max
            || self.promised_bytes().saturating_add(size) > self.limits.bytes_max
        {
            match (self.reliable, self.partials.is_empty()) {
                (_, true) => return None,
                (true, _) if at == self.partials.len() => return None,
                (true, _) => self.discard(self.partials.len().saturating_sub(1)),
                (false, _) if at == 0 => return None,
                (false, _) => {
                    self.discard(0);
                    at = at.saturating_sub(1);
                }
            }
        }
        let buffer = self.reuse(size);
        self.partials.insert(
            at,
            Partial {
                head,
                fragment_size: fragments.fragment_size,
                sample_size: fragments.sample_size,
                received: self
                    .spare_set
                    .take()
                    .unwrap_or_else(|| IntervalSet::new(RUNS_MAX)),
                received_bytes: 0,
                buffer,
            },
        );
        Some(at)
    }

    /// The last payload's memory, if it is large enough and nobody reads it.
    fn reuse(&mut self, size: usize) -> BytesMut {
        if size < REUSE_MIN_BYTES || fault!("memory-not-had-again") {
            return BytesMut::new();
        }
        match self.spare_buffer.take().map(Bytes::try_into_mut) {
            Some(Ok(mut buffer)) if buffer.capacity() >= size => {
                buffer.clear();
                buffer
            }
            _ => BytesMut::new(),
        }
    }

    fn promised_bytes(&self) -> usize {
        self.partials.iter().fold(0, |sum: usize, partial| {
            sum.saturating_add(usize::try_from(partial.sample_size).unwrap_or(usize::MAX))
        })
    }

    fn discard(&mut self, at: usize) {
        if at < self.partials.len() {
            let mut partial = self.partials.remove(at);
            partial.received.clear();
            self.spare_set = Some(partial.received);
        }
    }

    fn finish(&mut self, at: usize) -> (SampleHead, Bytes) {
        let mut partial = self.partials.remove(at);
        partial.received.clear();
        self.spare_set = Some(partial.received);
        let payload = partial.buffer.freeze();
        if payload.len() >= REUSE_MIN_BYTES {
            self.spare_buffer = Some(payload.clone());
        }
        (partial.head, payload)
    }

    /// Forgets samples below `sequence`; how many were in pieces.
    pub fn remove_below(&mut self, sequence: SequenceNumber) -> usize {
        let gone = self
            .partials
            .partition_point(|partial| partial.head.sequence < sequence);
        for _ in 0..gone {
            self.discard(0);
        }
        gone
    }

    /// Forgets samples of `first..=last`.
    pub fn remove(&mut self, first: SequenceNumber, last: SequenceNumber) {
        let from = self
            .partials
            .partition_point(|partial| partial.head.sequence < first);
        while self
            .partials
            .get(from)
            .is_some_and(|partial| partial.head.sequence <= last)
        {
            self.discard(from);
        }
    }

    /// Numbers of the samples in pieces, lowest first.
    pub fn sequences(&self) -> impl Iterator<Item = SequenceNumber> + '_ {
        self.partials.iter().map(|partial| partial.head.sequence)
    }

    /// Samples in pieces.
    pub fn len(&self) -> usize {
        self.partials.len()
    }

    /// How many there may be.
    pub fn samples_max(&self) -> usize {
        self.limits.samples_max.max(1)
    }

    /// Bytes that have come of them.
    pub fn held_bytes(&self) -> usize {
        let held = self.partials.iter().map(|partial| partial.buffer.len());
        held.fold(0, usize::saturating_add)
    }

    /// Whether the sample is in pieces.
    pub fn contains(&self, sequence: SequenceNumber) -> bool {
        self.partials
            .binary_search_by_key(&sequence, |partial| partial.head.sequence)
            .is_ok()
    }

    /// The highest fragment of the sample that has come.
    pub fn last_received(&self, sequence: SequenceNumber) -> Option<u32> {
        let at = self
            .partials
            .binary_search_by_key(&sequence, |partial| partial.head.sequence)
            .ok()?;
        let run = self.partials.get(at)?.received.runs().last()?;
        u32::try_from(run.last).ok()
    }

    /// Runs of fragments up to `last` that the sample lacks.
    pub fn missing(
        &self,
        sequence: SequenceNumber,
        last: Option<u32>,
    ) -> impl Iterator<Item = Run> + '_ {
        self.partials
            .binary_search_by_key(&sequence, |partial| partial.head.sequence)
            .ok()
            .and_then(|at| self.partials.get(at))
            .into_iter()
            .flat_map(move |partial| {
                let total = partial.fragments_total();
                let last = last.unwrap_or(total).min(total);
                partial.received.missing(1, i64::from(last))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(sequence: i64) -> SampleHead {
        SampleHead {
            sequence: SequenceNumber(sequence),
            kind: ChangeKind::Alive,
            source_timestamp: None,
            by_link: false,
            key_only: false,
            key_hash: None,
            related: None,
            mark: None,
            original: None,
            passes: None,
        }
    }

    fn piece(first: u32, total: u32, payload: &[u8]) -> Fragments<'_> {
        Fragments {
            first,
            count: 1,
            fragment_size: 4,
            sample_size: total,
            payload,
        }
    }

    fn defragmenter(reliable: bool) -> Defragmenter {
        Defragmenter::new(DefragLimits::default(), reliable)
    }

    #[test]
    fn fragments_in_any_order_make_the_same_sample() {
        let whole = b"abcdefghij";
        for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [3, 1, 2]] {
            let mut d = defragmenter(true);
            let mut got = None;
            for number in order {
                let from = (number as usize - 1) * 4;
                let bytes = &whole[from..(from + 4).min(10)];
                if let Assembly::Whole(_, payload) = d.handle(head(1), &piece(number, 10, bytes)) {
                    got = Some(payload);
                }
            }
            assert_eq!(got.as_deref(), Some(&whole[..]));
        }
    }

    #[test]
    fn sizes_that_lie_are_refused() {
        let mut d = defragmenter(true);
        let bad = |d: &mut Defragmenter, f| matches!(d.handle(head(1), &f), Assembly::Invalid);
        let zero = Fragments {
            fragment_size: 0,
            ..piece(1, 10, b"abcd")
        };
        assert!(bad(&mut d, zero));
        assert!(bad(&mut d, piece(0, 10, b"abcd")));
        assert!(bad(&mut d, piece(4, 10, b"abcd")));
        assert!(bad(&mut d, piece(u32::MAX, 10, b"abcd")));
        assert!(bad(&mut d, piece(1, 10, b"abc")));
        assert_eq!(d.sequences().count(), 0, "refused pieces hold no place");
        assert!(matches!(
            d.handle(head(1), &piece(1, u32::MAX, b"abcd")),
            Assembly::TooLarge
        ));
        assert!(matches!(
            d.handle(head(1), &piece(1, 10, b"abcd")),
            Assembly::Kept
        ));
        assert!(
            bad(&mut d, piece(2, 12, b"efgh")),
            "total size is fixed by the first"
        );
        assert!(matches!(
            d.handle(head(1), &piece(1, 10, b"abcd")),
            Assembly::Duplicate
        ));
    }

    #[test]
    fn one_small_packet_cannot_make_a_large_buffer() {
        let mut d = defragmenter(true);
        let total = 60 << 20;
        assert!(matches!(
            d.handle(head(1), &piece(total / 4, total, b"abcd")),
            Assembly::NoRoom
        ));
        assert!(matches!(
            d.handle(head(1), &piece(1, total, b"abcd")),
            Assembly::Kept
        ));
        assert!(d.partials[0].buffer.capacity() <= 2 << 20);
    }

    #[test]
    fn when_full_a_reliable_reader_keeps_the_lowest_and_a_best_effort_one_the_newest() {
        for reliable in [true, false] {
            let mut d = defragmenter(reliable);
            for sequence in 10..30 {
                d.handle(head(sequence), &piece(1, 8, b"abcd"));
            }
            d.handle(head(1), &piece(1, 8, b"abcd"));
            let kept: Vec<i64> = d.sequences().map(|s| s.0).collect();
            let expected: Vec<i64> = if reliable {
                core::iter::once(1).chain(10..17).collect()
            } else {
                (22..30).collect()
            };
            assert_eq!(kept, expected);
        }
    }

    #[test]
    fn the_memory_of_a_large_sample_is_used_again_once_let_go() {
        let mut d = defragmenter(true);
        let bytes = [7; 50_000];
        let mut run = |sequence| {
            let mut last = None;
            for first in 1..=3 {
                let f = Fragments {
                    first,
                    count: 1,
                    fragment_size: 50_000,
                    sample_size: 150_000,
                    payload: &bytes,
                };
                if let Assembly::Whole(_, payload) = d.handle(head(sequence), &f) {
                    last = Some(payload);
                }
            }
            last.expect("whole")
        };
        let first = run(1);
        let held = first.as_ptr();
        let second = run(2);
        assert_ne!(second.as_ptr(), held, "still read by the application");
        let at = second.as_ptr();
        drop((first, second));
        assert_eq!(run(3).as_ptr(), at);
    }
}

//! A board's memory: records one behind another, appended by its owner alone.
//!
//! ```text
//!    0  magic u64        64  end u64: bytes of records       128  beat u64
//!    8  version u32                                          192  totals 8 × u64
//!                                                          4096  records
//! record:  length u64, then its bytes, padded to a multiple of eight
//! ```
//! A record is there once `end` says so. What a reader finds is read once and
//! by words, and copied before it is looked at.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::Reason;
use crate::layout::VERSION;
use crate::memory::{OwnMemory, PeerMemory};
use crate::sync::{AtomicU64, Ordering, load_theirs};

const BOARD_MAGIC: u64 = u64::from_le_bytes(*b"PterosBd");
const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 8;
const AT_END: usize = 64;
const AT_BEAT: usize = 128;
const AT_TOTALS: usize = 192;
const AT_RECORDS: usize = 4096;
/// Largest board that is mapped.
const BOARD_BYTES_MAX: usize = 64 << 20;

/// Numbers beside the records, whose meaning is their owner's.
pub type Totals = [u64; 8];

/// What was to be posted does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the board is full; post all that holds anew")]
pub struct BoardFull;

/// Our own.
#[derive(Debug)]
pub(crate) struct OwnLog {
    memory: OwnMemory,
    descriptor: OwnedFd,
    end: usize,
}

impl OwnLog {
    pub(crate) fn create(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(4096);
        let (memory, descriptor) = OwnMemory::create("pteros-board", bytes)?;
        memory.halves(AT_VERSION, 1)[0].store(VERSION.into(), Ordering::Relaxed);
        memory.word(AT_MAGIC).store(BOARD_MAGIC, Ordering::Release);
        Ok(Self {
            memory,
            descriptor,
            end: 0,
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// All of them or none.
    pub(crate) fn append<'r>(
        &mut self,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) -> Result<(), BoardFull> {
        let total: usize = records.clone().map(|record| footprint(record.len())).sum();
        if total > self.memory.len() - AT_RECORDS - self.end {
            return Err(BoardFull);
        }
        for record in records {
            let at = AT_RECORDS + self.end;
            let words = self.memory.words(at, footprint(record.len()) / 8);
            words[0].store(record.len() as u64, Ordering::Relaxed);
            for (word, bytes) in words[1..].iter().zip(record.chunks(8)) {
                let mut padded = [0; 8];
                padded[..bytes.len()].copy_from_slice(bytes);
                word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
            }
            self.end += footprint(record.len());
        }
        // Pairs with the fence in `load_theirs`: who sees the end sees them.
        self.memory
            .word(AT_END)
            .store(self.end as u64, Ordering::Release);
        Ok(())
    }

    fn beats(&self) -> &AtomicU64 {
        self.memory.word(AT_BEAT)
    }

    pub(crate) fn beat(&self) {
        let count = self.beats().load(Ordering::Relaxed);
        self.beats().store(count.wrapping_add(1), Ordering::Relaxed);
    }

    /// Numbers that stand beside the records; each is whole, together they may be
    /// of two moments.
    pub(crate) fn tell_totals(&self, totals: &Totals) {
        let words = self.memory.words(AT_TOTALS, totals.len());
        for (word, total) in words.iter().zip(totals) {
            word.store(*total, Ordering::Relaxed);
        }
    }

    pub(crate) fn beat_from(&self, before: &Self) {
        let count = before.beats().load(Ordering::Relaxed);
        self.beats().store(count.wrapping_add(1), Ordering::Relaxed);
    }
}

/// A record with its length, padded.
fn footprint(record: usize) -> usize {
    8 + record.next_multiple_of(8)
}

/// So much of a neighbour's board is mapped at first, and twice as much whenever
/// it is written further.
const WINDOW_BYTES: usize = 64 << 10;

/// A neighbour's.
#[derive(Debug)]
pub(crate) struct TheirLog {
    /// Its first part, as far as it was needed.
    memory: PeerMemory,
    /// Its size.
    bytes: usize,
    at: usize,
}

impl TheirLog {
    /// Maps what came with a packet that says that it is a board of so many
    /// bytes.
    pub(crate) fn map(bytes: u64, descriptors: &[OwnedFd]) -> Result<Self, Reason> {
        let [descriptor] = descriptors else {
            return Err(Reason::Unfit("is not one board"));
        };
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        if !(2 * AT_RECORDS..=BOARD_BYTES_MAX).contains(&len) || !len.is_multiple_of(4096) {
            return Err(Reason::Unfit("is not of a board's size"));
        }
        let memory = PeerMemory::map_start(descriptor.as_fd(), len, WINDOW_BYTES)
            .map_err(|unfit| Reason::Unfit(unfit.0))?;
        let version = memory.halves(AT_VERSION, 1)[0].load(Ordering::Relaxed);
        if load_theirs(memory.word(AT_MAGIC)) != BOARD_MAGIC || version != u32::from(VERSION) {
            return Err(Reason::Unfit("is no board of this version"));
        }
        Ok(Self {
            memory,
            bytes: len,
            at: 0,
        })
    }

    pub(crate) fn rewind(&mut self) {
        self.at = 0;
    }

    /// How far it has been read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// How far it is written; more than there is room for is told by `next`.
    pub(crate) fn end(&self) -> usize {
        usize::try_from(load_theirs(self.memory.word(AT_END))).unwrap_or(usize::MAX)
    }

    pub(crate) fn beat(&self) -> u64 {
        self.memory.word(AT_BEAT).load(Ordering::Relaxed)
    }

    pub(crate) fn totals(&self) -> Totals {
        let words = self.memory.words(AT_TOTALS, Totals::default().len());
        std::array::from_fn(|at| words[at].load(Ordering::Relaxed))
    }

    /// Maps it at least up to there.
    fn reach(&mut self, end: usize) -> Result<(), Reason> {
        if end <= self.memory.len() {
            return Ok(());
        }
        let window = end.next_power_of_two().min(self.bytes);
        let extended = self.memory.extend(window);
        extended.map_err(|unfit| Reason::Unfit(unfit.0))
    }

    /// The next record, copied into `record`, whose memory serves for all.
    pub(crate) fn next<'r>(&mut self, record: &'r mut Vec<u8>) -> Result<Option<&'r [u8]>, Reason> {
        let end = self.end();
        if end == self.at {
            return Ok(None);
        }
        let room = self.bytes - AT_RECORDS;
        if end > room || end < self.at || !end.is_multiple_of(8) {
            return Err(Reason::Nonsense("a board's end"));
        }
        self.reach(AT_RECORDS + end)?;
        let left = end - self.at;
        let length = self
            .memory
            .word(AT_RECORDS + self.at)
            .load(Ordering::Relaxed);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > left - 8 || footprint(length) > left {
            return Err(Reason::Nonsense("a record's length"));
        }
        let words = self
            .memory
            .words(AT_RECORDS + self.at + 8, length.div_ceil(8));
        record.clear();
        for word in words {
            record.extend_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        record.truncate(length);
        self.at += footprint(length);
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(bytes: usize) -> (OwnLog, TheirLog) {
        let own = OwnLog::create(bytes).expect("memory");
        let copy = own.descriptor.try_clone().expect("a copy");
        let theirs = TheirLog::map(own.bytes() as u64, &[copy]).expect("a board");
        (own, theirs)
    }

    #[test]
    fn records_of_any_length_come_in_order_and_what_does_not_fit_is_refused_whole() {
        let (mut own, mut theirs) = both(64 << 10);
        let into = &mut Vec::new();
        let records: Vec<Vec<u8>> = (0..40).map(|n| vec![n as u8; n]).collect();
        own.append(records.iter().map(Vec::as_slice)).expect("room");
        for record in &records {
            assert_eq!(theirs.next(into), Ok(Some(record.as_slice())));
        }
        assert_eq!(theirs.next(into), Ok(None));
        let large = vec![0; 40 << 10];
        let two = [large.as_slice(), large.as_slice()];
        assert_eq!(own.append(two.into_iter()), Err(BoardFull));
        assert_eq!(theirs.next(into), Ok(None));
        own.append(std::iter::once(large.as_slice())).expect("room");
        assert_eq!(theirs.next(into), Ok(Some(large.as_slice())));
    }

    #[test]
    fn a_board_is_mapped_as_far_as_it_is_written() {
        let (mut own, mut theirs) = both(16 << 20);
        let into = &mut Vec::new();
        assert_eq!(theirs.memory.len(), WINDOW_BYTES);
        let record: Vec<u8> = (0..1000).map(|n| n as u8).collect();
        for _ in 0..16_000 {
            own.append(std::iter::once(record.as_slice()))
                .expect("room");
            assert_eq!(theirs.next(into), Ok(Some(record.as_slice())));
        }
        assert_eq!(theirs.memory.len(), 16 << 20);
        theirs.rewind();
        assert_eq!(theirs.next(into), Ok(Some(record.as_slice())));
    }

    #[test]
    fn whatever_an_owner_writes_is_a_record_or_told_as_nonsense() {
        for (end, length) in [
            (8_u64, u64::MAX),
            (16, 9),
            (u64::MAX, 0),
            (12, 0),
            (1 << 40, 8),
            (64 << 10, 8),
        ] {
            let (own, mut theirs) = both(64 << 10);
            let into = &mut Vec::new();
            own.memory.word(AT_RECORDS).store(length, Ordering::Relaxed);
            own.memory.word(AT_END).store(end, Ordering::Release);
            let read = theirs.next(into);
            assert!(
                matches!(read, Err(Reason::Nonsense(_))),
                "{end} {length}: {read:?}"
            );
        }
        let (own, mut theirs) = both(64 << 10);
        let into = &mut Vec::new();
        own.memory.word(AT_END).store(16, Ordering::Release);
        assert_eq!(theirs.next(into), Ok(Some(&b""[..])));
        own.memory.word(AT_END).store(0, Ordering::Release);
        assert_eq!(theirs.next(into), Err(Reason::Nonsense("a board's end")));
    }
}

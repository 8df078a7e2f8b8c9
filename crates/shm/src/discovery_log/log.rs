//! Memory of a discovery log: records one behind another, appended by the owner
//! alone.
//!
//! ```text
//!    0  magic u64        64  end u64: bytes of records       128  liveliness u64
//!    8  version u32                                          192  totals 8 × u64
//!                                                          4096  records
//! record:  length u64, then its bytes, padded to a multiple of eight
//! ```
//! A record exists once `end` covers it. A reader reads each word once and copies a
//! record before it parses it.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::DisconnectReason;
use crate::layout::{BLOCK_BYTES, VERSION};
use crate::memory::{OwnMemory, PeerMemory};
use crate::sync::{AtomicU64, Ordering, load_peer_word, load_read_only};

const LOG_MAGIC: u64 = u64::from_le_bytes(*b"PterosBd");
const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 8;
const AT_END: usize = 64;
const AT_LIVELINESS: usize = 128;
const AT_TOTALS: usize = 192;
const AT_RECORDS: usize = BLOCK_BYTES;
/// Largest log that is mapped, bytes.
const LOG_BYTES_MAX: usize = 64 << 20;

/// Numbers beside the records. Only the owner knows their meaning.
pub type Totals = [u64; 8];

/// The records do not fit into the discovery log.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the discovery log is full; rewrite it with the records that still hold")]
pub struct DiscoveryLogFull;

// The plain text: what `main` prints of a returned error.
impl fmt::Debug for DiscoveryLogFull {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The writer of this process's own log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    memory: OwnMemory,
    descriptor: OwnedFd,
    end: usize,
}

impl LogWriter {
    pub(crate) fn create(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(BLOCK_BYTES);
        let (memory, descriptor) = OwnMemory::create("pteros-board", bytes)?;
        memory.words_u32(AT_VERSION, 1)[0].store(VERSION.into(), Ordering::Relaxed);
        memory.word(AT_MAGIC).store(LOG_MAGIC, Ordering::Release);
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

    /// Appends all records or none.
    pub(crate) fn append<'r>(
        &mut self,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) -> Result<(), DiscoveryLogFull> {
        let total: usize = records.clone().map(|record| footprint(record.len())).sum();
        if total > self.memory.len() - AT_RECORDS - self.end {
            return Err(DiscoveryLogFull);
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
        // Pairs with the fence in `load_peer_word`: a reader that sees the end sees
        // the records.
        self.memory
            .word(AT_END)
            .store(self.end as u64, Ordering::Release);
        Ok(())
    }

    fn liveliness_count(&self) -> &AtomicU64 {
        self.memory.word(AT_LIVELINESS)
    }

    pub(crate) fn assert_liveliness(&self) {
        let count = self.liveliness_count().load(Ordering::Relaxed);
        self.liveliness_count()
            .store(count.wrapping_add(1), Ordering::Relaxed);
    }

    /// Stores the numbers beside the records. Each number is consistent; together
    /// they may be from two moments.
    pub(crate) fn publish_totals(&self, totals: &Totals) {
        let words = self.memory.words(AT_TOTALS, totals.len());
        for (word, total) in words.iter().zip(totals) {
            word.store(*total, Ordering::Relaxed);
        }
    }

    pub(crate) fn continue_liveliness(&self, before: &Self) {
        let count = before.liveliness_count().load(Ordering::Relaxed);
        self.liveliness_count()
            .store(count.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Bytes of a record with its length word and padding.
fn footprint(record: usize) -> usize {
    8 + record.next_multiple_of(8)
}

/// Bytes of a peer's log that are mapped at first. The window doubles when the log
/// grows beyond it.
const WINDOW_BYTES: usize = 64 << 10;

/// The reader of a peer's log.
#[derive(Debug)]
pub(crate) struct LogReader {
    /// The mapped window: the first part of the log.
    memory: PeerMemory,
    /// Size of the log, bytes.
    bytes: usize,
    at: usize,
}

impl LogReader {
    /// Maps the memory that came with a packet announcing a log of that many bytes.
    pub(crate) fn map(bytes: u64, descriptors: &[OwnedFd]) -> Result<Self, DisconnectReason> {
        let [descriptor] = descriptors else {
            return Err(DisconnectReason::UnusableDescriptor(
                "is not one discovery log",
            ));
        };
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        if !(2 * AT_RECORDS..=LOG_BYTES_MAX).contains(&len) || !len.is_multiple_of(BLOCK_BYTES) {
            return Err(DisconnectReason::UnusableDescriptor(
                "has a size that no discovery log has",
            ));
        }
        let memory = PeerMemory::map_start(descriptor.as_fd(), len, WINDOW_BYTES)
            .map_err(|unfit| DisconnectReason::UnusableDescriptor(unfit.0))?;
        let version = memory.words_u32(AT_VERSION, 1)[0].load(Ordering::Relaxed);
        if load_peer_word(memory.word(AT_MAGIC)) != LOG_MAGIC || version != u32::from(VERSION) {
            return Err(DisconnectReason::UnusableDescriptor(
                "is not a discovery log of this version",
            ));
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

    /// Read position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Write position. `next` reports one beyond the log's size.
    pub(crate) fn end(&self) -> usize {
        usize::try_from(load_peer_word(self.memory.word(AT_END))).unwrap_or(usize::MAX)
    }

    pub(crate) fn liveliness_count(&self) -> u64 {
        load_read_only(self.memory.word(AT_LIVELINESS))
    }

    pub(crate) fn totals(&self) -> Totals {
        let words = self.memory.words(AT_TOTALS, Totals::default().len());
        std::array::from_fn(|at| load_read_only(&words[at]))
    }

    /// Extends the mapped window at least to `end`.
    fn map_up_to(&mut self, end: usize) -> Result<(), DisconnectReason> {
        if end <= self.memory.len() {
            return Ok(());
        }
        let window = end.next_power_of_two().min(self.bytes);
        let extended = self.memory.extend(window);
        extended.map_err(|unfit| DisconnectReason::UnusableDescriptor(unfit.0))
    }

    /// Reads the next record into `record`, a buffer that is reused.
    pub(crate) fn next<'r>(
        &mut self,
        record: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>, DisconnectReason> {
        let end = self.end();
        if end == self.at {
            return Ok(None);
        }
        let room = self.bytes - AT_RECORDS;
        if end > room || end < self.at || !end.is_multiple_of(8) {
            return Err(DisconnectReason::ProtocolViolation(
                "an end of the discovery log that is out of range",
            ));
        }
        self.map_up_to(AT_RECORDS + end)?;
        let left = end - self.at;
        let length = load_read_only(self.memory.word(AT_RECORDS + self.at));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > left - 8 || footprint(length) > left {
            return Err(DisconnectReason::ProtocolViolation(
                "a record length that is out of range",
            ));
        }
        let words = self
            .memory
            .words(AT_RECORDS + self.at + 8, length.div_ceil(8));
        record.clear();
        for word in words {
            record.extend_from_slice(&load_read_only(word).to_ne_bytes());
        }
        record.truncate(length);
        self.at += footprint(length);
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer_and_reader(bytes: usize) -> (LogWriter, LogReader) {
        let own = LogWriter::create(bytes).expect("memory");
        let copy = own.descriptor.try_clone().expect("a copy");
        let theirs = LogReader::map(own.bytes() as u64, &[copy]).expect("a discovery log");
        (own, theirs)
    }

    #[test]
    fn records_of_any_length_arrive_in_order_and_batches_that_do_not_fit_are_refused_whole() {
        let (mut own, mut theirs) = writer_and_reader(64 << 10);
        let into = &mut Vec::new();
        let records: Vec<Vec<u8>> = (0..40).map(|n| vec![n as u8; n]).collect();
        own.append(records.iter().map(Vec::as_slice)).expect("room");
        for record in &records {
            assert_eq!(theirs.next(into), Ok(Some(record.as_slice())));
        }
        assert_eq!(theirs.next(into), Ok(None));
        let large = vec![0; 40 << 10];
        let two = [large.as_slice(), large.as_slice()];
        assert_eq!(own.append(two.into_iter()), Err(DiscoveryLogFull));
        assert_eq!(theirs.next(into), Ok(None));
        own.append(std::iter::once(large.as_slice())).expect("room");
        assert_eq!(theirs.next(into), Ok(Some(large.as_slice())));
    }

    #[test]
    fn a_log_is_mapped_as_far_as_it_is_written() {
        let (mut own, mut theirs) = writer_and_reader(16 << 20);
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
    fn a_log_of_another_version_is_not_read() {
        let own = LogWriter::create(64 << 10).expect("memory");
        let map = || {
            let copy = own.descriptor.try_clone().expect("a copy");
            LogReader::map(own.bytes() as u64, &[copy]).map(|_| ())
        };
        let refused = Err(DisconnectReason::UnusableDescriptor(
            "is not a discovery log of this version",
        ));
        assert_eq!(map(), Ok(()));
        let version = &own.memory.words_u32(AT_VERSION, 1)[0];
        version.store(u32::from(VERSION) + 1, Ordering::Relaxed);
        assert_eq!(map(), refused);
        version.store(VERSION.into(), Ordering::Relaxed);
        let magic = own.memory.word(AT_MAGIC);
        magic.store(LOG_MAGIC + 1, Ordering::Relaxed);
        assert_eq!(map(), refused);
    }

    #[test]
    fn arbitrary_owner_data_is_a_record_or_a_protocol_violation() {
        for (end, length) in [
            (8_u64, u64::MAX),
            (16, 9),
            (u64::MAX, 0),
            (12, 0),
            (1 << 40, 8),
            (64 << 10, 8),
        ] {
            let (own, mut theirs) = writer_and_reader(64 << 10);
            let into = &mut Vec::new();
            own.memory.word(AT_RECORDS).store(length, Ordering::Relaxed);
            own.memory.word(AT_END).store(end, Ordering::Release);
            let read = theirs.next(into);
            assert!(
                matches!(read, Err(DisconnectReason::ProtocolViolation(_))),
                "{end} {length}: {read:?}"
            );
        }
        // The second of two records is longer than what was written.
        let (mut own, mut theirs) = writer_and_reader(64 << 10);
        let into = &mut Vec::new();
        own.append([[1; 8].as_slice()].into_iter()).expect("room");
        assert_eq!(theirs.next(into), Ok(Some(&[1; 8][..])));
        own.memory
            .word(AT_RECORDS + 16)
            .store(40, Ordering::Relaxed);
        own.memory.word(AT_END).store(32, Ordering::Release);
        assert_eq!(
            theirs.next(into),
            Err(DisconnectReason::ProtocolViolation(
                "a record length that is out of range"
            ))
        );
        let (own, mut theirs) = writer_and_reader(64 << 10);
        let into = &mut Vec::new();
        own.memory.word(AT_END).store(16, Ordering::Release);
        assert_eq!(theirs.next(into), Ok(Some(&b""[..])));
        own.memory.word(AT_END).store(0, Ordering::Release);
        assert_eq!(
            theirs.next(into),
            Err(DisconnectReason::ProtocolViolation(
                "an end of the discovery log that is out of range"
            ))
        );
    }
}

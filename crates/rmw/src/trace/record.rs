//! One step of one message, as eleven words of a trace.
//!
//! ```text
//! word 0  ticket: 1 for the first record, 0 while it is written
//!      1  what it is (8 bits), path (8), unused (16), payload bytes (32)
//!      2  the first time
//!      3  second and third time, nanoseconds after the first (32 bits each)
//!      4  fourth and fifth time
//!      5  the sample's writer, 16 bytes
//!      7  the sample's sequence number
//!      8  the endpoint or node that the step is of (32), thread (32)
//!      9  the span: what runs
//!     10  the cause: the span in which it came about
//! ```

use pteros_rtps::id::Guid;

use crate::sample::Path;

/// Words of one record.
pub const WORDS: usize = 11;

/// What is stored for a time that there is not.
const ABSENT: u32 = u32::MAX;

/// What a record tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Step {
    /// A publish call. Times: it began, the runtime was reached, serializing
    /// began, ended, the first datagram was handed over.
    Published,
    /// A sample came to a reader's queue. Times: its last part was in this
    /// process, it was in the queue.
    Arrived,
    /// A callback for a sample. Times: the executor began with it, the sample was
    /// out of the queue, the callback began, ended.
    Called,
    /// A timer's callback. Times: it began, ended.
    Ticked,
    /// A sample was taken without a callback. Time: then.
    Taken,
}

impl Step {
    const ALL: [Self; 5] = [
        Self::Published,
        Self::Arrived,
        Self::Called,
        Self::Ticked,
        Self::Taken,
    ];

    fn code(self) -> u64 {
        match self {
            Self::Published => 1,
            Self::Arrived => 2,
            Self::Called => 3,
            Self::Ticked => 4,
            Self::Taken => 5,
        }
    }
}

/// One step of one message. Times are nanoseconds of the context's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// What happened.
    pub step: Step,
    /// How the sample came; of a publish call it says nothing.
    pub path: Path,
    /// Serialized bytes of the payload; 0 where nobody has serialized it.
    pub bytes: u32,
    /// The first time.
    pub at: u64,
    /// Up to four more times, nanoseconds after the first, at most 4.29 s.
    pub after: [Option<u32>; 4],
    /// Who wrote the sample; all zero for a timer.
    pub writer: Guid,
    /// Its number there.
    pub sequence: i64,
    /// The reader's or writer's entity id, or the key of a timer's node.
    pub of: u32,
    /// A number of the thread within its process.
    pub thread: u32,
    /// The callback that this is, unique in its process; 0 is none.
    pub span: u64,
    /// The callback in which it came about; 0 is none.
    pub cause: u64,
}

impl Record {
    /// Nanoseconds from `at` on, for [`Record::after`].
    pub(super) fn after(at: u64, then: Option<u64>) -> Option<u32> {
        let nanos = then?.saturating_sub(at);
        Some(u32::try_from(nanos).unwrap_or(ABSENT).min(ABSENT - 1))
    }

    pub(super) fn to_words(self) -> [u64; WORDS - 1] {
        let path: u64 = match self.path {
            Path::IntraProcess => 0,
            Path::SharedMemory => 1,
            Path::Network => 2,
        };
        let [a, b, c, d] = self.after.map(|time| time.unwrap_or(ABSENT));
        let guid = u128::from_be_bytes(self.writer.to_bytes());
        [
            self.step.code() | (path << 8) | (u64::from(self.bytes) << 32),
            self.at,
            pair(a, b),
            pair(c, d),
            high(guid),
            low(guid),
            self.sequence.cast_unsigned(),
            pair(self.of, self.thread),
            self.span,
            self.cause,
        ]
    }

    /// Reads what [`Record`]s are stored as, the ticket left out. `None`: it is
    /// none of this version.
    pub fn of_words(words: &[u64]) -> Option<Self> {
        let &[head, at, ab, cd, high, low, sequence, who, span, cause] = words else {
            return None;
        };
        let step = Step::ALL.into_iter().find(|s| s.code() == head & 0xff)?;
        let path = match (head >> 8) & 0xff {
            0 => Path::IntraProcess,
            1 => Path::SharedMemory,
            2 => Path::Network,
            _ => return None,
        };
        let guid = ((u128::from(high) << 64) | u128::from(low)).to_be_bytes();
        let [a, b] = halves(ab);
        let [c, d] = halves(cd);
        let [of, thread] = halves(who);
        Some(Self {
            step,
            path,
            bytes: halves(head)[1],
            at,
            after: [a, b, c, d].map(|time| (time != ABSENT).then_some(time)),
            writer: Guid::from_bytes(guid),
            sequence: sequence.cast_signed(),
            of,
            thread,
            span,
            cause,
        })
    }

    /// The time of a number, from 0 on; `None` if it was not taken.
    pub fn time(&self, index: usize) -> Option<u64> {
        match index.checked_sub(1) {
            None => Some(self.at),
            Some(index) => {
                let after = self.after.get(index).copied().flatten()?;
                Some(self.at.saturating_add(u64::from(after)))
            }
        }
    }
}

fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) | (u64::from(b) << 32)
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

fn high(guid: u128) -> u64 {
    (guid >> 64) as u64
}

fn low(guid: u128) -> u64 {
    guid as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_nonsense_is_none() {
        let record = Record {
            step: Step::Called,
            path: Path::SharedMemory,
            bytes: u32::MAX,
            at: 12_345_678_901_234,
            after: [Some(0), Some(17), None, Some(u32::MAX - 1)],
            writer: Guid::from_bytes([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 0, 0, 1, 3]),
            sequence: -5,
            of: 0x0000_0104,
            thread: 7,
            span: u64::MAX,
            cause: 1,
        };
        let words = record.to_words();
        assert_eq!(Record::of_words(&words), Some(record));
        assert_eq!(record.time(0), Some(12_345_678_901_234));
        assert_eq!(record.time(2), Some(12_345_678_901_251));
        assert_eq!((record.time(3), record.time(9)), (None, None));
        assert_eq!(Record::of_words(&[0; 10]), None);
        assert_eq!(Record::of_words(&words[..9]), None);
    }

    #[test]
    fn a_time_further_away_than_its_place_holds_is_the_furthest_not_none() {
        assert_eq!(Record::after(5, None), None);
        assert_eq!(Record::after(5, Some(4)), Some(0));
        assert_eq!(Record::after(0, Some(1 << 40)), Some(u32::MAX - 1));
    }
}

//! One trace record: one event of one message, as eleven words.
//!
//! ```text
//! word 0  ticket: 1 for the first record, 0 while it is written
//!      1  event (8 bits), path (8), unused (16), payload bytes (32)
//!      2  the first time
//!      3  second and third time, nanoseconds after the first (32 bits each)
//!      4  fourth and fifth time
//!      5  the sample's writer, 16 bytes
//!      7  the sample's sequence number
//!      8  the endpoint or node of the event (32), thread (32)
//!      9  the span: the running callback
//!     10  the cause: the span in which it was published
//! ```

use pteros_rtps::id::Guid;

use crate::sample::DeliveryPath;

/// Words of one record.
pub const WORDS: usize = 11;

/// The stored value of an absent time.
const ABSENT: u32 = u32::MAX;

/// The kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum TraceEvent {
    /// A publish call. Times: call, entry of the runtime, start and end of serialization,
    /// first datagram.
    Published,
    /// A sample arrived at a reader's queue. Times: reception of its last part, entry
    /// into the queue.
    Arrived,
    /// A callback for a sample. Times: start by the executor, sample taken, start and end
    /// of user code.
    Called,
    /// A timer's callback. Times: start, end.
    TimerFired,
    /// A sample was taken without a callback. Time: when it was taken.
    Taken,
}

impl TraceEvent {
    const ALL: [Self; 5] = [
        Self::Published,
        Self::Arrived,
        Self::Called,
        Self::TimerFired,
        Self::Taken,
    ];

    fn code(self) -> u64 {
        match self {
            Self::Published => 1,
            Self::Arrived => 2,
            Self::Called => 3,
            Self::TimerFired => 4,
            Self::Taken => 5,
        }
    }
}

/// One event of one message. Times are nanoseconds of the context's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRecord {
    /// Kind of the record, which defines the meaning of its times.
    pub event: TraceEvent,
    /// The sample's delivery path; meaningless for a publish call.
    pub path: DeliveryPath,
    /// Serialized payload bytes; 0 if it was not serialized.
    pub bytes: u32,
    /// Time of the first step, nanoseconds of the context's clock.
    pub first_time: u64,
    /// Up to four more times, nanoseconds after the first, at most 4.29 s.
    pub later_times: [Option<u32>; 4],
    /// The writer of the sample; all zero for a timer.
    pub writer: Guid,
    /// The sequence number of the sample.
    pub sequence: i64,
    /// The entity id of the reader or writer, or the key of a timer's node.
    pub entity: u32,
    /// The number of the thread within its process.
    pub thread: u32,
    /// The span of this callback, unique in its process; 0 is none.
    pub span: u64,
    /// The span of the callback in which it was published; 0 is none.
    pub cause: u64,
}

impl TraceRecord {
    /// Nanoseconds after `at`, for [`TraceRecord::later_times`].
    pub(super) fn offset_from(at: u64, then: Option<u64>) -> Option<u32> {
        let nanos = then?.saturating_sub(at);
        Some(u32::try_from(nanos).unwrap_or(ABSENT).min(ABSENT - 1))
    }

    pub(super) fn to_words(self) -> [u64; WORDS - 1] {
        let path: u64 = match self.path {
            DeliveryPath::IntraProcess => 0,
            DeliveryPath::SharedMemory => 1,
            DeliveryPath::Network => 2,
            DeliveryPath::Zenoh => 3,
            DeliveryPath::OtherTransport => 4,
        };
        let [a, b, c, d] = self.later_times.map(|time| time.unwrap_or(ABSENT));
        let guid = u128::from_be_bytes(self.writer.to_bytes());
        [
            self.event.code() | (path << 8) | (u64::from(self.bytes) << 32),
            self.first_time,
            pair(a, b),
            pair(c, d),
            high(guid),
            low(guid),
            self.sequence.cast_unsigned(),
            pair(self.entity, self.thread),
            self.span,
            self.cause,
        ]
    }

    /// Decodes a stored record without its ticket. `None` if this version does not
    /// know it.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let &[head, at, ab, cd, high, low, sequence, who, span, cause] = words else {
            return None;
        };
        let step = TraceEvent::ALL
            .into_iter()
            .find(|s| s.code() == head & 0xff)?;
        let path = match (head >> 8) & 0xff {
            0 => DeliveryPath::IntraProcess,
            1 => DeliveryPath::SharedMemory,
            2 => DeliveryPath::Network,
            3 => DeliveryPath::Zenoh,
            4 => DeliveryPath::OtherTransport,
            _ => return None,
        };
        let guid = ((u128::from(high) << 64) | u128::from(low)).to_be_bytes();
        let [a, b] = halves(ab);
        let [c, d] = halves(cd);
        let [of, thread] = halves(who);
        Some(Self {
            event: step,
            path,
            bytes: halves(head)[1],
            first_time: at,
            later_times: [a, b, c, d].map(|time| (time != ABSENT).then_some(time)),
            writer: Guid::from_bytes(guid),
            sequence: sequence.cast_signed(),
            entity: of,
            thread,
            span,
            cause,
        })
    }

    /// The time with this index, from 0; `None` if it was not recorded.
    pub fn time(&self, index: usize) -> Option<u64> {
        match index.checked_sub(1) {
            None => Some(self.first_time),
            Some(index) => {
                let after = self.later_times.get(index).copied().flatten()?;
                Some(self.first_time.saturating_add(u64::from(after)))
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
    fn a_record_decodes_as_encoded_and_invalid_words_are_none() {
        let record = TraceRecord {
            event: TraceEvent::Called,
            path: DeliveryPath::SharedMemory,
            bytes: u32::MAX,
            first_time: 12_345_678_901_234,
            later_times: [Some(0), Some(17), None, Some(u32::MAX - 1)],
            writer: Guid::from_bytes([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 0, 0, 1, 3]),
            sequence: -5,
            entity: 0x0000_0104,
            thread: 7,
            span: u64::MAX,
            cause: 1,
        };
        let words = record.to_words();
        assert_eq!(TraceRecord::from_words(&words), Some(record));
        assert_eq!(record.time(0), Some(12_345_678_901_234));
        assert_eq!(record.time(2), Some(12_345_678_901_251));
        assert_eq!((record.time(3), record.time(9)), (None, None));
        assert_eq!(TraceRecord::from_words(&[0; 10]), None);
        assert_eq!(TraceRecord::from_words(&words[..9]), None);
    }

    #[test]
    fn every_path_decodes_as_encoded() {
        for path in [
            DeliveryPath::IntraProcess,
            DeliveryPath::SharedMemory,
            DeliveryPath::Network,
            DeliveryPath::Zenoh,
            DeliveryPath::OtherTransport,
        ] {
            let record = TraceRecord {
                event: TraceEvent::Arrived,
                path,
                bytes: 1,
                first_time: 2,
                later_times: [None; 4],
                writer: Guid::UNKNOWN,
                sequence: 3,
                entity: 4,
                thread: 5,
                span: 6,
                cause: 7,
            };
            assert_eq!(TraceRecord::from_words(&record.to_words()), Some(record));
        }
    }

    #[test]
    fn a_time_beyond_the_range_saturates() {
        assert_eq!(TraceRecord::offset_from(5, None), None);
        assert_eq!(TraceRecord::offset_from(5, Some(4)), Some(0));
        assert_eq!(
            TraceRecord::offset_from(0, Some(1 << 40)),
            Some(u32::MAX - 1)
        );
    }
}

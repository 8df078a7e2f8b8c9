//! File format of one sample.
//!
//! ```text
//! 0                16           24           32          40       41        57
//! +----------------+------------+------------+-----------+--------+---------+------...
//! | origin writer  | origin no. | source ns  | ended ns  | flags  | key hash| payload
//! +----------------+------------+------------+-----------+--------+---------+------...
//! ```
//! Numbers are little endian; flags: 1 disposed, 2 has a source time, 4 has a key.

use bytes::Bytes;

/// Bytes before the payload. They count in a sample's size.
pub(crate) const HEAD_BYTES: usize = 57;

const DISPOSED: u8 = 1;
const HAS_SOURCE: u8 = 2;
const HAS_KEY: u8 = 4;

/// The original writer of a sample and its sequence number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Origin {
    /// The writer's GUID.
    pub writer: [u8; 16],
    /// Its sequence number.
    pub sequence: i64,
}

/// A sample to store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredSample {
    /// Its original writer and sequence number.
    pub origin: Origin,
    /// Its source timestamp, nanoseconds since 1970.
    pub source_nanos: Option<i64>,
    /// The instance, on keyed topics.
    pub key_hash: Option<[u8; 16]>,
    /// Whether it disposes its instance; it then has no data.
    pub disposed: bool,
    /// For a disposed instance: the wall-clock time, nanoseconds since 1970, from
    /// which the clean-up delay counts. Otherwise meaningless.
    pub ended_nanos: i64,
    /// The serialized sample with its encapsulation header.
    pub payload: Bytes,
}

impl StoredSample {
    /// Its size in limits, bytes.
    pub fn weight(&self) -> u64 {
        (self.payload.len() + HEAD_BYTES) as u64
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut flags = u8::from(self.disposed);
        if self.source_nanos.is_some() {
            flags |= HAS_SOURCE;
        }
        if self.key_hash.is_some() {
            flags |= HAS_KEY;
        }
        let mut out = Vec::with_capacity(HEAD_BYTES + self.payload.len());
        out.extend_from_slice(&self.origin.writer);
        out.extend_from_slice(&self.origin.sequence.to_le_bytes());
        out.extend_from_slice(&self.source_nanos.unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&self.ended_nanos.to_le_bytes());
        out.push(flags);
        out.extend_from_slice(&self.key_hash.unwrap_or_default());
        out.extend_from_slice(&self.payload);
        out
    }

    /// `None` if it is too short.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (writer, rest) = bytes.split_first_chunk::<16>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let (source, rest) = rest.split_first_chunk::<8>()?;
        let (ended, rest) = rest.split_first_chunk::<8>()?;
        let (flags, rest) = rest.split_first()?;
        let (key, payload) = rest.split_first_chunk::<16>()?;
        Some(Self {
            origin: Origin {
                writer: *writer,
                sequence: i64::from_le_bytes(*sequence),
            },
            source_nanos: (flags & HAS_SOURCE != 0).then(|| i64::from_le_bytes(*source)),
            key_hash: (flags & HAS_KEY != 0).then_some(*key),
            disposed: flags & DISPOSED != 0,
            ended_nanos: i64::from_le_bytes(*ended),
            payload: Bytes::copy_from_slice(payload),
        })
    }
}

/// A store file as read: its name, topic and samples.
#[derive(Clone, Debug)]
pub struct StoreContents {
    /// The store's name.
    pub name: String,
    /// The DDS topic name.
    pub topic: String,
    /// The DDS type name.
    pub type_name: String,
    /// The samples, oldest first.
    pub samples: Vec<StoredSample>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_round_trip_and_truncated_headers_are_rejected() {
        let plain = StoredSample {
            origin: Origin {
                writer: [7; 16],
                sequence: 1 << 40,
            },
            source_nanos: None,
            key_hash: None,
            disposed: false,
            ended_nanos: 0,
            payload: Bytes::from_static(b"abc"),
        };
        let ended = StoredSample {
            source_nanos: Some(-5),
            key_hash: Some([9; 16]),
            disposed: true,
            ended_nanos: i64::MAX,
            payload: Bytes::new(),
            ..plain.clone()
        };
        for sample in [plain, ended] {
            let bytes = sample.encode();
            assert_eq!(bytes.len() as u64, sample.weight());
            assert_eq!(StoredSample::decode(&bytes), Some(sample));
            assert_eq!(StoredSample::decode(&bytes[..HEAD_BYTES - 1]), None);
        }
    }
}

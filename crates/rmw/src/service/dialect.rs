//! The two ways in which ROS 2's stacks relate a reply to its request.

use bytes::Bytes;
use pteros_rtps::id::Guid;
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};

use crate::sample::{Body, Item};

/// Bytes of a payload's encapsulation header.
const ENCAPSULATION_BYTES: usize = 4;

/// Bytes of [`Head`].
const HEAD_BYTES: usize = 16;

/// How a reply says whose request it answers. Which of the two a peer speaks is
/// known from its vendor; nothing is configured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Dialect {
    /// Inline QoS `related_sample_identity` (DDS-RPC 1.0 §7.8.2, as
    /// rmw_fastrtps uses it): a request carries the client's reply reader, a
    /// reply that reader and the request's own sequence number. Pteros, Fast DDS.
    Related,
    /// The first 16 bytes of the payload: the client's number and the
    /// request's (rmw_cyclonedds).
    Headed,
}

/// What [`Dialect::Headed`] puts before the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) client: u64,
    pub(super) sequence: i64,
}

impl Head {
    /// Puts it into a payload, whose byte order it takes over. The message
    /// stays aligned: 16 is a multiple of every alignment.
    pub(super) fn put_before(self, payload: &Bytes) -> Bytes {
        let (encapsulation, body) = payload
            .split_at_checked(ENCAPSULATION_BYTES)
            .unwrap_or((payload, &[]));
        let mut headed = Vec::with_capacity(payload.len() + HEAD_BYTES);
        headed.extend_from_slice(encapsulation);
        if is_little_endian(encapsulation) {
            headed.extend_from_slice(&self.client.to_le_bytes());
            headed.extend_from_slice(&self.sequence.to_le_bytes());
        } else {
            headed.extend_from_slice(&self.client.to_be_bytes());
            headed.extend_from_slice(&self.sequence.to_be_bytes());
        }
        headed.extend_from_slice(body);
        headed.into()
    }

    /// Takes it out of a payload; `None` if that is too short to have one.
    pub(super) fn take_from(payload: &Bytes) -> Option<(Self, Bytes)> {
        let (encapsulation, rest) = payload.split_first_chunk::<ENCAPSULATION_BYTES>()?;
        let (client, rest) = rest.split_first_chunk::<8>()?;
        let (sequence, body) = rest.split_first_chunk::<8>()?;
        let head = match is_little_endian(encapsulation) {
            true => Self {
                client: u64::from_le_bytes(*client),
                sequence: i64::from_le_bytes(*sequence),
            },
            false => Self {
                client: u64::from_be_bytes(*client),
                sequence: i64::from_be_bytes(*sequence),
            },
        };
        let mut message = Vec::with_capacity(ENCAPSULATION_BYTES + body.len());
        message.extend_from_slice(encapsulation);
        message.extend_from_slice(body);
        Some((head, message.into()))
    }

    /// What it adds to a payload, bytes.
    pub(super) const fn len() -> usize {
        HEAD_BYTES
    }
}

/// The identifier's lowest bit is the byte order (RTPS 2.5 §10.5).
fn is_little_endian(encapsulation: &[u8]) -> bool {
    encapsulation.get(1).is_none_or(|byte| byte & 1 == 1)
}

/// The message of a received sample, and what came before it.
pub(super) fn open(dialect: Dialect, item: &mut Item) -> Option<Option<Head>> {
    if dialect == Dialect::Related {
        return Some(None);
    }
    let Body::Serialized(payload) = &item.body else {
        return None;
    };
    let (head, message) = Head::take_from(payload)?;
    item.body = Body::Serialized(message);
    Some(Some(head))
}

/// A request's mark: where its reply is to go.
pub(super) fn reply_to(reader: Guid) -> SampleIdentity {
    SampleIdentity {
        writer: reader,
        sequence: SequenceNumber::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head {
        client: 0x0102_0304_0506_0708,
        sequence: 9,
    };

    #[test]
    fn a_head_goes_between_encapsulation_and_message_in_either_byte_order() {
        let little = Bytes::from_static(&[0, 1, 0, 0, 42, 0, 0, 0]);
        let headed = HEAD.put_before(&little);
        assert_eq!(
            headed.as_ref(),
            [
                0, 1, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0
            ]
        );
        assert_eq!(Head::take_from(&headed), Some((HEAD, little)));
        let big = Bytes::from_static(&[0, 0, 0, 0, 42]);
        let headed = HEAD.put_before(&big);
        assert_eq!(headed.get(4..12), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
        assert_eq!(Head::take_from(&headed), Some((HEAD, big)));
    }

    #[test]
    fn a_payload_too_short_for_a_head_has_none() {
        for len in 0..20 {
            assert_eq!(Head::take_from(&Bytes::from(vec![0; len])), None, "{len}");
        }
    }
}

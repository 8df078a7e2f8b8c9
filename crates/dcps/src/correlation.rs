//! The service correlation: two ways in which ROS 2's stacks relate a reply to its
//! request id. The client matches replies with requests by it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use pteros_rtps::id::{Guid, VendorId};
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};

use crate::sample::queued_sample::{QueuedSample, SampleBody};

/// Bytes of a payload's encapsulation header.
const ENCAPSULATION_BYTES: usize = 4;

/// Bytes of [`RequestHeader`].
const HEAD_BYTES: usize = 16;

/// How a reply identifies its request. The peer's vendor determines it; nothing is
/// configured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum CorrelationStyle {
    /// Inline QoS `related_sample_identity` (DDS-RPC 1.0 §7.8.2, as rmw_fastrtps
    /// uses it). A request carries the client's reply reader. A reply carries that
    /// reader and the request's sequence number. Pteros, Fast DDS.
    InlineQos,
    /// The first 16 bytes of the payload: the client's number and the request's
    /// (rmw_cyclonedds).
    PayloadHeader,
}

impl CorrelationStyle {
    /// The style of a stack's services; `None` if it has none of its own: its services
    /// may use this one, the other one, or the basic mapping of DDS-RPC.
    pub const fn of_vendor(vendor: VendorId) -> Option<Self> {
        match vendor {
            VendorId::CYCLONE => Some(Self::PayloadHeader),
            VendorId::PTEROS | VendorId::FAST_DDS => Some(Self::InlineQos),
            _ => None,
        }
    }
}

/// Why a client and a server of these two stacks may not understand each other, although
/// their endpoints match; `None` if they do. Pteros follows either style. Two of one stack
/// understand each other, and of an unknown vendor nothing is known.
pub fn service_mismatch(one: VendorId, other: VendorId) -> Option<String> {
    let is_unknown = |vendor| vendor == VendorId::default();
    if one == other || is_unknown(one) || is_unknown(other) {
        return None;
    }
    let style = CorrelationStyle::of_vendor;
    let has_header = |vendor| style(vendor) == Some(CorrelationStyle::PayloadHeader);
    let unknown = [one, other].into_iter().find(|v| style(*v).is_none());
    if let Some(vendor) = unknown.filter(|_| !has_header(one) && !has_header(other)) {
        return Some(format!(
            "requests and replies of {vendor:?} may begin with a header (basic mapping of \
             DDS-RPC), where those of Pteros and Fast DDS have their ids in the inline QoS; set \
             its request and reply mapping to the extended one"
        ));
    }
    let follows = |vendor| vendor == VendorId::PTEROS;
    (style(one) != style(other) && !follows(one) && !follows(other)).then(|| {
        format!(
            "{one:?} and {other:?} may relate replies to requests in different ways, by the \
             inline QoS or by a header in the payload; let one stack, or Pteros, have both the \
             client and the server"
        )
    })
}

/// The header of [`CorrelationStyle::PayloadHeader`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestHeader {
    /// The client's number.
    pub client: u64,
    /// The number of the request, from 1.
    pub sequence: i64,
}

impl RequestHeader {
    /// Inserts it into a payload, in the payload's byte order. The message stays
    /// aligned: 16 is a multiple of every alignment.
    pub fn insert_into(self, payload: &Bytes) -> Bytes {
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

    /// Extracts it from a payload; `None` if the payload is too short.
    pub fn extract_from(payload: &Bytes) -> Option<(Self, Bytes)> {
        let (encapsulation, rest) = payload.split_first_chunk::<ENCAPSULATION_BYTES>()?;
        let (client, rest) = rest.split_first_chunk::<8>()?;
        let (sequence, body) = rest.split_first_chunk::<8>()?;
        let header = if is_little_endian(encapsulation) {
            Self {
                client: u64::from_le_bytes(*client),
                sequence: i64::from_le_bytes(*sequence),
            }
        } else {
            Self {
                client: u64::from_be_bytes(*client),
                sequence: i64::from_be_bytes(*sequence),
            }
        };
        let mut message = Vec::with_capacity(ENCAPSULATION_BYTES + body.len());
        message.extend_from_slice(encapsulation);
        message.extend_from_slice(body);
        Some((header, message.into()))
    }

    /// The bytes that it adds to a payload.
    pub const fn len() -> usize {
        HEAD_BYTES
    }
}

/// The identifier's lowest bit is the byte order (RTPS 2.5 §10.5).
fn is_little_endian(encapsulation: &[u8]) -> bool {
    encapsulation.get(1).is_none_or(|byte| byte & 1 == 1)
}

/// Removes the header from a received sample and returns it.
pub fn decode_request_header(
    dialect: CorrelationStyle,
    item: &mut QueuedSample,
) -> Option<Option<RequestHeader>> {
    if dialect == CorrelationStyle::InlineQos {
        return Some(None);
    }
    let SampleBody::Serialized(payload) = &item.body else {
        return None;
    };
    let (header, message) = RequestHeader::extract_from(payload)?;
    item.body = SampleBody::Serialized(message);
    Some(Some(header))
}

/// The related sample identity of a request: where its reply goes.
pub fn reply_reader_identity(reader: Guid) -> SampleIdentity {
    SampleIdentity {
        writer: reader,
        sequence: SequenceNumber::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_stack_without_a_style_of_its_own_has_none() {
        let of = CorrelationStyle::of_vendor;
        assert_eq!(of(VendorId::CYCLONE), Some(CorrelationStyle::PayloadHeader));
        for vendor in [VendorId::PTEROS, VendorId::FAST_DDS] {
            assert_eq!(of(vendor), Some(CorrelationStyle::InlineQos));
        }
        for vendor in [VendorId::RTI, VendorId::OPENDDS, VendorId::RUSTDDS] {
            assert_eq!(of(vendor), None);
        }
    }

    #[test]
    fn stacks_that_may_not_understand_each_others_services_are_named() {
        use VendorId as V;
        for (one, other) in [
            (V::PTEROS, V::CYCLONE),
            (V::FAST_DDS, V::PTEROS),
            (V::RTI, V::RTI),
            (V::PTEROS, V::default()),
        ] {
            assert_eq!(service_mismatch(one, other), None, "{one:?} {other:?}");
        }
        for (one, other, named) in [
            (V::PTEROS, V::RTI, "RTI"),
            (V::RUSTDDS, V::PTEROS, "RustDDS"),
            (V::CYCLONE, V::OPENDDS, "OpenDDS"),
            (V::CYCLONE, V::FAST_DDS, "header in the payload"),
        ] {
            let reason = service_mismatch(one, other).unwrap_or_default();
            assert!(reason.contains(named), "{one:?} {other:?}: {reason}");
        }
    }

    const HEAD: RequestHeader = RequestHeader {
        client: 0x0102_0304_0506_0708,
        sequence: 9,
    };

    #[test]
    fn a_header_is_inserted_after_the_encapsulation_in_either_byte_order() {
        let little = Bytes::from_static(&[0, 1, 0, 0, 42, 0, 0, 0]);
        let headed = HEAD.insert_into(&little);
        assert_eq!(
            headed.as_ref(),
            [
                0, 1, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0
            ]
        );
        assert_eq!(RequestHeader::extract_from(&headed), Some((HEAD, little)));
        let big = Bytes::from_static(&[0, 0, 0, 0, 42]);
        let headed = HEAD.insert_into(&big);
        assert_eq!(headed.get(4..12), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
        assert_eq!(RequestHeader::extract_from(&headed), Some((HEAD, big)));
    }

    #[test]
    fn a_payload_too_short_for_a_header_has_none() {
        for len in 0..20 {
            assert_eq!(
                RequestHeader::extract_from(&Bytes::from(vec![0; len])),
                None,
                "{len}"
            );
        }
    }
}

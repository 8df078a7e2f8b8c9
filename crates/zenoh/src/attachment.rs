//! The attachment of a sample, request or reply: sequence number, source timestamp
//! and gid (rmw_zenoh_cpp `attachment_helpers.cpp`).
//!
//! Two forms are in use. Releases up to 0.2.3 precede each value with its name, later
//! ones write the bare values. The length distinguishes them. Only the later form is
//! written.

use crate::gid::Gid;

/// Bytes of the form without names: two integers, a length, the gid.
const BARE_BYTES: usize = 33;
/// Bytes of the form with names, the longer one.
pub const NAMED_BYTES: usize = 77;
/// The gid's length, as a variable-length integer.
const GID_LENGTH: u8 = 16;

/// Decoded attachment, see the module documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// The sequence number, from 1; from 0 for publishers of hiroz.
    pub sequence: i64,
    /// The source timestamp, nanoseconds since 1970.
    pub source_timestamp: i64,
    /// The sender; in a reply, the client that sent the request.
    pub gid: Gid,
}

impl Attachment {
    /// Encodes the form without names.
    pub fn to_bytes(self) -> [u8; BARE_BYTES] {
        let mut bytes = [0; BARE_BYTES];
        let (sequence, rest) = bytes.split_at_mut(8);
        let (stamp, rest) = rest.split_at_mut(8);
        let (length, gid) = rest.split_at_mut(1);
        sequence.copy_from_slice(&self.sequence.to_le_bytes());
        stamp.copy_from_slice(&self.source_timestamp.to_le_bytes());
        length.copy_from_slice(&[GID_LENGTH]);
        gid.copy_from_slice(&self.gid.0);
        bytes
    }

    /// Decodes either form. `None` for another length or a negative sequence number.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut input = bytes;
        let named = match bytes.len() {
            BARE_BYTES => false,
            NAMED_BYTES => true,
            _ => return None,
        };
        let mut begin = |name: &str| {
            if named {
                let length = u8::try_from(name.len()).ok()?;
                skip(&mut input, &[length])?;
                skip(&mut input, name.as_bytes())?;
            }
            let (value, rest) = input.split_first_chunk::<8>()?;
            input = rest;
            Some(i64::from_le_bytes(*value))
        };
        let sequence = begin("sequence_number")?;
        let source_timestamp = begin("source_timestamp")?;
        if named {
            skip(&mut input, &[10])?;
            skip(&mut input, b"source_gid")?;
        }
        skip(&mut input, &[GID_LENGTH])?;
        let gid = Gid(input.try_into().ok()?);
        (sequence >= 0).then_some(Self {
            sequence,
            source_timestamp,
            gid,
        })
    }
}

fn skip(input: &mut &[u8], expected: &[u8]) -> Option<()> {
    *input = input.strip_prefix(expected)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTACHMENT: Attachment = Attachment {
        sequence: 15,
        source_timestamp: 1_700_000_000_123_456_789,
        gid: Gid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
    };

    /// The bytes that releases up to 0.2.3 write.
    fn named() -> Vec<u8> {
        let mut bytes = vec![15];
        bytes.extend(b"sequence_number");
        bytes.extend(ATTACHMENT.sequence.to_le_bytes());
        bytes.push(16);
        bytes.extend(b"source_timestamp");
        bytes.extend(ATTACHMENT.source_timestamp.to_le_bytes());
        bytes.push(10);
        bytes.extend(b"source_gid");
        bytes.push(16);
        bytes.extend(ATTACHMENT.gid.0);
        bytes
    }

    #[test]
    fn both_forms_are_read_and_the_later_one_is_written() {
        let bytes = ATTACHMENT.to_bytes();
        assert_eq!(bytes[..8], [15, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16], 16);
        assert_eq!(bytes[17..], ATTACHMENT.gid.0);
        assert_eq!(Attachment::parse(&bytes), Some(ATTACHMENT));
        assert_eq!(named().len(), NAMED_BYTES);
        assert_eq!(Attachment::parse(&named()), Some(ATTACHMENT));
    }

    #[test]
    fn a_publisher_may_begin_with_zero() {
        let first = Attachment {
            sequence: 0,
            ..ATTACHMENT
        };
        assert_eq!(Attachment::parse(&first.to_bytes()), Some(first));
    }

    #[test]
    fn what_is_neither_form_is_refused() {
        for good in [ATTACHMENT.to_bytes().to_vec(), named()] {
            for length in 0..good.len() {
                assert_eq!(Attachment::parse(&good[..length]), None, "{length}");
            }
            let longer = [good.as_slice(), &[0]].concat();
            assert_eq!(Attachment::parse(&longer), None);
        }
        let mut wrong_length = ATTACHMENT.to_bytes();
        wrong_length[16] = 17;
        assert_eq!(Attachment::parse(&wrong_length), None);
        let mut wrong_name = named();
        wrong_name[3] = b'x';
        assert_eq!(Attachment::parse(&wrong_name), None);
        for sequence in [-1, i64::MIN] {
            let bytes = Attachment {
                sequence,
                ..ATTACHMENT
            }
            .to_bytes();
            assert_eq!(Attachment::parse(&bytes), None, "{sequence}");
        }
    }
}

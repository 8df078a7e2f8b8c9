//! DATA submessage: one change (RTPS 2.5 §8.3.8.2, §9.4.5.4).

use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::submessage_header::id;
use super::{Cursor, InlineQos, InlineQosHead, WireError, begin_submessage};
use crate::change::ChangeKind;
use crate::id::EntityId;
use crate::seq::SequenceNumber;

/// A received change.
///
/// ```text
/// 0               2               4               8
/// +---------------+---------------+---------------+
/// | extra flags   | to inline QoS | reader        |
/// +---------------+---------------+---------------+
/// | writer                        | sequence …
/// +-------------------------------+---------------+
/// | … number                      | inline QoS, if flag Q (0x02) …
/// +-------------------------------+
/// | payload, if flag D (0x04: data) or K (0x08: key only) …
/// +-------------------------------+   flag N (0x10): not in the usual form
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Data<'a> {
    /// The reader it addresses; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer, of the participant that the receiver state names as source.
    pub writer: EntityId,
    /// Its sequence number.
    pub sequence: SequenceNumber,
    /// Its inline QoS parameters.
    pub inline_qos: InlineQos<'a>,
    /// Encapsulation header and data; empty without payload. Up to three bytes of
    /// padding may follow.
    pub payload: &'a [u8],
    /// The payload is the key of the instance.
    pub key_only: bool,
    /// The payload is not in the form that the topic implies.
    pub non_standard_payload: bool,
}

impl<'a> Data<'a> {
    /// Reads the body.
    pub fn parse(flags: u8, body: &'a [u8]) -> Result<Self, WireError> {
        if flags & FLAG_DATA != 0 && flags & FLAG_KEY != 0 {
            return Err(WireError::InvalidFlags);
        }
        let mut at = Cursor::of_submessage(flags, body);
        at.u16()?;
        let to_inline_qos = usize::from(at.u16()?);
        let after_head = to_inline_qos
            .checked_sub(FIXED_BYTES)
            .ok_or(WireError::InvalidLength)?;
        let reader = at.entity_id()?;
        let writer = at.entity_id()?;
        let sequence = at.positive_sequence()?;
        at.bytes(after_head)?;
        let inline_qos = if flags & FLAG_INLINE_QOS != 0 {
            InlineQos::parse(&mut at)?
        } else {
            InlineQos::default()
        };
        let has_payload = flags & (FLAG_DATA | FLAG_KEY) != 0;
        Ok(Self {
            reader,
            writer,
            sequence,
            inline_qos,
            payload: if has_payload { at.rest() } else { &[] },
            key_only: flags & FLAG_KEY != 0,
            non_standard_payload: flags & FLAG_NON_STANDARD != 0,
        })
    }

    /// Reads the body of a DATA whose payload lies in another buffer.
    pub(super) fn parse_with_payload(
        flags: u8,
        head: &'a [u8],
        payload: &'a [u8],
    ) -> Result<Self, WireError> {
        let data = Self::parse(flags, head)?;
        let is_announced = flags & (FLAG_DATA | FLAG_KEY) != 0;
        if is_announced && data.payload.is_empty() {
            Ok(Self { payload, ..data })
        } else {
            Err(WireError::InvalidFlags)
        }
    }

    /// The effect of the change on its instance.
    pub fn change_kind(&self) -> ChangeKind {
        self.inline_qos.change_kind()
    }
}

/// The fields written before the payload of a DATA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataHead<'a> {
    /// The reader it addresses; UNKNOWN for all.
    pub reader: EntityId,
    /// The writer, of the participant that the receiver state names as source.
    pub writer: EntityId,
    /// Its sequence number.
    pub sequence: SequenceNumber,
    /// Its inline QoS parameters.
    pub inline_qos: InlineQosHead<'a>,
    /// The payload is the key of the instance.
    pub key_only: bool,
}

impl DataHead<'_> {
    /// Size on the wire with the submessage header and without payload, bytes.
    pub fn size_bytes(&self) -> usize {
        self.inline_qos.size_bytes().saturating_add(24)
    }

    /// Appends everything before the payload. Returns the offset of the submessage,
    /// to fill in its length later.
    pub(crate) fn write(&self, out: &mut Vec<u8>, has_payload: bool) -> usize {
        let mut flags = 0;
        if !self.inline_qos.is_empty() {
            flags |= FLAG_INLINE_QOS;
        }
        if has_payload {
            flags |= if self.key_only { FLAG_KEY } else { FLAG_DATA };
        }
        let at = begin_submessage(out, id::DATA, flags);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(FIXED_BYTES as u16).to_le_bytes());
        out.extend_from_slice(&self.reader.to_bytes());
        out.extend_from_slice(&self.writer.to_bytes());
        write_sequence(out, self.sequence);
        self.inline_qos.write(out);
        at
    }
}

/// Reader, writer and sequence number.
const FIXED_BYTES: usize = 16;
const FLAG_INLINE_QOS: u8 = 0x02;
const FLAG_DATA: u8 = 0x04;
const FLAG_KEY: u8 = 0x08;
const FLAG_NON_STANDARD: u8 = 0x10;

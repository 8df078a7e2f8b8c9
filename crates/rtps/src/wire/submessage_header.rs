//! Submessage header: id, flags and length (RTPS 2.5 §8.3.3.2, §9.4.5.1). Every
//! submessage's parser and writer uses it.

use alloc::vec::Vec;

use super::{Cursor, Endianness, WireError};

/// The four bytes before each submessage.
///
/// ```text
/// 0       1       2               4
/// +-------+-------+---------------+
/// | id    | flags | length        |   flags bit 0: little endian
/// +-------+-------+---------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubmessageHeader {
    /// The kind of submessage.
    pub id: u8,
    /// The flags. Their meaning depends on the submessage, except bit 0 (byte
    /// order).
    pub flags: u8,
    /// The bytes that follow; see [`SubmessageHeader::body`] for zero.
    pub length: u16,
}

impl SubmessageHeader {
    /// Size on the wire, bytes.
    pub const SIZE_BYTES: usize = 4;

    /// Reads a header.
    pub fn parse(at: &mut Cursor<'_>) -> Result<Self, WireError> {
        let [id, flags, a, b] = at.array()?;
        let length = match Endianness::of_flags(flags) {
            Endianness::Big => u16::from_be_bytes([a, b]),
            Endianness::Little => u16::from_le_bytes([a, b]),
        };
        Ok(Self { id, flags, length })
    }

    /// Splits the bytes after the header into its body and the rest. A length of
    /// zero means "to the end of the message", except for the two submessages that
    /// may be empty (§9.4.5.1.3).
    pub fn body<'a>(&self, at: &mut Cursor<'a>) -> Result<&'a [u8], WireError> {
        let to_the_end = self.length == 0 && self.id != id::PAD && self.id != id::INFO_TS;
        let length = if to_the_end {
            at.rest().len()
        } else {
            usize::from(self.length)
        };
        at.bytes(length).map_err(|_| WireError::InvalidLength)
    }
}

/// Writes a submessage header with an open length; returns its offset.
pub(crate) fn begin_submessage(out: &mut Vec<u8>, id: u8, flags: u8) -> usize {
    let at = out.len();
    out.extend_from_slice(&[id, flags | FLAG_LITTLE_ENDIAN, 0, 0]);
    at
}

/// Fills in the length of the submessage begun at `at`, plus `more` bytes that
/// another buffer holds.
pub(crate) fn end_submessage(out: &mut [u8], at: usize, more: usize) {
    let written = out
        .len()
        .saturating_sub(at)
        .saturating_sub(SubmessageHeader::SIZE_BYTES);
    let length = u16::try_from(written.saturating_add(more)).unwrap_or(0);
    if let Some(field) = out.get_mut(at..).and_then(|head| head.get_mut(2..4)) {
        field.copy_from_slice(&length.to_le_bytes());
    }
}

const FLAG_LITTLE_ENDIAN: u8 = 0x01;

/// Ids of submessages (§9.4.5.1.1).
pub(super) mod id {
    pub const PAD: u8 = 0x01;
    pub const ACKNACK: u8 = 0x06;
    pub const HEARTBEAT: u8 = 0x07;
    pub const GAP: u8 = 0x08;
    pub const INFO_TS: u8 = 0x09;
    pub const INFO_SRC: u8 = 0x0c;
    pub const INFO_REPLY_IP4: u8 = 0x0d;
    pub const INFO_DST: u8 = 0x0e;
    pub const INFO_REPLY: u8 = 0x0f;
    pub const NACK_FRAG: u8 = 0x12;
    pub const HEARTBEAT_FRAG: u8 = 0x13;
    pub const DATA: u8 = 0x15;
    pub const DATA_FRAG: u8 = 0x16;
}

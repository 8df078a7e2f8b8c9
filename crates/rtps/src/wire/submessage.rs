//! Submessage header, and the dispatch to the submessage parsers (RTPS 2.5 §8.3.4,
//! §9.4.5.1).

use alloc::vec::Vec;

use super::{
    AckNack, Cursor, Data, DataFrag, Endianness, Gap, Heartbeat, HeartbeatFrag, InfoReply,
    InfoSource, NackFrag, SecureKind, WireError, info,
};
use crate::id::{EntityId, GuidPrefix};
use crate::time::Timestamp;

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

/// One parsed and valid submessage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Submessage<'a> {
    /// A change.
    Data(Data<'a>),
    /// Fragments of a change.
    DataFrag(DataFrag<'a>),
    /// The range of available changes.
    Heartbeat(Heartbeat),
    /// The available fragments of a change.
    HeartbeatFrag(HeartbeatFrag),
    /// Acknowledgement and request of a reader.
    AckNack(AckNack),
    /// The fragments of a change that a reader misses.
    NackFrag(NackFrag),
    /// Irrelevant sequence numbers.
    Gap(Gap),
    /// The timestamp of the changes that follow; `None` invalidates it.
    InfoTimestamp(Option<Timestamp>),
    /// The destination participant of the submessages that follow.
    InfoDestination(GuidPrefix),
    /// The source participant of the submessages that follow.
    InfoSource(InfoSource),
    /// The locators for answers.
    InfoReply(InfoReply<'a>),
    /// Padding.
    Pad,
    /// Protected content in its received form (DDS Security 1.1 §9.5.3.3).
    Secure(SecureKind, &'a [u8]),
    /// A submessage of another vendor or a later version, such as HEADER_EXTENSION;
    /// its id. The contents are skipped.
    Unknown(u8),
}

impl<'a> Submessage<'a> {
    /// Reads the body of a submessage. An unknown id is no error, since later
    /// versions and vendors add submessages (§8.3.4.1).
    pub fn parse(header: SubmessageHeader, body: &'a [u8]) -> Result<Self, WireError> {
        let flags = header.flags;
        Ok(match header.id {
            id::PAD => Self::Pad,
            id::ACKNACK => Self::AckNack(AckNack::parse(flags, body)?),
            id::HEARTBEAT => Self::Heartbeat(Heartbeat::parse(flags, body)?),
            id::GAP => Self::Gap(Gap::parse(flags, body)?),
            id::INFO_TS => Self::InfoTimestamp(info::parse_timestamp(flags, body)?),
            id::INFO_SRC => Self::InfoSource(InfoSource::parse(flags, body)?),
            id::INFO_REPLY_IP4 => Self::InfoReply(InfoReply::parse_ip4(flags, body)?),
            id::INFO_DST => Self::InfoDestination(info::parse_destination(flags, body)?),
            id::INFO_REPLY => Self::InfoReply(InfoReply::parse(flags, body)?),
            id::NACK_FRAG => Self::NackFrag(NackFrag::parse(flags, body)?),
            id::HEARTBEAT_FRAG => Self::HeartbeatFrag(HeartbeatFrag::parse(flags, body)?),
            id::DATA => Self::Data(Data::parse(flags, body)?),
            id::DATA_FRAG => Self::DataFrag(DataFrag::parse(flags, body)?),
            other => match SecureKind::of_id(other) {
                Some(kind) => Self::Secure(kind, body),
                None => Self::Unknown(other),
            },
        })
    }

    /// Reads a submessage whose payload lies in another buffer. `head` holds the
    /// bytes before it. Only a DATA has this form.
    pub(crate) fn parse_with_payload(
        header: SubmessageHeader,
        head: &'a [u8],
        payload: &'a [u8],
    ) -> Result<Self, WireError> {
        match header.id {
            id::DATA => Data::parse_with_payload(header.flags, head, payload).map(Self::Data),
            _ => Err(WireError::InvalidLength),
        }
    }

    /// The writer that sent it or that it answers; `None` without an endpoint.
    pub fn writer(&self) -> Option<EntityId> {
        match self {
            Self::Data(data) => Some(data.writer),
            Self::DataFrag(data) => Some(data.writer),
            Self::Heartbeat(beat) => Some(beat.writer),
            Self::HeartbeatFrag(beat) => Some(beat.writer),
            Self::Gap(gap) => Some(gap.writer),
            Self::AckNack(ack) => Some(ack.writer),
            Self::NackFrag(nack) => Some(nack.writer),
            Self::InfoTimestamp(_)
            | Self::InfoDestination(_)
            | Self::InfoSource(_)
            | Self::InfoReply(_)
            | Self::Pad
            | Self::Secure(..)
            | Self::Unknown(_) => None,
        }
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

//! One submessage of any kind, and the dispatch to its parser (RTPS 2.5 §8.3.4,
//! §9.4.5.1).

use super::submessage_header::id;
use super::{
    AckNack, Data, DataFrag, Gap, Heartbeat, HeartbeatFrag, InfoReply, InfoSource, NackFrag,
    SecureKind, SubmessageHeader, WireError, info,
};
use crate::id::{EntityId, GuidPrefix};
use crate::time::Timestamp;

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

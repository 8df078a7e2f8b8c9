//! Submessage parser for the crypto transform: the endpoint ids, the length and the
//! payload's offset, which decide how a submessage is protected.

use pteros_rtps::id::{EntityId, GuidPrefix};

#[derive(Debug, Clone, Copy)]
pub(super) struct Submessage<'a> {
    pub id: u8,
    pub flags: u8,
    pub body: &'a [u8],
    /// Header and body.
    pub whole: &'a [u8],
}

/// Sender and receiver of a submessage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndpointIds {
    pub sender: EntityId,
    /// Unknown means all matching readers.
    pub receiver: EntityId,
}

impl<'a> Submessage<'a> {
    /// The first submessage, and the bytes after it.
    pub fn take(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let head = SubmessageHeader::read(bytes)?;
        let rest = bytes.get(HEADER_BYTES..)?;
        let length = if head.length == 0 && !matches!(head.id, PAD | INFO_TIMESTAMP) {
            rest.len()
        } else {
            head.length
        };
        let (body, after) = rest.split_at_checked(length)?;
        let whole = bytes.get(..length.checked_add(HEADER_BYTES)?)?;
        let submessage = Self {
            id: head.id,
            flags: head.flags,
            body,
            whole,
        };
        Some((submessage, after))
    }

    /// Its sender and receiver; `None` if it is not of an endpoint, or too short.
    pub fn endpoint_ids(&self) -> Option<EndpointIds> {
        endpoint_ids(self.id, self.body)
    }

    /// Whether its kind is sent by endpoints.
    pub fn is_of_endpoint(&self) -> bool {
        is_of_endpoint(self.id)
    }

    /// Offset of the payload in `whole`, if it has one.
    pub fn payload_at(&self) -> Option<usize> {
        payload_at(self.whole)
    }

    /// The destination of the following submessages, if this is an INFO_DST.
    pub fn destination(&self) -> Option<GuidPrefix> {
        let prefix = self.body.first_chunk::<12>().copied();
        prefix
            .filter(|_| self.id == INFO_DESTINATION)
            .map(GuidPrefix)
    }
}

/// The submessage header: the first four bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubmessageHeader {
    pub id: u8,
    pub flags: u8,
    /// As received; zero may mean "the rest of the message".
    pub length: usize,
}

impl SubmessageHeader {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [id, flags, a, b] = *bytes.first_chunk::<4>()?;
        let length = match flags & 1 {
            1 => u16::from_le_bytes([a, b]),
            _ => u16::from_be_bytes([a, b]),
        };
        Some(Self {
            id,
            flags,
            length: usize::from(length),
        })
    }

    /// The two bytes of a length, in this submessage's byte order.
    pub fn length_bytes(flags: u8, length: u16) -> [u8; 2] {
        match flags & 1 {
            1 => length.to_le_bytes(),
            _ => length.to_be_bytes(),
        }
    }
}

/// Sender and receiver of a submessage with this id and body.
pub(super) fn endpoint_ids(id: u8, body: &[u8]) -> Option<EndpointIds> {
    let at = match id {
        DATA | DATA_FRAG => 4,
        HEARTBEAT | HEARTBEAT_FRAG | GAP | ACKNACK | NACK_FRAG => 0,
        _ => return None,
    };
    let (reader, rest) = body.get(at..)?.split_first_chunk::<4>()?;
    let reader = EntityId::from_bytes(*reader);
    let writer = EntityId::from_bytes(*rest.first_chunk::<4>()?);
    let (sender, receiver) = match id {
        ACKNACK | NACK_FRAG => (reader, writer),
        _ => (writer, reader),
    };
    Some(EndpointIds { sender, receiver })
}

pub(super) fn is_of_endpoint(id: u8) -> bool {
    let of_writer = matches!(id, DATA | DATA_FRAG | HEARTBEAT | HEARTBEAT_FRAG | GAP);
    of_writer || matches!(id, ACKNACK | NACK_FRAG)
}

/// Offset of the payload of a DATA or DATA_FRAG, if it has one and these first
/// bytes reach that far.
pub(super) fn payload_at(submessage: &[u8]) -> Option<usize> {
    let head = SubmessageHeader::read(submessage)?;
    let number = |at: usize| -> Option<usize> {
        let bytes = submessage.get(at..)?.first_chunk::<2>()?;
        let number = match head.flags & 1 {
            1 => u16::from_le_bytes(*bytes),
            _ => u16::from_be_bytes(*bytes),
        };
        Some(usize::from(number))
    };
    let has_payload = match head.id {
        DATA => head.flags & 0x0c != 0,
        DATA_FRAG => true,
        _ => false,
    };
    if !has_payload {
        return None;
    }
    // Extra flags, then the offset of the inline QoS.
    let mut at = number(6)?.checked_add(8)?;
    if head.flags & 0x02 != 0 {
        loop {
            let (parameter, length) = (number(at)?, number(at.checked_add(2)?)?);
            at = at.checked_add(4)?;
            if parameter & 0x3fff == SENTINEL {
                break;
            }
            at = at.checked_add(length)?;
        }
    }
    (at <= submessage.len()).then_some(at)
}

pub(super) const HEADER_BYTES: usize = 4;
/// RTPS header of a message.
pub(super) const RTPS_HEADER_BYTES: usize = 20;
/// INFO_SOURCE with its submessage header.
pub(super) const INFO_SOURCE_BYTES: usize = 24;

pub(super) const PAD: u8 = 0x01;
pub(super) const ACKNACK: u8 = 0x06;
pub(super) const HEARTBEAT: u8 = 0x07;
pub(super) const GAP: u8 = 0x08;
pub(super) const INFO_TIMESTAMP: u8 = 0x09;
pub(super) const INFO_SOURCE: u8 = 0x0c;
pub(super) const INFO_REPLY_IP4: u8 = 0x0d;
pub(super) const INFO_DESTINATION: u8 = 0x0e;
pub(super) const INFO_REPLY: u8 = 0x0f;
pub(super) const NACK_FRAG: u8 = 0x12;
pub(super) const HEARTBEAT_FRAG: u8 = 0x13;
pub(super) const DATA: u8 = 0x15;
pub(super) const DATA_FRAG: u8 = 0x16;
pub(super) const SEC_PREFIX: u8 = 0x31;
pub(super) const SRTPS_PREFIX: u8 = 0x33;

const SENTINEL: usize = 1;

//! Message receiver: parses a message into its submessages, with the receiver state
//! (RTPS 2.5 §8.3.4).
//!
//! INFO submessages change the state for the submessages that follow. Submessages
//! for other participants are skipped. A known but invalid submessage ends the
//! message (§8.3.4.1), an unknown one does not. Nothing is allocated or copied.

use crate::id::{GuidPrefix, ProtocolVersion, VendorId};
use crate::locator::Locator;
use crate::time::Timestamp;
use crate::wire::{
    Cursor, Endianness, Header, LocatorList, Submessage, SubmessageHeader, WireError,
};
use core::mem;

/// The receiver state of a submessage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// The source participant.
    pub prefix: GuidPrefix,
    /// Its protocol version.
    pub version: ProtocolVersion,
    /// The implementation that sent it: from the header, or from INFO_SRC.
    pub vendor: VendorId,
    /// The source timestamp of the change.
    pub timestamp: Option<Timestamp>,
    /// The destination participant: ours, or UNKNOWN for all.
    pub destination: GuidPrefix,
    /// Whether it came by a shared-memory connection.
    pub via_shared_memory: bool,
    /// The locator for answers instead of the announced ones: the first UDP
    /// locator of INFO_REPLY.
    pub reply_unicast: Option<Locator>,
    /// The same for multicast.
    pub reply_multicast: Option<Locator>,
}

impl Source {
    /// The state at the start of a message with this header.
    pub const fn of(header: Header) -> Self {
        Self {
            prefix: header.prefix,
            version: header.version,
            vendor: header.vendor,
            timestamp: None,
            destination: GuidPrefix::UNKNOWN,
            via_shared_memory: false,
            reply_unicast: None,
            reply_multicast: None,
        }
    }
}

/// An iterator over the submessages of one datagram that are for us. It also yields
/// INFO submessages, which can be ignored.
#[derive(Clone, Debug)]
pub struct MessageReader<'a> {
    header: Header,
    own: GuidPrefix,
    source: Source,
    rest: Cursor<'a>,
    /// A payload in another buffer, and the tail that follows it.
    detached: DetachedPayload<'a>,
    error: Option<WireError>,
}

/// The parts of a message behind its head; both empty for a plain datagram.
#[derive(Clone, Copy, Debug, Default)]
struct DetachedPayload<'a> {
    body: &'a [u8],
    tail: &'a [u8],
}

impl<'a> MessageReader<'a> {
    /// Begins to parse a datagram as the participant `own`. Fails unless it is an
    /// RTPS 2 message.
    pub fn new(datagram: &'a [u8], own: GuidPrefix) -> Result<Self, WireError> {
        let header = Header::parse(datagram)?;
        let rest = datagram
            .get(Header::SIZE_BYTES..)
            .ok_or(WireError::Truncated)?;
        Ok(Self {
            header,
            own,
            source: Source::of(header),
            rest: Cursor::new(rest, Endianness::Little),
            detached: DetachedPayload::default(),
            error: None,
        })
    }

    /// Begins to parse a message from shared memory, in the three parts of
    /// [`Datagram`](crate::outbox::Datagram).
    ///
    /// The head ends within a DATA whose payload is `body`. The tail begins with
    /// the padding of that to four bytes. The length of that DATA may be 0, since
    /// it may exceed 16 bits. Without a body the tail continues the head.
    pub fn in_parts(
        head: &'a [u8],
        body: &'a [u8],
        tail: &'a [u8],
        own: GuidPrefix,
    ) -> Result<Self, WireError> {
        let mut reader = Self::new(head, own)?;
        reader.detached = DetachedPayload { body, tail };
        reader.source.via_shared_memory = true;
        Ok(reader)
    }

    /// The header of the message.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The error that ended the message early. Check it after the iterator ends.
    pub fn error(&self) -> Option<WireError> {
        self.error
    }

    fn next_submessage(&mut self) -> Result<Option<(Source, Submessage<'a>)>, WireError> {
        loop {
            if self.rest.rest().is_empty() && !self.begin_tail()? {
                return Ok(None);
            }
            let header = SubmessageHeader::parse(&mut self.rest)?;
            let submessage = if self.ends_in_detached(header) {
                self.take_detached(header)?
            } else {
                Submessage::parse(header, header.body(&mut self.rest)?)?
            };
            self.apply_info(&submessage);
            if self.is_for_us(&submessage) {
                return Ok(Some((self.source, submessage)));
            }
        }
    }

    /// Continues with the tail at the end of the head; false at the very end.
    fn begin_tail(&mut self) -> Result<bool, WireError> {
        let DetachedPayload { body, tail } = mem::take(&mut self.detached);
        if !body.is_empty() {
            // A payload without its DATA.
            return Err(WireError::InvalidLength);
        }
        self.rest = Cursor::new(tail, Endianness::Little);
        Ok(!tail.is_empty())
    }

    /// Whether the head ends in this submessage.
    fn ends_in_detached(&self, header: SubmessageHeader) -> bool {
        let here = self.rest.rest().len();
        let is_open = header.length == 0 || usize::from(header.length) > here;
        is_open && !self.detached.body.is_empty()
    }

    fn take_detached(&mut self, header: SubmessageHeader) -> Result<Submessage<'a>, WireError> {
        let DetachedPayload { body, tail } = mem::take(&mut self.detached);
        let head = self.rest.rest();
        let padding = body.len().wrapping_neg() & 3;
        let tail = tail.get(padding..).ok_or(WireError::InvalidLength)?;
        let length = [head.len(), body.len(), padding]
            .into_iter()
            .fold(0, usize::saturating_add);
        if header.length != 0 && usize::from(header.length) != length {
            return Err(WireError::InvalidLength);
        }
        self.rest = Cursor::new(tail, Endianness::Little);
        Submessage::parse_with_payload(header, head, body)
    }

    /// Updates the receiver state from an INFO submessage.
    fn apply_info(&mut self, submessage: &Submessage<'_>) {
        match submessage {
            Submessage::InfoTimestamp(timestamp) => self.source.timestamp = *timestamp,
            Submessage::InfoDestination(prefix) => self.source.destination = *prefix,
            Submessage::InfoSource(info) => {
                // §8.3.8.10: the state of the old source becomes invalid.
                self.source = Source {
                    prefix: info.prefix,
                    version: info.version,
                    vendor: info.vendor,
                    timestamp: None,
                    reply_unicast: None,
                    reply_multicast: None,
                    ..self.source
                };
            }
            Submessage::InfoReply(reply) => {
                self.source.reply_unicast = first_udp(&reply.unicast);
                self.source.reply_multicast = first_udp(&reply.multicast);
            }
            _ => {}
        }
    }

    fn is_for_us(&self, submessage: &Submessage<'_>) -> bool {
        let to = self.source.destination;
        to == GuidPrefix::UNKNOWN
            || to == self.own
            || matches!(
                submessage,
                Submessage::InfoTimestamp(_)
                    | Submessage::InfoDestination(_)
                    | Submessage::InfoSource(_)
                    | Submessage::InfoReply(_)
                    | Submessage::Pad
                    | Submessage::Unknown(_)
            )
    }
}

fn first_udp(list: &LocatorList<'_>) -> Option<Locator> {
    list.iter().find(|locator| locator.to_udp().is_some())
}

impl<'a> Iterator for MessageReader<'a> {
    type Item = (Source, Submessage<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.error.is_some() {
            return None;
        }
        self.next_submessage().unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })
    }
}

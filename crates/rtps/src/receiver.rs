//! Reads a message: who sent it, and its submessages one after another
//! (RTPS 2.5 §8.3.4, the Receiver).
//!
//! INFO submessages change what holds for those that follow; that state is
//! kept here. Submessages meant for other participants are left out. A
//! submessage that is known and invalid ends the message (§8.3.4.1), one of an
//! unknown kind does not. Nothing is allocated or copied.

use crate::id::{GuidPrefix, ProtocolVersion, VendorId};
use crate::locator::Locator;
use crate::time::Timestamp;
use crate::wire::{
    Cursor, Endianness, Header, LocatorList, Submessage, SubmessageHeader, WireError,
};
use core::mem;

/// What holds for a submessage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// The participant it comes from.
    pub prefix: GuidPrefix,
    /// That participant's protocol version.
    pub version: ProtocolVersion,
    /// That participant's vendor.
    pub vendor: VendorId,
    /// When its change was written.
    pub timestamp: Option<Timestamp>,
    /// Whom it is for: us, or UNKNOWN for everybody.
    pub destination: GuidPrefix,
    /// Whether it came by a link of shared memory.
    pub by_link: bool,
    /// Where answers should go instead of the announced locators, if the
    /// sender said so: the first UDPv4 locators of INFO_REPLY.
    pub reply_unicast: Option<Locator>,
    /// The same for multicast.
    pub reply_multicast: Option<Locator>,
}

impl Source {
    /// What holds at the start of a message with this header.
    pub const fn of(header: Header) -> Self {
        Self {
            prefix: header.prefix,
            version: header.version,
            vendor: header.vendor,
            timestamp: None,
            destination: GuidPrefix::UNKNOWN,
            by_link: false,
            reply_unicast: None,
            reply_multicast: None,
        }
    }
}

/// An iterator over the submessages of one datagram that are for us. INFO
/// submessages are given out as well, and can be ignored.
#[derive(Clone, Debug)]
pub struct MessageReader<'a> {
    header: Header,
    own: GuidPrefix,
    source: Source,
    rest: Cursor<'a>,
    /// A payload that lies elsewhere, and what follows it.
    outside: Outside<'a>,
    error: Option<WireError>,
}

/// The parts of a message behind its head; both empty for a plain datagram.
#[derive(Clone, Copy, Debug, Default)]
struct Outside<'a> {
    body: &'a [u8],
    tail: &'a [u8],
}

impl<'a> MessageReader<'a> {
    /// Begins to read a datagram as the participant `own`. Fails if it is no
    /// message of RTPS 2.
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
            outside: Outside::default(),
            error: None,
        })
    }

    /// Begins to read a message that came by a link in the three parts of
    /// [`Datagram`](crate::outbox::Datagram). The head ends within a DATA whose
    /// payload is `body`; the tail begins with what pads that to four bytes. The
    /// length of that DATA may be 0, for it need not fit 16 bits. Without a body
    /// the tail only goes on where the head ends.
    pub fn in_parts(
        head: &'a [u8],
        body: &'a [u8],
        tail: &'a [u8],
        own: GuidPrefix,
    ) -> Result<Self, WireError> {
        let mut reader = Self::new(head, own)?;
        reader.outside = Outside { body, tail };
        reader.source.by_link = true;
        Ok(reader)
    }

    /// The header of the message.
    pub fn header(&self) -> Header {
        self.header
    }

    /// What was invalid and ended the message early; look when the iterator is
    /// through.
    pub fn error(&self) -> Option<WireError> {
        self.error
    }

    fn step(&mut self) -> Result<Option<(Source, Submessage<'a>)>, WireError> {
        loop {
            if self.rest.rest().is_empty() && !self.begin_tail()? {
                return Ok(None);
            }
            let header = SubmessageHeader::parse(&mut self.rest)?;
            let submessage = match self.ends_outside(header) {
                true => self.take_outside(header)?,
                false => Submessage::parse(header, header.body(&mut self.rest)?)?,
            };
            self.note(&submessage);
            if self.is_for_us(&submessage) {
                return Ok(Some((self.source, submessage)));
            }
        }
    }

    /// Goes on with the tail where the head is through; false at the very end.
    fn begin_tail(&mut self) -> Result<bool, WireError> {
        let Outside { body, tail } = mem::take(&mut self.outside);
        if !body.is_empty() {
            // Nobody has told whose payload it is.
            return Err(WireError::InvalidLength);
        }
        self.rest = Cursor::new(tail, Endianness::Little);
        Ok(!tail.is_empty())
    }

    /// Whether this is the submessage that the head ends in.
    fn ends_outside(&self, header: SubmessageHeader) -> bool {
        let here = self.rest.rest().len();
        let is_open = header.length == 0 || usize::from(header.length) > here;
        is_open && !self.outside.body.is_empty()
    }

    fn take_outside(&mut self, header: SubmessageHeader) -> Result<Submessage<'a>, WireError> {
        let Outside { body, tail } = mem::take(&mut self.outside);
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

    /// Keeps what an INFO submessage says about the following ones.
    fn note(&mut self, submessage: &Submessage<'_>) {
        match submessage {
            Submessage::InfoTimestamp(timestamp) => self.source.timestamp = *timestamp,
            Submessage::InfoDestination(prefix) => self.source.destination = *prefix,
            Submessage::InfoSource(info) => {
                // §8.3.8.10: what held for the old source holds no longer.
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
                self.source.reply_unicast = first_udp_v4(&reply.unicast);
                self.source.reply_multicast = first_udp_v4(&reply.multicast);
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

fn first_udp_v4(list: &LocatorList<'_>) -> Option<Locator> {
    list.iter().find(|locator| locator.to_udp_v4().is_some())
}

impl<'a> Iterator for MessageReader<'a> {
    type Item = (Source, Submessage<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.error.is_some() {
            return None;
        }
        self.step().unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })
    }
}

//! Bounds-checked cursor: reads numbers from received bytes in either byte order.
//!
//! Every read checks the remaining length. This crate has no other way to look at
//! received bytes, so no read passes the end.

use super::WireError;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::seq::SequenceNumber;

/// The order of the bytes of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Endianness {
    /// Most significant byte first.
    Big,
    /// Least significant byte first. This crate writes it.
    #[default]
    Little,
}

impl Endianness {
    /// The order that the E flag of a submessage announces (§9.4.5.1.2).
    pub const fn of_flags(flags: u8) -> Self {
        if flags & 1 == 1 {
            Self::Little
        } else {
            Self::Big
        }
    }
}

/// A position in received bytes.
///
/// Copying it makes a bookmark. A failed read leaves the position unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    endianness: Endianness,
}

impl<'a> Cursor<'a> {
    /// Reads from the start of `bytes`.
    pub const fn new(bytes: &'a [u8], endianness: Endianness) -> Self {
        Self {
            rest: bytes,
            endianness,
        }
    }

    /// Reads the body of a submessage in the order its flags say.
    pub const fn of_submessage(flags: u8, body: &'a [u8]) -> Self {
        Self::new(body, Endianness::of_flags(flags))
    }

    /// The bytes not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The byte order of numbers.
    pub const fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes, copied.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        let bytes = self.array()?;
        Ok(match self.endianness {
            Endianness::Big => u16::from_be_bytes(bytes),
            Endianness::Little => u16::from_le_bytes(bytes),
        })
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        let bytes = self.array()?;
        Ok(match self.endianness {
            Endianness::Big => u32::from_be_bytes(bytes),
            Endianness::Little => u32::from_le_bytes(bytes),
        })
    }

    /// Four bytes, signed.
    pub fn i32(&mut self) -> Result<i32, WireError> {
        self.u32().map(|value| value as i32)
    }

    /// Two bytes, signed.
    pub fn i16(&mut self) -> Result<i16, WireError> {
        self.u16().map(|value| value as i16)
    }

    /// An entity id, whose bytes have no order.
    pub fn entity_id(&mut self) -> Result<EntityId, WireError> {
        self.array().map(EntityId::from_bytes)
    }

    /// A GUID prefix.
    pub fn guid_prefix(&mut self) -> Result<GuidPrefix, WireError> {
        self.array().map(GuidPrefix)
    }

    /// A GUID.
    pub fn guid(&mut self) -> Result<Guid, WireError> {
        self.array().map(Guid::from_bytes)
    }

    /// A sequence number of any value (§9.4.2.5).
    pub fn sequence(&mut self) -> Result<SequenceNumber, WireError> {
        let mut ahead = *self;
        let high = ahead.i32()?;
        let low = ahead.u32()?;
        *self = ahead;
        Ok(SequenceNumber::from_wire(high, low))
    }

    /// A sequence number that a writer may have used: a positive one.
    pub fn positive_sequence(&mut self) -> Result<SequenceNumber, WireError> {
        let sequence = self.sequence()?;
        if sequence.is_valid() {
            Ok(sequence)
        } else {
            Err(WireError::InvalidSequence)
        }
    }

    /// Reads 24 bytes: kind, port and address (RTPS 2.5 §9.3.2.3). A sender knows no zone
    /// of ours.
    pub fn locator(&mut self) -> Result<Locator, WireError> {
        let mut ahead = *self;
        let locator = Locator {
            kind: ahead.i32()?,
            port: ahead.u32()?,
            address: ahead.array()?,
        };
        *self = ahead;
        Ok(locator.in_zone(0))
    }
}

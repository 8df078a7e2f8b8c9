//! INFO submessages: they set the receiver state for the submessages that follow
//! (RTPS 2.5 §8.3.8.8–11, §9.4.5.9–12, §9.4.5.15).

use alloc::vec::Vec;

use super::submessage_header::id;
use super::{Cursor, LocatorList, WireError, begin_submessage, end_submessage};
use crate::id::{GuidPrefix, ProtocolVersion, VendorId};
use crate::time::Timestamp;

/// INFO_SRC: the submessages that follow come from another participant.
///
/// ```text
/// 0               4               8
/// +---------------+-------+-------+
/// | unused        |version|vendor |
/// +---------------+-------+-------+
/// | GUID prefix (12 bytes)        |
/// +-------------------------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoSource {
    /// Protocol version of the true source.
    pub version: ProtocolVersion,
    /// Vendor of the true source.
    pub vendor: VendorId,
    /// The true source.
    pub prefix: GuidPrefix,
}

impl InfoSource {
    /// Reads the body.
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        at.u32()?;
        let [major, minor] = at.array()?;
        if major != 2 {
            return Err(WireError::UnsupportedVersion(major));
        }
        Ok(Self {
            version: ProtocolVersion { major, minor },
            vendor: VendorId(at.array()?),
            prefix: at.guid_prefix()?,
        })
    }
}

/// INFO_REPLY and INFO_REPLY_IP4: the locators for answers.
///
/// ```text
/// 0               4
/// +---------------+---- … --------+
/// | count         | unicast locators
/// +---------------+---- … --------+
/// | count         | multicast locators, if flag M (0x02)
/// +---------------+---- … --------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoReply<'a> {
    /// Unicast destinations.
    pub unicast: LocatorList<'a>,
    /// Multicast destinations.
    pub multicast: LocatorList<'a>,
}

impl<'a> InfoReply<'a> {
    const FLAG_MULTICAST: u8 = 0x02;

    /// Reads the body of INFO_REPLY.
    pub fn parse(flags: u8, body: &'a [u8]) -> Result<Self, WireError> {
        Self::parse_lists(flags, body, LocatorList::parse)
    }

    /// Reads the body of INFO_REPLY_IP4.
    pub fn parse_ip4(flags: u8, body: &'a [u8]) -> Result<Self, WireError> {
        Self::parse_lists(flags, body, LocatorList::parse_ip4)
    }

    fn parse_lists(
        flags: u8,
        body: &'a [u8],
        list: impl Fn(&mut Cursor<'a>) -> Result<LocatorList<'a>, WireError>,
    ) -> Result<Self, WireError> {
        let mut at = Cursor::of_submessage(flags, body);
        let unicast = list(&mut at)?;
        let multicast = if flags & Self::FLAG_MULTICAST != 0 {
            list(&mut at)?
        } else {
            LocatorList::default()
        };
        Ok(Self { unicast, multicast })
    }
}

/// INFO_TS: seconds and fraction, or nothing with flag I (0x02), which invalidates
/// the timestamp.
pub(super) fn parse_timestamp(flags: u8, body: &[u8]) -> Result<Option<Timestamp>, WireError> {
    if flags & FLAG_INVALIDATE != 0 {
        return Ok(None);
    }
    let mut at = Cursor::of_submessage(flags, body);
    let secs = at.u32()?;
    let fraction = at.u32()?;
    Ok(Timestamp::from_wire(secs, fraction))
}

/// INFO_DST: twelve bytes of GUID prefix.
pub(super) fn parse_destination(flags: u8, body: &[u8]) -> Result<GuidPrefix, WireError> {
    Cursor::of_submessage(flags, body).guid_prefix()
}

/// Appends INFO_TS.
pub(crate) fn write_info_timestamp(out: &mut Vec<u8>, timestamp: Option<Timestamp>) {
    let flags = if timestamp.is_none() {
        FLAG_INVALIDATE
    } else {
        0
    };
    let at = begin_submessage(out, id::INFO_TS, flags);
    if let Some(timestamp) = timestamp {
        let (secs, fraction) = timestamp.to_wire();
        out.extend_from_slice(&secs.to_le_bytes());
        out.extend_from_slice(&fraction.to_le_bytes());
    }
    end_submessage(out, at, 0);
}

/// Appends INFO_DST.
pub(crate) fn write_info_destination(out: &mut Vec<u8>, prefix: GuidPrefix) {
    let at = begin_submessage(out, id::INFO_DST, 0);
    out.extend_from_slice(&prefix.0);
    end_submessage(out, at, 0);
}

const FLAG_INVALIDATE: u8 = 0x02;

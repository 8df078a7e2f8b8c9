//! RTPS message header (RTPS 2.5 §8.3.3, §9.4.4).

use alloc::vec::Vec;

use super::{Cursor, Endianness, WireError};
use crate::id::{GuidPrefix, ProtocolVersion, VendorId};

/// The sender of a message and its protocol version.
///
/// ```text
/// 0       1       2       3       4
/// +-------+-------+-------+-------+
/// | 'R'   | 'T'   | 'P'   | 'S'   |
/// +-------+-------+-------+-------+
/// | major | minor | vendor        |
/// +-------+-------+---------------+
/// | GUID prefix (12 bytes)        |
/// +-------------------------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Protocol version of the sender.
    pub version: ProtocolVersion,
    /// Vendor of the sender.
    pub vendor: VendorId,
    /// The sending participant.
    pub prefix: GuidPrefix,
}

impl Header {
    /// Size on the wire, bytes.
    pub const SIZE_BYTES: usize = 20;
    /// Where the vendor is.
    pub(crate) const VENDOR_OFFSET: usize = 6;

    /// The header of this stack's messages.
    pub const fn ours(prefix: GuidPrefix) -> Self {
        Self {
            version: ProtocolVersion::OURS,
            vendor: VendorId::PTEROS,
            prefix,
        }
    }

    /// Reads the header at the start of a datagram. Minor versions above ours
    /// are accepted (§8.3.5.3), other majors are not.
    pub fn parse(datagram: &[u8]) -> Result<Self, WireError> {
        let mut at = Cursor::new(datagram, Endianness::Little);
        if at.bytes(4).map_err(|_| WireError::NotRtps)? != b"RTPS" {
            return Err(WireError::NotRtps);
        }
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

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"RTPS");
        out.extend_from_slice(&[self.version.major, self.version.minor]);
        out.extend_from_slice(&self.vendor.0);
        out.extend_from_slice(&self.prefix.0);
    }
}

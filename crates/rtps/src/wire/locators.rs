//! Locator lists as a message holds them (RTPS 2.5 §9.4.2.10).

use super::{Cursor, Endianness, WireError};
use crate::locator::Locator;

/// A view of locators: count first, then 24 bytes each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LocatorList<'a> {
    bytes: &'a [u8],
    endianness: Endianness,
    form: Form,
}

/// Encoding of one locator in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Form {
    /// Kind, port, sixteen bytes of address.
    #[default]
    Full,
    /// IPv4 address and port as numbers, in INFO_REPLY_IP4.
    Ip4,
}

impl<'a> LocatorList<'a> {
    const SIZE_BYTES: usize = 24;
    const IP4_SIZE_BYTES: usize = 8;

    /// Reads a list whose count fits into the remaining bytes.
    pub fn parse(at: &mut Cursor<'a>) -> Result<Self, WireError> {
        let count = at.u32()? as usize;
        let size = count
            .checked_mul(Self::SIZE_BYTES)
            .ok_or(WireError::InvalidLength)?;
        Ok(Self {
            bytes: at.bytes(size)?,
            endianness: at.endianness(),
            form: Form::Full,
        })
    }

    /// Reads the single locator of INFO_REPLY_IP4 (§9.4.5.15).
    pub(super) fn parse_ip4(at: &mut Cursor<'a>) -> Result<Self, WireError> {
        Ok(Self {
            bytes: at.bytes(Self::IP4_SIZE_BYTES)?,
            endianness: at.endianness(),
            form: Form::Ip4,
        })
    }

    /// The locators, of any kind.
    pub fn iter(&self) -> impl Iterator<Item = Locator> + use<'a> {
        let mut at = Cursor::new(self.bytes, self.endianness);
        let form = self.form;
        core::iter::from_fn(move || match form {
            Form::Full => at.locator().ok(),
            Form::Ip4 => {
                let address = at.u32().ok()?;
                let port = at.u32().ok()?;
                Some(Locator {
                    port,
                    ..Locator::udp_v4(address.to_be_bytes(), 0)
                })
            }
        })
    }
}

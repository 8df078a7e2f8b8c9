//! Product version of a participant. The standard has no parameter for it, so each
//! vendor defines its own.
//!
//! Pteros, Fast DDS (3.0 and later) and RTI Connext: 0x8000, four octets. Cyclone
//! DDS: 0x8007, five words of its own and a text `host/version/system/machine`
//! (DDSI_PID_ADLINK_PARTICIPANT_VERSION_INFO).

use core::fmt;

use super::value::string_bytes;
use crate::id::VendorId;
use crate::wire::{Cursor, pid};

/// A product version: major, minor, patch, and a fourth number that few products
/// use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProductVersion(pub [u8; 4]);

impl ProductVersion {
    /// The version of this build of Pteros.
    pub const OURS: Self = Self([
        number(env!("CARGO_PKG_VERSION_MAJOR")),
        number(env!("CARGO_PKG_VERSION_MINOR")),
        number(env!("CARGO_PKG_VERSION_PATCH")),
        0,
    ]);

    /// The parameter id with which that vendor announces its version.
    pub(super) fn parameter_of(vendor: VendorId) -> Option<u16> {
        match vendor {
            VendorId::PTEROS | VendorId::FAST_DDS | VendorId::RTI => {
                Some(pid::VENDOR_PRODUCT_VERSION)
            }
            VendorId::CYCLONE => Some(pid::CYCLONE_VERSION_INFO),
            _ => None,
        }
    }

    /// Reads the vendor's parameter. Returns `None` for an unknown form, which does
    /// not prevent discovery.
    pub(super) fn read(vendor: VendorId, value: &mut Cursor<'_>) -> Option<Self> {
        if vendor != VendorId::CYCLONE {
            return value.array().ok().map(Self);
        }
        for _ in 0..5 {
            value.u32().ok()?;
        }
        let text = core::str::from_utf8(string_bytes(value).ok()?).ok()?;
        Self::parse(text.split('/').nth(1)?)
    }

    /// `0.10.5`: one to four numbers below 256.
    fn parse(text: &str) -> Option<Self> {
        let mut version = [0; 4];
        let mut numbers = version.iter_mut();
        for word in text.split('.') {
            *numbers.next()? = word.parse().ok()?;
        }
        Some(Self(version))
    }
}

impl fmt::Display for ProductVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch, tweak] = self.0;
        write!(f, "{major}.{minor}.{patch}")?;
        match tweak {
            0 => Ok(()),
            tweak => write!(f, ".{tweak}"),
        }
    }
}

/// A version number from Cargo, at build time; larger numbers become 255.
const fn number(text: &str) -> u8 {
    match u8::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => u8::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn product_versions_of_each_vendor_are_parsed() {
        for text in ["0.10.5", "11.0.1", "7.3.0.2"] {
            assert_eq!(ProductVersion::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(ProductVersion::parse("3.2").unwrap().to_string(), "3.2.0");
        for text in ["", "1.x", "1.2.3.4.5", "1.256.0", "-1.0.0", "1..2"] {
            assert_eq!(ProductVersion::parse(text), None, "{text}");
        }
        assert_eq!(ProductVersion::OURS.to_string(), env!("CARGO_PKG_VERSION"));
    }
}

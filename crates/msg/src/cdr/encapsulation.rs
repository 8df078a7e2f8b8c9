//! CDR encapsulation: the 4-byte header before every payload (XCDR2 encapsulation
//! included).
//!
//! ```text
//!  byte 0..2  encoding, big endian     byte 2..4  options, big endian
//!  0x0000 CDR_BE   0x0001 CDR_LE       lowest 2 bits: padding bytes added
//!  0x0006 CDR2_BE  0x0007 CDR2_LE      at the end to reach a multiple of 4
//!  0x0008 D_CDR2_BE 0x0009 D_CDR2_LE
//! ```
//! DDS-XTypes 1.3 §7.6.3.1.2, RTPS 2.5 §10.2.1.2. Parameter lists (0x0002, 0x0003,
//! 0x000a, 0x000b) are for mutable types, which ROS 2 does not have.

use super::error::DecodeError;
use crate::describe::Extensibility;

/// Version of the CDR encoding rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Representation {
    /// The classic encoding, alignment up to 8; ROS 2's default.
    #[default]
    Xcdr1,
    /// Alignment up to 4, size headers before collections of non-primitives.
    Xcdr2,
}

/// Byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The order of the machine this runs on.
    pub const NATIVE: Self = if cfg!(target_endian = "little") {
        Self::Little
    } else {
        Self::Big
    };
}

/// Size of the header.
pub const HEADER_BYTES: usize = 4;

/// The header's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// Version of the rules.
    pub representation: Representation,
    /// Byte order of what follows.
    pub endian: Endian,
    /// The outermost structure has its size before it (D_CDR2): an appendable
    /// type in XCDR2.
    pub delimited: bool,
    /// Bytes at the end that belong to no value, 0 to 3.
    pub padding: u8,
}

impl Encapsulation {
    /// A plain encoding without padding.
    pub const fn plain(representation: Representation, endian: Endian) -> Self {
        Self {
            representation,
            endian,
            delimited: false,
            padding: 0,
        }
    }

    /// The encoding of a value of such a type: appendable types are delimited
    /// in XCDR2 (XTypes 1.3 §7.6.3.1.2, table 60).
    pub const fn of(
        representation: Representation,
        extensibility: Extensibility,
        endian: Endian,
    ) -> Self {
        Self {
            delimited: matches!(
                (representation, extensibility),
                (Representation::Xcdr2, Extensibility::Appendable)
            ),
            ..Self::plain(representation, endian)
        }
    }

    /// Decodes the header at the start of a payload.
    pub fn read(payload: &[u8]) -> Result<Self, DecodeError> {
        let &[high, low, _, options, ..] = payload else {
            return Err(DecodeError::NoHeader);
        };
        let (representation, delimited) = match (high, low & !1) {
            (0, 0) => (Representation::Xcdr1, false),
            (0, 6) => (Representation::Xcdr2, false),
            (0, 8) => (Representation::Xcdr2, true),
            _ => {
                let id = u16::from_be_bytes([high, low]);
                return Err(DecodeError::UnsupportedEncoding { id });
            }
        };
        Ok(Self {
            representation,
            endian: if low & 1 == 1 {
                Endian::Little
            } else {
                Endian::Big
            },
            delimited,
            padding: options & 3,
        })
    }

    /// The header as bytes.
    pub const fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let base = match (self.representation, self.delimited) {
            (Representation::Xcdr1, _) => 0,
            (Representation::Xcdr2, false) => 6,
            (Representation::Xcdr2, true) => 8,
        };
        let little = matches!(self.endian, Endian::Little) as u8;
        [0, base | little, 0, self.padding & 3]
    }
}

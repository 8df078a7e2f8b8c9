//! Errors of decoding a payload: a peer's error, never ours.

use core::fmt;

/// Why a payload is not a value of its type.
///
/// Offsets count from the end of the encapsulation header. The sample is to be
/// dropped and counted; nothing was allocated beyond a small multiple of the
/// payload's own size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// Shorter than the 4-byte encapsulation header.
    NoHeader,
    /// The header names an encoding that ROS 2 types do not use (parameter
    /// lists, XML, or something unknown).
    UnsupportedEncoding {
        /// The header's first two bytes.
        id: u16,
    },
    /// The payload ends before the value.
    UnexpectedEnd {
        /// Offset of the missing part.
        offset: usize,
        /// Bytes it needs; for lists the minimum for all elements.
        needed: usize,
    },
    /// A sequence or string exceeds the bound of its type.
    TooLong {
        /// Offset of its length.
        offset: usize,
        /// The length on the wire.
        len: usize,
        /// The bound of the type.
        bound: usize,
    },
    /// A boolean is neither 0 nor 1.
    InvalidBool {
        /// Of the byte, counted from the start of the payload.
        offset: usize,
        /// The byte found, 2 to 255.
        value: u8,
    },
    /// A wide string holds a unit above 0xFFFF.
    InvalidWideChar {
        /// Its offset.
        offset: usize,
    },
    /// Structures are nested deeper than [`super::DEPTH_MAX`].
    TooDeep {
        /// Offset of the innermost structure.
        offset: usize,
    },
    /// Members that the sender left out would take more memory than
    /// [`super::MISSING_BYTES_MAX`].
    TooMuchMissing {
        /// Offset of the end of the structure that lacks them.
        offset: usize,
    },
    /// The receiver has no memory for the value.
    NoMemory {
        /// Bytes of the payload.
        len: usize,
    },
}

crate::debug_as_display!(DecodeError);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoHeader => f.write_str("payload is shorter than its 4-byte header"),
            Self::UnsupportedEncoding {
                id: id @ (2 | 3 | 10 | 11),
            } => write!(
                f,
                "payload encoding {id:#06x} is a parameter list, for mutable types; only final and appendable types are supported"
            ),
            Self::UnsupportedEncoding { id } => write!(
                f,
                "payload encoding {id:#06x} is not plain or delimited CDR, which ROS 2 types use"
            ),
            Self::UnexpectedEnd { offset, needed } => write!(
                f,
                "payload ends early: {needed} more bytes expected at offset {offset}"
            ),
            Self::TooLong { offset, len, bound } => write!(
                f,
                "length {len} at offset {offset} exceeds the type's bound {bound}"
            ),
            Self::InvalidBool { offset, value } => {
                write!(f, "boolean at offset {offset} is {value}, not 0 or 1")
            }
            Self::InvalidWideChar { offset } => {
                write!(f, "wide character at offset {offset} exceeds 0xffff")
            }
            Self::TooDeep { offset } => write!(
                f,
                "structure at offset {offset} is nested deeper than {}",
                super::limits::DEPTH_MAX
            ),
            Self::TooMuchMissing { offset } => write!(
                f,
                "members missing up to offset {offset} would take more than {} bytes",
                super::limits::MISSING_BYTES_MAX
            ),
            Self::NoMemory { len } => write!(f, "no memory for a payload of {len} bytes"),
        }
    }
}

impl core::error::Error for DecodeError {}

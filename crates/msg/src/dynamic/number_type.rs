//! The number types of fields.

use super::types::Element;

/// An integer or floating point type of a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// `int8`
    I8,
    /// `uint8` and `char`
    U8,
    /// `int16`
    I16,
    /// `uint16`
    U16,
    /// `int32`
    I32,
    /// `uint32`
    U32,
    /// `int64`
    I64,
    /// `uint64`
    U64,
    /// `float32`
    F32,
    /// `float64`
    F64,
}

impl Number {
    /// The name, the type code and the size.
    const fn row(self) -> (&'static str, char, usize) {
        match self {
            Self::I8 => ("int8", 'b', 1),
            Self::U8 => ("uint8", 'B', 1),
            Self::I16 => ("int16", 'h', 2),
            Self::U16 => ("uint16", 'H', 2),
            Self::I32 => ("int32", 'i', 4),
            Self::U32 => ("uint32", 'I', 4),
            Self::I64 => ("int64", 'q', 8),
            Self::U64 => ("uint64", 'Q', 8),
            Self::F32 => ("float32", 'f', 4),
            Self::F64 => ("float64", 'd', 8),
        }
    }

    /// The name in interface files, which numpy's `dtype` shares: `int16`.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The type code of Python's module `array`: `h` for `int16`.
    pub const fn array_code(self) -> char {
        self.row().1
    }

    /// Bytes on the wire and in memory.
    pub const fn size(self) -> usize {
        self.row().2
    }
}

impl Element {
    /// The number type; `None` for bools, bytes, strings and messages.
    pub fn number(&self) -> Option<Number> {
        Some(match self {
            Self::I8 => Number::I8,
            Self::U8 => Number::U8,
            Self::I16 => Number::I16,
            Self::U16 => Number::U16,
            Self::I32 => Number::I32,
            Self::U32 => Number::U32,
            Self::I64 => Number::I64,
            Self::U64 => Number::U64,
            Self::F32 => Number::F32,
            Self::F64 => Number::F64,
            Self::Bool
            | Self::Byte
            | Self::String { .. }
            | Self::WString { .. }
            | Self::Message(_) => return None,
        })
    }

    /// Bytes of a number, bool or byte on the wire; `None` for types without a fixed size.
    pub(crate) fn fixed_bytes(&self) -> Option<usize> {
        match self {
            Self::Bool | Self::Byte => Some(1),
            other => other.number().map(Number::size),
        }
    }
}

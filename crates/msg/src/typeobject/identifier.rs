//! TypeIdentifiers (XTypes 1.3 §7.3.4.2).
//!
//! Primitive types, strings, and sequences and arrays of them are fully described
//! by their identifier; structures are identified by the hash of their TypeObject.

use super::kinds::*;
use crate::cdr::{DecodeError, Decoder, Encoder};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// How deep sequences and arrays nest in an identifier that is read.
const DEPTH_MAX: usize = 16;

/// The dimensions of an array that is read, at most.
const DIMENSIONS_MAX: usize = 16;

/// The first 14 bytes of the MD5 of a serialized TypeObject.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EquivalenceHash(pub [u8; 14]);

impl EquivalenceHash {
    /// The hash of an object's bytes.
    pub fn of(object: &[u8]) -> Self {
        let digest: [u8; 16] = md5::compute(object).into();
        let mut hash = [0; 14];
        hash.copy_from_slice(&digest[..14]);
        Self(hash)
    }
}

/// 28 hexadecimal digits.
impl fmt::Display for EquivalenceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EquivalenceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which of a type's two objects is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EquivalenceKind {
    /// Without names.
    Minimal,
    /// With names.
    Complete,
}

impl EquivalenceKind {
    /// EquivalenceKind.
    pub(super) const fn kind(self) -> u8 {
        match self {
            Self::Minimal => EK_MINIMAL,
            Self::Complete => EK_COMPLETE,
        }
    }
}

/// The name of a TypeObject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeObjectId {
    /// Minimal or complete.
    pub form: EquivalenceKind,
    /// The hash of its bytes.
    pub hash: EquivalenceHash,
}

/// The name of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeIdentifier {
    /// A primitive type, by its TK_ number; 0 is no type at all.
    Primitive(u8),
    /// `string` or `wstring`.
    String {
        /// UTF-16.
        wide: bool,
        /// In characters; 0 is none.
        bound: u32,
    },
    /// `sequence<element>`.
    Sequence {
        /// 0 is none.
        bound: u32,
        /// The element type.
        element: Box<TypeIdentifier>,
    },
    /// `element[a][b]`.
    Array {
        /// Each dimension.
        bounds: Vec<u32>,
        /// The element type.
        element: Box<TypeIdentifier>,
    },
    /// A type that has an object of its own.
    Object(TypeObjectId),
    /// An identifier that is not supported: maps, recursive types, or above the
    /// limits. Nothing after it can be read.
    Other(u8),
}

impl TypeIdentifier {
    /// Writes it. [`Self::Other`] is written as no type.
    pub(super) fn encode(&self, out: &mut Encoder<'_>) {
        match self {
            Self::Primitive(kind) => out.u8(*kind),
            Self::String { wide, bound } => encode_string(out, *wide, *bound),
            Self::Sequence { bound, element } => match u8::try_from(*bound) {
                Ok(bound) => {
                    out.u8(TI_PLAIN_SEQUENCE_SMALL);
                    element.encode_header(out);
                    out.u8(bound);
                    element.encode(out);
                }
                Err(_) => {
                    out.u8(TI_PLAIN_SEQUENCE_LARGE);
                    element.encode_header(out);
                    out.u32(*bound);
                    element.encode(out);
                }
            },
            Self::Array { bounds, element } => {
                let small: Option<Vec<u8>> = bounds.iter().map(|b| u8::try_from(*b).ok()).collect();
                match small {
                    Some(small) => {
                        out.u8(TI_PLAIN_ARRAY_SMALL);
                        element.encode_header(out);
                        out.primitive_sequence(&small);
                    }
                    None => {
                        out.u8(TI_PLAIN_ARRAY_LARGE);
                        element.encode_header(out);
                        out.primitive_sequence(bounds);
                    }
                }
                element.encode(out);
            }
            Self::Object(id) => {
                out.u8(id.form.kind());
                out.primitive_array(&id.hash.0);
            }
            Self::Other(_) => out.u8(TK_NONE),
        }
    }

    /// PlainCollectionHeader of a collection of these: which form the element
    /// is of, and that elements which cannot be read are discarded.
    fn encode_header(&self, out: &mut Encoder<'_>) {
        out.u8(self.form().map_or(EK_BOTH, EquivalenceKind::kind));
        out.u16(TRY_CONSTRUCT1);
    }

    /// The form of the object behind it, if there is one.
    fn form(&self) -> Option<EquivalenceKind> {
        match self {
            Self::Object(id) => Some(id.form),
            Self::Sequence { element, .. } | Self::Array { element, .. } => element.form(),
            _ => None,
        }
    }

    /// Reads one.
    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode_at(input, 0)
    }

    fn decode_at(input: &mut Decoder<'_>, depth: usize) -> Result<Self, DecodeError> {
        let kind = input.u8()?;
        if depth > DEPTH_MAX {
            return Ok(Self::Other(kind));
        }
        Ok(match kind {
            TI_STRING8_SMALL | TI_STRING16_SMALL => Self::String {
                wide: kind == TI_STRING16_SMALL,
                bound: u32::from(input.u8()?),
            },
            TI_STRING8_LARGE | TI_STRING16_LARGE => Self::String {
                wide: kind == TI_STRING16_LARGE,
                bound: input.u32()?,
            },
            TI_PLAIN_SEQUENCE_SMALL | TI_PLAIN_SEQUENCE_LARGE => {
                decode_header(input)?;
                let bound = match kind {
                    TI_PLAIN_SEQUENCE_SMALL => u32::from(input.u8()?),
                    _ => input.u32()?,
                };
                let element = Self::decode_at(input, depth.saturating_add(1))?;
                match element {
                    Self::Other(kind) => Self::Other(kind),
                    element => Self::Sequence {
                        bound,
                        element: Box::new(element),
                    },
                }
            }
            TI_PLAIN_ARRAY_SMALL | TI_PLAIN_ARRAY_LARGE => {
                decode_header(input)?;
                let bounds = match kind {
                    TI_PLAIN_ARRAY_SMALL => {
                        let small = input.primitive_sequence::<u8>(DIMENSIONS_MAX)?;
                        small.into_iter().map(u32::from).collect()
                    }
                    _ => input.primitive_sequence::<u32>(DIMENSIONS_MAX)?,
                };
                match Self::decode_at(input, depth.saturating_add(1))? {
                    Self::Other(kind) => Self::Other(kind),
                    element => Self::Array {
                        bounds,
                        element: Box::new(element),
                    },
                }
            }
            EK_MINIMAL | EK_COMPLETE => Self::Object(TypeObjectId {
                form: match kind {
                    EK_MINIMAL => EquivalenceKind::Minimal,
                    _ => EquivalenceKind::Complete,
                },
                hash: EquivalenceHash(read_bytes(input)?),
            }),
            TK_NONE..=TK_CHAR16 => Self::Primitive(kind),
            other => Self::Other(other),
        })
    }
}

fn encode_string(out: &mut Encoder<'_>, wide: bool, bound: u32) {
    match (u8::try_from(bound), wide) {
        (Ok(bound), wide) => {
            out.u8(if wide {
                TI_STRING16_SMALL
            } else {
                TI_STRING8_SMALL
            });
            out.u8(bound);
        }
        (Err(_), wide) => {
            out.u8(if wide {
                TI_STRING16_LARGE
            } else {
                TI_STRING8_LARGE
            });
            out.u32(bound);
        }
    }
}

fn decode_header(input: &mut Decoder<'_>) -> Result<(), DecodeError> {
    input.u8()?;
    input.u16()?;
    Ok(())
}

/// The next `N` bytes.
pub(super) fn read_bytes<const N: usize>(input: &mut Decoder<'_>) -> Result<[u8; N], DecodeError> {
    let mut bytes = [0; N];
    input.primitive_slice(&mut bytes)?;
    Ok(bytes)
}

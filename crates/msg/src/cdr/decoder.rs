//! CDR decoder for untrusted bytes.
//!
//! Every length is compared with the remaining bytes before anything is allocated,
//! so memory use stays within a small multiple of the payload. The reserve for
//! sequences of messages is bounded in bytes, not elements. The decoder never
//! panics, never reads outside its slice, and skips every XCDR2 collection by its
//! size header.
//!
//! It has a method per primitive, collection and kind of struct in CDR.

use super::codec::Decode;
use super::encapsulation::{Encapsulation, Endian, HEADER_BYTES, Representation};
use super::error::DecodeError;
use super::limits::{DEPTH_MAX, MISSING_BYTES_MAX};
use crate::plain::{self, Primitive};
use crate::wstring::WString;
use alloc::string::String;
use alloc::vec::Vec;

mod in_place;

/// Reads values from a slice; see the module.
pub struct Decoder<'a> {
    /// From the origin of alignment to the end of the innermost open scope.
    data: &'a [u8],
    position: usize,
    align_mask: usize,
    representation: Representation,
    swap: bool,
    /// Which structures have a size header.
    delimits: Delimits,
    /// The end of all data, and how many bytes before it are padding.
    end: usize,
    padding: u8,
    depth: u8,
    /// Memory that members missing in inner structures may still take.
    missing_bytes_left: usize,
    /// Members were missing at the end of some structure.
    filled_in: bool,
}

/// Which structures have their size before them (DHEADER).
#[derive(Clone, Copy, PartialEq)]
enum Delimits {
    /// None: XCDR1, and keys on their way into a hash.
    Nothing,
    /// Appendable ones; the encapsulation header decides for the outermost.
    Appendable {
        /// From the encapsulation header.
        outermost: bool,
    },
    /// All: the sender has appendable types where ours are final, and so presumably
    /// the types inside.
    Everything,
}

/// An open collection or structure; pass it to the method that closes it.
#[must_use]
pub struct DecoderScope<'a> {
    /// The data of the scope outside, when this one has a size of its own.
    outer: Option<&'a [u8]>,
}

impl<'a> Decoder<'a> {
    /// Decodes what follows the header of `payload`.
    #[inline]
    pub fn from_payload(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let header = Encapsulation::read(payload)?;
        let body = payload.get(HEADER_BYTES..).unwrap_or_default();
        Ok(Self::new(body, header))
    }

    /// Decodes `data`, which has no header, as if it had this one.
    #[inline]
    pub fn new(data: &'a [u8], header: Encapsulation) -> Self {
        Self {
            data,
            position: 0,
            align_mask: match header.representation {
                Representation::Xcdr1 => 7,
                Representation::Xcdr2 => 3,
            },
            representation: header.representation,
            swap: header.endian != Endian::NATIVE,
            delimits: match header.representation {
                Representation::Xcdr1 => Delimits::Nothing,
                Representation::Xcdr2 => Delimits::Appendable {
                    outermost: header.delimited,
                },
            },
            end: data.len(),
            padding: header.padding,
            depth: 0,
            missing_bytes_left: MISSING_BYTES_MAX,
            filled_in: false,
        }
    }

    /// Decodes what [`Encoder::undelimited`](super::Encoder::undelimited) wrote.
    pub fn undelimited(mut self) -> Self {
        self.delimits = Delimits::Nothing;
        self
    }

    /// Whether everything was read and no default was filled in.
    pub(crate) fn is_exact(&self) -> bool {
        let left = self.remaining().saturating_sub(usize::from(self.padding));
        left == 0 && !self.filled_in
    }

    /// Bytes consumed since the end of the header.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes left in the innermost open scope.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.data.len().saturating_sub(self.position)
    }

    /// The encoding version.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Enters a final structure: counts depth.
    ///
    /// Where the header marks the outermost structure as appendable, its sender has
    /// another extensibility than we have: sizes are then expected before all
    /// structures.
    #[inline]
    pub fn begin_struct(&mut self) -> Result<DecoderScope<'a>, DecodeError> {
        let outermost = self.begin_any()?;
        if outermost && self.delimits == (Delimits::Appendable { outermost: true }) {
            self.delimits = Delimits::Everything;
        }
        match self.delimits {
            Delimits::Everything => self.begin_sized(),
            _ => Ok(DecoderScope { outer: None }),
        }
    }

    /// Enters an appendable structure: counts depth, reads its size where
    /// there is one. Leave it with [`Self::end_struct`].
    ///
    /// The outermost has a size if the header says so, inner ones in XCDR2.
    #[inline]
    pub fn begin_appendable(&mut self) -> Result<DecoderScope<'a>, DecodeError> {
        let is_outermost = self.begin_any()?;
        match self.delimits {
            Delimits::Nothing => Ok(DecoderScope { outer: None }),
            Delimits::Appendable { outermost: false } if is_outermost => {
                Ok(DecoderScope { outer: None })
            }
            _ => self.begin_sized(),
        }
    }

    /// Whether more members follow in an appendable structure. If not, the sender's
    /// type has fewer members, and the rest keep their defaults, which take
    /// `missing_bytes` of memory for the next one.
    ///
    /// Without sizes, in XCDR1, only the outermost structure can end early.
    ///
    /// # Errors
    /// The members missing inside take more than [`MISSING_BYTES_MAX`]: a sequence
    /// of nothing but sizes would otherwise fill the memory.
    #[inline]
    pub fn has_more(&mut self, missing_bytes: usize) -> Result<bool, DecodeError> {
        let is_outermost = self.depth <= 1;
        if self.delimits == Delimits::Nothing && !is_outermost {
            return Ok(true);
        }
        let padding = if self.data.len() == self.end {
            usize::from(self.padding)
        } else {
            0
        };
        if self.remaining() > padding {
            return Ok(true);
        }
        self.filled_in = true;
        if !is_outermost {
            let left = self.missing_bytes_left.checked_sub(missing_bytes);
            self.missing_bytes_left = left.ok_or(DecodeError::TooMuchMissing {
                offset: self.position,
            })?;
        }
        Ok(false)
    }

    /// Counts depth; true for the outermost structure.
    #[inline]
    fn begin_any(&mut self) -> Result<bool, DecodeError> {
        if self.depth >= DEPTH_MAX {
            return Err(DecodeError::TooDeep {
                offset: self.position,
            });
        }
        self.depth = self.depth.saturating_add(1);
        Ok(self.depth == 1)
    }

    /// Leaves it and skips members that only the sender's type has.
    #[inline]
    pub fn end_struct(&mut self, scope: DecoderScope<'a>) {
        self.depth = self.depth.saturating_sub(1);
        self.end_collection(scope);
    }

    /// Opens an array or sequence of strings or messages: XCDR2 has its size.
    #[inline]
    pub fn begin_collection(&mut self) -> Result<DecoderScope<'a>, DecodeError> {
        match self.representation {
            Representation::Xcdr1 => Ok(DecoderScope { outer: None }),
            Representation::Xcdr2 => self.begin_sized(),
        }
    }

    /// Closes it and continues after it, whatever was left inside.
    #[inline]
    pub fn end_collection(&mut self, scope: DecoderScope<'a>) {
        if let Some(outer) = scope.outer {
            self.position = self.data.len();
            self.data = outer;
        }
    }

    fn begin_sized(&mut self) -> Result<DecoderScope<'a>, DecodeError> {
        let size = self.u32()? as usize;
        if size > self.remaining() {
            return Err(self.truncated(size));
        }
        let outer = self.data;
        let end = self.position.saturating_add(size);
        self.data = outer.get(..end).unwrap_or(outer);
        Ok(DecoderScope { outer: Some(outer) })
    }

    /// One `bool`; values other than 0 and 1 are rejected, as in Fast CDR and
    /// Cyclone.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        let offset = self.position;
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(DecodeError::InvalidBool { offset, value }),
        }
    }

    /// A `string` of at most `bound` bytes, or [`UNBOUNDED`](crate::cdr::UNBOUNDED).
    ///
    /// Bytes that are not UTF-8 become U+FFFD, as in rclpy: one bad byte does not
    /// lose the message, unless that makes it longer than its bound. A missing
    /// final NUL is accepted.
    #[inline]
    pub fn string(&mut self, bound: usize) -> Result<String, DecodeError> {
        let begin = self.position;
        let bytes = self.string_bytes(bound)?;
        // Copied first: the bytes may lie in memory of another process, which
        // could change them between a check and a copy.
        let text = match String::from_utf8(bytes.into()) {
            Ok(text) => return Ok(text),
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        // U+FFFD takes three bytes. A decoded value must keep its bound, or it
        // could not be encoded again.
        if text.len() > bound {
            return Err(DecodeError::TooLong {
                offset: begin.saturating_add(begin.wrapping_neg() & 3 & self.align_mask),
                len: text.len(),
                bound,
            });
        }
        Ok(text)
    }

    /// The bytes of a `string` in place, without the final NUL.
    #[inline]
    pub fn string_bytes(&mut self, bound: usize) -> Result<&'a [u8], DecodeError> {
        let size = self.u32()? as usize;
        let offset = self.position.saturating_sub(4);
        let bytes = self.take(size)?;
        let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        if text.len() > bound {
            return Err(DecodeError::TooLong {
                offset,
                len: text.len(),
                bound,
            });
        }
        Ok(text)
    }

    /// A `wstring` of at most `bound` units; see `Encoder::wstring`.
    pub fn wstring(&mut self, bound: usize) -> Result<WString, DecodeError> {
        let count = self.sequence_len(4, bound)?;
        let mut units = Vec::with_capacity(count);
        for _ in 0..count {
            let unit = self.u32()?;
            units.push(
                u16::try_from(unit).map_err(|_| DecodeError::InvalidWideChar {
                    offset: self.position.saturating_sub(4),
                })?,
            );
        }
        Ok(WString(units))
    }

    /// The element count of a sequence, checked against `bound` and against
    /// what is left if each element takes at least `element_bytes_min`.
    #[inline]
    pub fn sequence_len(
        &mut self,
        element_bytes_min: usize,
        bound: usize,
    ) -> Result<usize, DecodeError> {
        let count = self.u32()? as usize;
        if count > bound {
            return Err(DecodeError::TooLong {
                offset: self.position.saturating_sub(4),
                len: count,
                bound,
            });
        }
        let needed = count.saturating_mul(element_bytes_min);
        if needed > self.remaining() {
            return Err(self.truncated(needed));
        }
        Ok(count)
    }

    /// `T[N]` of numbers.
    #[inline]
    pub fn primitive_array<T: Primitive, const N: usize>(&mut self) -> Result<[T; N], DecodeError> {
        let mut values = [T::default(); N];
        self.primitive_slice(&mut values)?;
        Ok(values)
    }

    /// Numbers into memory that is already there.
    #[inline]
    pub fn primitive_slice<T: Primitive>(&mut self, values: &mut [T]) -> Result<(), DecodeError> {
        if values.is_empty() {
            return Ok(());
        }
        self.align(size_of::<T>());
        let bytes = self.take(size_of_val(values))?;
        plain::bytes_of_mut(values).copy_from_slice(bytes);
        self.swap_to_native(values);
        Ok(())
    }

    /// `T[]` or `T[<=bound]` of numbers: one allocation, one copy.
    #[inline]
    pub fn primitive_sequence<T: Primitive>(
        &mut self,
        bound: usize,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.sequence_len(size_of::<T>(), bound)?;
        self.primitive_vec(count)
    }

    /// `count` numbers as a vector; `count` is checked against what is left.
    #[inline]
    pub fn primitive_vec<T: Primitive>(&mut self, count: usize) -> Result<Vec<T>, DecodeError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.align(size_of::<T>());
        let bytes = self.take(count.saturating_mul(size_of::<T>()))?;
        let mut values = plain::to_vec(bytes);
        self.swap_to_native(&mut values);
        Ok(values)
    }

    /// Moves past `count` numbers or bools of `size` bytes each.
    #[inline]
    pub fn skip_primitives(&mut self, size: usize, count: usize) -> Result<(), DecodeError> {
        if count > 0 {
            self.align(size);
            self.take(count.saturating_mul(size))?;
        }
        Ok(())
    }

    /// `bool[N]`.
    #[inline]
    pub fn bool_array<const N: usize>(&mut self) -> Result<[bool; N], DecodeError> {
        let bytes = self.take_bools(N)?;
        let mut values = [false; N];
        for (value, byte) in values.iter_mut().zip(bytes) {
            *value = *byte != 0;
        }
        Ok(values)
    }

    /// `bool[]` or `bool[<=bound]`.
    #[inline]
    pub fn bool_sequence(&mut self, bound: usize) -> Result<Vec<bool>, DecodeError> {
        let count = self.sequence_len(1, bound)?;
        self.bool_vec(count)
    }

    /// `count` bools as a vector.
    pub fn bool_vec(&mut self, count: usize) -> Result<Vec<bool>, DecodeError> {
        let bytes = self.take_bools(count)?;
        Ok(bytes.iter().map(|byte| *byte != 0).collect())
    }

    /// `string[N]`, each of at most `string_bound` bytes.
    pub fn string_array<const N: usize>(
        &mut self,
        string_bound: usize,
    ) -> Result<[String; N], DecodeError> {
        self.array_with(|input| input.string(string_bound))
    }

    /// `string[]` or `string[<=bound]`, each of at most `string_bound` bytes.
    pub fn string_sequence(
        &mut self,
        bound: usize,
        string_bound: usize,
    ) -> Result<Vec<String>, DecodeError> {
        self.sequence_with(4, bound, |input| input.string(string_bound))
    }

    /// `wstring[N]`, each of at most `string_bound` units.
    pub fn wstring_array<const N: usize>(
        &mut self,
        string_bound: usize,
    ) -> Result<[WString; N], DecodeError> {
        self.array_with(|input| input.wstring(string_bound))
    }

    /// `wstring[]` or `wstring[<=bound]`, each of at most `string_bound` units.
    pub fn wstring_sequence(
        &mut self,
        bound: usize,
        string_bound: usize,
    ) -> Result<Vec<WString>, DecodeError> {
        self.sequence_with(4, bound, |input| input.wstring(string_bound))
    }

    /// `pkg/Message[N]`.
    pub fn message_array<T: Decode + Default, const N: usize>(
        &mut self,
    ) -> Result<[T; N], DecodeError> {
        self.array_with(T::decode)
    }

    /// `pkg/Message[]` or `pkg/Message[<=bound]`.
    pub fn message_sequence<T: Decode>(&mut self, bound: usize) -> Result<Vec<T>, DecodeError> {
        self.sequence_with(1, bound, T::decode)
    }

    /// `count` non-primitive elements, each read by `read`; no count on the wire.
    pub fn elements_with<T>(
        &mut self,
        count: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        // A count is not trusted, and elements may be larger in memory than on the
        // wire: the reserve stays in proportion to the bytes present.
        let reserve_max = self
            .remaining()
            .saturating_mul(4)
            .checked_div(size_of::<T>())
            .map_or(1, |count| count.saturating_add(1));
        let mut values = Vec::with_capacity(count.min(reserve_max));
        for _ in 0..count {
            values.push(read(self)?);
        }
        Ok(values)
    }

    /// A sequence of non-primitive elements, each read by `read`.
    pub fn sequence_with<T>(
        &mut self,
        element_bytes_min: usize,
        bound: usize,
        read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let scope = self.begin_collection()?;
        let count = self.sequence_len(element_bytes_min, bound)?;
        let values = self.elements_with(count, read)?;
        self.end_collection(scope);
        Ok(values)
    }

    pub(crate) fn array_with<T: Default, const N: usize>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<[T; N], DecodeError> {
        let scope = self.begin_collection()?;
        let mut values: [T; N] = core::array::from_fn(|_| T::default());
        for value in &mut values {
            *value = read(self)?;
        }
        self.end_collection(scope);
        Ok(values)
    }

    fn take_bools(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let start = self.position;
        let bytes = self.take(count)?;
        match bytes.iter().enumerate().find(|(_, byte)| **byte > 1) {
            None => Ok(bytes),
            Some((index, value)) => Err(DecodeError::InvalidBool {
                offset: start.saturating_add(index),
                value: *value,
            }),
        }
    }

    #[inline]
    fn swap_to_native<T: Primitive>(&self, values: &mut [T]) {
        if self.swap {
            values.iter_mut().for_each(|value| *value = value.swapped());
        }
    }

    #[inline]
    fn align(&mut self, size: usize) {
        // May step past the end; `take` checks that.
        let skipped = self.position.wrapping_neg() & size.saturating_sub(1) & self.align_mask;
        self.position = self.position.saturating_add(skipped);
    }

    #[inline]
    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.data.get(self.position..).unwrap_or_default();
        let Some(bytes) = rest.get(..count) else {
            return Err(self.truncated(count));
        };
        self.position = self.position.saturating_add(count);
        Ok(bytes)
    }

    #[inline]
    fn take_chunk<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let rest = self.data.get(self.position..).unwrap_or_default();
        let Some(bytes) = rest.first_chunk::<N>() else {
            return Err(self.truncated(N));
        };
        self.position = self.position.saturating_add(N);
        Ok(*bytes)
    }

    #[cold]
    fn truncated(&self, needed: usize) -> DecodeError {
        DecodeError::UnexpectedEnd {
            offset: self.position,
            needed,
        }
    }
}

macro_rules! numbers {
    ($($name:ident)*) => {
        impl Decoder<'_> {
            $(
                #[doc = concat!("One `", stringify!($name), "`.")]
                #[inline]
                pub fn $name(&mut self) -> Result<$name, DecodeError> {
                    self.align(size_of::<$name>());
                    let value = $name::from_ne_bytes(self.take_chunk()?);
                    Ok(if self.swap { value.swapped() } else { value })
                }
            )*
        }
    };
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

//! CDR encoder into a growing vector, a fixed slice, or nowhere (counting).
//!
//! One type serves all three, so a message has one `encode`. A fixed slice that is
//! too small never fails midway: the encoder continues to count and returns the
//! size needed at the end. Counting is the same with a slice of no bytes. Numbers
//! are aligned to their own size, at most 8 (XCDR1) or 4 (XCDR2) bytes, from where
//! the encoder began. Empty sequences are only a length: no alignment follows, as
//! in Cyclone DDS and Fast CDR.

use super::codec::Encode;
use super::reserved_sequence::ReservedSequence;
use super::{Endian, Representation};
use crate::plain::{self, Primitive};
use crate::wstring::WString;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Appends values to its output; see the module.
pub struct Encoder<'a> {
    output: Output<'a>,
    /// Bytes since the origin of alignment, including those that did not fit.
    len: usize,
    align_mask: usize,
    representation: Representation,
    /// Whether appendable structures have a size header.
    delimits: bool,
    swap: bool,
    /// The reserved sequence, if any.
    reserved: Option<&'a mut ReservedSequence>,
}

enum Output<'a> {
    Vec(&'a mut Vec<u8>),
    Slice(&'a mut [u8]),
}

/// A fixed slice cannot hold the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BufferTooSmall {
    /// Bytes that it takes.
    pub needed: usize,
}

crate::debug_as_display!(BufferTooSmall);

impl fmt::Display for BufferTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the memory is too small: {} bytes needed", self.needed)
    }
}

impl core::error::Error for BufferTooSmall {}

/// An open XCDR2 collection or appendable structure; pass it to the method that
/// closes it.
#[must_use]
pub struct EncoderScope {
    /// Offset of the size, as in `Encoder::len`; none in XCDR1.
    size_at: Option<usize>,
}

impl<'a> Encoder<'a> {
    /// Appends to `buffer`; alignment counts from its current end.
    #[inline]
    pub fn to_vec(buffer: &'a mut Vec<u8>, representation: Representation, endian: Endian) -> Self {
        Self::new(Output::Vec(buffer), representation, endian)
    }

    /// Fills `buffer` from its start; [`Self::finish`] returns whether it fitted.
    #[inline]
    pub fn to_slice(buffer: &'a mut [u8], representation: Representation, endian: Endian) -> Self {
        Self::new(Output::Slice(buffer), representation, endian)
    }

    /// Writes nothing; [`Self::len`] is the size that the values would take.
    #[inline]
    pub fn counting(representation: Representation) -> Encoder<'static> {
        Encoder::new(Output::Slice(&mut []), representation, Endian::NATIVE)
    }

    fn new(output: Output<'a>, representation: Representation, endian: Endian) -> Self {
        Self {
            output,
            len: 0,
            align_mask: match representation {
                Representation::Xcdr1 => 7,
                Representation::Xcdr2 => 3,
            },
            representation,
            delimits: representation == Representation::Xcdr2,
            swap: endian != Endian::NATIVE,
            reserved: None,
        }
    }

    /// Reserves space for a sequence instead of writing it.
    pub(super) fn reserving(mut self, reserved: Option<&'a mut ReservedSequence>) -> Self {
        self.reserved = reserved;
        self
    }

    /// Writes appendable structures as if they were final: without size headers.
    /// Key hashes use this form (XTypes 1.3 §7.6.8.4).
    pub fn undelimited(mut self) -> Self {
        self.delimits = false;
        self
    }

    /// As [`Encoder::undelimited`], from here on.
    pub(crate) fn undelimit(&mut self) {
        self.delimits = false;
    }

    /// Bytes written so far, or that would have been.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a measure, not a container")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The encoding version.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// The number of bytes written, or the number needed when they did not fit.
    pub fn finish(self) -> Result<usize, BufferTooSmall> {
        match self.output {
            Output::Slice(slice) if slice.len() < self.len => {
                Err(BufferTooSmall { needed: self.len })
            }
            _ => Ok(self.len),
        }
    }

    /// One byte, 0 or 1.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.put(&[u8::from(value)]);
    }

    /// A `string`: size with the final NUL, UTF-8 bytes, NUL.
    ///
    /// # Panics
    /// As [`Self::sequence_len`].
    #[inline]
    pub fn string(&mut self, value: &str) {
        self.sequence_len(value.len() + 1);
        self.put(value.as_bytes());
        self.put(&[0]);
    }

    /// A `wstring`: number of UTF-16 units, then each as a 32-bit number.
    ///
    /// This differs from XTypes, but it is what both `rosidl_typesupport_fastrtps`
    /// and `rmw_cyclonedds` (on Linux) write, for compatibility with each other.
    ///
    /// # Panics
    /// As [`Self::sequence_len`].
    pub fn wstring(&mut self, value: &WString) {
        self.sequence_len(value.0.len());
        for &unit in &value.0 {
            self.u32(u32::from(unit));
        }
    }

    /// The element count before a sequence.
    ///
    /// # Panics
    /// When it exceeds CDR's 32 bits; such a value cannot be sent at all.
    #[inline]
    pub fn sequence_len(&mut self, count: usize) {
        let count = u32::try_from(count).expect("a sequence has at most 2^32 - 1 elements in CDR");
        self.u32(count);
    }

    /// `T[N]` of numbers: one copy, or a loop when the byte order differs.
    #[inline]
    pub fn primitive_array<T: Primitive>(&mut self, values: &[T]) {
        if values.is_empty() {
            return;
        }
        self.align(size_of::<T>());
        if !self.swap || size_of::<T>() == 1 {
            return self.put(plain::bytes_of(values));
        }
        for value in values {
            self.put(plain::bytes_of(&[value.swapped()]));
        }
    }

    /// `T[]` of numbers: count, then as [`Self::primitive_array`].
    #[inline]
    pub fn primitive_sequence<T: Primitive>(&mut self, values: &[T]) {
        if self.reserved.is_some() && self.reserve_elements(values) {
            return;
        }
        self.sequence_len(values.len());
        self.primitive_array(values);
    }

    /// `bool[N]`.
    #[inline]
    pub fn bool_array(&mut self, values: &[bool]) {
        self.put(plain::bytes_of_bools(values));
    }

    /// `bool[]`: the length, then a byte for each.
    #[inline]
    pub fn bool_sequence(&mut self, values: &[bool]) {
        self.sequence_len(values.len());
        self.bool_array(values);
    }

    /// `string[N]`.
    pub fn string_array(&mut self, values: &[String]) {
        let scope = self.begin_collection();
        values.iter().for_each(|value| self.string(value));
        self.end_collection(scope);
    }

    /// `string[]`: the length, then each string.
    pub fn string_sequence(&mut self, values: &[String]) {
        let scope = self.begin_collection();
        self.sequence_len(values.len());
        values.iter().for_each(|value| self.string(value));
        self.end_collection(scope);
    }

    /// `wstring[N]`.
    pub fn wstring_array(&mut self, values: &[WString]) {
        let scope = self.begin_collection();
        values.iter().for_each(|value| self.wstring(value));
        self.end_collection(scope);
    }

    /// `wstring[]`: the length, then each wide string.
    pub fn wstring_sequence(&mut self, values: &[WString]) {
        let scope = self.begin_collection();
        self.sequence_len(values.len());
        values.iter().for_each(|value| self.wstring(value));
        self.end_collection(scope);
    }

    /// `pkg/Message[N]`.
    pub fn message_array<T: Encode>(&mut self, values: &[T]) {
        let scope = self.begin_collection();
        values.iter().for_each(|value| value.encode(self));
        self.end_collection(scope);
    }

    /// `pkg/Message[]`.
    pub fn message_sequence<T: Encode>(&mut self, values: &[T]) {
        if self.reserved.is_some() && self.reserve_elements(values) {
            return;
        }
        let scope = self.begin_collection();
        self.sequence_len(values.len());
        values.iter().for_each(|value| value.encode(self));
        self.end_collection(scope);
    }

    /// Whether `values` is the reserved sequence. Then its count is written, and
    /// its elements are skipped.
    fn reserve_elements<T>(&mut self, values: &[T]) -> bool {
        let Some(reserved) = self.reserved.take_if(|reserved| reserved.is_for(values)) else {
            return false;
        };
        let scope = if reserved.is_of_messages {
            self.begin_collection()
        } else {
            EncoderScope { size_at: None }
        };
        self.sequence_len(reserved.count);
        if reserved.count > 0 {
            self.align(reserved.first_align);
        }
        reserved.note(self.len, self.representation);
        self.skip(reserved.bytes());
        self.end_collection(scope);
        true
    }

    /// Skips bytes of a slice without changing them; a vector gets zeros.
    fn skip(&mut self, bytes: usize) {
        self.len += bytes;
        if let Output::Vec(vec) = &mut self.output {
            vec.resize(vec.len() + bytes, 0);
        }
    }

    /// Opens an appendable structure: XCDR2 has its size before it (DHEADER,
    /// XTypes 1.3 §7.4.3.4.2).
    #[inline]
    pub fn begin_appendable(&mut self) -> EncoderScope {
        if self.delimits {
            self.begin_collection()
        } else {
            EncoderScope { size_at: None }
        }
    }

    /// Closes it: fills in the size.
    ///
    /// # Panics
    /// As [`Self::end_collection`].
    #[inline]
    pub fn end_appendable(&mut self, scope: EncoderScope) {
        self.end_collection(scope);
    }

    /// Opens an array or sequence of strings or messages.
    ///
    /// XCDR2 puts its size in bytes before it (DHEADER, XTypes §7.4.3.5);
    /// XCDR1 nothing. Primitive elements have none in either.
    #[inline]
    pub fn begin_collection(&mut self) -> EncoderScope {
        if self.representation == Representation::Xcdr1 {
            return EncoderScope { size_at: None };
        }
        self.u32(0);
        EncoderScope {
            size_at: Some(self.len - 4),
        }
    }

    /// Closes it: fills in the size.
    ///
    /// # Panics
    /// When it exceeds CDR's 32 bits.
    #[inline]
    pub fn end_collection(&mut self, scope: EncoderScope) {
        let Some(at) = scope.size_at else { return };
        let size = u32::try_from(self.len - at - 4).expect("a collection fits 32 bits of size");
        let bytes = if self.swap { size.swap_bytes() } else { size }.to_ne_bytes();
        let target = match &mut self.output {
            Output::Vec(vec) => {
                let origin = vec.len() - self.len;
                vec.get_mut(origin + at..origin + at + 4)
            }
            Output::Slice(slice) => slice.get_mut(at..at + 4),
        };
        if let Some(target) = target {
            target.copy_from_slice(&bytes);
        }
    }

    #[inline]
    fn align(&mut self, size: usize) {
        let padding = self.len.wrapping_neg() & (size - 1) & self.align_mask;
        if padding > 0 {
            self.put(&[0; 8][..padding]);
        }
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match &mut self.output {
            Output::Vec(vec) => vec.extend_from_slice(bytes),
            Output::Slice(slice) => {
                if let Some(target) = slice.get_mut(self.len..end) {
                    target.copy_from_slice(bytes);
                }
            }
        }
        self.len = end;
    }
}

macro_rules! numbers {
    ($($name:ident)*) => {
        impl Encoder<'_> {
            $(
                #[doc = concat!("One `", stringify!($name), "`.")]
                #[inline]
                pub fn $name(&mut self, value: $name) {
                    self.align(size_of::<$name>());
                    let value = if self.swap { value.swapped() } else { value };
                    self.put(&value.to_ne_bytes());
                }
            )*
        }
    };
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

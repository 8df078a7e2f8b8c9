//! In-place decoding: values borrowed from the payload instead of copied; see
//! [`view`](crate::view).

use super::super::Decode;
use super::super::{DecodeError, Representation};
use super::Decoder;
use crate::borrowed::{MaybeBorrowed, Str};
use crate::plain::{self, FixedLayout, Primitive};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl<'a> Decoder<'a> {
    /// A `string` of at most `bound` bytes, in place.
    #[inline]
    pub fn str_view(&mut self, bound: usize) -> Result<Str<'a>, DecodeError> {
        self.string_bytes(bound).map(Str::new)
    }

    /// `T[]` or `T[<=bound]` of numbers, in place if possible, else a copy.
    #[inline]
    pub fn number_sequence_view<T: Primitive>(
        &mut self,
        bound: usize,
    ) -> Result<Cow<'a, [T]>, DecodeError> {
        let count = self.sequence_len(size_of::<T>(), bound)?;
        self.number_array_view(count)
    }

    /// `T[count]` of numbers, in place if possible, else a copy.
    #[inline]
    pub fn number_array_view<T: Primitive>(
        &mut self,
        count: usize,
    ) -> Result<Cow<'a, [T]>, DecodeError> {
        if count == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        self.align(size_of::<T>());
        let bytes = self.take(count.saturating_mul(size_of::<T>()))?;
        let as_is = !self.swap || size_of::<T>() == 1;
        if let (true, Some(values)) = (as_is, plain::values_in(bytes)) {
            return Ok(Cow::Borrowed(values));
        }
        let mut values = plain::to_vec(bytes);
        self.swap_to_native(&mut values);
        Ok(Cow::Owned(values))
    }

    /// A message of fixed layout, in place if possible, else a copy.
    #[inline]
    pub fn fixed_view<T: FixedLayout + Decode>(
        &mut self,
    ) -> Result<MaybeBorrowed<'a, T>, DecodeError> {
        match self.fixed_values(1).and_then(<[T]>::first) {
            Some(value) => Ok(MaybeBorrowed::Borrowed(value)),
            None => T::decode(self).map(|value| MaybeBorrowed::Owned(Box::new(value))),
        }
    }

    /// `pkg/Message[]` or `pkg/Message[<=bound]` of fixed layout, in place if
    /// possible, else a copy.
    #[inline]
    pub fn fixed_sequence_view<T: FixedLayout + Decode>(
        &mut self,
        bound: usize,
    ) -> Result<Cow<'a, [T]>, DecodeError> {
        let scope = self.begin_collection()?;
        let count = self.sequence_len(size_of::<T>(), bound)?;
        let values = match self.fixed_values(count) {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(self.elements_with(count, T::decode)?),
        };
        self.end_collection(scope);
        Ok(values)
    }

    /// An array of `count` non-primitive elements, each read by `read`.
    pub fn vec_with<T>(
        &mut self,
        count: usize,
        read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let scope = self.begin_collection()?;
        let values = self.elements_with(count, read)?;
        self.end_collection(scope);
        Ok(values)
    }

    /// The next `count` values if they have the layout of memory; otherwise nothing
    /// is read.
    ///
    /// XCDR2 has other alignment rules. In XCDR1 there are gaps unless they begin
    /// at a multiple of their largest alignment.
    fn fixed_values<T: FixedLayout>(&mut self, count: usize) -> Option<&'a [T]> {
        if self.swap || self.representation != Representation::Xcdr1 {
            return None;
        }
        if count == 0 {
            return Some(&[]);
        }
        let start = self.position.checked_next_multiple_of(T::FIRST_ALIGN)?;
        if !start.is_multiple_of(T::ALIGN) {
            return None;
        }
        let end = start.checked_add(count.checked_mul(size_of::<T>())?)?;
        let values = plain::values_in(self.data.get(start..end)?)?;
        self.position = end;
        Some(values)
    }
}

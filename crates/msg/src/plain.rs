//! Plain data: slices of numbers viewed as bytes, and back; the only `unsafe`. Also
//! messages that consist of numbers only ([`FixedLayout`]).
//!
//! A sequence of a million samples is then one `memcpy` instead of a million calls.
//! Only types whose every bit pattern is a value and that have no padding qualify,
//! so neither direction can make an invalid value. The bytes are in native order;
//! the caller swaps them.

use alloc::vec::Vec;
use core::mem::size_of;

mod sealed {
    pub trait Sealed {}
}

/// Numbers of fixed size: integers and floats up to 64 bits.
///
/// Sealed: the casts in this file rely on the list of implementors.
pub trait Primitive: sealed::Sealed + FixedLayout + Default {
    /// The value with its bytes reversed.
    fn swapped(self) -> Self;
}

/// Values that are their bytes: numbers, and arrays and messages of nothing but
/// numbers without gaps between them.
///
/// XCDR1 in the machine's byte order has the same bytes as memory where such a
/// value begins at a multiple of [`ALIGN`](Self::ALIGN) from the origin of the
/// alignment. [`fixed_layout!`](crate::fixed_layout) implements it for structs,
/// after checking them; generated code does so for each message type that fits.
///
/// # Safety
/// Every bit pattern of the type's size is a value of it, and none of its bytes
/// is padding.
pub unsafe trait FixedLayout: Copy + 'static {
    /// CDR alignment of the first number, bytes.
    const FIRST_ALIGN: usize;
    /// CDR alignment of the largest number, bytes.
    const ALIGN: usize;
    /// Whether it is a number by itself.
    const IS_NUMBER: bool = false;
}

// SAFETY: the elements are values without padding, side by side.
unsafe impl<T: FixedLayout, const N: usize> FixedLayout for [T; N] {
    const FIRST_ALIGN: usize = T::FIRST_ALIGN;
    const ALIGN: usize = T::ALIGN;
}

/// Implements [`FixedLayout`](crate::plain::FixedLayout) for a `#[repr(C)]` struct,
/// all of whose fields are named in order with their types. A field that is no
/// number, a gap or another order does not compile.
///
/// ```
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Point {
///     x: f64,
///     y: f64,
/// }
/// pteros_msg::fixed_layout!(Point { x: f64, y: f64 });
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Gap {
///     x: u8,
///     y: u32,
/// }
/// pteros_msg::fixed_layout!(Gap { x: u8, y: u32 });
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Flag {
///     on: bool,
/// }
/// pteros_msg::fixed_layout!(Flag { on: bool });
/// ```
#[macro_export]
macro_rules! fixed_layout {
    ($name:ident { $first:ident: $first_ty:ty $(, $field:ident: $ty:ty)* $(,)? }) => {
        const _: () = {
            // These are all fields, and of these types.
            #[allow(dead_code)]
            fn fields(value: $name) {
                let $name { $first, $($field),* } = value;
                let _: $first_ty = $first;
                $(let _: $ty = $field;)*
            }
            let mut end = 0;
            $crate::fixed_layout!(@field $name, $first, $first_ty, end);
            $($crate::fixed_layout!(@field $name, $field, $ty, end);)*
            ::core::assert!(end == ::core::mem::size_of::<$name>(), "no gap at the end");
            ::core::assert!(end % <$name as $crate::plain::FixedLayout>::ALIGN == 0, "no gap between two");
        };

        // SAFETY: the assertions above: one field follows the other without a
        // gap, to the end, and each is of a type that keeps the promise.
        unsafe impl $crate::plain::FixedLayout for $name {
            const FIRST_ALIGN: usize = <$first_ty as $crate::plain::FixedLayout>::FIRST_ALIGN;
            const ALIGN: usize = {
                let largest = <$first_ty as $crate::plain::FixedLayout>::ALIGN;
                $(
                    let other = <$ty as $crate::plain::FixedLayout>::ALIGN;
                    let largest = if other > largest { other } else { largest };
                )*
                largest
            };
        }
    };
    (@field $name:ident, $field:ident, $ty:ty, $end:ident) => {
        ::core::assert!(::core::mem::offset_of!($name, $field) == $end, "no gap before a field");
        ::core::assert!($end % <$ty as $crate::plain::FixedLayout>::ALIGN == 0, "aligned as in CDR");
        $end += ::core::mem::size_of::<$ty>();
    };
}

macro_rules! primitive {
    ($($int:ty)*; $($float:ty)*) => {
        $(
        // SAFETY: integers and floats have no padding, and every bit pattern is
        // a value.
        unsafe impl FixedLayout for $int {
            const FIRST_ALIGN: usize = size_of::<$int>();
            const ALIGN: usize = size_of::<$int>();
            const IS_NUMBER: bool = true;
        }
        impl sealed::Sealed for $int {}
        impl Primitive for $int {
            #[inline]
            fn swapped(self) -> Self {
                self.swap_bytes()
            }
        })*
        $(
        // SAFETY: as for integers.
        unsafe impl FixedLayout for $float {
            const FIRST_ALIGN: usize = size_of::<$float>();
            const ALIGN: usize = size_of::<$float>();
            const IS_NUMBER: bool = true;
        }
        impl sealed::Sealed for $float {}
        impl Primitive for $float {
            #[inline]
            fn swapped(self) -> Self {
                Self::from_bits(self.to_bits().swap_bytes())
            }
        })*
    };
}
primitive!(u8 i8 u16 i16 u32 i32 u64 i64; f32 f64);

/// The slice's memory.
#[inline]
pub fn bytes_of<T: FixedLayout>(values: &[T]) -> &[u8] {
    // SAFETY: a `FixedLayout` has no padding, so all `size_of_val` bytes are
    // initialized; `u8` has alignment 1; the result borrows `values`, so the
    // memory outlives it unchanged.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}

/// The slice's memory, to be overwritten.
#[inline]
pub fn bytes_of_mut<T: Primitive>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; besides, every bit pattern is a value of a
    // `Primitive`, so nothing written through the result can invalidate it.
    unsafe {
        core::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), size_of_val(values))
    }
}

/// The values in `bytes`; `None` if they are not aligned or end within one.
#[inline]
pub fn values_in<T: FixedLayout>(bytes: &[u8]) -> Option<&[T]> {
    let count = count_in::<T>(bytes)?;
    // SAFETY: aligned and `count` values long (`count_in`); every bit pattern is
    // a value of a `FixedLayout`; the result borrows `bytes`.
    Some(unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast::<T>(), count) })
}

/// As [`values_in`], to be written.
#[inline]
pub fn values_in_mut<T: FixedLayout>(bytes: &mut [u8]) -> Option<&mut [T]> {
    let count = count_in::<T>(bytes)?;
    // SAFETY: as in `values_in`; besides, values have no padding, so all bytes
    // stay initialised whatever is written.
    Some(unsafe { core::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<T>(), count) })
}

/// How many values `bytes` are, if they are aligned.
#[inline]
fn count_in<T: FixedLayout>(bytes: &[u8]) -> Option<usize> {
    let is_aligned = bytes.as_ptr().cast::<T>().is_aligned();
    let rest = bytes.len().checked_rem(size_of::<T>())?;
    (is_aligned && rest == 0).then(|| bytes.len().checked_div(size_of::<T>()))?
}

/// Copies bytes into a new vector; a rest shorter than one value is dropped.
///
/// One allocation, one copy, no zeroing before it.
#[inline]
pub fn to_vec<T: Primitive>(bytes: &[u8]) -> Vec<T> {
    let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
    let mut values = Vec::<T>::with_capacity(count);
    // SAFETY: the new vector owns room for `count` values, that is
    // `count * size_of::<T>() <= bytes.len()` bytes, and cannot overlap `bytes`.
    // After the copy the first `count` values are initialized, and any bit
    // pattern is a value of a `Primitive`.
    unsafe {
        core::ptr::copy_nonoverlapping(
            bytes.as_ptr(),
            values.as_mut_ptr().cast::<u8>(),
            count.saturating_mul(size_of::<T>()),
        );
        values.set_len(count);
    }
    values
}

/// The memory of `bool`s: each byte is 0 or 1.
#[inline]
pub fn bytes_of_bools(values: &[bool]) -> &[u8] {
    // SAFETY: `bool` has size and alignment 1 and is always initialized as 0
    // or 1, both of which are `u8` values; the result borrows `values`.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast::<u8>(), values.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Pair {
        small: [u32; 2],
        large: f64,
    }
    fixed_layout!(Pair {
        small: [u32; 2],
        large: f64
    });

    #[test]
    fn structs_of_numbers_are_seen_in_bytes_that_are_aligned() {
        assert_eq!((Pair::FIRST_ALIGN, Pair::ALIGN), (4, 8));
        let mut memory = [0_u64; 5];
        let bytes = bytes_of_mut(&mut memory);
        let pairs = values_in_mut::<Pair>(&mut bytes[..32]).unwrap();
        pairs[1] = Pair {
            small: [1, 2],
            large: 2.5,
        };
        let bytes = bytes_of(&memory);
        assert_eq!(
            bytes[16..24],
            *[1_u32, 2].map(u32::to_ne_bytes).as_flattened()
        );
        assert_eq!(values_in::<Pair>(&bytes[..32]).unwrap()[1].large, 2.5);
        assert_eq!(values_in::<Pair>(&bytes[8..24]).unwrap()[0].small, [0, 0]);
        assert!(values_in::<Pair>(&bytes[4..36]).is_none(), "not aligned");
        assert!(values_in::<Pair>(bytes).is_none(), "two and a half");
        assert!(values_in::<Pair>(&[]).is_none_or(<[Pair]>::is_empty));
    }

    #[test]
    fn numbers_round_trip_through_bytes() {
        let values = [1.5f64, -0.0, f64::INFINITY];
        assert_eq!(to_vec::<f64>(bytes_of(&values)), values);
        assert_eq!(to_vec::<u16>(&[1, 0, 2, 0, 9]).len(), 2);
        assert!(to_vec::<u64>(&[]).is_empty());
        let mut words = [0u32; 2];
        bytes_of_mut(&mut words).copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(words.map(u32::from_le), [1, 0x0100_0000]);
        assert_eq!(bytes_of_bools(&[true, false]), [1, 0]);
        assert_eq!(1.0f32.swapped().swapped(), 1.0);
    }
}

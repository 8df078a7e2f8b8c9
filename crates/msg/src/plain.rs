//! Slices of numbers seen as the bytes they are, and back; the only `unsafe`.
//!
//! A sequence of a million samples is then one `memcpy` instead of a million
//! calls. Only types whose every bit pattern is a value and that have no
//! padding take part, so neither direction can make an invalid value. The
//! bytes are in the machine's own order; swapping is the caller's business.

use alloc::vec::Vec;
use core::mem::size_of;

mod sealed {
    pub trait Sealed {}
}

/// Numbers of fixed size: integers and floats up to 64 bits.
///
/// Sealed: the casts in this file rely on the list of implementors.
pub trait Primitive: sealed::Sealed + Copy + Default + 'static {
    /// The value with its bytes reversed.
    fn swapped(self) -> Self;
}

macro_rules! primitive {
    ($($int:ty)*; $($float:ty)*) => {
        $(impl sealed::Sealed for $int {}
        impl Primitive for $int {
            #[inline]
            fn swapped(self) -> Self {
                self.swap_bytes()
            }
        })*
        $(impl sealed::Sealed for $float {}
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
pub fn bytes_of<T: Primitive>(values: &[T]) -> &[u8] {
    // SAFETY: `Primitive` is sealed to integers and floats, which have no
    // padding, so all `size_of_val` bytes are initialized; `u8` has alignment 1;
    // the result borrows `values`, so the memory outlives it unchanged.
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

    #[test]
    fn numbers_survive_the_way_through_bytes() {
        let values = [1.5f64, -0.0, f64::INFINITY];
        assert_eq!(to_vec::<f64>(bytes_of(&values)), values);
        assert_eq!(to_vec::<u16>(&[1, 0, 2, 0, 9]).len(), 2);
        assert_eq!(to_vec::<u64>(&[]), []);
        let mut words = [0u32; 2];
        bytes_of_mut(&mut words).copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(words.map(u32::from_le), [1, 0x0100_0000]);
        assert_eq!(bytes_of_bools(&[true, false]), [1, 0]);
        assert_eq!(1.0f32.swapped().swapped(), 1.0);
    }
}

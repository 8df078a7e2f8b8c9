//! Scalar values and their order.

use alloc::borrow::Cow;
use core::cmp::Ordering;

/// A field's value in one message, or a constant.
#[derive(Clone, Debug)]
pub(super) enum Scalar<'a> {
    /// An element that the sequence does not have.
    Absent,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(Cow<'a, [u8]>),
}

impl Scalar<'_> {
    /// Order of `self` and `other`; `None` if one is absent or not a number.
    pub fn order(&self, other: &Scalar<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Scalar::Text(b)) => Some(a.cmp(b)),
            (Self::Float(a), Scalar::Float(b)) => a.partial_cmp(b),
            (Self::Float(a), b) => order(b.integer()?, *a).map(Ordering::reverse),
            (a, Scalar::Float(b)) => order(a.integer()?, *b),
            (a, b) => Some(a.integer()?.cmp(&b.integer()?)),
        }
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(i128::from(*value)),
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }
}

/// Exact, where converting the integer would round it.
fn order(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Saturates far outside of 64 bits, and truncates the fraction.
    let whole = float as i128;
    let by_fraction = || 0.0_f64.partial_cmp(&(float - whole as f64));
    match integer.cmp(&whole) {
        Ordering::Equal => by_fraction(),
        unequal => Some(unequal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_compare_exactly() {
        use Ordering::{Equal, Greater, Less};
        let large = (1_i128 << 53) + 1;
        for (integer, float, expected) in [
            (1, 1.0, Some(Equal)),
            (1, 1.5, Some(Less)),
            (2, 1.5, Some(Greater)),
            (-1, -1.5, Some(Greater)),
            (-2, -1.5, Some(Less)),
            (large, (large - 1) as f64, Some(Greater)),
            (
                i128::from(u64::MAX),
                18_446_744_073_709_551_616.0,
                Some(Less),
            ),
            (0, -0.0, Some(Equal)),
            (5, f64::INFINITY, Some(Less)),
            (5, f64::NEG_INFINITY, Some(Greater)),
            (5, f64::NAN, None),
        ] {
            assert_eq!(order(integer, float), expected, "{integer} {float}");
        }
    }
}

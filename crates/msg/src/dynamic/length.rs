//! Length check of arrays and bounded sequences.

use super::error::{ValueError, ValueProblem};
use super::types::Shape;
use alloc::format;

/// Fails when a collection of this shape cannot have `len` elements.
pub(super) fn check_length(shape: Shape, len: usize, path: &str) -> Result<(), ValueError> {
    let expected = match shape {
        Shape::Array(count) if count != len => format!("exactly {count} elements"),
        Shape::Sequence { bound } if len > bound => format!("at most {bound} elements"),
        _ => return Ok(()),
    };
    Err(ValueError {
        path: path.into(),
        problem: ValueProblem::WrongLength {
            expected,
            found: len,
        },
    })
}

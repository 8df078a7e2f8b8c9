//! The traits of what has a CDR form. Generated code implements them.

use super::{DecodeError, Decoder, Encoder};
use crate::describe::Extensibility;

/// Writes itself as CDR.
pub trait Encode {
    /// Appends one value, without an encapsulation header.
    ///
    /// Cannot fail: a fixed buffer that is too small only counts on, see
    /// [`Encoder::finish`].
    fn encode(&self, out: &mut Encoder<'_>);

    /// How the value's type may evolve, which decides its encapsulation.
    fn extensibility(&self) -> Extensibility {
        Extensibility::Final
    }
}

/// Reads itself from CDR.
pub trait Decode: Sized {
    /// Reads one value, without an encapsulation header.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

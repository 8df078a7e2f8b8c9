//! Reserved sequence: space for one large sequence in a payload, whose elements are
//! written later, in place (loaned message).
//!
//! Types need no support for it. During encoding the message holds a sequence of
//! one element in that place, and the encoder recognises it by its address.

use super::encapsulation::{HEADER_BYTES, Representation};
use crate::plain::FixedLayout;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// The sequence of a message that is reserved, its element count and its position.
#[derive(Debug)]
pub struct ReservedSequence {
    /// Address of the one element in its place.
    address: usize,
    pub(super) count: usize,
    element_bytes: usize,
    pub(super) first_align: usize,
    align: usize,
    pub(super) is_of_messages: bool,
    /// Offset of the elements from the origin of alignment.
    at: Option<usize>,
    /// Whether the elements have the same layout in the payload as in memory.
    fits: bool,
}

/// Why a sequence cannot be reserved in a message's payload.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReserveError {
    /// The sequence is not a field of the message.
    NotFound,
    /// The elements' layout in the payload differs from that in memory.
    OtherLayout,
}

crate::debug_as_display!(ReserveError);

impl core::fmt::Display for ReserveError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotFound => {
                "the sequence to reserve is not a field of the message; choose one of its own"
            }
            Self::OtherLayout => {
                "the elements have another layout in the payload than in memory (a sequence of messages in \
                 XCDR2, or of mixed alignment); publish the message with the sequence filled in"
            }
        })
    }
}

impl core::error::Error for ReserveError {}

impl ReservedSequence {
    /// Reserves `count` elements for a sequence, which gets one element as a mark.
    /// Restore its content, if any, afterwards.
    pub fn for_sequence<T: FixedLayout + Default>(sequence: &mut Vec<T>, count: usize) -> Self {
        // A new vector, so that its address is unique.
        *sequence = vec![T::default()];
        Self {
            address: sequence.as_ptr() as usize,
            count,
            element_bytes: size_of::<T>(),
            first_align: T::FIRST_ALIGN,
            align: T::ALIGN,
            is_of_messages: !T::IS_NUMBER,
            at: None,
            fits: false,
        }
    }

    pub(super) fn is_for<T>(&self, values: &[T]) -> bool {
        values.as_ptr() as usize == self.address
    }

    pub(super) fn bytes(&self) -> usize {
        self.count.saturating_mul(self.element_bytes)
    }

    /// Records the encoder's position.
    pub(super) fn note(&mut self, at: usize, representation: Representation) {
        self.at = Some(at);
        self.fits = self.count == 0
            || !self.is_of_messages
            || representation == Representation::Xcdr1 && at.is_multiple_of(self.align);
    }

    /// Position of the elements in the payload, including the header.
    ///
    /// # Errors
    /// [`ReserveError`]; the payload is then unusable.
    pub fn byte_range(&self) -> Result<Range<usize>, ReserveError> {
        let begin = self.at.ok_or(ReserveError::NotFound)?;
        if !self.fits {
            return Err(ReserveError::OtherLayout);
        }
        let begin = begin.saturating_add(HEADER_BYTES);
        Ok(begin..begin.saturating_add(self.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::Encoder;
    use crate::cdr::{Encode, payload_len_reserving, to_payload_reserving};

    /// A name, numbers and a flag behind them.
    #[derive(Default)]
    struct Scan {
        name: alloc::string::String,
        ranges: Vec<f64>,
        other: Vec<f64>,
        flag: u8,
    }

    impl Encode for Scan {
        fn encode(&self, out: &mut Encoder<'_>) {
            out.string(&self.name);
            out.primitive_sequence(&self.ranges);
            out.primitive_sequence(&self.other);
            out.u8(self.flag);
        }
    }

    /// The whole message, with the sequence of another one reserved.
    fn in_native_order(message: &Scan, representation: Representation) -> Vec<u8> {
        let mut unrelated = Vec::<f64>::new();
        let mut reserved = ReservedSequence::for_sequence(&mut unrelated, 1);
        let mut memory = vec![0; payload_len_reserving(message, representation, &mut reserved)];
        let len = to_payload_reserving(message, representation, &mut memory, &mut reserved);
        assert_eq!(len, Ok(memory.len()));
        memory
    }

    #[test]
    fn a_payload_with_a_reserved_sequence_equals_the_whole_message_once_filled() {
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            for count in [0, 1, 5] {
                let values: Vec<f64> = (0..count).map(|n| n as f64 + 0.5).collect();
                let whole = Scan {
                    name: "left".into(),
                    ranges: values.clone(),
                    other: vec![9.0],
                    flag: 7,
                };
                let expected = in_native_order(&whole, representation);
                let portable = super::super::to_payload(&whole, representation);
                assert_eq!(expected.len(), portable.len());
                if cfg!(target_endian = "little") {
                    assert_eq!(expected, portable);
                }
                let mut draft = Scan {
                    ranges: Vec::new(),
                    ..whole
                };
                let mut reserved = ReservedSequence::for_sequence(&mut draft.ranges, count);
                let len = payload_len_reserving(&draft, representation, &mut reserved);
                assert_eq!(len, expected.len());
                let mut memory = vec![0xee; len];
                let written =
                    to_payload_reserving(&draft, representation, &mut memory, &mut reserved);
                assert_eq!(written, Ok(len));
                let place = reserved.byte_range().unwrap();
                memory[place].copy_from_slice(crate::plain::bytes_of(&values));
                assert_eq!(memory, expected, "{representation:?} {count}");
            }
        }
    }

    #[test]
    fn a_sequence_of_another_message_is_not_found() {
        let (draft, mut unrelated) = (Scan::default(), Vec::<f64>::new());
        let mut reserved = ReservedSequence::for_sequence(&mut unrelated, 3);
        payload_len_reserving(&draft, Representation::Xcdr1, &mut reserved);
        assert_eq!(reserved.byte_range(), Err(ReserveError::NotFound));
    }
}

//! Room for one large sequence in a payload, whose elements are written later,
//! where they will be read.
//!
//! Types know nothing of it: the message holds a sequence of one element in
//! that place while it is encoded, and the encoder knows it again by its
//! address.

use super::{Encapsulation, Endian, Representation, TooSmall, encapsulation};
use crate::message::Encode;
use crate::plain::FixedLayout;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Which sequence of a message is left out, for how many elements room is left,
/// and where.
#[derive(Debug)]
pub struct Room {
    /// Where the one element in its place lies.
    address: usize,
    pub(super) count: usize,
    element_bytes: usize,
    pub(super) first_align: usize,
    align: usize,
    pub(super) is_of_messages: bool,
    /// Where the elements begin, counted from the origin of alignment.
    at: Option<usize>,
    /// Whether elements lie there as they do in memory.
    fits: bool,
}

/// A message's payload cannot be made with such room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The sequence is none of the message's own.
    NotFound,
    /// Its elements lie otherwise in the payload than in memory.
    OtherLayout,
}

impl core::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotFound => {
                "the sequence to leave room for is not a field of the message; choose one of its own"
            }
            Self::OtherLayout => {
                "the elements lie otherwise in the payload than in memory (a sequence of messages in \
                 XCDR2, or of mixed alignment); publish the message with the sequence filled in"
            }
        })
    }
}

impl core::error::Error for NoRoom {}

impl Room {
    /// Room for `count` elements in place of those of a sequence, which is given
    /// one element as a mark; put back what it had, if anything, afterwards.
    pub fn in_place_of<T: FixedLayout + Default>(sequence: &mut Vec<T>, count: usize) -> Self {
        // A vector of its own, so that its address is nobody else's.
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

    /// Where the encoder left it.
    pub(super) fn note(&mut self, at: usize, representation: Representation) {
        self.at = Some(at);
        self.fits = self.count == 0
            || !self.is_of_messages
            || representation == Representation::Xcdr1 && at.is_multiple_of(self.align);
    }

    /// Where the elements are in the payload, header included.
    ///
    /// # Errors
    /// [`NoRoom`]; the payload is of no use then.
    pub fn place(&self) -> Result<Range<usize>, NoRoom> {
        let begin = self.at.ok_or(NoRoom::NotFound)?;
        if !self.fits {
            return Err(NoRoom::OtherLayout);
        }
        let begin = begin.saturating_add(super::HEADER_BYTES);
        Ok(begin..begin.saturating_add(self.bytes()))
    }
}

/// The size of [`to_payload_with_room`]'s result, without making it.
pub fn payload_len_with_room<M: Encode + ?Sized>(
    message: &M,
    representation: Representation,
    room: &mut Room,
) -> usize {
    encapsulation::count(message, representation, Some(room))
}

/// As [`to_payload_slice`](super::to_payload_slice), in the machine's byte order;
/// the elements of one sequence keep the bytes that `memory` has in their place.
///
/// # Errors
/// As there; look at [`Room::place`] as well.
pub fn to_payload_with_room<M: Encode + ?Sized>(
    message: &M,
    representation: Representation,
    memory: &mut [u8],
    room: &mut Room,
) -> Result<usize, TooSmall> {
    encapsulation::write(message, representation, Endian::NATIVE, memory, Some(room))
}

/// The header of a payload that is one value of fixed layout as it lies in
/// memory: XCDR1 in the machine's byte order.
pub fn fixed_header<M: FixedLayout>() -> [u8; super::HEADER_BYTES] {
    Encapsulation {
        padding: (size_of::<M>().wrapping_neg() & 3) as u8,
        ..Encapsulation::plain(Representation::Xcdr1, Endian::NATIVE)
    }
    .to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::Encoder;

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

    #[test]
    fn a_payload_with_room_is_that_of_the_whole_message_once_it_is_filled() {
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            for count in [0, 1, 5] {
                let values: Vec<f64> = (0..count).map(|n| n as f64 + 0.5).collect();
                let whole = Scan {
                    name: "left".into(),
                    ranges: values.clone(),
                    other: vec![9.0],
                    flag: 7,
                };
                let expected = super::super::to_payload(&whole, representation);
                let mut draft = Scan {
                    ranges: Vec::new(),
                    ..whole
                };
                let mut room = Room::in_place_of(&mut draft.ranges, count);
                let len = payload_len_with_room(&draft, representation, &mut room);
                assert_eq!(len, expected.len());
                let mut memory = vec![0xee; len];
                let written = to_payload_with_room(&draft, representation, &mut memory, &mut room);
                assert_eq!(written, Ok(len));
                let place = room.place().unwrap();
                memory[place].copy_from_slice(crate::plain::bytes_of(&values));
                assert_eq!(memory, expected, "{representation:?} {count}");
            }
        }
    }

    #[test]
    fn a_sequence_of_somebody_else_is_not_found() {
        let (draft, mut stranger) = (Scan::default(), Vec::<f64>::new());
        let mut room = Room::in_place_of(&mut stranger, 3);
        payload_len_with_room(&draft, Representation::Xcdr1, &mut room);
        assert_eq!(room.place(), Err(NoRoom::NotFound));
    }
}

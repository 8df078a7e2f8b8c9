//! Finalization of C structs that no typesupport library finalizes: frees the memory of
//! their strings and sequences.

use std::ffi::c_void;

use crate::program::{Op, Program};
use crate::sequence::{CSequence, Elements, OwnedStruct, finalize_strings};

impl Program {
    /// Frees the memory that a struct of a [`CMessageType`](crate::CMessageType) owns,
    /// and empties its strings and sequences. The struct itself stays.
    ///
    /// # Safety
    /// `message` points to an initialized C struct of the type, which nothing else uses.
    /// Its memory is malloc's.
    pub unsafe fn finalize(&self, message: *mut c_void) {
        let message: *mut u8 = message.cast();
        for op in &self.ops {
            // SAFETY: offsets of the type.
            unsafe { self.finalize_op(op, message) };
        }
    }

    /// Frees the structs of a sequence of the type, and empties it.
    ///
    /// # Safety
    /// As for [`Self::finalize`], of the elements.
    pub(crate) unsafe fn finalize_elements(&self, sequence: &mut CSequence) {
        // SAFETY: as for this function.
        unsafe {
            for at in 0..sequence.owned_len() {
                self.finalize(sequence.data.cast::<u8>().add(at * self.size_of).cast());
            }
            sequence.free();
        }
    }

    unsafe fn finalize_op(&self, op: &Op, message: *mut u8) {
        // SAFETY: the members lie at their offsets, and sequences have as many elements as
        // they say.
        unsafe {
            match op {
                Op::Numbers { .. } | Op::Bools { .. } => {}
                Op::Strings { offset, count, .. } => {
                    finalize_strings(message.add(*offset), *count);
                }
                Op::NumberSequence { offset, .. } | Op::BoolSequence { offset, .. } => {
                    (*message.add(*offset).cast::<CSequence>()).free();
                }
                Op::StringSequence { offset, .. } => {
                    let sequence = &mut *message.add(*offset).cast::<CSequence>();
                    Elements::Strings.finalize(sequence.data.cast(), sequence.owned_len());
                    sequence.free();
                }
                Op::MessageArray {
                    offset,
                    count,
                    program,
                } => {
                    for at in 0..*count {
                        program.finalize(message.add(offset + at * program.size_of).cast());
                    }
                }
                Op::MessageSequence {
                    offset, program, ..
                } => {
                    program.finalize_elements(&mut *message.add(*offset).cast());
                }
            }
        }
    }
}

impl OwnedStruct for Program {
    fn size_of(&self) -> usize {
        self.size_of
    }

    unsafe fn free_owned(&self, message: *mut c_void) {
        // SAFETY: as for this function.
        unsafe { self.finalize(message) };
    }
}

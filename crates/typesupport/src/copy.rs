//! Copies and moves messages from one struct of the user's type to another, without CDR.
//!
//! Numbers are copied as bytes. A boolean becomes 0 or 1, as in CDR. Strings and
//! sequences get memory as in deserialization. A move swaps their memory instead, so it
//! allocates nothing.

use std::ffi::c_void;

use crate::encode::checked;
use crate::failure::{Failure, Outcome};
use crate::program::{Op, Program, UNBOUNDED};
use crate::sequence::SequenceAccess;
use crate::strings;

impl Program {
    /// Whether [`Struct::copy_of`](super::Struct::copy_of) can make a message.
    pub fn can_copy(&self) -> bool {
        self.lifecycle.is_some()
    }

    /// Copies a message. After a failure the target holds a part of it. Bytes between
    /// members may be copied as well.
    ///
    /// # Safety
    /// Both point to structs of the type, and nothing writes them meanwhile but this.
    /// `from` is initialized. So is `to`, except for numbers and booleans.
    ///
    /// # Errors
    /// A sequence exceeds its bound; a string or sequence has more elements than CDR can
    /// count, or was not initialized; or there is no memory.
    pub unsafe fn copy(&self, from: *const c_void, to: *mut c_void) -> Outcome {
        if std::ptr::eq(from, to) {
            return Ok(());
        }
        let (from, to) = (from.cast::<u8>(), to.cast::<u8>());
        if let Some(bytes) = self.copyable_bytes() {
            // SAFETY: as for this function; so many bytes lie in each struct.
            unsafe { to.copy_from_nonoverlapping(from, bytes) };
            return Ok(());
        }
        for op in &self.ops {
            // SAFETY: offsets of the type.
            unsafe { self.copy_op(op, from, to) }?;
        }
        Ok(())
    }

    /// Moves a message: afterwards `from` has earlier contents of `to`, or its own. After
    /// a failure `to` holds a part of the message.
    ///
    /// # Safety
    /// Both point to initialized structs of the type, which nothing else uses.
    ///
    /// # Errors
    /// As [`Self::copy`], for a sequence that can only be copied.
    pub unsafe fn move_into(&self, from: *mut c_void, to: *mut c_void) -> Outcome {
        if self.is_flat() {
            // SAFETY: as for this function.
            return unsafe { self.copy(from, to) };
        }
        for op in &self.ops {
            // SAFETY: offsets of the type.
            unsafe { self.move_op(op, from.cast(), to.cast()) }?;
        }
        Ok(())
    }

    unsafe fn copy_op(&self, op: &Op, from: *const u8, to: *mut u8) -> Outcome {
        // SAFETY: the members lie at their offsets, and sequences have as many elements
        // as they say or were resized to.
        unsafe {
            match op {
                Op::Numbers {
                    offset,
                    width,
                    count,
                } => copy_bytes(from.add(*offset), to.add(*offset), width * count),
                Op::Bools { offset, count } => {
                    copy_bools(from.add(*offset), to.add(*offset), *count);
                }
                Op::Strings {
                    offset,
                    count,
                    wide,
                    ..
                } => {
                    for at in 0..*count {
                        let place = offset + at * strings::stride(self.language);
                        let (from, to) = (from.add(place).cast(), to.add(place).cast());
                        self.copy_string(from, to, *wide)?;
                    }
                }
                Op::NumberSequence {
                    offset,
                    width,
                    sequence,
                } => {
                    let (from, to) = (from.add(*offset).cast(), to.add(*offset).cast());
                    copy_elements(sequence, from, to, *width, copy_bytes)?;
                }
                Op::BoolSequence { offset, sequence } => {
                    let (from, to) = (from.add(*offset).cast(), to.add(*offset).cast());
                    if sequence.is_known() {
                        return copy_elements(sequence, from, to, 1, copy_bools);
                    }
                    for at in 0..resize_like(sequence, from, to)? {
                        sequence.assign_bool(to, at, sequence.fetch_bool(from, at)?)?;
                    }
                }
                Op::StringSequence {
                    offset,
                    wide,
                    sequence,
                    ..
                } => {
                    let (from, to) = (from.add(*offset).cast(), to.add(*offset).cast());
                    for at in 0..resize_like(sequence, from, to)? {
                        let from = sequence.element(from, at)?;
                        self.copy_string(from, sequence.element_mut(to, at)?, *wide)?;
                    }
                }
                Op::MessageArray {
                    offset,
                    count,
                    program,
                } if program.copyable_bytes().is_some() => {
                    let bytes = program.size_of * count;
                    copy_bytes(from.add(*offset), to.add(*offset), bytes);
                }
                Op::MessageArray {
                    offset,
                    count,
                    program,
                } => {
                    for at in 0..*count {
                        let place = offset + at * program.size_of;
                        program.copy(from.add(place).cast(), to.add(place).cast())?;
                    }
                }
                Op::MessageSequence {
                    offset,
                    sequence,
                    program,
                } => {
                    let (from, to) = (from.add(*offset).cast(), to.add(*offset).cast());
                    if program.copyable_bytes().is_some() {
                        let width = program.size_of;
                        return copy_elements(sequence, from, to, width, copy_bytes);
                    }
                    for at in 0..resize_like(sequence, from, to)? {
                        program.copy(sequence.element(from, at)?, sequence.element_mut(to, at)?)?;
                    }
                }
            }
        }
        Ok(())
    }

    unsafe fn move_op(&self, op: &Op, from: *mut u8, to: *mut u8) -> Outcome {
        // SAFETY: as for `copy_op`.
        unsafe {
            match op {
                Op::Numbers { .. } | Op::Bools { .. } => self.copy_op(op, from, to),
                Op::Strings { offset, count, .. } => {
                    for at in 0..*count {
                        let place = offset + at * strings::stride(self.language);
                        let (from, to) = (from.add(place).cast(), to.add(place).cast());
                        strings::swap(self.language, from, to);
                    }
                    Ok(())
                }
                Op::NumberSequence {
                    offset, sequence, ..
                }
                | Op::BoolSequence { offset, sequence }
                | Op::StringSequence {
                    offset, sequence, ..
                }
                | Op::MessageSequence {
                    offset, sequence, ..
                } => {
                    if sequence.swap(from.add(*offset).cast(), to.add(*offset).cast()) {
                        return Ok(());
                    }
                    self.copy_op(op, from, to)
                }
                Op::MessageArray {
                    offset,
                    count,
                    program,
                } => {
                    for at in 0..*count {
                        let place = offset + at * program.size_of;
                        program.move_into(from.add(place).cast(), to.add(place).cast())?;
                    }
                    Ok(())
                }
            }
        }
    }

    unsafe fn copy_string(&self, from: *const c_void, to: *mut c_void, wide: bool) -> Outcome {
        // SAFETY: as for `copy_op`.
        unsafe {
            if wide {
                let units: &[u16] = strings::read(self.language, from)?;
                countable(units.len(), UNBOUNDED)?;
                return strings::write(self.language, to, units);
            }
            let text: &[u8] = strings::read(self.language, from)?;
            // CDR counts the final zero.
            countable(text.len().saturating_add(1), UNBOUNDED)?;
            strings::write(self.language, to, text)
        }
    }
}

unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: a range of two structs, or of two sequences.
    unsafe { to.copy_from_nonoverlapping(from, bytes) };
}

/// Copies booleans. A user's program may have any byte in one, but readers may expect
/// only 0 and 1.
unsafe fn copy_bools(from: *const u8, to: *mut u8, count: usize) {
    for at in 0..count {
        // SAFETY: as for `copy_bytes`.
        unsafe { to.add(at).write(u8::from(from.add(at).read() != 0)) };
    }
}

/// Copies a sequence of numbers, of booleans or of flat structs; `copy` copies a number
/// of bytes of them.
unsafe fn copy_elements(
    sequence: &SequenceAccess,
    from: *const c_void,
    to: *mut c_void,
    width: usize,
    copy: unsafe fn(*const u8, *mut u8, usize),
) -> Outcome {
    // SAFETY: as for `copy_op`; the elements lie side by side.
    unsafe {
        let len = countable(sequence.len(from)?, sequence.bound)?;
        if let Some(elements) = sequence.resize_numbers(to, width, len)? {
            let from = sequence.element(from, 0);
            let Ok(from) = from else {
                // Its memory may be uninitialized.
                sequence.resize_numbers(to, width, 0)?;
                return from.map(drop);
            };
            copy(from.cast(), elements, width * len);
        }
    }
    Ok(())
}

/// Resizes `to` to the length of `from`. Returns the number of elements.
unsafe fn resize_like(
    sequence: &SequenceAccess,
    from: *const c_void,
    to: *mut c_void,
) -> Outcome<usize> {
    // SAFETY: as for `copy_op`.
    unsafe {
        let len = countable(sequence.len(from)?, sequence.bound)?;
        if sequence.len(to)? != len {
            sequence.resize(to, len)?;
        }
        Ok(len)
    }
}

/// Checks that CDR can count the elements, because another reader may need CDR.
fn countable(len: usize, bound: usize) -> Outcome<usize> {
    let too_many = |_| Failure::error("a sequence has more than 2^32 - 1 elements");
    u32::try_from(len).map_err(too_many)?;
    checked(len, bound)
}

//! Deserialization: from CDR into the user's struct.

use std::ffi::c_void;

use crate::cursor::Reader;
use crate::failure::{Failure, Outcome};
use crate::program::{Op, Program, UNBOUNDED};
use crate::strings;

impl Program {
    /// Deserializes a message. After a failure the struct holds a part of it.
    ///
    /// # Safety
    /// `message` points to an initialized struct of the type, which nothing else uses.
    pub unsafe fn decode(&self, payload: &[u8], message: *mut c_void) -> Outcome {
        let mut from = Reader::new(payload)?;
        // SAFETY: as for this function.
        unsafe { self.read(&mut from, message) }
    }

    unsafe fn read(&self, from: &mut Reader<'_>, message: *mut c_void) -> Outcome {
        for op in &self.ops {
            // SAFETY: offsets of the type.
            unsafe { self.read_op(op, from, message.cast()) }?;
        }
        Ok(())
    }

    unsafe fn read_op(&self, op: &Op, from: &mut Reader<'_>, message: *mut u8) -> Outcome {
        // SAFETY: the members lie at their offsets, and sequences have as many elements
        // as they were resized to.
        unsafe {
            match op {
                Op::Numbers {
                    offset,
                    width,
                    count,
                } => from.numbers(message.add(*offset), *width, *count),
                Op::Bools { offset, count } => {
                    for at in 0..*count {
                        *message.add(offset + at) = u8::from(from.bool()?);
                    }
                    Ok(())
                }
                Op::Strings {
                    offset,
                    count,
                    is_array,
                    wide,
                    ..
                } => {
                    if *is_array {
                        from.begin_collection()?;
                    }
                    for at in 0..*count {
                        let string = message.add(offset + at * strings::stride(self.language));
                        self.read_string(string.cast(), *wide, from)?;
                    }
                    Ok(())
                }
                Op::NumberSequence {
                    offset,
                    width,
                    sequence,
                } => {
                    let member: *mut c_void = message.add(*offset).cast();
                    let len = from.count(*width, sequence.bound)?;
                    let Some(numbers) = sequence.resize_numbers(member, *width, len)? else {
                        return Ok(());
                    };
                    let read = from.numbers(numbers, *width, len);
                    if read.is_err() {
                        // Its memory may be uninitialized.
                        sequence.resize_numbers(member, *width, 0)?;
                    }
                    read
                }
                Op::BoolSequence { offset, sequence } => {
                    let member: *mut c_void = message.add(*offset).cast();
                    let len = from.count(1, sequence.bound)?;
                    sequence.resize(member, len)?;
                    for at in 0..len {
                        sequence.assign_bool(member, at, from.bool()?)?;
                    }
                    Ok(())
                }
                Op::StringSequence {
                    offset,
                    wide,
                    sequence,
                    ..
                } => {
                    let member: *mut c_void = message.add(*offset).cast();
                    from.begin_collection()?;
                    let len = from.count(4, sequence.bound)?;
                    sequence.resize(member, len)?;
                    for at in 0..len {
                        self.read_string(sequence.element_mut(member, at)?, *wide, from)?;
                    }
                    Ok(())
                }
                Op::MessageArray {
                    offset,
                    count,
                    program,
                } => {
                    from.begin_collection()?;
                    for at in 0..*count {
                        program.read(from, message.add(offset + at * program.size_of).cast())?;
                    }
                    Ok(())
                }
                Op::MessageSequence {
                    offset,
                    sequence,
                    program,
                } => {
                    let member: *mut c_void = message.add(*offset).cast();
                    from.begin_collection()?;
                    let len = from.count(program.wire_bytes_min(), sequence.bound)?;
                    sequence.resize(member, len)?;
                    for at in 0..len {
                        program.read(from, sequence.element_mut(member, at)?)?;
                    }
                    Ok(())
                }
            }
        }
    }

    unsafe fn read_string(
        &self,
        string: *mut c_void,
        wide: bool,
        from: &mut Reader<'_>,
    ) -> Outcome {
        if wide {
            let len = from.count(4, UNBOUNDED)?;
            let mut units = Vec::with_capacity(len);
            for _ in 0..len {
                let unit = from.u32()?;
                units.push(u16::try_from(unit).map_err(|_| {
                    Failure::undecodable(format!(
                        "a wide string holds {unit:#x}, which is no UTF-16 unit"
                    ))
                })?);
            }
            // SAFETY: as for `read_op`.
            return unsafe { strings::write(self.language, string, units.as_slice()) };
        }
        let len = from.count(1, UNBOUNDED)?;
        let bytes = from.bytes(len)?;
        let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        // SAFETY: as for `read_op`.
        unsafe { strings::write(self.language, string, text) }
    }
}

//! Serialization: from the user's struct to CDR.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::cursor::{HEADER_BYTES, Writer};
use crate::failure::{Failure, Outcome};
use crate::program::{Op, Program, UNBOUNDED};
use crate::strings;

/// Plain CDR, little endian (RTPS 2.5 §10.5).
pub const HEADER: [u8; HEADER_BYTES] = [0, 1, 0, 0];

impl Program {
    /// Bytes of the serialized message, header included.
    ///
    /// # Safety
    /// `message` points to an initialized struct of the type.
    pub unsafe fn serialized_len(&self, message: *const c_void) -> Outcome<usize> {
        let mut writer = Writer::counting();
        // SAFETY: as for this function.
        unsafe { self.write(message, &mut writer) }?;
        Ok(HEADER_BYTES + writer.position().max(1))
    }

    /// Serializes into memory of exactly [`Self::serialized_len`] bytes. Initializes
    /// all of it, with zeros after a failure.
    ///
    /// # Safety
    /// As for [`Self::serialized_len`].
    pub unsafe fn encode(&self, message: *const c_void, memory: &mut [MaybeUninit<u8>]) -> Outcome {
        // SAFETY: as for this function.
        let encoded = unsafe { self.encode_or_leave(message, memory) };
        if encoded.is_err() {
            memory.fill(MaybeUninit::new(0));
        }
        encoded
    }

    /// As [`Self::encode`] of a new buffer.
    ///
    /// # Safety
    /// As for [`Self::serialized_len`].
    pub unsafe fn encode_to_vec(&self, message: *const c_void, len: usize) -> (Vec<u8>, Outcome) {
        let mut bytes = Vec::with_capacity(len);
        let memory = bytes.spare_capacity_mut().get_mut(..len);
        // SAFETY: as for this function.
        let encoded = unsafe { self.encode(message, memory.unwrap_or_default()) };
        // SAFETY: `encode` has initialized that many bytes.
        unsafe { bytes.set_len(len) };
        (bytes, encoded)
    }

    unsafe fn encode_or_leave(
        &self,
        message: *const c_void,
        memory: &mut [MaybeUninit<u8>],
    ) -> Outcome {
        let Some((header, body)) = memory.split_first_chunk_mut() else {
            return Err(Failure::error("no space for a header"));
        };
        *header = HEADER.map(MaybeUninit::new);
        // An empty message has one byte.
        if let [only] = body {
            only.write(0);
        }
        let len = body.len();
        let mut writer = Writer::into(body);
        // SAFETY: as for this function.
        unsafe { self.write(message, &mut writer) }?;
        if writer.position().max(1) != len {
            return Err(Failure::error("the message changed while it was published"));
        }
        Ok(())
    }

    unsafe fn write(&self, message: *const c_void, to: &mut Writer<'_>) -> Outcome {
        for op in &self.ops {
            // SAFETY: offsets of the type.
            unsafe { self.write_op(op, message.cast(), to) }?;
        }
        Ok(())
    }

    unsafe fn write_op(&self, op: &Op, message: *const u8, to: &mut Writer<'_>) -> Outcome {
        // SAFETY: the members lie at their offsets, and sequences have as many elements
        // as they say.
        unsafe {
            match op {
                Op::Numbers {
                    offset,
                    width,
                    count,
                } => to.numbers(message.add(*offset), *width, *count),
                Op::Bools { offset, count } => {
                    for at in 0..*count {
                        to.u8(u8::from(*message.add(offset + at) != 0))?;
                    }
                    Ok(())
                }
                Op::Strings {
                    offset,
                    count,
                    wide,
                    ..
                } => {
                    for at in 0..*count {
                        let string = message.add(offset + at * strings::stride(self.language));
                        self.write_string(string.cast(), *wide, to)?;
                    }
                    Ok(())
                }
                Op::NumberSequence {
                    offset,
                    width,
                    sequence,
                } => {
                    let member: *const c_void = message.add(*offset).cast();
                    let len = checked(sequence.len(member)?, sequence.bound)?;
                    to.count(len)?;
                    if len == 0 {
                        return Ok(());
                    }
                    to.numbers(sequence.element(member, 0)?.cast(), *width, len)
                }
                Op::BoolSequence { offset, sequence } => {
                    let member: *const c_void = message.add(*offset).cast();
                    let len = checked(sequence.len(member)?, sequence.bound)?;
                    to.count(len)?;
                    for at in 0..len {
                        to.u8(u8::from(sequence.fetch_bool(member, at)?))?;
                    }
                    Ok(())
                }
                Op::StringSequence {
                    offset,
                    wide,
                    sequence,
                    ..
                } => {
                    let member: *const c_void = message.add(*offset).cast();
                    let len = checked(sequence.len(member)?, sequence.bound)?;
                    to.count(len)?;
                    for at in 0..len {
                        self.write_string(sequence.element(member, at)?, *wide, to)?;
                    }
                    Ok(())
                }
                Op::MessageArray {
                    offset,
                    count,
                    program,
                } => {
                    for at in 0..*count {
                        program.write(message.add(offset + at * program.size_of).cast(), to)?;
                    }
                    Ok(())
                }
                Op::MessageSequence {
                    offset,
                    sequence,
                    program,
                } => {
                    let member: *const c_void = message.add(*offset).cast();
                    let len = checked(sequence.len(member)?, sequence.bound)?;
                    to.count(len)?;
                    for at in 0..len {
                        program.write(sequence.element(member, at)?, to)?;
                    }
                    Ok(())
                }
            }
        }
    }

    unsafe fn write_string(
        &self,
        string: *const c_void,
        wide: bool,
        to: &mut Writer<'_>,
    ) -> Outcome {
        if wide {
            // SAFETY: as for `write_op`.
            let units: &[u16] = unsafe { strings::read(self.language, string) }?;
            to.count(units.len())?;
            for unit in units {
                let unit = u32::from(*unit).to_le_bytes();
                // SAFETY: four bytes.
                unsafe { to.numbers(unit.as_ptr(), 4, 1) }?;
            }
            return Ok(());
        }
        // SAFETY: as for `write_op`.
        let text: &[u8] = unsafe { strings::read(self.language, string) }?;
        to.count(text.len() + 1)?;
        // SAFETY: the bytes of the string.
        unsafe { to.numbers(text.as_ptr(), 1, text.len()) }?;
        to.u8(0)
    }
}

/// Introspection ignores the bounds of sequences, so they are checked here. Those of
/// strings are not: Cyclone DDS and Fast DDS send and accept longer ones.
pub(super) fn checked(len: usize, bound: usize) -> Outcome<usize> {
    if len > bound && bound != UNBOUNDED {
        return Err(Failure::error(format!(
            "a sequence has {len} elements, more than its bound of {bound}"
        )));
    }
    Ok(len)
}

//! Whole payloads: encapsulation header, value, padding to a multiple of 4.

use super::encapsulation::{Encapsulation, Endian, HEADER_BYTES, Representation};
use super::reserved_sequence::ReservedSequence;
use super::{BufferTooSmall, Decode, DecodeError, Decoder, Encode, Encoder};
use crate::plain::FixedLayout;
use alloc::vec::Vec;

/// The size of [`to_payload`]'s result, without encoding it.
pub fn payload_len<M: Encode + ?Sized>(message: &M, representation: Representation) -> usize {
    count(message, representation, None)
}

/// As [`payload_len`], optionally with a reserved sequence.
fn count<M: Encode + ?Sized>(
    message: &M,
    representation: Representation,
    room: Option<&mut ReservedSequence>,
) -> usize {
    let counter = Encoder::to_slice(&mut [], representation, Endian::NATIVE);
    let mut counter = counter.reserving(room);
    message.encode(&mut counter);
    padded(counter.len()).saturating_add(HEADER_BYTES)
}

/// A message as payload: header, value, padding to a multiple of 4.
///
/// Little endian. The exact size is counted first, so there is one allocation.
pub fn to_payload<M: Encode + ?Sized>(message: &M, representation: Representation) -> Vec<u8> {
    let memory = Vec::with_capacity(payload_len(message, representation));
    to_payload_in(message, representation, memory)
}

/// As [`to_payload`], in the memory of `payload`, whose content is replaced.
///
/// The size is not counted first: give it [`payload_len`] bytes of capacity, or it
/// grows in steps.
pub fn to_payload_in<M: Encode + ?Sized>(
    message: &M,
    representation: Representation,
    mut payload: Vec<u8>,
) -> Vec<u8> {
    payload.clear();
    let mut header = Encapsulation::of(representation, message.extensibility(), Endian::Little);
    payload.extend_from_slice(&header.to_bytes());
    message.encode(&mut Encoder::to_vec(
        &mut payload,
        representation,
        Endian::Little,
    ));
    header.padding = padding_of(payload.len());
    payload.resize(padded(payload.len()), 0);
    if let Some(start) = payload.first_chunk_mut() {
        *start = header.to_bytes();
    }
    payload
}

/// As [`to_payload`], into existing memory (shared memory).
///
/// Returns the payload's size; allocates nothing. When `memory` is too small its
/// content is unspecified and the error gives the size needed.
pub fn to_payload_slice<M: Encode + ?Sized>(
    message: &M,
    representation: Representation,
    memory: &mut [u8],
) -> Result<usize, BufferTooSmall> {
    write(message, representation, Endian::Little, memory, None)
}

/// As [`to_payload_slice`], optionally with a reserved sequence.
fn write<M: Encode + ?Sized>(
    message: &M,
    representation: Representation,
    endian: Endian,
    memory: &mut [u8],
    room: Option<&mut ReservedSequence>,
) -> Result<usize, BufferTooSmall> {
    let (start, rest) = memory.split_at_mut(HEADER_BYTES.min(memory.len()));
    let mut encoder = Encoder::to_slice(rest, representation, endian).reserving(room);
    message.encode(&mut encoder);
    let len = encoder.len();
    let needed = padded(len).saturating_add(HEADER_BYTES);
    let (Ok(start), Some(padding)) = (
        <&mut [u8; HEADER_BYTES]>::try_from(start),
        rest.get_mut(len..padded(len)),
    ) else {
        return Err(BufferTooSmall { needed });
    };
    padding.fill(0);
    let mut header = Encapsulation::of(representation, message.extensibility(), endian);
    header.padding = padding_of(len);
    *start = header.to_bytes();
    Ok(needed)
}

/// Reads a message from a payload with header; bytes after it are ignored.
pub fn from_payload<M: Decode>(payload: &[u8]) -> Result<M, DecodeError> {
    decode_payload(payload).map(|(message, _)| message)
}

/// As [`from_payload`], also returning the end of the value in the payload.
pub fn decode_payload<M: Decode>(payload: &[u8]) -> Result<(M, usize), DecodeError> {
    let mut decoder = Decoder::from_payload(payload)?;
    let message = M::decode(&mut decoder)?;
    Ok((message, decoder.position().saturating_add(HEADER_BYTES)))
}

fn padding_of(len: usize) -> u8 {
    (len.wrapping_neg() & 3) as u8
}

fn padded(len: usize) -> usize {
    len.saturating_add(padding_of(len).into())
}

/// The size of [`to_payload_reserving`]'s result, without encoding it.
pub fn payload_len_reserving<M: Encode + ?Sized>(
    message: &M,
    representation: Representation,
    reserved: &mut ReservedSequence,
) -> usize {
    count(message, representation, Some(reserved))
}

/// As [`to_payload_slice`](super::to_payload_slice), in native byte order. The
/// elements of the reserved sequence keep the bytes that `memory` has in their
/// place.
///
/// # Errors
/// As there; check [`ReservedSequence::byte_range`] as well.
pub fn to_payload_reserving<M: Encode + ?Sized>(
    message: &M,
    representation: Representation,
    memory: &mut [u8],
    reserved: &mut ReservedSequence,
) -> Result<usize, BufferTooSmall> {
    write(
        message,
        representation,
        Endian::NATIVE,
        memory,
        Some(reserved),
    )
}

/// The header of a payload that is one value of fixed layout, as it is in memory:
/// XCDR1 in native byte order.
pub fn fixed_header<M: FixedLayout>() -> [u8; HEADER_BYTES] {
    Encapsulation {
        padding: (size_of::<M>().wrapping_neg() & 3) as u8,
        ..Encapsulation::plain(Representation::Xcdr1, Endian::NATIVE)
    }
    .to_bytes()
}

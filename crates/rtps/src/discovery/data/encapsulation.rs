//! CDR encapsulation header: the four bytes that name the encoding of a payload
//! (RTPS 2.5 §10.2).

use alloc::vec::Vec;

use crate::wire::{Cursor, Endianness, Parameters, WireError};

/// CDR, big endian.
pub(super) const CDR_BE: u16 = 0x0000;
/// CDR, little endian.
pub(super) const CDR_LE: u16 = 0x0001;
const PL_CDR_BE: u16 = 0x0002;
const PL_CDR_LE: u16 = 0x0003;

/// Reads the identifier and skips the options. The cursor is big endian until the
/// caller chooses the byte order.
fn split(payload: &[u8]) -> Result<(u16, &[u8]), WireError> {
    let mut at = Cursor::new(payload, Endianness::Big);
    let id = at.u16()?;
    at.u16()?;
    Ok((id, at.rest()))
}

/// Reads a payload that holds a parameter list.
pub(super) fn parse_parameters(payload: &[u8]) -> Result<Parameters<'_>, WireError> {
    let (id, rest) = split(payload)?;
    let endianness = match id {
        PL_CDR_BE => Endianness::Big,
        PL_CDR_LE => Endianness::Little,
        other => return Err(WireError::UnsupportedEncapsulation(other)),
    };
    Parameters::parse(&mut Cursor::new(rest, endianness))
}

/// Reads the encapsulation of a plain CDR payload. Fast DDS (2.9 and later) labels
/// its participant messages as parameter lists, but writes plain CDR.
pub(super) fn parse_cdr(payload: &[u8]) -> Result<Cursor<'_>, WireError> {
    let (id, rest) = split(payload)?;
    match id {
        CDR_BE | PL_CDR_BE => Ok(Cursor::new(rest, Endianness::Big)),
        CDR_LE | PL_CDR_LE => Ok(Cursor::new(rest, Endianness::Little)),
        other => Err(WireError::UnsupportedEncapsulation(other)),
    }
}

/// Begins a payload with a little-endian parameter list.
pub(super) fn begin_parameters() -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(&PL_CDR_LE.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out
}

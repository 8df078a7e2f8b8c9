//! Parameter values: strings, octets, durations and locators (RTPS 2.5 §9.3.2,
//! §9.4.2, §9.6.4).

use alloc::string::String;
use alloc::vec::Vec;

use crate::locator::Locator;
use crate::time::Duration;
use crate::wire::{Cursor, Parameter, WireError, begin_parameter, end_parameter, write_parameter};

/// The bytes of a CDR string without its terminator. Moves the cursor past the
/// padding, if any.
pub(super) fn string_bytes<'a>(at: &mut Cursor<'a>) -> Result<&'a [u8], WireError> {
    let length = at.u32()? as usize;
    let bytes = at.bytes(length)?;
    skip_padding(at, length);
    // Some stacks omit the terminator, others count several.
    let end = bytes.iter().position(|byte| *byte == 0);
    Ok(end.and_then(|end| bytes.get(..end)).unwrap_or(bytes))
}

fn skip_padding(at: &mut Cursor<'_>, length: usize) {
    let padding = length.wrapping_neg() & 3;
    let _ = at.bytes(padding.min(at.rest().len()));
}

/// A string that takes part in matching, of at most `bytes_max`.
pub(super) fn name(
    parameter: Parameter<'_>,
    at: &mut Cursor<'_>,
    bytes_max: usize,
) -> Result<String, WireError> {
    let malformed = |_| WireError::InvalidParameter(parameter.id);
    let bytes = string_bytes(at).map_err(malformed)?;
    if bytes.len() > bytes_max {
        return Err(WireError::TooLong(parameter.id));
    }
    core::str::from_utf8(bytes)
        .map(String::from)
        .map_err(|_| WireError::InvalidParameter(parameter.id))
}

/// A sequence of octets; empty when longer than `bytes_max`.
pub(super) fn octets(parameter: Parameter<'_>, bytes_max: usize) -> Result<Vec<u8>, WireError> {
    let malformed = |_| WireError::InvalidParameter(parameter.id);
    let mut at = parameter.value;
    let length = at.u32().map_err(malformed)? as usize;
    let bytes = at.bytes(length).map_err(malformed)?;
    Ok(if bytes.len() > bytes_max {
        Vec::new()
    } else {
        bytes.to_vec()
    })
}

/// Reads with `read` at the start of a parameter. Any error makes the parameter
/// malformed.
pub(super) fn read<'a, T>(
    parameter: Parameter<'a>,
    read: impl FnOnce(&mut Cursor<'a>) -> Result<T, WireError>,
) -> Result<T, WireError> {
    let mut at = parameter.value;
    read(&mut at).map_err(|error| match error {
        WireError::TooLong(id) => WireError::TooLong(id),
        _ => WireError::InvalidParameter(parameter.id),
    })
}

/// Seconds and fraction of 2^-32 s.
pub(super) fn duration(at: &mut Cursor<'_>) -> Result<Duration, WireError> {
    let secs = at.i32()?;
    let fraction = at.u32()?;
    Ok(Duration::from_wire(secs, fraction))
}

/// One octet, zero or not.
pub(super) fn boolean(at: &mut Cursor<'_>) -> Result<bool, WireError> {
    at.u8().map(|byte| byte != 0)
}

/// Adds a locator to a list that has a limit.
pub(super) fn push_locator(
    parameter: Parameter<'_>,
    list: &mut Vec<Locator>,
) -> Result<(), WireError> {
    let locator = read(parameter, Cursor::locator)?;
    if list.len() < super::limits::LOCATORS {
        // Nearly always one locator, stored for each of many participants.
        list.reserve_exact(1);
        list.push(locator);
    }
    Ok(())
}

pub(super) fn write_u32(out: &mut Vec<u8>, id: u16, value: u32) {
    write_parameter(out, id, &value.to_le_bytes());
}

pub(super) fn write_bool(out: &mut Vec<u8>, id: u16, value: bool) {
    write_parameter(out, id, &[u8::from(value)]);
}

pub(super) fn write_duration(out: &mut Vec<u8>, id: u16, value: Duration) {
    let at = begin_parameter(out, id);
    put_duration(out, value);
    end_parameter(out, at);
}

pub(super) fn put_duration(out: &mut Vec<u8>, value: Duration) {
    let (secs, fraction) = value.to_wire();
    out.extend_from_slice(&secs.to_le_bytes());
    out.extend_from_slice(&fraction.to_le_bytes());
}

pub(super) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// A string with length, terminator and padding. Parameters begin aligned, so the
/// padding depends on the string alone.
pub(super) fn put_string(out: &mut Vec<u8>, value: &str) {
    let length = value.len().saturating_add(1);
    put_u32(out, u32::try_from(length).unwrap_or(u32::MAX));
    out.extend_from_slice(value.as_bytes());
    let padding = length.wrapping_neg() & 3;
    out.resize(out.len().saturating_add(padding.saturating_add(1)), 0);
}

pub(super) fn write_string(out: &mut Vec<u8>, id: u16, value: &str) {
    let at = begin_parameter(out, id);
    put_string(out, value);
    end_parameter(out, at);
}

pub(super) fn write_octets(out: &mut Vec<u8>, id: u16, value: &[u8]) {
    let at = begin_parameter(out, id);
    put_u32(out, u32::try_from(value.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(value);
    end_parameter(out, at);
}

pub(super) fn write_locators(out: &mut Vec<u8>, id: u16, locators: &[Locator]) {
    for locator in locators {
        let at = begin_parameter(out, id);
        out.extend_from_slice(&locator.kind.to_le_bytes());
        out.extend_from_slice(&locator.port.to_le_bytes());
        out.extend_from_slice(&locator.wire_address());
        end_parameter(out, at);
    }
}

//! Serialized messages: CDR in a buffer of the user.

use std::ffi::c_void;

use crate::abi::{MessageTypeSupport, Ret, SerializedMessage};
use crate::error::{Failure, Outcome, non_null, non_null_mut, run};
use crate::typesupport;

/// The bytes of a serialized message.
///
/// # Safety
/// The buffer has as many bytes as the message says.
pub(crate) unsafe fn bytes(message: &SerializedMessage) -> &[u8] {
    if message.buffer.is_null() {
        return &[];
    }
    // SAFETY: as for this function.
    unsafe { std::slice::from_raw_parts(message.buffer, message.buffer_length) }
}

/// Makes space for `len` bytes, which become the content.
unsafe fn reserve(message: &mut SerializedMessage, len: usize) -> Outcome<&mut [u8]> {
    if message.buffer_capacity < len || message.buffer.is_null() {
        message.allocator.check()?;
        // SAFETY: the buffer is of the allocator, or null.
        message.buffer = unsafe { message.allocator.resize(message.buffer, len) }?;
        message.buffer_capacity = len;
    }
    // SAFETY: so many bytes; zeroed, since `realloc` leaves them undefined.
    unsafe { message.buffer.write_bytes(0, len) };
    message.buffer_length = len;
    // SAFETY: initialized above.
    Ok(unsafe { std::slice::from_raw_parts_mut(message.buffer, len) })
}

/// Copies a payload into the message.
///
/// # Safety
/// The message is initialized.
pub(crate) unsafe fn assign(message: &mut SerializedMessage, payload: &[u8]) -> Outcome {
    // SAFETY: as for this function.
    unsafe { reserve(message, payload.len()) }?.copy_from_slice(payload);
    Ok(())
}

/// `rmw_serialize`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_serialize(
    message: *const c_void,
    type_support: *const MessageTypeSupport,
    serialized: *mut SerializedMessage,
) -> Ret {
    run("rmw_serialize", || {
        if message.is_null() {
            return Err(Failure::argument("argument ros_message is null"));
        }
        // SAFETY: by contract of rmw.
        unsafe {
            let ty = typesupport::message_type(type_support)?;
            let serialized = non_null_mut(serialized, "serialized_message")?;
            let len = ty.program.serialized_len(message)?;
            ty.program.encode(message, reserve(serialized, len)?)
        }
    })
}

/// `rmw_deserialize`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_deserialize(
    serialized: *const SerializedMessage,
    type_support: *const MessageTypeSupport,
    message: *mut c_void,
) -> Ret {
    run("rmw_deserialize", || {
        if message.is_null() {
            return Err(Failure::argument("argument ros_message is null"));
        }
        // SAFETY: by contract of rmw.
        unsafe {
            let ty = typesupport::message_type(type_support)?;
            ty.program
                .decode(bytes(non_null(serialized, "serialized_message")?), message)
        }
    })
}

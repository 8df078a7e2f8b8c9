//! Serialized messages: CDR in a buffer of the user.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use pteros_runtime::config::Config;

use crate::abi::{MessageTypeSupport, Ret, SerializedMessage};
use crate::error::{Failure, Outcome, non_null, non_null_mut, run};
use crate::typesupport;

/// The bytes of a serialized message.
///
/// # Safety
/// The buffer has as many bytes as `buffer_length`.
pub(crate) unsafe fn bytes(message: &SerializedMessage) -> &[u8] {
    if message.buffer.is_null() {
        return &[];
    }
    // SAFETY: as for this function.
    unsafe { std::slice::from_raw_parts(message.buffer, message.buffer_length) }
}

/// Makes space for `len` bytes as the new content, which the caller writes.
unsafe fn reserve(message: &mut SerializedMessage, len: usize) -> Outcome<&mut [MaybeUninit<u8>]> {
    if message.buffer_capacity < len || message.buffer.is_null() {
        message.allocator.check()?;
        // SAFETY: the buffer is of the allocator, or null.
        message.buffer = unsafe { message.allocator.resize(message.buffer, len) }?;
        message.buffer_capacity = len;
    }
    message.buffer_length = len;
    // SAFETY: so many bytes, which may be uninitialized.
    Ok(unsafe { std::slice::from_raw_parts_mut(message.buffer.cast(), len) })
}

/// Copies a payload into the message.
///
/// # Safety
/// The message is initialized.
pub(crate) unsafe fn assign(message: &mut SerializedMessage, payload: &[u8]) -> Outcome {
    // SAFETY: as for this function.
    unsafe { reserve(message, payload.len()) }?.write_copy_of_slice(payload);
    Ok(())
}

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
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let program = typesupport::program(type_support)?;
            let serialized = non_null_mut(serialized, "serialized_message")?;
            let len = program.serialized_len(message)?;
            program.encode(message, reserve(serialized, len)?)?;
        }
        Ok(())
    })
}

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
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let program = typesupport::program(type_support)?;
            program.decode(bytes(non_null(serialized, "serialized_message")?), message)?;
        }
        Ok(())
    })
}

/// Returns the largest size of messages of a bounded type. Bounds of the caller for
/// unbounded members are not supported. An optional feature
/// (`PTEROS_RMW_OPTIONAL_FEATURES`), whose variable is read here because there is no
/// context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_serialized_message_size(
    type_support: *const MessageTypeSupport,
    bounds: *const c_void,
    size: *mut usize,
) -> Ret {
    run("rmw_get_serialized_message_size", || {
        let config = Config::from_environment().map_err(Failure::error)?;
        if config.rmw_optional_features == Some(false) {
            return Err(Failure::unsupported("the size of a bounded message"));
        }
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let ty = typesupport::message_type(type_support)?;
            let size = non_null_mut(size, "size")?;
            let len = ty.program.serialized_len_max().filter(|_| bounds.is_null());
            *size = len.ok_or_else(|| {
                Failure::unsupported("the size of a message with unbounded members")
            })?;
        }
        Ok(())
    })
}

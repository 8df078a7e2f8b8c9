//! Type tables that a C program passes, and functions for its structs.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use pteros_msg::hash::TypeHash;
use pteros_typesupport::{CMessageTable, CMessageType, Language};

use crate::argument::{array, null, required, text};
use crate::error::{self, Error, Outcome, Status};
use crate::message::{ActionSupport, MessageSupport, ServiceSupport};

/// `pteros_service_type_t`.
#[repr(C)]
pub struct ServiceTable {
    /// ROS name, for example `std_srvs/srv/SetBool`.
    name: *const c_char,
    request: *const CMessageTable,
    response: *const CMessageTable,
    /// RIHS01 of the service; zeros if unknown.
    hash: [u8; 32],
}

/// `pteros_action_type_t`.
#[repr(C)]
pub struct ActionTable {
    name: *const c_char,
    send_goal: *const ServiceTable,
    get_result: *const ServiceTable,
    feedback_message: *const CMessageTable,
    goal: *const CMessageTable,
    result: *const CMessageTable,
    feedback: *const CMessageTable,
}

// `tests/programs/services.c` has the same numbers.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<ServiceTable>() == 56
        && std::mem::offset_of!(ServiceTable, hash) == 24
        && size_of::<ActionTable>() == 56
        && std::mem::offset_of!(ActionTable, feedback_message) == 24
        && size_of::<CMessageTable>() == 40
        && std::mem::offset_of!(CMessageTable, size_of) == 20
        && std::mem::offset_of!(CMessageTable, defaults) == 24
        && size_of::<pteros_typesupport::CMember>() == 32
        && std::mem::offset_of!(pteros_typesupport::CMember, string_bound) == 24
        && std::mem::offset_of!(pteros_typesupport::CMember, collection) == 29
);

/// The type of a message table.
pub(crate) fn message(table: *const CMessageTable) -> Outcome<MessageSupport> {
    // SAFETY: the contract of C (lib.rs).
    Ok(MessageSupport(unsafe { CMessageType::of(table) }?))
}

/// The type of a service table.
pub(crate) fn service(table: Option<&ServiceTable>) -> Outcome<ServiceSupport> {
    let table = required(table, "type")?;
    Ok(ServiceSupport {
        name: Arc::from(text(table.name, "type->name")?),
        request: message(table.request)?,
        response: message(table.response)?,
        hash: (table.hash != [0; 32]).then(|| TypeHash::rihs01(table.hash)),
    })
}

/// The type of an action table, checked: its messages contain the parts at the places
/// where ROS 2 has them.
pub(crate) fn action(table: Option<&ActionTable>) -> Outcome<ActionSupport> {
    let table = required(table, "type")?;
    // SAFETY: the contract of C (lib.rs).
    let nested = unsafe { (table.send_goal.as_ref(), table.get_result.as_ref()) };
    let support = ActionSupport {
        send_goal: service(nested.0)?,
        get_result: service(nested.1)?,
        feedback_message: message(table.feedback_message)?,
        goal: message(table.goal)?,
        result: message(table.result)?,
        feedback: message(table.feedback)?,
    };
    let parts = [
        (&support.send_goal.request, &support.goal),
        (&support.get_result.response, &support.result),
        (&support.feedback_message, &support.feedback),
    ];
    for (whole, part) in parts {
        if !whole.0.has_part(1, &part.0) {
            return Err(Error::argument(format!(
                "the second member of {whole:?} is not {part:?}; pass a table that \
                 `pteros interface generate --c` has written"
            )));
        }
    }
    Ok(support)
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_message_init(table: *const CMessageTable, memory: *mut c_void) -> Status {
    error::run("pteros_message_init", || {
        let ty = message(table)?;
        if memory.is_null() {
            return Err(null("message"));
        }
        // SAFETY: the contract of C (lib.rs).
        unsafe { ty.0.initialize(memory) }?;
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_message_fini(table: *const CMessageTable, memory: *mut c_void) {
    error::value("pteros_message_fini", (), || {
        if !memory.is_null() {
            // SAFETY: the contract of C (lib.rs).
            unsafe { message(table)?.0.program.finalize(memory) };
        }
        Ok(())
    });
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_message_copy(
    table: *const CMessageTable,
    from: *const c_void,
    to: *mut c_void,
) -> Status {
    error::run("pteros_message_copy", || {
        if from.is_null() || to.is_null() {
            return Err(null("from or to"));
        }
        // SAFETY: the contract of C (lib.rs).
        unsafe { message(table)?.0.program.copy(from, to) }?;
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_message_deserialize(
    table: *const CMessageTable,
    data: *const u8,
    size: usize,
    to: *mut c_void,
) -> Status {
    error::run("pteros_message_deserialize", || {
        if to.is_null() {
            return Err(null("message"));
        }
        let payload = array(data, size, "data")?;
        // SAFETY: the contract of C (lib.rs).
        unsafe { message(table)?.0.program.decode(payload, to) }?;
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_message_serialize(
    table: *const CMessageTable,
    from: *const c_void,
    data: *mut u8,
    capacity: usize,
    size: Option<&mut usize>,
) -> Status {
    error::run("pteros_message_serialize", || {
        if from.is_null() {
            return Err(null("message"));
        }
        let ty = message(table)?;
        let size = crate::argument::output(size, "size")?;
        // SAFETY: the contract of C (lib.rs).
        let len = unsafe { ty.0.program.serialized_len(from) }?;
        *size = len;
        if data.is_null() && capacity == 0 {
            return Ok(());
        }
        if data.is_null() || capacity < len {
            return Err(Error::argument(format!(
                "the message takes {len} bytes, data has {capacity}; call with data NULL and \
                 capacity 0 to learn the size"
            )));
        }
        // SAFETY: the contract of C (lib.rs): `data` has `capacity` writable bytes.
        unsafe {
            let memory = std::slice::from_raw_parts_mut(data.cast(), len);
            ty.0.program.encode(from, memory)?;
        }
        Ok(())
    })
}

/// See `types.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_sequence_init(
    table: *const CMessageTable,
    sequence: *mut c_void,
    size: usize,
) -> Status {
    error::run("pteros_sequence_init", || {
        if sequence.is_null() {
            return Err(null("sequence"));
        }
        // SAFETY: the contract of C (lib.rs).
        unsafe { message(table)?.0.initialize_sequence(sequence, size) }?;
        Ok(())
    })
}

/// See `types.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_sequence_fini(table: *const CMessageTable, sequence: *mut c_void) {
    error::value("pteros_sequence_fini", (), || {
        if !sequence.is_null() {
            // SAFETY: the contract of C (lib.rs).
            unsafe { message(table)?.0.finalize_sequence(sequence) };
        }
        Ok(())
    });
}

/// Replaces the content of a string of C.
fn assign<T: Copy + Default>(string: *mut c_void, value: *const T, size: usize) -> Outcome<bool> {
    if string.is_null() {
        return Err(null("string"));
    }
    let units = array(value, size, "value")?;
    // SAFETY: the contract of C (lib.rs).
    unsafe { pteros_typesupport::write_string(Language::C, string, units) }?;
    Ok(true)
}

/// See `types.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_string_assign_n(
    string: *mut c_void,
    value: *const c_char,
    size: usize,
) -> bool {
    error::value("pteros_string_assign_n", false, || {
        assign(string, value.cast::<u8>(), size)
    })
}

/// See `types.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_u16string_assign_n(
    string: *mut c_void,
    value: *const u16,
    size: usize,
) -> bool {
    error::value("pteros_u16string_assign_n", false, || {
        assign(string, value, size)
    })
}

/// See `types.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_u16string_assign_utf8(string: *mut c_void, value: *const c_char) -> bool {
    error::value("pteros_u16string_assign_utf8", false, || {
        let units: Vec<u16> = text(value, "value")?.encode_utf16().collect();
        assign(string, units.as_ptr(), units.len())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_string_assign(string: *mut c_void, value: *const c_char) -> bool {
    if value.is_null() {
        error::note("pteros_string_assign", &null("value"));
        return false;
    }
    // SAFETY: the contract of C (lib.rs).
    let size = unsafe { CStr::from_ptr(value) }.count_bytes();
    pteros_string_assign_n(string, value, size)
}

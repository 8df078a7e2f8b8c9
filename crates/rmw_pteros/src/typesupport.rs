//! Type support handles: from the handle that rclcpp or rclpy passes to a compiled type.
//!
//! The introspection typesupport behind a handle lists the members of the struct.
//! `pteros_typesupport` compiles that list.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_msg::hash::TypeHash;

use crate::error::{Failure, Outcome};
use crate::{abi, distribution, host};

use pteros_typesupport::introspection::MessageMembers;
use pteros_typesupport::{IntrospectedType, Language, PlainLayout, Program, dds_name};

const INTROSPECTION: [(&CStr, Language); 2] = [
    (c"rosidl_typesupport_introspection_c", Language::C),
    (c"rosidl_typesupport_introspection_cpp", Language::Cpp),
];

/// A message type of the user.
pub(crate) struct MessageType {
    /// Reads and writes structs of the type.
    pub(crate) program: Arc<Program>,
    /// Layout for loans, if the memory of a struct is its CDR body.
    pub(crate) plain: Option<Arc<PlainLayout>>,
    /// `pkg::msg::dds_::Name_`.
    pub(crate) dds_name: String,
    /// RIHS01, if the typesupport has one.
    pub(crate) hash: Option<TypeHash>,
    /// Its fields, for content filters.
    pub(crate) fields: Arc<IntrospectedType>,
}

/// A service type of the user.
pub(crate) struct ServiceType {
    /// Type of the request messages.
    pub(crate) request: MessageType,
    /// Type of the response messages.
    pub(crate) response: MessageType,
    /// RIHS01 of the service.
    pub(crate) hash: Option<TypeHash>,
}

/// The message type behind a handle.
///
/// # Safety
/// `handle` is null or a typesupport handle of rosidl.
pub(crate) unsafe fn message_type(handle: *const abi::MessageTypeSupport) -> Outcome<MessageType> {
    // SAFETY: as for this function.
    let outer = unsafe { crate::error::non_null(handle, "type_support") }?;
    let (found, language) = introspection_of(outer, dispatch_message)?;
    // SAFETY: the data of an introspection typesupport are MessageMembers.
    unsafe {
        let hash = distribution::message_hash(handle);
        described(found.data.cast(), language, hash)
    }
}

/// The program of a message type, cached by the handle, because `rmw_serialize` and
/// `rmw_deserialize` have no other place for it.
///
/// # Safety
/// As for [`message_type`].
pub(crate) unsafe fn program(handle: *const abi::MessageTypeSupport) -> Outcome<Arc<Program>> {
    static KNOWN: Mutex<Option<HashMap<HandleContent, KnownProgram>>> = Mutex::new(None);
    // SAFETY: as for this function.
    let outer = unsafe { crate::error::non_null(handle, "type_support") }?;
    // SAFETY: as for this function.
    let Some(hash) = (unsafe { distribution::message_hash(handle) }) else {
        // SAFETY: as for this function.
        return Ok(unsafe { message_type(handle) }?.program);
    };
    let content = HandleContent {
        handle: handle.addr(),
        identifier: outer.typesupport_identifier.addr(),
        data: outer.data.addr(),
        find: outer.func.map_or(0, |find| find as usize),
    };
    let known = KNOWN
        .lock()
        .as_ref()
        .and_then(|all| all.get(&content).cloned());
    if let Some(known) = known
        && known.hash == hash
    {
        return Ok(known.program);
    }
    // SAFETY: as for this function.
    let program = unsafe { message_type(handle) }?.program;
    let entry = KnownProgram {
        hash,
        program: program.clone(),
    };
    KNOWN.lock().get_or_insert_default().insert(content, entry);
    Ok(program)
}

/// A handle and its content, which a caller may change.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct HandleContent {
    handle: usize,
    identifier: usize,
    data: usize,
    find: usize,
}

/// Cached program of a handle. After a library was unloaded, another one may have its
/// handle at the same address. The hash tells whether it is the same type.
#[derive(Clone)]
struct KnownProgram {
    hash: TypeHash,
    program: Arc<Program>,
}

/// The service type behind a handle.
///
/// # Safety
/// As for [`message_type`].
pub(crate) unsafe fn service_type(handle: *const abi::ServiceTypeSupport) -> Outcome<ServiceType> {
    // SAFETY: as for this function.
    let outer = unsafe { crate::error::non_null(handle, "type_support") }?;
    let (found, language) = introspection_of(outer, dispatch_service)?;
    // SAFETY: the data of an introspection typesupport are ServiceMembers.
    let members: &abi::ServiceMembers =
        unsafe { crate::error::non_null(found.data.cast(), "members") }?;
    // SAFETY: as above.
    unsafe {
        let hashes = distribution::service_hashes(handle);
        Ok(ServiceType {
            request: described(members.request_members, language, hashes.request)?,
            response: described(members.response_members, language, hashes.response)?,
            hash: hashes.service,
        })
    }
}

/// Requests the introspection typesupport of a handle, C first.
fn introspection_of<T>(
    handle: &T,
    dispatch: impl Fn(&T, *const c_char) -> *const T,
) -> Outcome<(&T, Language)> {
    for (identifier, language) in INTROSPECTION {
        // SAFETY: the dispatch function returns null or a handle that is never freed.
        let found = unsafe { dispatch(handle, identifier.as_ptr()).as_ref() };
        // A handle without this typesupport leaves an error state.
        host::reset_error();
        if let Some(found) = found {
            return Ok((found, language));
        }
    }
    Err(Failure::error(
        "the type support has neither rosidl_typesupport_introspection_c nor _cpp: \
         install the package of the messages completely",
    ))
}

fn dispatch_message(
    handle: &abi::MessageTypeSupport,
    id: *const c_char,
) -> *const abi::MessageTypeSupport {
    // SAFETY: a function of the handle, called with the handle.
    handle
        .func
        .map_or(std::ptr::null(), |find| unsafe { find(handle, id) })
}

fn dispatch_service(
    handle: &abi::ServiceTypeSupport,
    id: *const c_char,
) -> *const abi::ServiceTypeSupport {
    // SAFETY: as above.
    handle
        .func
        .map_or(std::ptr::null(), |find| unsafe { find(handle, id) })
}

/// # Safety
/// `members` is null or points to the members of a type, which live for ever.
unsafe fn described(
    members: *const abi::MessageMembers,
    language: Language,
    hash: Option<TypeHash>,
) -> Outcome<MessageType> {
    // SAFETY: as for this function.
    let members = unsafe { distribution::members(members) };
    let members = members.ok_or_else(|| Failure::argument("the type support has no members"))?;
    let Compiled { program, plain } = compiled(members, language)?;
    Ok(MessageType {
        plain,
        // SAFETY: names of rosidl are C strings.
        dds_name: unsafe { dds_name(members) },
        // SAFETY: as for this function.
        fields: Arc::new(unsafe { IntrospectedType::new(members) }),
        program,
        hash,
    })
}

/// A compiled type.
#[derive(Clone)]
struct Compiled {
    program: Arc<Program>,
    plain: Option<Arc<PlainLayout>>,
}

/// One program per type and language; types are never unloaded.
fn compiled(members: &MessageMembers, language: Language) -> Outcome<Compiled> {
    static TYPES: Mutex<Option<HashMap<usize, Compiled>>> = Mutex::new(None);
    let key = std::ptr::from_ref(members).addr();
    let known = TYPES.lock().as_ref().and_then(|all| all.get(&key).cloned());
    if let Some(known) = known {
        return Ok(known);
    }
    // SAFETY: members of rosidl.
    let program = Arc::new(unsafe { Program::compile(members, language) }?);
    let plain = PlainLayout::of(&program).map(Arc::new);
    let compiled = Compiled { program, plain };
    // Another thread may have compiled it first. Both need the same program, because its
    // address identifies the type of a struct.
    let mut types = TYPES.lock();
    let known = types.get_or_insert_default().entry(key);
    Ok(known.or_insert(compiled).clone())
}

#[cfg(test)]
mod tests;

//! Introspection of a type: names and members, as rosidl describes them.

use std::ffi::{CStr, c_char};

use crate::introspection::{MessageMember, MessageMembers};

/// The language of the structs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// `rosidl_generator_c`.
    C,
    /// `rosidl_generator_cpp` with libstdc++.
    Cpp,
}

/// The deepest nesting of messages. rosidl refuses recursive types, so only a broken
/// typesupport exceeds it.
pub(super) const DEPTH_MAX: usize = 64;

/// Field types (`rosidl_typesupport_introspection_cpp/field_types.hpp`).
pub mod type_id {
    /// Refused: CDR of ROS 2 has none.
    pub const LONG_DOUBLE: u8 = 3;
    /// `bool`.
    pub const BOOLEAN: u8 = 6;
    /// `string`.
    pub const STRING: u8 = 16;
    /// `wstring`.
    pub const WSTRING: u8 = 17;
    /// A nested message.
    pub const MESSAGE: u8 = 18;
    /// Ours, beside the number of the elements: a sequence that is a `rosidl::Buffer` of
    /// Lyrical. Only its access functions know the object.
    pub const BUFFER: u8 = 0x80;
}

/// Bytes of a number; `None` for other types.
pub(super) fn number_bytes(type_id: u8) -> Option<usize> {
    match type_id & !type_id::BUFFER {
        4 | 7 | 8 | 9 => Some(1),
        5 | 10 | 11 => Some(2),
        1 | 12 | 13 => Some(4),
        2 | 14 | 15 => Some(8),
        _ => None,
    }
}

/// # Safety
/// `text` is null or a C string that is never freed.
unsafe fn name(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    // SAFETY: as for this function.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// `pkg::msg::dds_::Name_`, as all DDS middlewares of ROS 2 name a type.
///
/// # Safety
/// The members are those of a type of rosidl.
pub unsafe fn dds_name(members: &MessageMembers) -> String {
    // SAFETY: as for this function.
    let (namespace, name) = unsafe { names(members) };
    let namespace = namespace.replace("__", "::");
    format!("{namespace}::dds_::{name}_")
}

/// Namespace and name of a type, as the typesupport has them.
///
/// # Safety
/// As for [`dds_name`].
pub(super) unsafe fn names(members: &MessageMembers) -> (&'static str, &'static str) {
    // SAFETY: as for this function.
    unsafe { (name(members.message_namespace), name(members.message_name)) }
}

/// The members of a type.
///
/// # Safety
/// As for [`dds_name`].
pub(super) unsafe fn list(members: &MessageMembers) -> &[MessageMember] {
    if members.members.is_null() {
        return &[];
    }
    // SAFETY: an array of `member_count` members.
    unsafe { std::slice::from_raw_parts(members.members, members.member_count as usize) }
}

/// The members of a nested message.
///
/// # Safety
/// As for [`dds_name`].
pub(super) unsafe fn nested(member: &MessageMember) -> Option<&MessageMembers> {
    // SAFETY: a handle of the same introspection typesupport.
    unsafe {
        member
            .members
            .as_ref()?
            .data
            .cast::<MessageMembers>()
            .as_ref()
    }
}

/// The member's name, for errors.
///
/// # Safety
/// As for [`dds_name`].
pub(super) unsafe fn member_name(member: &MessageMember) -> &'static str {
    // SAFETY: as for this function.
    unsafe { name(member.name) }
}

//! The structs of rosidl's introspection typesupport (Jazzy), equal in C and C++.
#![expect(missing_docs, reason = "the fields are those of rosidl's headers")]

use std::ffi::{c_char, c_void};

/// `rosidl_type_hash_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TypeHash {
    /// 1 for RIHS01; 0 unset.
    pub version: u8,
    pub value: [u8; 32],
}

/// `rosidl_message_type_support_t`.
#[repr(C)]
pub struct MessageTypeSupport {
    pub typesupport_identifier: *const c_char,
    pub data: *const c_void,
    /// Finds the handle of another typesupport of the same type.
    pub func: Option<
        unsafe extern "C" fn(*const MessageTypeSupport, *const c_char) -> *const MessageTypeSupport,
    >,
    pub get_type_hash_func:
        Option<unsafe extern "C" fn(*const MessageTypeSupport) -> *const TypeHash>,
    pub get_type_description_func: *const c_void,
    pub get_type_description_sources_func: *const c_void,
}

/// `MessageMembers` of the introspection typesupports, equal in C and C++.
#[repr(C)]
pub struct MessageMembers {
    /// `pkg__msg` or `pkg::msg`.
    pub message_namespace: *const c_char,
    pub message_name: *const c_char,
    pub member_count: u32,
    /// Size of the struct in bytes.
    pub size_of: usize,
    pub has_any_key_member: bool,
    /// Array of `member_count` members.
    pub members: *const MessageMember,
    /// Initializes a message.
    pub init_function: Option<unsafe extern "C" fn(*mut c_void, u32)>,
    /// Finalizes a message.
    pub fini_function: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// `MessageMember` of the introspection typesupports.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MessageMember {
    pub name: *const c_char,
    /// `rosidl_typesupport_introspection_field_types`.
    pub type_id: u8,
    /// Bound of a string; 0: none.
    pub string_upper_bound: usize,
    pub members: *const MessageTypeSupport,
    pub is_key: bool,
    /// True for an array and for a sequence.
    pub is_array: bool,
    /// Length of an array, or bound of a sequence.
    pub array_size: usize,
    /// Whether `array_size` is a bound.
    pub is_upper_bound: bool,
    /// Position in the struct, bytes.
    pub offset: u32,
    pub default_value: *const c_void,
    pub size_function: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    pub get_const_function: Option<unsafe extern "C" fn(*const c_void, usize) -> *const c_void>,
    pub get_function: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    /// Copies an element out.
    pub fetch_function: Option<unsafe extern "C" fn(*const c_void, usize, *mut c_void)>,
    /// Copies an element in.
    pub assign_function: Option<unsafe extern "C" fn(*mut c_void, usize, *const c_void)>,
    /// Changes the length of a sequence. Returns a bool in C and nothing in C++.
    pub resize_function: *const c_void,
}

//! Introspection of hand-made C structs, as rosidl generates it.

/// Defines `member`, `members` and `pointer` with the caller's `MessageMember` and
/// `MessageMembers`: a crate's unit tests cannot pass their own types to this one.
#[macro_export]
macro_rules! message_members {
    () => {
        /// A member of that type id (rosidl_typesupport_introspection) at that offset.
        fn member(name: &'static ::std::ffi::CStr, type_id: u8, offset: usize) -> MessageMember {
            MessageMember {
                name: name.as_ptr(),
                type_id,
                string_upper_bound: 0,
                members: ::std::ptr::null(),
                is_key: false,
                is_array: false,
                array_size: 0,
                is_upper_bound: false,
                offset: u32::try_from(offset).unwrap(),
                default_value: ::std::ptr::null(),
                size_function: None,
                get_const_function: None,
                get_function: None,
                fetch_function: None,
                assign_function: None,
                resize_function: ::std::ptr::null(),
            }
        }

        /// A message of the package `test` with these members.
        fn members(
            name: &'static ::std::ffi::CStr,
            size_of: usize,
            list: &[MessageMember],
        ) -> MessageMembers {
            MessageMembers {
                message_namespace: c"test__msg".as_ptr(),
                message_name: name.as_ptr(),
                member_count: u32::try_from(list.len()).unwrap(),
                size_of,
                has_any_key_member: false,
                members: list.as_ptr(),
                init_function: None,
                fini_function: None,
            }
        }

        /// The value as C gets it.
        fn pointer<T>(value: &mut T) -> *mut ::std::ffi::c_void {
            std::ptr::from_mut(value).cast()
        }
    };
}

//! The C ABI of rmw 7.10, ROS 2 Lyrical, where it differs from Kilted's. Written by its
//! headers, and not run with a Lyrical.
//!
//! A member of the introspection says whether it is a `rosidl::Buffer`: in C++ a `uint8[]`
//! is one. Its object is opaque, and only the CPU's backend has access functions. A
//! sequence of numbers in C has two flags behind its three words, which its functions keep.

use std::ffi::c_char;

use pteros_typesupport::{introspection, type_id};

pub use super::since_iron::{DiscoveryOptions as DiscoveryFields, *};

pub(crate) use super::copied_members::members;

/// The number of the first event, after `RMW_EVENT_INVALID`.
pub(crate) const FIRST_EVENT_TYPE: u32 = 1;

/// `acceptable_buffer_backends` of the options of a subscription: names, or null. Not used
/// by this plug-in: every message is in the CPU's memory, which each subscription accepts.
pub type BufferBackends = *const c_char;
/// `is_cft_supported` of a subscription.
pub type FilterSupport = bool;
pub(crate) fn filter_support(is_supported: bool) -> FilterSupport {
    is_supported
}

/// `MessageMember` of the introspection typesupports: that of Kilted, and one field.
#[repr(C)]
pub struct MessageMember {
    pub common: introspection::MessageMember,
    pub is_rosidl_buffer: bool,
}

/// A type and its members in the layout of `pteros_typesupport`. The members of nested
/// messages still point to handles of this distribution.
///
/// # Safety
/// The members of a type of rosidl.
pub(super) unsafe fn in_our_layout(
    theirs: &MessageMembers,
) -> (MessageMembers, Vec<introspection::MessageMember>) {
    let member = |theirs: &MessageMember| {
        let mut ours = theirs.common;
        if theirs.is_rosidl_buffer {
            ours.type_id |= type_id::BUFFER;
        }
        ours
    };
    let first: *const MessageMember = theirs.members.cast();
    // SAFETY: as for this function.
    let list = unsafe { super::copied_members::list(first, theirs.member_count) };
    let ours = MessageMembers { ..*theirs };
    (ours, list.iter().map(member).collect())
}

#[cfg(test)]
pub(crate) mod headers {
    pub(crate) use super::super::since_iron::headers::*;

    use super::{DiscoveryFields, MessageMember};
    use crate::header_check::{Field, Layout};

    pub(crate) const C_HEADERS: &[&str] = &[
        "rmw/discovery_options.h",
        "rmw/service_endpoint_info_array.h",
        "rosidl_runtime_c/type_hash.h",
    ];
    pub(crate) const ABSENT: &[&str] = &[];

    pub(crate) fn discovery_fields() -> Vec<Field> {
        vec![Field {
            c: "discovery_options",
            rust: "discovery",
            offset: 0,
            bytes: size_of::<DiscoveryFields>(),
        }]
    }

    pub(crate) fn introspection_layouts(namespace: &str) -> Vec<Layout> {
        let mut layouts = super::super::since_iron::headers::introspection_layouts(namespace);
        let member = layouts.iter_mut().find(|one| one.rust == "MessageMember");
        let member = member.unwrap();
        member.bytes = size_of::<MessageMember>();
        member.fields.push(Field {
            c: "is_rosidl_buffer_",
            rust: "is_rosidl_buffer",
            offset: std::mem::offset_of!(MessageMember, is_rosidl_buffer),
            bytes: 1,
        });
        layouts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    #[test]
    fn members_that_are_buffers_are_marked_in_nested_types_too() {
        // SAFETY: zeros are a member.
        let zero: introspection::MessageMember = unsafe { std::mem::zeroed() };
        let member = |common, is_rosidl_buffer| MessageMember {
            common: introspection::MessageMember {
                is_array: true,
                ..common
            },
            is_rosidl_buffer,
        };
        let number = introspection::MessageMember { type_id: 8, ..zero };
        let leaves = [member(number, false), member(number, true)];
        // As those of rosidl, they are never freed: their copies are found by address.
        let described = |members: &[MessageMember]| -> &'static MessageMembers {
            Box::leak(Box::new(MessageMembers {
                message_namespace: c"test::msg".as_ptr(),
                message_name: c"Bytes".as_ptr(),
                member_count: u32::try_from(members.len()).unwrap(),
                size_of: 64,
                has_any_key_member: false,
                members: members.as_ptr().cast(),
                init_function: None,
                fini_function: None,
            }))
        };
        let inner = described(&leaves);
        let handle = MessageTypeSupport {
            typesupport_identifier: null(),
            data: std::ptr::from_ref(inner).cast(),
            func: None,
            get_type_hash_func: None,
            get_type_description_func: null(),
            get_type_description_sources_func: null(),
        };
        let nested = introspection::MessageMember {
            type_id: type_id::MESSAGE,
            members: &raw const handle,
            ..zero
        };
        let outer = [member(nested, false), member(number, true)];
        // SAFETY: members as of rosidl.
        unsafe {
            let ours = members(described(&outer)).unwrap();
            let list = |ours: &introspection::MessageMembers| {
                super::super::copied_members::list(ours.members, ours.member_count)
            };
            let kinds = |ours| list(ours).iter().map(|one| one.type_id).collect::<Vec<_>>();
            assert_eq!(kinds(ours), [type_id::MESSAGE, 8 | type_id::BUFFER]);
            let inner = (*list(ours)[0].members).data.cast();
            assert_eq!(kinds(&*inner), [8, 8 | type_id::BUFFER]);
        }
    }
}

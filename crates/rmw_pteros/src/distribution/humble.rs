//! The C ABI of rmw 6.1, ROS 2 Humble, where it differs from later distributions.
//!
//! No type hashes, no discovery options, gids of 24 bytes, and neither events of matches
//! nor of incompatible types. Its introspection lacks the keys of types, so it is copied
//! into the layout that `pteros_typesupport` reads.

use std::ffi::{c_char, c_void};

use pteros_msg::hash::TypeHash;
use pteros_rcl::event_status::StatusKind;
use pteros_runtime::config::{Config, DiscoveryRange};
use pteros_typesupport::introspection;

use super::{Discovery, EventType, ServiceHashes, publisher, subscription};
use crate::abi::Allocator;
use crate::error::Outcome;

pub(crate) use super::copied_members::members;

/// `RMW_GID_STORAGE_SIZE`.
pub const GID_BYTES: usize = 24;

/// `rmw_event_type_t`, from [`FIRST_EVENT_TYPE`] on.
pub(crate) const EVENT_TYPES: &[EventType] = &[
    subscription(StatusKind::LivelinessChanged),
    subscription(StatusKind::DeadlineMissed),
    subscription(StatusKind::IncompatibleQos),
    subscription(StatusKind::MessageLost),
    publisher(StatusKind::LivelinessLost),
    publisher(StatusKind::DeadlineMissed),
    publisher(StatusKind::IncompatibleQos),
];
/// The number of the first event.
pub(crate) const FIRST_EVENT_TYPE: u32 = 0;

/// A variable that later distributions warn of, and that is the usual one here.
pub(crate) const CURRENT_VARIABLE: &str = "ROS_LOCALHOST_ONLY";

/// The fields of `rmw_init_options_t` about discovery.
#[repr(C)]
pub struct DiscoveryFields {
    /// `rmw_localhost_only_t`.
    pub localhost_only: u32,
}

impl DiscoveryFields {
    pub(crate) const ZERO: Self = Self { localhost_only: 0 };

    pub(crate) unsafe fn copy(&self, _: &Allocator) -> Outcome<Self> {
        Ok(Self {
            localhost_only: self.localhost_only,
        })
    }

    pub(crate) unsafe fn free(&self, _: &Allocator) {}

    /// rcl of Humble reads `ROS_LOCALHOST_ONLY` alone. What it leaves open comes from the
    /// variables of later distributions, as for native nodes.
    pub(crate) unsafe fn settings(&self, config: &Config) -> Discovery {
        /// `RMW_LOCALHOST_ONLY_ENABLED`.
        const ENABLED: u32 = 1;
        if self.localhost_only == ENABLED {
            return Discovery {
                range: DiscoveryRange::Localhost,
                static_peers: Vec::new(),
            };
        }
        Discovery {
            range: config.discovery_range,
            static_peers: config.named_peers.static_peers.clone(),
        }
    }
}

/// The field of `rmw_topic_endpoint_info_t` with the hash: there is none.
pub type TopicTypeHash = [u8; 0];

pub(crate) fn topic_type_hash(_: Option<&TypeHash>) -> TopicTypeHash {
    []
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
}

/// `rosidl_service_type_support_t`.
#[repr(C)]
pub struct ServiceTypeSupport {
    pub typesupport_identifier: *const c_char,
    pub data: *const c_void,
    /// Finds the handle of another typesupport of the same type.
    pub func: Option<
        unsafe extern "C" fn(*const ServiceTypeSupport, *const c_char) -> *const ServiceTypeSupport,
    >,
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
    /// Array of `member_count` members.
    pub members: *const MessageMember,
    /// Initializes a message.
    pub init_function: Option<unsafe extern "C" fn(*mut c_void, u32)>,
    /// Finalizes a message.
    pub fini_function: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// `MessageMember` of the introspection typesupports.
#[repr(C)]
pub struct MessageMember {
    pub name: *const c_char,
    /// `rosidl_typesupport_introspection_field_types`.
    pub type_id: u8,
    /// Bound of a string; 0: none.
    pub string_upper_bound: usize,
    pub members: *const MessageTypeSupport,
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

/// `ServiceMembers` of the introspection typesupports.
#[repr(C)]
pub struct ServiceMembers {
    /// `pkg__srv` or `pkg::srv`.
    pub service_namespace: *const c_char,
    pub service_name: *const c_char,
    pub request_members: *const MessageMembers,
    pub response_members: *const MessageMembers,
}

/// # Safety
/// The contract of rmw (lib.rs).
pub(crate) unsafe fn message_hash(_: *const MessageTypeSupport) -> Option<TypeHash> {
    None
}

/// # Safety
/// The contract of rmw (lib.rs).
pub(crate) unsafe fn service_hashes(_: *const ServiceTypeSupport) -> ServiceHashes {
    ServiceHashes::default()
}

/// A type and its members in the layout of `pteros_typesupport`. The members of nested
/// messages still point to handles of this distribution.
///
/// # Safety
/// The members of a type of rosidl.
pub(super) unsafe fn in_our_layout(
    theirs: &MessageMembers,
) -> (
    introspection::MessageMembers,
    Vec<introspection::MessageMember>,
) {
    let member = |theirs: &MessageMember| introspection::MessageMember {
        name: theirs.name,
        type_id: theirs.type_id,
        string_upper_bound: theirs.string_upper_bound,
        members: theirs.members.cast(),
        is_key: false,
        is_array: theirs.is_array,
        array_size: theirs.array_size,
        is_upper_bound: theirs.is_upper_bound,
        offset: theirs.offset,
        default_value: theirs.default_value,
        size_function: theirs.size_function,
        get_const_function: theirs.get_const_function,
        get_function: theirs.get_function,
        fetch_function: theirs.fetch_function,
        assign_function: theirs.assign_function,
        resize_function: theirs.resize_function,
    };
    let ours = introspection::MessageMembers {
        message_namespace: theirs.message_namespace,
        message_name: theirs.message_name,
        member_count: theirs.member_count,
        size_of: theirs.size_of,
        has_any_key_member: false,
        members: std::ptr::null(),
        init_function: theirs.init_function,
        fini_function: theirs.fini_function,
    };
    // SAFETY: as for this function.
    let list = unsafe { super::copied_members::list(theirs.members, theirs.member_count) };
    (ours, list.iter().map(member).collect())
}

#[cfg(test)]
pub(crate) mod headers {
    //! Names that the header check compares in this distribution.
    use super::*;
    use crate::header_check::{Field, Layout, layout};

    pub(crate) const C_HEADERS: &[&str] = &["rmw/localhost.h"];
    /// Structures of `abi.rs` that rmw 6.1 lacks.
    pub(crate) const ABSENT: &[&str] = &[
        "MatchedStatus",
        "ServiceEndpointInfo",
        "ServiceEndpointInfoArray",
    ];
    pub(crate) const CONSTANTS: &[(&str, u64)] = &[("RMW_LOCALHOST_ONLY_ENABLED", 1)];
    pub(crate) const QOS_HAS_BEST_AVAILABLE: bool = false;
    pub(crate) const SOURCES: &[&str] = &[include_str!("humble.rs")];

    pub(crate) fn discovery_fields() -> Vec<Field> {
        layout!("" => DiscoveryFields { localhost_only }).fields
    }

    pub(crate) fn layouts() -> Vec<Layout> {
        vec![
            layout!("rosidl_message_type_support_t" => MessageTypeSupport {
                typesupport_identifier, data, func,
            }),
            layout!("rosidl_service_type_support_t" => ServiceTypeSupport {
                typesupport_identifier, data, func,
            }),
        ]
    }

    pub(crate) fn introspection_layouts(namespace: &str) -> Vec<Layout> {
        let members = layout!("" => MessageMembers {
            message_namespace = "message_namespace_", message_name = "message_name_",
            member_count = "member_count_", size_of = "size_of_", members = "members_",
            init_function, fini_function,
        });
        let member = layout!("" => MessageMember {
            name = "name_", type_id = "type_id_", string_upper_bound = "string_upper_bound_",
            members = "members_", is_array = "is_array_", array_size = "array_size_",
            is_upper_bound = "is_upper_bound_", offset = "offset_",
            default_value = "default_value_", size_function, get_const_function, get_function,
            fetch_function, assign_function, resize_function,
        });
        let service = layout!("" => ServiceMembers {
            service_namespace = "service_namespace_", service_name = "service_name_",
            request_members = "request_members_", response_members = "response_members_",
        });
        [members, member, service]
            .map(|layout| layout.of(namespace))
            .into()
    }
}

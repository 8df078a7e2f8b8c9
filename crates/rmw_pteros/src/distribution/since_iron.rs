//! The C ABI of rmw since ROS 2 Iron: type hashes, discovery options, gids of 16 bytes, and
//! events of matches and incompatible types.

use std::ffi::{c_char, c_void};

use pteros_msg::hash::TypeHash as OurTypeHash;
use pteros_rcl::event_status::StatusKind;
use pteros_runtime::config::{Config, DiscoveryRange};

use super::{Discovery, EventType, ServiceHashes, publisher, subscription};
use crate::abi::Allocator;
use crate::error::Outcome;

pub use pteros_typesupport::introspection::{MessageMembers, MessageTypeSupport, TypeHash};

/// `RMW_GID_STORAGE_SIZE`.
pub const GID_BYTES: usize = 16;

/// `rmw_event_type_t`, from `FIRST_EVENT_TYPE` on.
pub(crate) const EVENT_TYPES: &[EventType] = &[
    subscription(StatusKind::LivelinessChanged),
    subscription(StatusKind::DeadlineMissed),
    subscription(StatusKind::IncompatibleQos),
    subscription(StatusKind::MessageLost),
    subscription(StatusKind::IncompatibleType),
    subscription(StatusKind::Matched),
    publisher(StatusKind::LivelinessLost),
    publisher(StatusKind::DeadlineMissed),
    publisher(StatusKind::IncompatibleQos),
    publisher(StatusKind::IncompatibleType),
    publisher(StatusKind::Matched),
];

/// A variable that others warn of: none.
pub(crate) const CURRENT_VARIABLE: &str = "";

/// `rmw_discovery_options_t`.
#[repr(C)]
pub struct DiscoveryOptions {
    /// `rmw_automatic_discovery_range_t`.
    pub automatic_discovery_range: u32,
    /// `rmw_peer_t`: a host name of 256 bytes.
    pub static_peers: *mut [c_char; PEER_BYTES],
    pub static_peers_count: usize,
    pub allocator: Allocator,
}

/// Bytes of an `rmw_peer_t`.
pub const PEER_BYTES: usize = 256;

impl DiscoveryOptions {
    pub(crate) const ZERO: Self = Self {
        automatic_discovery_range: 0,
        static_peers: std::ptr::null_mut(),
        static_peers_count: 0,
        allocator: Allocator::ZERO,
    };

    /// A copy with its own memory, from `allocator`.
    ///
    /// # Safety
    /// They are initialized.
    pub(crate) unsafe fn copy(&self, allocator: &Allocator) -> Outcome<Self> {
        let mut to = Self {
            automatic_discovery_range: self.automatic_discovery_range,
            ..Self::ZERO
        };
        if self.static_peers_count > 0 && !self.static_peers.is_null() {
            let memory: *mut [c_char; PEER_BYTES] = allocator.array(self.static_peers_count)?;
            // SAFETY: both have so many peers.
            unsafe { memory.copy_from_nonoverlapping(self.static_peers, self.static_peers_count) };
            to.static_peers = memory;
            to.static_peers_count = self.static_peers_count;
            to.allocator = *allocator;
        }
        Ok(to)
    }

    /// Frees the peers. They are of their own allocator, or else of `allocator`.
    ///
    /// # Safety
    /// They are initialized, and not used any more.
    pub(crate) unsafe fn free(&self, allocator: &Allocator) {
        let owner = if self.allocator.is_valid() {
            &self.allocator
        } else {
            allocator
        };
        // SAFETY: peers of the allocator, or null.
        unsafe { owner.free(self.static_peers) };
    }

    /// rcl has read the environment.
    ///
    /// # Safety
    /// They are initialized.
    pub(crate) unsafe fn settings(&self, _: &Config) -> Discovery {
        let count = match self.static_peers.is_null() {
            true => 0,
            false => self.static_peers_count,
        };
        let peer = |at| {
            // SAFETY: so many peers, each with a NUL within its bytes.
            let name = unsafe { std::ffi::CStr::from_ptr(self.static_peers.add(at).cast()) };
            name.to_string_lossy().into_owned()
        };
        Discovery {
            range: match self.automatic_discovery_range {
                OFF => DiscoveryRange::Off,
                LOCALHOST => DiscoveryRange::Localhost,
                _ => DiscoveryRange::Subnet,
            },
            static_peers: (0..count).map(peer).collect(),
        }
    }
}

/// `RMW_AUTOMATIC_DISCOVERY_RANGE_OFF`.
const OFF: u32 = 1;
/// `RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST`.
const LOCALHOST: u32 = 2;

/// The field of `rmw_topic_endpoint_info_t` with the hash.
pub type TopicTypeHash = TypeHash;

pub(crate) fn topic_type_hash(hash: Option<&OurTypeHash>) -> TopicTypeHash {
    let unset = TypeHash {
        version: 0,
        value: [0; 32],
    };
    hash.map_or(unset, |hash| TypeHash {
        version: 1,
        value: *hash.value(),
    })
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
    pub request_typesupport: *const MessageTypeSupport,
    pub response_typesupport: *const MessageTypeSupport,
    pub event_typesupport: *const MessageTypeSupport,
    pub event_message_create_handle_function: *const c_void,
    pub event_message_destroy_handle_function: *const c_void,
    pub get_type_hash_func:
        Option<unsafe extern "C" fn(*const ServiceTypeSupport) -> *const TypeHash>,
    pub get_type_description_func: *const c_void,
    pub get_type_description_sources_func: *const c_void,
}

/// `ServiceMembers` of the introspection typesupports.
#[repr(C)]
pub struct ServiceMembers {
    /// `pkg__srv` or `pkg::srv`.
    pub service_namespace: *const c_char,
    pub service_name: *const c_char,
    pub request_members: *const MessageMembers,
    pub response_members: *const MessageMembers,
    pub event_members: *const MessageMembers,
}

/// # Safety
/// The contract of rmw (lib.rs).
pub(crate) unsafe fn message_hash(handle: *const MessageTypeSupport) -> Option<OurTypeHash> {
    // SAFETY: as for this function; a function of the handle.
    unsafe { type_hash((handle.as_ref()?.get_type_hash_func?)(handle)) }
}

/// # Safety
/// The contract of rmw (lib.rs).
pub(crate) unsafe fn service_hashes(handle: *const ServiceTypeSupport) -> ServiceHashes {
    // SAFETY: as for this function; a function of the handle, and its parts.
    unsafe {
        let Some(service) = handle.as_ref() else {
            return ServiceHashes::default();
        };
        ServiceHashes {
            service: (service.get_type_hash_func).and_then(|hash| type_hash(hash(handle))),
            request: message_hash(service.request_typesupport),
            response: message_hash(service.response_typesupport),
        }
    }
}

/// # Safety
/// `hash` is null or points to a hash.
unsafe fn type_hash(hash: *const TypeHash) -> Option<OurTypeHash> {
    // SAFETY: as for this function.
    let hash = unsafe { hash.as_ref() }?;
    (hash.version == 1).then_some(OurTypeHash::rihs01(hash.value))
}

#[cfg(test)]
pub(crate) mod headers {
    //! Names that the header check compares in these distributions.
    use super::*;
    use crate::abi::CountStatus;
    use crate::header_check::{Layout, layout};
    use pteros_typesupport::introspection::MessageMember;

    pub(crate) const CONSTANTS: &[(&str, u64)] = &[
        ("sizeof(rmw_peer_address_t)", PEER_BYTES as u64),
        ("RMW_AUTOMATIC_DISCOVERY_RANGE_OFF", OFF as u64),
        ("RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST", LOCALHOST as u64),
    ];
    pub(crate) const QOS_HAS_BEST_AVAILABLE: bool = true;
    pub(crate) const SOURCES: &[&str] = &[
        include_str!("since_iron.rs"),
        include_str!("../../../typesupport/src/introspection.rs"),
    ];

    pub(crate) fn layouts() -> Vec<Layout> {
        vec![
            layout!("rmw_discovery_options_t" => DiscoveryOptions {
                automatic_discovery_range, static_peers, static_peers_count, allocator,
            }),
            layout!("rosidl_type_hash_t" => TypeHash { version, value }),
            layout!("rmw_incompatible_type_status_t" => CountStatus {
                total_count, total_count_change,
            }),
            layout!("rosidl_message_type_support_t" => MessageTypeSupport {
                typesupport_identifier, data, func, get_type_hash_func,
                get_type_description_func, get_type_description_sources_func,
            }),
            layout!("rosidl_service_type_support_t" => ServiceTypeSupport {
                typesupport_identifier, data, func, request_typesupport, response_typesupport,
                event_typesupport, event_message_create_handle_function,
                event_message_destroy_handle_function, get_type_hash_func,
                get_type_description_func, get_type_description_sources_func,
            }),
        ]
    }

    pub(crate) fn introspection_layouts(namespace: &str) -> Vec<Layout> {
        let members = layout!("" => MessageMembers {
            message_namespace = "message_namespace_", message_name = "message_name_",
            member_count = "member_count_", size_of = "size_of_",
            has_any_key_member = "has_any_key_member_", members = "members_", init_function,
            fini_function,
        });
        let member = layout!("" => MessageMember {
            name = "name_", type_id = "type_id_", string_upper_bound = "string_upper_bound_",
            members = "members_", is_key = "is_key_", is_array = "is_array_",
            array_size = "array_size_", is_upper_bound = "is_upper_bound_", offset = "offset_",
            default_value = "default_value_", size_function, get_const_function, get_function,
            fetch_function, assign_function, resize_function,
        });
        let service = layout!("" => ServiceMembers {
            service_namespace = "service_namespace_", service_name = "service_name_",
            request_members = "request_members_", response_members = "response_members_",
            event_members = "event_members_",
        });
        [members, member, service]
            .map(|layout| layout.of(namespace))
            .into()
    }
}

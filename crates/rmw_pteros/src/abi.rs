//! The C ABI of rmw: structures, enumerations and return codes.
//!
//! Sources: ros2/rmw 6.1, 7.3, 7.8 and 7.10 `types.h`, `init_options.h`, `event.h`, ros2/rcutils
//! `allocator.h`, `types/`, ros2/rosidl `message_type_support_struct.h`.
//!
//! Fields keep the names and meanings of those headers, so only additional facts are
//! documented here. What differs between distributions is in `distribution`.
//! `header_check` compares all of it with a distribution's headers. Assertions below check
//! the sizes measured with Jazzy's headers on 64-bit machines.

#![allow(
    missing_docs,
    reason = "the names and meanings are those of rmw's headers"
)]

use std::ffi::{c_char, c_void};

pub use crate::distribution::{
    BufferBackends, DiscoveryFields, FilterSupport, GID_BYTES, MessageMember, MessageMembers,
    MessageTypeSupport, ServiceMembers, ServiceTypeSupport, TopicTypeHash,
};

/// `rmw_ret_t`.
pub type Ret = i32;

/// Return codes (`ret_types.h`).
pub mod ret {
    use super::Ret;

    pub const OK: Ret = 0;
    pub const ERROR: Ret = 1;
    pub const TIMEOUT: Ret = 2;
    pub const UNSUPPORTED: Ret = 3;
    pub const BAD_ALLOC: Ret = 10;
    pub const INVALID_ARGUMENT: Ret = 11;
    pub const INCORRECT_RMW_IMPLEMENTATION: Ret = 12;
    pub const NODE_NAME_NON_EXISTENT: Ret = 203;
}

/// `rcutils_allocator_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Allocator {
    pub allocate: Option<unsafe extern "C" fn(usize, *mut c_void) -> *mut c_void>,
    pub deallocate: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub reallocate: Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> *mut c_void>,
    pub zero_allocate: Option<unsafe extern "C" fn(usize, usize, *mut c_void) -> *mut c_void>,
    pub state: *mut c_void,
}

/// `rmw_time_t`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Time {
    pub sec: u64,
    pub nsec: u64,
}

/// `rmw_qos_profile_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QosProfile {
    /// `rmw_qos_history_policy_t`.
    pub history: u32,
    /// Depth of keep last.
    pub depth: usize,
    /// `rmw_qos_reliability_policy_t`.
    pub reliability: u32,
    /// `rmw_qos_durability_policy_t`.
    pub durability: u32,
    pub deadline: Time,
    pub lifespan: Time,
    /// `rmw_qos_liveliness_policy_t`.
    pub liveliness: u32,
    pub liveliness_lease_duration: Time,
    /// Topic names are used as DDS topic names unchanged.
    pub avoid_ros_namespace_conventions: bool,
}

/// `rmw_security_options_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SecurityOptions {
    /// PERMISSIVE 0, ENFORCE 1.
    pub enforce_security: u32,
    /// The folder of the enclave; null without security.
    pub security_root_path: *mut c_char,
}

/// `rmw_init_options_t`.
#[repr(C)]
pub struct InitOptions {
    pub instance_id: u64,
    pub implementation_identifier: *const c_char,
    /// The domain; `usize::MAX` stands for the default.
    pub domain_id: usize,
    pub security_options: SecurityOptions,
    /// Several fields of C, by the distribution.
    pub discovery: DiscoveryFields,
    pub enclave: *mut c_char,
    pub allocator: Allocator,
    /// Not used by this plug-in.
    pub implementation: *mut c_void,
}

/// `rmw_context_t`.
#[repr(C)]
pub struct Context {
    pub instance_id: u64,
    pub implementation_identifier: *const c_char,
    pub options: InitOptions,
    pub actual_domain_id: usize,
    /// An [`Arc`](std::sync::Arc) of the plug-in's context state, boxed.
    pub implementation: *mut c_void,
}

/// `rmw_node_t`.
#[repr(C)]
pub struct Node {
    pub implementation_identifier: *const c_char,
    /// State of the plug-in.
    pub data: *mut c_void,
    pub name: *const c_char,
    pub namespace: *const c_char,
    pub context: *mut Context,
}

/// `rmw_publisher_options_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PublisherOptions {
    /// Not used by this plug-in.
    pub payload: *mut c_void,
    /// `rmw_unique_network_flow_endpoints_requirement_t`.
    pub unique_flow: u32,
}

/// `rmw_publisher_t`.
#[repr(C)]
pub struct Publisher {
    pub implementation_identifier: *const c_char,
    /// State of the plug-in.
    pub data: *mut c_void,
    pub topic_name: *const c_char,
    pub options: PublisherOptions,
    pub can_loan_messages: bool,
}

/// `rmw_subscription_options_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SubscriptionOptions {
    /// Not used by this plug-in.
    pub payload: *mut c_void,
    pub ignore_local_publications: bool,
    /// `rmw_unique_network_flow_endpoints_requirement_t`.
    pub unique_flow: u32,
    pub content_filter: *mut ContentFilterOptions,
    /// Empty in a distribution without it.
    pub acceptable_buffer_backends: BufferBackends,
}

/// `rmw_subscription_t`.
#[repr(C)]
pub struct Subscription {
    pub implementation_identifier: *const c_char,
    /// State of the plug-in.
    pub data: *mut c_void,
    pub topic_name: *const c_char,
    pub options: SubscriptionOptions,
    pub can_loan_messages: bool,
    pub is_cft_enabled: bool,
    /// Empty in a distribution without it.
    pub is_cft_supported: FilterSupport,
}

/// `rmw_subscription_content_filter_options_t`.
#[repr(C)]
pub struct ContentFilterOptions {
    pub filter_expression: *mut c_char,
    pub expression_parameters: StringArray,
}

/// `rmw_network_flow_endpoint_t`.
#[repr(C)]
pub struct NetworkFlowEndpoint {
    /// UDP is 1.
    pub transport_protocol: u32,
    /// IPv4 is 1.
    pub internet_protocol: u32,
    pub transport_port: u16,
    /// The flow label of IPv6.
    pub flow_label: u32,
    /// Differentiated services code point.
    pub dscp: u8,
    /// The address as text, with a NUL.
    pub internet_address: [u8; 48],
}

/// `rmw_network_flow_endpoint_array_t`.
#[repr(C)]
pub struct NetworkFlowEndpoints {
    pub size: usize,
    pub endpoints: *mut NetworkFlowEndpoint,
    /// Allocator of `endpoints`. Not a copy: it must outlive the array.
    pub allocator: *mut Allocator,
}

/// `rmw_service_t` and `rmw_client_t`, which have one layout.
#[repr(C)]
pub struct ServiceHandle {
    pub implementation_identifier: *const c_char,
    /// State of the plug-in.
    pub data: *mut c_void,
    pub service_name: *const c_char,
}

/// `rmw_guard_condition_t`.
#[repr(C)]
pub struct GuardCondition {
    pub implementation_identifier: *const c_char,
    /// State of the plug-in.
    pub data: *mut c_void,
    pub context: *mut Context,
}

/// `rmw_wait_set_t`.
#[repr(C)]
pub struct WaitSet {
    pub implementation_identifier: *const c_char,
    /// Not used by this plug-in.
    pub guard_conditions: *mut c_void,
    /// State of the plug-in.
    pub data: *mut c_void,
}

/// `rmw_subscriptions_t` and its siblings: the entities of a wait.
#[repr(C)]
pub struct WaitArray {
    pub count: usize,
    /// `data` of each entity; for events the `rmw_event_t` itself. Set to null if not
    /// ready.
    pub entries: *mut *mut c_void,
}

/// `rmw_event_t`.
#[repr(C)]
pub struct Event {
    pub implementation_identifier: *const c_char,
    /// State of the plug-in.
    pub data: *mut c_void,
    /// `rmw_event_type_t`.
    pub event_type: u32,
}

/// `rmw_event_callback_t`.
pub type EventCallback = Option<unsafe extern "C" fn(*const c_void, usize)>;

/// `rmw_gid_t`.
#[repr(C)]
pub struct Gid {
    pub implementation_identifier: *const c_char,
    /// GUID of the endpoint, and zeros.
    pub data: [u8; GID_BYTES],
}

/// `rmw_message_info_t`.
#[repr(C)]
pub struct MessageInfo {
    /// Nanoseconds since the epoch.
    pub source_timestamp: i64,
    /// Nanoseconds since the epoch.
    pub received_timestamp: i64,
    /// Starts at 1.
    pub publication_sequence_number: u64,
    /// `u64::MAX`, because it is not supported.
    pub reception_sequence_number: u64,
    pub publisher_gid: Gid,
    /// Always false: rclcpp's own intra-process communication sets it.
    pub from_intra_process: bool,
}

/// `rmw_request_id_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RequestId {
    /// GUID of the client's request writer.
    pub writer_guid: [u8; 16],
    pub sequence_number: i64,
}

/// `rmw_service_info_t`.
#[repr(C)]
pub struct ServiceInfo {
    /// Nanoseconds since the epoch.
    pub source_timestamp: i64,
    /// Nanoseconds since the epoch.
    pub received_timestamp: i64,
    pub request_id: RequestId,
}

/// `rcutils_string_array_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StringArray {
    pub size: usize,
    pub data: *mut *mut c_char,
    pub allocator: Allocator,
}

/// `rmw_names_and_types_t`.
#[repr(C)]
pub struct NamesAndTypes {
    pub names: StringArray,
    /// An array of types per name.
    pub types: *mut StringArray,
}

/// `rcutils_uint8_array_t`, the form of serialized messages.
#[repr(C)]
pub struct SerializedMessage {
    pub buffer: *mut u8,
    pub buffer_length: usize,
    pub buffer_capacity: usize,
    pub allocator: Allocator,
}

/// `rmw_message_sequence_t` and `rmw_message_info_sequence_t`.
#[repr(C)]
pub struct MessageSequence {
    /// Messages, or message infos.
    pub data: *mut c_void,
    pub size: usize,
    pub capacity: usize,
    pub allocator: *mut Allocator,
}

/// `rmw_topic_endpoint_info_t`.
#[repr(C)]
pub struct TopicEndpointInfo {
    pub node_name: *const c_char,
    pub node_namespace: *const c_char,
    pub topic_type: *const c_char,
    /// Empty in a distribution without hashes.
    pub topic_type_hash: TopicTypeHash,
    /// PUBLISHER 1, SUBSCRIPTION 2.
    pub endpoint_type: u32,
    pub endpoint_gid: [u8; GID_BYTES],
    pub qos_profile: QosProfile,
}

/// `rmw_topic_endpoint_info_array_t`.
#[repr(C)]
pub struct TopicEndpointInfoArray {
    pub size: usize,
    pub info_array: *mut TopicEndpointInfo,
}

/// `rmw_service_endpoint_info_t`.
#[repr(C)]
pub struct ServiceEndpointInfo {
    pub node_name: *const c_char,
    pub node_namespace: *const c_char,
    pub service_type: *const c_char,
    pub service_type_hash: TopicTypeHash,
    /// CLIENT 3, SERVER 4.
    pub endpoint_type: u32,
    /// Two: a reader, and then a writer.
    pub endpoint_count: usize,
    pub endpoint_gids: *mut [u8; GID_BYTES],
    pub qos_profiles: *mut QosProfile,
}

/// `rmw_service_endpoint_info_array_t`.
#[repr(C)]
pub struct ServiceEndpointInfoArray {
    pub size: usize,
    pub info_array: *mut ServiceEndpointInfo,
}

/// `rmw_liveliness_changed_status_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LivelinessChangedStatus {
    pub alive_count: i32,
    pub not_alive_count: i32,
    pub alive_count_change: i32,
    pub not_alive_count_change: i32,
}

/// Status of missed deadlines, lost liveliness and incompatible types.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CountStatus {
    pub total_count: i32,
    pub total_count_change: i32,
}

/// `rmw_qos_incompatible_event_status_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IncompatibleQosStatus {
    pub total_count: i32,
    pub total_count_change: i32,
    /// `rmw_qos_policy_kind_t`, one bit.
    pub last_policy_kind: u32,
}

/// RMW_QOS_POLICY_INVALID: the last incompatible policy before there was one.
pub const POLICY_INVALID: u32 = 1;

/// `rmw_matched_status_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MatchedStatus {
    pub total_count: usize,
    pub total_count_change: usize,
    pub current_count: usize,
    pub current_count_change: i32,
}

/// `rmw_message_lost_status_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MessageLostStatus {
    pub total_count: usize,
    pub total_count_change: usize,
}

#[cfg(all(target_pointer_width = "64", distribution = "jazzy"))]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Allocator>() == 40);
    assert!(size_of::<QosProfile>() == 88 && offset_of!(QosProfile, liveliness) == 56);
    assert!(offset_of!(QosProfile, avoid_ros_namespace_conventions) == 80);
    assert!(size_of::<InitOptions>() == 168 && offset_of!(InitOptions, enclave) == 112);
    assert!(offset_of!(InitOptions, discovery) == 40);
    assert!(size_of::<Context>() == 200 && offset_of!(Context, actual_domain_id) == 184);
    assert!(size_of::<Node>() == 40);
    assert!(size_of::<Publisher>() == 48 && offset_of!(Publisher, can_loan_messages) == 40);
    assert!(size_of::<Subscription>() == 56 && offset_of!(Subscription, is_cft_enabled) == 49);
    assert!(size_of::<ServiceHandle>() == 24 && size_of::<GuardCondition>() == 24);
    assert!(size_of::<WaitSet>() == 24 && size_of::<Event>() == 24 && size_of::<WaitArray>() == 16);
    assert!(size_of::<Gid>() == 24 && size_of::<MessageInfo>() == 64);
    assert!(size_of::<RequestId>() == 24 && size_of::<ServiceInfo>() == 40);
    assert!(size_of::<StringArray>() == 56 && size_of::<NamesAndTypes>() == 64);
    assert!(size_of::<SerializedMessage>() == 64 && size_of::<MessageSequence>() == 32);
    assert!(
        size_of::<TopicEndpointInfo>() == 168 && offset_of!(TopicEndpointInfo, qos_profile) == 80
    );
    assert!(offset_of!(TopicEndpointInfo, endpoint_type) == 60);
    assert!(size_of::<LivelinessChangedStatus>() == 16 && size_of::<MatchedStatus>() == 32);
    assert!(size_of::<IncompatibleQosStatus>() == 12 && size_of::<MessageLostStatus>() == 16);
    assert!(size_of::<MessageTypeSupport>() == 48 && size_of::<ServiceTypeSupport>() == 88);
    assert!(size_of::<NetworkFlowEndpoint>() == 68);
    assert!(offset_of!(NetworkFlowEndpoint, internet_address) == 17);
    assert!(size_of::<NetworkFlowEndpoints>() == 24);
    assert!(size_of::<MessageMembers>() == 64 && size_of::<MessageMember>() == 112);
    assert!(
        offset_of!(MessageMember, offset) == 52 && offset_of!(MessageMember, size_function) == 64
    );
};

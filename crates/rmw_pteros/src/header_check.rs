//! Compares the structures and constants of `abi`, and the numbers used by other modules,
//! with ROS 2's headers. The installation is the sourced one, or that in `PTEROS_ROS2`.
//! A C program prints the values of the headers. Without an installation or a compiler,
//! the test reports that it was skipped.
#![allow(
    clippy::disallowed_methods,
    reason = "finds an installation of ROS 2 by the environment"
)]

use pteros_test_support::folder::Folder;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::mem::offset_of;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use pteros_runtime::qos::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};

use crate::abi::*;
use crate::event::kind;
use crate::network_flow;
use crate::qos;
use pteros_typesupport::type_id;

/// A structure on both sides.
struct Layout {
    /// The type of the header.
    c: &'static str,
    /// The type of `abi`.
    rust: &'static str,
    bytes: usize,
    fields: Vec<Field>,
}

struct Field {
    c: &'static str,
    rust: &'static str,
    offset: usize,
    bytes: usize,
}

/// Bytes of the field that `of` returns.
fn field_bytes<T, F>(_of: impl Fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// `layout!("c_type" => RustType { field, field = "c_field" })`.
macro_rules! layout {
    ($c:literal => $t:ident { $($field:ident $(= $name:literal)?),* $(,)? }) => {
        Layout {
            c: $c,
            rust: stringify!($t),
            bytes: size_of::<$t>(),
            fields: vec![$(Field {
                c: layout!(@name $field $(= $name)?),
                rust: stringify!($field),
                offset: offset_of!($t, $field),
                bytes: field_bytes(|value: &$t| &value.$field),
            }),*],
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident = $name:literal) => { $name };
}

const C_HEADERS: &str = "\
#include <stddef.h>
#include <stdio.h>
#include <rcutils/allocator.h>
#include <rcutils/types.h>
#include <rmw/rmw.h>
#include <rmw/event.h>
#include <rmw/events_statuses/events_statuses.h>
#include <rmw/features.h>
#include <rmw/discovery_options.h>
#include <rmw/init.h>
#include <rmw/init_options.h>
#include <rmw/message_sequence.h>
#include <rmw/names_and_types.h>
#include <rmw/network_flow_endpoint.h>
#include <rmw/network_flow_endpoint_array.h>
#include <rmw/qos_policy_kind.h>
#include <rmw/qos_profiles.h>
#include <rmw/security_options.h>
#include <rmw/subscription_content_filter_options.h>
#include <rmw/topic_endpoint_info.h>
#include <rmw/topic_endpoint_info_array.h>
#include <rmw/types.h>
#include <rosidl_runtime_c/message_type_support_struct.h>
#include <rosidl_runtime_c/service_type_support_struct.h>
#include <rosidl_runtime_c/type_hash.h>
#include <rosidl_typesupport_introspection_c/field_types.h>
#include <rosidl_typesupport_introspection_c/message_introspection.h>
#include <rosidl_typesupport_introspection_c/service_introspection.h>
";

/// The packages of these headers, and those that they include.
const PACKAGES: [&str; 9] = [
    "rcutils",
    "rmw",
    "rosidl_dynamic_typesupport",
    "rosidl_runtime_c",
    "rosidl_runtime_cpp",
    "rosidl_typesupport_c",
    "rosidl_typesupport_interface",
    "rosidl_typesupport_introspection_c",
    "rosidl_typesupport_introspection_cpp",
];

const CPP_HEADERS: &str = "\
#include <cstddef>
#include <cstdio>
#include <rosidl_typesupport_introspection_cpp/message_introspection.hpp>
#include <rosidl_typesupport_introspection_cpp/service_introspection.hpp>
";

fn c_layouts() -> Vec<Layout> {
    let mut layouts = entity_layouts();
    layouts.extend(message_layouts());
    layouts
}

/// Options and entities.
fn entity_layouts() -> Vec<Layout> {
    vec![
        layout!("rcutils_allocator_t" => Allocator {
            allocate, deallocate, reallocate, zero_allocate, state,
        }),
        layout!("rmw_time_t" => Time { sec, nsec }),
        layout!("rmw_qos_profile_t" => QosProfile {
            history, depth, reliability, durability, deadline, lifespan, liveliness,
            liveliness_lease_duration, avoid_ros_namespace_conventions,
        }),
        layout!("rmw_discovery_options_t" => DiscoveryOptions {
            automatic_discovery_range, static_peers, static_peers_count, allocator,
        }),
        layout!("rmw_security_options_t" => SecurityOptions { enforce_security, security_root_path }),
        layout!("rmw_init_options_t" => InitOptions {
            instance_id, implementation_identifier, domain_id, security_options, localhost_only,
            discovery_options, enclave, allocator, implementation = "impl",
        }),
        layout!("rmw_context_t" => Context {
            instance_id, implementation_identifier, options, actual_domain_id,
            implementation = "impl",
        }),
        layout!("rmw_node_t" => Node {
            implementation_identifier, data, name, namespace = "namespace_", context,
        }),
        layout!("rmw_publisher_options_t" => PublisherOptions {
            payload = "rmw_specific_publisher_payload",
            unique_flow = "require_unique_network_flow_endpoints",
        }),
        layout!("rmw_publisher_t" => Publisher {
            implementation_identifier, data, topic_name, options, can_loan_messages,
        }),
        layout!("rmw_subscription_options_t" => SubscriptionOptions {
            payload = "rmw_specific_subscription_payload", ignore_local_publications,
            unique_flow = "require_unique_network_flow_endpoints",
            content_filter = "content_filter_options",
        }),
        layout!("rmw_subscription_t" => Subscription {
            implementation_identifier, data, topic_name, options, can_loan_messages,
            is_cft_enabled,
        }),
        layout!("rmw_subscription_content_filter_options_t" => ContentFilterOptions {
            filter_expression, expression_parameters,
        }),
        layout!("rmw_network_flow_endpoint_t" => NetworkFlowEndpoint {
            transport_protocol, internet_protocol, transport_port, flow_label, dscp,
            internet_address,
        }),
        layout!("rmw_network_flow_endpoint_array_t" => NetworkFlowEndpoints {
            size, endpoints = "network_flow_endpoint", allocator,
        }),
        layout!("rmw_service_t" => ServiceHandle {
            implementation_identifier, data, service_name,
        }),
        layout!("rmw_client_t" => ServiceHandle {
            implementation_identifier, data, service_name,
        }),
        layout!("rmw_guard_condition_t" => GuardCondition {
            implementation_identifier, data, context,
        }),
        layout!("rmw_wait_set_t" => WaitSet { implementation_identifier, guard_conditions, data }),
        layout!("rmw_subscriptions_t" => WaitArray {
            count = "subscriber_count", entries = "subscribers",
        }),
        layout!("rmw_services_t" => WaitArray { count = "service_count", entries = "services" }),
        layout!("rmw_clients_t" => WaitArray { count = "client_count", entries = "clients" }),
        layout!("rmw_events_t" => WaitArray { count = "event_count", entries = "events" }),
        layout!("rmw_guard_conditions_t" => WaitArray {
            count = "guard_condition_count", entries = "guard_conditions",
        }),
    ]
}

/// Events, messages, the graph and typesupport.
fn message_layouts() -> Vec<Layout> {
    vec![
        layout!("rmw_event_t" => Event { implementation_identifier, data, event_type }),
        layout!("rmw_gid_t" => Gid { implementation_identifier, data }),
        layout!("rmw_message_info_t" => MessageInfo {
            source_timestamp, received_timestamp, publication_sequence_number,
            reception_sequence_number, publisher_gid, from_intra_process,
        }),
        layout!("rmw_request_id_t" => RequestId { writer_guid, sequence_number }),
        layout!("rmw_service_info_t" => ServiceInfo {
            source_timestamp, received_timestamp, request_id,
        }),
        layout!("rcutils_string_array_t" => StringArray { size, data, allocator }),
        layout!("rmw_names_and_types_t" => NamesAndTypes { names, types }),
        layout!("rcutils_uint8_array_t" => SerializedMessage {
            buffer, buffer_length, buffer_capacity, allocator,
        }),
        layout!("rmw_message_sequence_t" => MessageSequence { data, size, capacity, allocator }),
        layout!("rmw_message_info_sequence_t" => MessageSequence {
            data, size, capacity, allocator,
        }),
        layout!("rosidl_type_hash_t" => TypeHash { version, value }),
        layout!("rmw_topic_endpoint_info_t" => TopicEndpointInfo {
            node_name, node_namespace, topic_type, topic_type_hash, endpoint_type, endpoint_gid,
            qos_profile,
        }),
        layout!("rmw_topic_endpoint_info_array_t" => TopicEndpointInfoArray { size, info_array }),
        layout!("rmw_liveliness_changed_status_t" => LivelinessChangedStatus {
            alive_count, not_alive_count, alive_count_change, not_alive_count_change,
        }),
        layout!("rmw_requested_deadline_missed_status_t" => CountStatus {
            total_count, total_count_change,
        }),
        layout!("rmw_offered_deadline_missed_status_t" => CountStatus {
            total_count, total_count_change,
        }),
        layout!("rmw_liveliness_lost_status_t" => CountStatus { total_count, total_count_change }),
        layout!("rmw_incompatible_type_status_t" => CountStatus {
            total_count, total_count_change,
        }),
        layout!("rmw_qos_incompatible_event_status_t" => IncompatibleQosStatus {
            total_count, total_count_change, last_policy_kind,
        }),
        layout!("rmw_matched_status_t" => MatchedStatus {
            total_count, total_count_change, current_count, current_count_change,
        }),
        layout!("rmw_message_lost_status_t" => MessageLostStatus {
            total_count, total_count_change,
        }),
        layout!("rosidl_message_type_support_t" => MessageTypeSupport {
            typesupport_identifier, data, func, get_type_hash_func, get_type_description_func,
            get_type_description_sources_func,
        }),
        layout!("rosidl_service_type_support_t" => ServiceTypeSupport {
            typesupport_identifier, data, func, request_typesupport, response_typesupport,
            event_typesupport, event_message_create_handle_function,
            event_message_destroy_handle_function, get_type_hash_func, get_type_description_func,
            get_type_description_sources_func,
        }),
        message_members("rosidl_typesupport_introspection_c__MessageMembers"),
        message_member("rosidl_typesupport_introspection_c__MessageMember"),
        service_members("rosidl_typesupport_introspection_c__ServiceMembers"),
    ]
}

fn cpp_layouts() -> Vec<Layout> {
    vec![
        message_members("rosidl_typesupport_introspection_cpp::MessageMembers"),
        message_member("rosidl_typesupport_introspection_cpp::MessageMember"),
        service_members("rosidl_typesupport_introspection_cpp::ServiceMembers"),
    ]
}

fn message_members(c: &'static str) -> Layout {
    let layout = layout!("" => MessageMembers {
        message_namespace = "message_namespace_", message_name = "message_name_",
        member_count = "member_count_", size_of = "size_of_",
        has_any_key_member = "has_any_key_member_", members = "members_", init_function,
        fini_function,
    });
    Layout { c, ..layout }
}

fn message_member(c: &'static str) -> Layout {
    let layout = layout!("" => MessageMember {
        name = "name_", type_id = "type_id_", string_upper_bound = "string_upper_bound_",
        members = "members_", is_key = "is_key_", is_array = "is_array_",
        array_size = "array_size_", is_upper_bound = "is_upper_bound_", offset = "offset_",
        default_value = "default_value_", size_function, get_const_function, get_function,
        fetch_function, assign_function, resize_function,
    });
    Layout { c, ..layout }
}

fn service_members(c: &'static str) -> Layout {
    let layout = layout!("" => ServiceMembers {
        service_namespace = "service_namespace_", service_name = "service_name_",
        request_members = "request_members_", response_members = "response_members_",
        event_members = "event_members_",
    });
    Layout { c, ..layout }
}

/// Constants of C, with the numbers that this crate uses.
fn constants() -> Vec<(&'static str, u64)> {
    let of_ret = |value: Ret| u64::try_from(value).unwrap();
    let mut list = vec![
        ("RMW_RET_OK", of_ret(ret::OK)),
        ("RMW_RET_ERROR", of_ret(ret::ERROR)),
        ("RMW_RET_TIMEOUT", of_ret(ret::TIMEOUT)),
        ("RMW_RET_UNSUPPORTED", of_ret(ret::UNSUPPORTED)),
        ("RMW_RET_BAD_ALLOC", of_ret(ret::BAD_ALLOC)),
        ("RMW_RET_INVALID_ARGUMENT", of_ret(ret::INVALID_ARGUMENT)),
        (
            "RMW_RET_INCORRECT_RMW_IMPLEMENTATION",
            of_ret(ret::INCORRECT_RMW_IMPLEMENTATION),
        ),
        (
            "RMW_RET_NODE_NAME_NON_EXISTENT",
            of_ret(ret::NODE_NAME_NON_EXISTENT),
        ),
        ("sizeof(rmw_peer_address_t)", PEER_BYTES as u64),
        ("RMW_GID_STORAGE_SIZE", size_of::<[u8; 16]>() as u64),
        ("RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER", 0),
    ];
    let of_u32 = [
        ("RMW_QOS_POLICY_INVALID", POLICY_INVALID),
        ("RMW_TRANSPORT_PROTOCOL_UDP", network_flow::UDP),
        ("RMW_INTERNET_PROTOCOL_IPV4", network_flow::IP_V4),
        ("RMW_EVENT_LIVELINESS_CHANGED", kind::LIVELINESS_CHANGED),
        (
            "RMW_EVENT_REQUESTED_DEADLINE_MISSED",
            kind::REQUESTED_DEADLINE_MISSED,
        ),
        (
            "RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE",
            kind::REQUESTED_QOS_INCOMPATIBLE,
        ),
        ("RMW_EVENT_MESSAGE_LOST", kind::MESSAGE_LOST),
        (
            "RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE",
            kind::SUBSCRIPTION_INCOMPATIBLE_TYPE,
        ),
        ("RMW_EVENT_SUBSCRIPTION_MATCHED", kind::SUBSCRIPTION_MATCHED),
        ("RMW_EVENT_LIVELINESS_LOST", kind::LIVELINESS_LOST),
        (
            "RMW_EVENT_OFFERED_DEADLINE_MISSED",
            kind::OFFERED_DEADLINE_MISSED,
        ),
        (
            "RMW_EVENT_OFFERED_QOS_INCOMPATIBLE",
            kind::OFFERED_QOS_INCOMPATIBLE,
        ),
        (
            "RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE",
            kind::PUBLISHER_INCOMPATIBLE_TYPE,
        ),
        ("RMW_EVENT_PUBLICATION_MATCHED", kind::PUBLICATION_MATCHED),
        ("RMW_AUTOMATIC_DISCOVERY_RANGE_OFF", 1),
        ("RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST", 2),
        ("RMW_ENDPOINT_PUBLISHER", 1),
        ("RMW_ENDPOINT_SUBSCRIPTION", 2),
        (
            "rosidl_typesupport_introspection_c__ROS_TYPE_LONG_DOUBLE",
            type_id::LONG_DOUBLE.into(),
        ),
        (
            "rosidl_typesupport_introspection_c__ROS_TYPE_BOOLEAN",
            type_id::BOOLEAN.into(),
        ),
        (
            "rosidl_typesupport_introspection_c__ROS_TYPE_STRING",
            type_id::STRING.into(),
        ),
        (
            "rosidl_typesupport_introspection_c__ROS_TYPE_WSTRING",
            type_id::WSTRING.into(),
        ),
        (
            "rosidl_typesupport_introspection_c__ROS_TYPE_MESSAGE",
            type_id::MESSAGE.into(),
        ),
    ];
    list.extend(of_u32.map(|(name, value)| (name, u64::from(value))));
    list
}

/// Enumerators and durations of QoS, whose numbers `qos::profile` reads.
const QOS_NUMBERS: [&str; 16] = [
    "RMW_QOS_POLICY_HISTORY_KEEP_LAST",
    "RMW_QOS_POLICY_HISTORY_KEEP_ALL",
    "RMW_QOS_POLICY_RELIABILITY_RELIABLE",
    "RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT",
    "RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE",
    "RMW_QOS_POLICY_RELIABILITY_UNKNOWN",
    "RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL",
    "RMW_QOS_POLICY_DURABILITY_VOLATILE",
    "RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE",
    "RMW_QOS_POLICY_DURABILITY_UNKNOWN",
    "RMW_QOS_POLICY_LIVELINESS_AUTOMATIC",
    "RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC",
    "RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE",
    "RMW_QOS_POLICY_LIVELINESS_UNKNOWN",
    "((rmw_time_t)RMW_DURATION_INFINITE).sec",
    "((rmw_time_t)RMW_DURATION_INFINITE).nsec",
];

/// A program that prints a name and its number per line.
fn source(headers: &str, layouts: &[Layout], numbers: &[&str]) -> String {
    let mut text = format!("{headers}int main(void) {{\n");
    let mut print = |name: &str, expression: &str| {
        let name = name.replace('"', "");
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  printf(\"%s=%llu\\n\", \"{name}\", (unsigned long long)({expression}));"
        );
    };
    for layout in layouts {
        print(layout.c, &format!("sizeof({})", layout.c));
        for field in &layout.fields {
            let (c, name) = (layout.c, field.c);
            print(&format!("{c}.{name}"), &format!("offsetof({c}, {name})"));
            print(
                &format!("{c}.{name} bytes"),
                &format!("sizeof((({c} *)0)->{name})"),
            );
        }
    }
    for number in numbers {
        print(number, number);
    }
    text + "  return 0;\n}\n"
}

/// Prefixes of the installation. An empty list: there is none.
fn prefixes() -> Vec<PathBuf> {
    let list = std::env::var_os("PTEROS_ROS2").filter(|value| !value.is_empty());
    let list = list.or_else(|| std::env::var_os("AMENT_PREFIX_PATH"));
    let list = list.unwrap_or_default();
    std::env::split_paths(&list)
        .filter(|prefix| prefix.join("include").is_dir())
        .collect()
}

/// Compiles and runs a program. `None`: there is no compiler.
fn numbers_of(
    compiler: &str,
    extension: &str,
    text: &str,
    prefixes: &[PathBuf],
) -> Option<BTreeMap<String, u64>> {
    if Command::new(compiler).arg("--version").output().is_err() {
        return None;
    }
    let folder = Folder::new("headers");
    let (code, program) = (
        folder.join(format!("headers.{extension}")),
        folder.join(format!("headers_{extension}")),
    );
    std::fs::write(&code, text).unwrap();
    let mut command = Command::new(compiler);
    command.arg(&code).arg("-w").arg("-o").arg(&program);
    for prefix in prefixes {
        let include = prefix.join("include");
        command.arg("-I").arg(&include);
        // Packages have a folder of their own below since Humble.
        for package in PACKAGES {
            command.arg("-I").arg(include.join(package));
        }
    }
    let compiled = command.output().unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{compiler}: {said}");
    let output = Command::new(&program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pairs = text.lines().filter_map(|line| line.rsplit_once('='));
    Some(
        pairs
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
            .collect(),
    )
}

/// The differences between the headers and `abi`.
fn differences(layouts: &[Layout], said: &BTreeMap<String, u64>) -> Vec<String> {
    let mut different = Vec::new();
    let mut compare = |name: String, ours: usize, what: &str| {
        let theirs = said[&name];
        if theirs != ours as u64 {
            different.push(format!("{what}: {ours} in abi.rs, {theirs} in C ({name})"));
        }
    };
    for layout in layouts {
        compare(layout.c.into(), layout.bytes, layout.rust);
        for field in &layout.fields {
            let name = format!("{}.{}", layout.c, field.c);
            let what = format!("{}.{}", layout.rust, field.rust);
            compare(
                format!("{name} bytes"),
                field.bytes,
                &format!("{what}, bytes"),
            );
            compare(name, field.offset, &format!("{what}, offset"));
        }
    }
    different
}

#[test]
fn layouts_and_numbers_are_those_of_the_installed_headers() {
    let prefixes = prefixes();
    if prefixes.is_empty() {
        println!("skipped: no ROS 2 is sourced or named by PTEROS_ROS2");
        return;
    }
    let constants = constants();
    let mut numbers: Vec<&str> = constants.iter().map(|(name, _)| *name).collect();
    numbers.extend(QOS_NUMBERS);
    let layouts = c_layouts();
    let text = source(C_HEADERS, &layouts, &numbers);
    let Some(said) = numbers_of("cc", "c", &text, &prefixes) else {
        println!("skipped: no C compiler");
        return;
    };
    let mut different = differences(&layouts, &said);
    for (name, ours) in constants {
        if said[name] != ours {
            different.push(format!("{name}: {ours} here, {} in C", said[name]));
        }
    }
    let layouts = cpp_layouts();
    match numbers_of("c++", "cpp", &source(CPP_HEADERS, &layouts, &[]), &prefixes) {
        Some(said) => different.extend(differences(&layouts, &said)),
        None => println!("left out: no C++ compiler for the C++ typesupport"),
    }
    assert!(different.is_empty(), "{different:#?}");
    check_qos(&said);
    let manifest = prefixes
        .iter()
        .find_map(|prefix| std::fs::read_to_string(prefix.join("share/rmw/package.xml")).ok());
    let built_for = format!("<version>{}.", crate::build_note::RMW_ABI);
    assert!(manifest.unwrap().contains(&built_for), "{built_for}");
}

/// `qos::profile` understands each enumerator by its number.
fn check_qos(said: &BTreeMap<String, u64>) {
    let number = |name: &str| said[&format!("RMW_QOS_POLICY_{name}")] as u32;
    let infinite = Time {
        sec: said["((rmw_time_t)RMW_DURATION_INFINITE).sec"],
        nsec: said["((rmw_time_t)RMW_DURATION_INFINITE).nsec"],
    };
    let request = |set: fn(&mut QosProfile, u32), name: &str| {
        let mut profile = QosProfile {
            history: number("HISTORY_KEEP_LAST"),
            depth: 7,
            reliability: number("RELIABILITY_RELIABLE"),
            durability: number("DURABILITY_VOLATILE"),
            deadline: infinite,
            lifespan: Time { sec: 3, nsec: 4 },
            liveliness: number("LIVELINESS_AUTOMATIC"),
            liveliness_lease_duration: infinite,
            avoid_ros_namespace_conventions: false,
        };
        set(&mut profile, number(name));
        qos::profile(&profile)
    };
    let of = |set, name| request(set, name).unwrap_or_else(|_| panic!("{name}"));
    let profile = of(|q, v| q.history = v, "HISTORY_KEEP_LAST");
    assert_eq!(profile.history, HistoryPolicy::KeepLast(7));
    assert_eq!(profile.deadline, None);
    assert_eq!(profile.lifespan, Some(Duration::new(3, 4)));
    let all = of(|q, v| q.history = v, "HISTORY_KEEP_ALL").history;
    assert_eq!(all, HistoryPolicy::KeepAll);
    for (name, expected) in [
        ("RELIABILITY_RELIABLE", ReliabilityPolicy::Reliable),
        ("RELIABILITY_BEST_EFFORT", ReliabilityPolicy::BestEffort),
        (
            "RELIABILITY_BEST_AVAILABLE",
            ReliabilityPolicy::BestAvailable,
        ),
    ] {
        assert_eq!(of(|q, v| q.reliability = v, name).reliability, expected);
    }
    for (name, expected) in [
        (
            "DURABILITY_TRANSIENT_LOCAL",
            DurabilityPolicy::TransientLocal,
        ),
        ("DURABILITY_VOLATILE", DurabilityPolicy::Volatile),
        ("DURABILITY_BEST_AVAILABLE", DurabilityPolicy::BestAvailable),
    ] {
        assert_eq!(of(|q, v| q.durability = v, name).durability, expected);
    }
    for (name, expected) in [
        ("LIVELINESS_AUTOMATIC", LivelinessPolicy::Automatic),
        (
            "LIVELINESS_MANUAL_BY_TOPIC",
            LivelinessPolicy::ManualByTopic,
        ),
        ("LIVELINESS_BEST_AVAILABLE", LivelinessPolicy::BestAvailable),
    ] {
        assert_eq!(of(|q, v| q.liveliness = v, name).liveliness, expected);
    }
    assert!(request(|q, v| q.reliability = v, "RELIABILITY_UNKNOWN").is_err());
    assert!(request(|q, v| q.durability = v, "DURABILITY_UNKNOWN").is_err());
    assert!(request(|q, v| q.liveliness = v, "LIVELINESS_UNKNOWN").is_err());
}

/// A structure or field that is added to `abi` without its line above fails here,
/// with or without an installation.
#[test]
fn every_structure_of_the_abi_is_compared_with_all_its_fields() {
    let text = [
        include_str!("abi.rs"),
        include_str!("../../typesupport/src/introspection.rs"),
    ]
    .concat();
    let compared: BTreeMap<&str, usize> = c_layouts()
        .iter()
        .map(|layout| (layout.rust, layout.fields.len()))
        .collect();
    let mut structures = 0;
    for part in text.split("\npub struct ").skip(1) {
        let (name, rest) = part.split_once(" {\n").unwrap();
        let body = rest.split("\n}").next().unwrap();
        let fields = body.lines().filter(|l| l.starts_with("    pub ")).count();
        assert_eq!(compared.get(name), Some(&fields), "{name}");
        structures += 1;
    }
    assert_eq!(structures, compared.len());
}

/// The comparison itself: a field that lies elsewhere is found.
#[test]
fn a_difference_is_reported_with_both_numbers() {
    let layouts = [layout!("rmw_time_t" => Time { sec, nsec })];
    let mut said: BTreeMap<String, u64> = [
        ("rmw_time_t", 16),
        ("rmw_time_t.sec", 0),
        ("rmw_time_t.sec bytes", 8),
        ("rmw_time_t.nsec", 8),
        ("rmw_time_t.nsec bytes", 8),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    assert!(differences(&layouts, &said).is_empty());
    said.insert("rmw_time_t.nsec bytes".into(), 4);
    assert_eq!(
        differences(&layouts, &said),
        ["Time.nsec, bytes: 8 in abi.rs, 4 in C (rmw_time_t.nsec bytes)"]
    );
}

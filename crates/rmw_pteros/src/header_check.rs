//! Compares the structures and constants of `abi` and `distribution`, and the numbers used
//! by other modules, with the headers of the distribution. A C program prints the values of
//! the headers. The installation is the sourced one, or that in a variable, if it is of this
//! distribution. Without one or a compiler, the test reports that it was skipped.
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
use crate::build_note::RMW_ABI;
use crate::distribution::{EVENT_TYPES, EventType, FIRST_EVENT_TYPE, headers};
use crate::network_flow;
use crate::qos;
use pteros_rcl::event_status::StatusKind;
use pteros_typesupport::type_id;

/// A structure on both sides.
pub(crate) struct Layout {
    /// The type of the header.
    pub(crate) c: String,
    /// The type of `abi`.
    pub(crate) rust: &'static str,
    pub(crate) bytes: usize,
    pub(crate) fields: Vec<Field>,
}

impl Layout {
    /// As a structure of C with that beginning of its name.
    pub(crate) fn of(self, namespace: &str) -> Self {
        let c = format!("{namespace}{}", self.rust);
        Self { c, ..self }
    }
}

pub(crate) struct Field {
    pub(crate) c: &'static str,
    pub(crate) rust: &'static str,
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// Bytes of the field that `of` returns.
pub(crate) fn field_bytes<T, F>(_of: impl Fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// `layout!("c_type" => RustType { field, field = "c_field" })`.
macro_rules! layout {
    ($c:literal => $t:ident { $($field:ident $(= $name:literal)?),* $(,)? }) => {
        $crate::header_check::Layout {
            c: $c.into(),
            rust: stringify!($t),
            bytes: size_of::<$t>(),
            fields: vec![$($crate::header_check::Field {
                c: $crate::header_check::layout!(@name $field $(= $name)?),
                rust: stringify!($field),
                offset: std::mem::offset_of!($t, $field),
                bytes: $crate::header_check::field_bytes(|value: &$t| &value.$field),
            }),*],
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident = $name:literal) => { $name };
}
pub(crate) use layout;

const C_HEADERS: &str = "\
#include <stddef.h>
#include <stdio.h>
#include <rcutils/allocator.h>
#include <rcutils/types.h>
#include <rmw/rmw.h>
#include <rmw/event.h>
#include <rmw/events_statuses/events_statuses.h>
#include <rmw/features.h>
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
    layouts.extend(headers::layouts());
    let introspection = "rosidl_typesupport_introspection_c__";
    layouts.extend(headers::introspection_layouts(introspection));
    layouts.retain(|layout| !headers::ABSENT.contains(&layout.rust));
    for layout in &mut layouts {
        // A distribution without such a field has an empty one.
        layout.fields.retain(|field| field.bytes > 0);
    }
    layouts
}

/// Several fields of C are one of Rust, by the distribution.
fn init_options() -> Layout {
    let mut layout = layout!("rmw_init_options_t" => InitOptions {
        instance_id, implementation_identifier, domain_id, security_options, enclave, allocator,
        implementation = "impl",
    });
    for field in headers::discovery_fields() {
        let offset = offset_of!(InitOptions, discovery) + field.offset;
        layout.fields.push(Field { offset, ..field });
    }
    layout
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
        layout!("rmw_security_options_t" => SecurityOptions { enforce_security, security_root_path }),
        init_options(),
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
            content_filter = "content_filter_options", acceptable_buffer_backends,
        }),
        layout!("rmw_subscription_t" => Subscription {
            implementation_identifier, data, topic_name, options, can_loan_messages,
            is_cft_enabled, is_cft_supported,
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
        layout!("rmw_topic_endpoint_info_t" => TopicEndpointInfo {
            node_name, node_namespace, topic_type, topic_type_hash, endpoint_type, endpoint_gid,
            qos_profile,
        }),
        layout!("rmw_topic_endpoint_info_array_t" => TopicEndpointInfoArray { size, info_array }),
        layout!("rmw_service_endpoint_info_t" => ServiceEndpointInfo {
            node_name, node_namespace, service_type, service_type_hash, endpoint_type,
            endpoint_count, endpoint_gids, qos_profiles,
        }),
        layout!("rmw_service_endpoint_info_array_t" => ServiceEndpointInfoArray {
            size, info_array,
        }),
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
        layout!("rmw_qos_incompatible_event_status_t" => IncompatibleQosStatus {
            total_count, total_count_change, last_policy_kind,
        }),
        layout!("rmw_matched_status_t" => MatchedStatus {
            total_count, total_count_change, current_count, current_count_change,
        }),
        layout!("rmw_message_lost_status_t" => MessageLostStatus {
            total_count, total_count_change,
        }),
    ]
}

fn cpp_layouts() -> Vec<Layout> {
    headers::introspection_layouts("rosidl_typesupport_introspection_cpp::")
}

/// Constants of C, with the numbers that this crate uses.
fn constants() -> Vec<(String, u64)> {
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
        ("RMW_GID_STORAGE_SIZE", GID_BYTES as u64),
        ("RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER", 0),
    ];
    let of_u32 = [
        ("RMW_QOS_POLICY_INVALID", POLICY_INVALID),
        ("RMW_TRANSPORT_PROTOCOL_UDP", network_flow::UDP),
        ("RMW_INTERNET_PROTOCOL_IPV4", network_flow::IP_V4),
        ("RMW_INTERNET_PROTOCOL_IPV6", network_flow::IP_V6),
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
    list.extend(headers::CONSTANTS);
    if cfg!(distribution = "lyrical") {
        list.extend([("RMW_ENDPOINT_CLIENT", 3), ("RMW_ENDPOINT_SERVER", 4)]);
    }
    let list = list
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    list.chain(events()).collect()
}

/// The numbers of the events.
fn events() -> impl Iterator<Item = (String, u64)> {
    let name = |event: &EventType| match (event.status, event.of_subscription) {
        (StatusKind::DeadlineMissed, true) => "REQUESTED_DEADLINE_MISSED",
        (StatusKind::DeadlineMissed, false) => "OFFERED_DEADLINE_MISSED",
        (StatusKind::LivelinessChanged, _) => "LIVELINESS_CHANGED",
        (StatusKind::LivelinessLost, _) => "LIVELINESS_LOST",
        (StatusKind::IncompatibleQos, true) => "REQUESTED_QOS_INCOMPATIBLE",
        (StatusKind::IncompatibleQos, false) => "OFFERED_QOS_INCOMPATIBLE",
        (StatusKind::MessageLost, _) => "MESSAGE_LOST",
        (StatusKind::IncompatibleType, true) => "SUBSCRIPTION_INCOMPATIBLE_TYPE",
        (StatusKind::IncompatibleType, false) => "PUBLISHER_INCOMPATIBLE_TYPE",
        (StatusKind::Matched, true) => "SUBSCRIPTION_MATCHED",
        (StatusKind::Matched, false) => "PUBLICATION_MATCHED",
    };
    let numbers = u64::from(FIRST_EVENT_TYPE)..;
    let listed = EVENT_TYPES.iter().zip(numbers);
    let invalid = match FIRST_EVENT_TYPE {
        0 => EVENT_TYPES.len() as u64,
        _ => 0,
    };
    let invalid = ("RMW_EVENT_INVALID".to_owned(), invalid);
    let listed = listed.map(move |(event, number)| (format!("RMW_EVENT_{}", name(event)), number));
    listed.chain([invalid])
}

/// Enumerators and durations of QoS, whose numbers `qos::profile` reads.
const QOS_NUMBERS: [&str; 13] = [
    "RMW_QOS_POLICY_HISTORY_KEEP_LAST",
    "RMW_QOS_POLICY_HISTORY_KEEP_ALL",
    "RMW_QOS_POLICY_RELIABILITY_RELIABLE",
    "RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT",
    "RMW_QOS_POLICY_RELIABILITY_UNKNOWN",
    "RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL",
    "RMW_QOS_POLICY_DURABILITY_VOLATILE",
    "RMW_QOS_POLICY_DURABILITY_UNKNOWN",
    "RMW_QOS_POLICY_LIVELINESS_AUTOMATIC",
    "RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC",
    "RMW_QOS_POLICY_LIVELINESS_UNKNOWN",
    "((rmw_time_t)RMW_DURATION_INFINITE).sec",
    "((rmw_time_t)RMW_DURATION_INFINITE).nsec",
];

/// Of distributions that have them.
const BEST_AVAILABLE: [&str; 3] = [
    "RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE",
    "RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE",
    "RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE",
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
        print(&layout.c, &format!("sizeof({})", layout.c));
        for field in &layout.fields {
            let (c, name) = (&layout.c, field.c);
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

/// Prefixes of an installation of this distribution: one that is named or sourced, or
/// Jazzy's packages of Python beside the other stacks. An empty list: there is none.
fn prefixes() -> Vec<PathBuf> {
    let variables = [
        "PTEROS_ROS2_HUMBLE",
        "PTEROS_ROS2_KILTED",
        "PTEROS_ROS2_LYRICAL",
        "PTEROS_ROS2",
        "AMENT_PREFIX_PATH",
    ];
    let peers = std::env::var_os("PTEROS_PEERS").map(PathBuf::from);
    let index = peers.map(|folder| folder.with_file_name("venv-rclpy-jazzy").into());
    let lists = variables.iter().filter_map(std::env::var_os).chain(index);
    let mut lists = lists.map(|list| -> Vec<PathBuf> {
        let folders = std::env::split_paths(&list);
        folders
            .filter(|prefix| prefix.join("include").is_dir())
            .collect()
    });
    let built_for = format!("<version>{RMW_ABI}.");
    let fits = |prefix: &PathBuf| {
        let manifest = std::fs::read_to_string(prefix.join("share/rmw/package.xml"));
        manifest.is_ok_and(|text| text.contains(&built_for))
    };
    lists
        .find(|prefixes| prefixes.iter().any(fits))
        .unwrap_or_default()
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
        compare(layout.c.clone(), layout.bytes, layout.rust);
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
        println!("skipped: no ROS 2 with rmw {RMW_ABI} is sourced or named");
        return;
    }
    let constants = constants();
    let mut numbers: Vec<&str> = constants.iter().map(|(name, _)| name.as_str()).collect();
    numbers.extend(QOS_NUMBERS);
    if headers::QOS_HAS_BEST_AVAILABLE {
        numbers.extend(BEST_AVAILABLE);
    }
    let mut includes = C_HEADERS.to_owned();
    for header in headers::C_HEADERS {
        includes += &format!("#include <{header}>\n");
    }
    let layouts = c_layouts();
    let text = source(&includes, &layouts, &numbers);
    let Some(said) = numbers_of("cc", "c", &text, &prefixes) else {
        println!("skipped: no C compiler");
        return;
    };
    let mut different = differences(&layouts, &said);
    for (name, ours) in constants {
        if said[&name] != ours {
            different.push(format!("{name}: {ours} here, {} in C", said[&name]));
        }
    }
    let layouts = cpp_layouts();
    match numbers_of("c++", "cpp", &source(CPP_HEADERS, &layouts, &[]), &prefixes) {
        Some(said) => different.extend(differences(&layouts, &said)),
        None => println!("left out: no C++ compiler for the C++ typesupport"),
    }
    assert!(different.is_empty(), "{different:#?}");
    check_qos(&said);
    println!("compared with the headers of rmw {RMW_ABI} in {prefixes:?}");
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
    ] {
        assert_eq!(of(|q, v| q.reliability = v, name).reliability, expected);
    }
    for (name, expected) in [
        (
            "DURABILITY_TRANSIENT_LOCAL",
            DurabilityPolicy::TransientLocal,
        ),
        ("DURABILITY_VOLATILE", DurabilityPolicy::Volatile),
    ] {
        assert_eq!(of(|q, v| q.durability = v, name).durability, expected);
    }
    for (name, expected) in [
        ("LIVELINESS_AUTOMATIC", LivelinessPolicy::Automatic),
        (
            "LIVELINESS_MANUAL_BY_TOPIC",
            LivelinessPolicy::ManualByTopic,
        ),
    ] {
        assert_eq!(of(|q, v| q.liveliness = v, name).liveliness, expected);
    }
    if headers::QOS_HAS_BEST_AVAILABLE {
        let profile = of(|q, v| q.reliability = v, "RELIABILITY_BEST_AVAILABLE");
        assert_eq!(profile.reliability, ReliabilityPolicy::BestAvailable);
        let profile = of(|q, v| q.durability = v, "DURABILITY_BEST_AVAILABLE");
        assert_eq!(profile.durability, DurabilityPolicy::BestAvailable);
        let profile = of(|q, v| q.liveliness = v, "LIVELINESS_BEST_AVAILABLE");
        assert_eq!(profile.liveliness, LivelinessPolicy::BestAvailable);
    }
    assert!(request(|q, v| q.reliability = v, "RELIABILITY_UNKNOWN").is_err());
    assert!(request(|q, v| q.durability = v, "DURABILITY_UNKNOWN").is_err());
    assert!(request(|q, v| q.liveliness = v, "LIVELINESS_UNKNOWN").is_err());
}

/// A structure or field that is added to `abi` or `distribution` without its line above
/// fails here, with or without an installation.
#[test]
fn every_structure_of_the_abi_is_compared_with_all_its_fields() {
    let text = include_str!("abi.rs").to_owned() + &headers::SOURCES.concat();
    let compared: BTreeMap<&str, usize> = c_layouts()
        .iter()
        .map(|layout| (layout.rust, layout.fields.len()))
        .collect();
    let mut structures = 0;
    for part in text.split("\npub struct ").skip(1) {
        let (name, rest) = part.split_once(" {\n").unwrap();
        let body = rest.split("\n}").next().unwrap();
        let mut fields = body.lines().filter(|l| l.starts_with("    pub ")).count();
        match name {
            name if headers::ABSENT.contains(&name) => continue,
            // Part of the next one.
            "DiscoveryFields" => continue,
            "InitOptions" => fields += headers::discovery_fields().len() - 1,
            "TopicEndpointInfo" if size_of::<TopicTypeHash>() == 0 => fields -= 1,
            "SubscriptionOptions" if size_of::<BufferBackends>() == 0 => fields -= 1,
            "Subscription" if size_of::<FilterSupport>() == 0 => fields -= 1,
            // Of Kilted in the sources.
            "MessageMember" if cfg!(distribution = "lyrical") => fields += 1,
            _ => {}
        }
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

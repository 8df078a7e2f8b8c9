//! CDR bytes of the infrastructure messages of a node: graph, log, clock, types,
//! transforms, components, logger levels, states, introspection.
//!
//! The bytes were written by Fast CDR (Debian's libfastcdr 1.0, XCDR1,
//! little-endian) from IDL as ROS 2 generates it from the definitions. Actions,
//! parameter services and `ros_discovery_info` are also compared with ROS 2's own
//! datagrams: `captured_messages` of the crate rtps. Simpler messages are in
//! `actions`, `parameters` and `lifecycle`.

use pteros_interfaces::builtin_interfaces::msg::Time;
use pteros_interfaces::composition_interfaces::srv::{
    ListNodesRequest, ListNodesResponse, LoadNodeRequest, LoadNodeResponse, UnloadNodeRequest,
    UnloadNodeResponse,
};
use pteros_interfaces::example_interfaces::srv::{
    AddTwoIntsEvent, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros_interfaces::geometry_msgs::msg::TransformStamped;
use pteros_interfaces::lifecycle_msgs::msg::{State, Transition, TransitionEvent};
use pteros_interfaces::rcl_interfaces::msg::{
    Log, LoggerLevel, Parameter, ParameterEvent, ParameterValue, SetLoggerLevelsResult,
};
use pteros_interfaces::rcl_interfaces::srv::{
    GetLoggerLevelsResponse, SetLoggerLevelsRequest, SetLoggerLevelsResponse,
};
use pteros_interfaces::rmw_dds_common::msg::{Gid, NodeEntitiesInfo, ParticipantEntitiesInfo};
use pteros_interfaces::rosgraph_msgs::msg::Clock;
use pteros_interfaces::service_msgs::msg::ServiceEventInfo;
use pteros_interfaces::tf2_msgs::msg::TFMessage;
use pteros_interfaces::type_description_interfaces::msg::{
    Field, FieldType, IndividualTypeDescription, KeyValue, TypeDescription, TypeSource,
};
use pteros_interfaces::type_description_interfaces::srv::{
    GetTypeDescriptionRequest, GetTypeDescriptionResponse,
};
use pteros_msg::{Message, Representation, from_payload, to_payload};

const STAMP: Time = Time { sec: 1, nanosec: 2 };

/// Reads those bytes and writes them. Hexadecimal, without the header.
#[track_caller]
fn is<M: Message>(message: &M, hex: &str) {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let theirs: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect();
    let payload = [&[0, 1, 0, 0], &*theirs].concat();
    assert_eq!(from_payload::<M>(&payload).as_ref(), Ok(message));
    let ours = to_payload(message, Representation::Xcdr1);
    let padding = usize::from(ours[3] & 3);
    assert_eq!(ours[4..ours.len() - padding], theirs, "{}", M::TYPE_NAME);
}

fn on(name: &str) -> Parameter {
    Parameter {
        name: name.into(),
        value: ParameterValue {
            r#type: 1,
            bool_value: true,
            ..Default::default()
        },
    }
}

#[test]
fn rosout_is_a_log() {
    let log = Log {
        stamp: STAMP,
        level: 20,
        name: "talker".into(),
        msg: "Publishing: 'Hello'".into(),
        file: "talker.cpp".into(),
        function: "operator()".into(),
        line: 43,
    };
    is(
        &log,
        "0100000002000000140000000700000074616c6b65720000140000005075626c697368696e673a202748656c\
         6c6f27000b00000074616c6b65722e63707000000b0000006f70657261746f72282900002b000000",
    );
}

#[test]
fn the_clock_is_a_time() {
    is(&Clock { clock: STAMP }, "0100000002000000");
}

#[test]
fn events_of_parameters_have_three_lists() {
    let event = ParameterEvent {
        stamp: STAMP,
        node: "/talker".into(),
        new_parameters: vec![on("use_sim_time")],
        changed_parameters: vec![on("use_intra_process_comms"), on("use_sim_time")],
        deleted_parameters: vec![],
    };
    is(
        &event,
        "0100000002000000080000002f74616c6b657200010000000d0000007573655f73696d5f74696d6500010100\
         0000000000000000000000000000000000000000010000000000000000000000000000000000000000000000\
         0000000002000000180000007573655f696e7472615f70726f636573735f636f6d6d73000101000000000000\
         000000000000000000000000010000000000000000000000000000000000000000000000000000000d000000\
         7573655f73696d5f74696d650001010000000000000000000000000000000000010000000000000000000000\
         0000000000000000000000000000000000000000",
    );
}

#[test]
fn a_component_is_loaded_listed_and_unloaded() {
    let load = LoadNodeRequest {
        package_name: "composition".into(),
        plugin_name: "composition::Talker".into(),
        node_name: "talker".into(),
        node_namespace: "/robot".into(),
        log_level: 0,
        remap_rules: vec!["chatter:=talk".into()],
        parameters: vec![on("use_sim_time")],
        extra_arguments: vec![on("use_intra_process_comms")],
    };
    is(
        &load,
        "0c000000636f6d706f736974696f6e0014000000636f6d706f736974696f6e3a3a54616c6b65720007000000\
         74616c6b65720000070000002f726f626f740000010000000e000000636861747465723a3d74616c6b000000\
         010000000d0000007573655f73696d5f74696d65000101000000000000000000000000000000000001000000\
         00000000000000000000000000000000000000000000000001000000180000007573655f696e7472615f7072\
         6f636573735f636f6d6d73000101000000000000000000000000000000000000010000000000000000000000\
         00000000000000000000000000000000",
    );
    let loaded = LoadNodeResponse {
        success: true,
        error_message: String::new(),
        full_node_name: "/robot/talker".into(),
        unique_id: 1,
    };
    is(
        &loaded,
        "0100000001000000000000000e0000002f726f626f742f74616c6b65720000000100000000000000",
    );
    is(&UnloadNodeRequest { unique_id: 1 }, "0100000000000000");
    let unloaded = UnloadNodeResponse {
        success: false,
        error_message: "No node found with id: 7".into(),
    };
    is(
        &unloaded,
        "00000000190000004e6f206e6f646520666f756e6420776974682069643a203700",
    );
    is(&ListNodesRequest {}, "00");
    let listed = ListNodesResponse {
        full_node_names: vec!["/talker".into(), "/listener".into()],
        unique_ids: vec![1, 2],
    };
    is(
        &listed,
        "02000000080000002f74616c6b6572000a0000002f6c697374656e6572000000020000000000000001000000\
         000000000200000000000000",
    );
}

fn field(name: &str, type_id: u8, nested: &str, default: &str) -> Field {
    Field {
        name: name.into(),
        r#type: FieldType {
            type_id,
            nested_type_name: nested.into(),
            ..Default::default()
        },
        default_value: default.into(),
    }
}

#[test]
fn a_type_is_described_by_its_fields_and_its_text() {
    let request = GetTypeDescriptionRequest {
        type_name: "std_msgs/msg/String".into(),
        type_hash: "RIHS01_df66".into(),
        include_type_sources: true,
    };
    is(
        &request,
        "140000007374645f6d7367732f6d73672f537472696e67000c0000005249485330315f646636360001",
    );
    let time = "builtin_interfaces/msg/Time";
    let described = GetTypeDescriptionResponse {
        successful: true,
        failure_reason: String::new(),
        type_description: TypeDescription {
            type_description: IndividualTypeDescription {
                type_name: "a/msg/B".into(),
                fields: vec![field("data", 17, "", ""), field("stamp", 1, time, "")],
            },
            referenced_type_descriptions: vec![IndividualTypeDescription {
                type_name: time.into(),
                fields: vec![field("sec", 6, "", "7")],
            }],
        },
        type_sources: vec![TypeSource {
            type_name: "a/msg/B".into(),
            encoding: "msg".into(),
            raw_file_contents: "string data\n".into(),
        }],
        extra_information: vec![KeyValue {
            key: "k".into(),
            value: "v".into(),
        }],
    };
    is(
        &described,
        "01000000010000000000000008000000612f6d73672f42000200000005000000646174610011000000000000\
         00000000000000000000000001000000000000000100000000000000060000007374616d7000010000000000\
         000000000000000000000000000000001c0000006275696c74696e5f696e74657266616365732f6d73672f54\
         696d65000100000000000000010000001c0000006275696c74696e5f696e74657266616365732f6d73672f54\
         696d650001000000040000007365630006000000000000000000000000000000000000000000000001000000\
         0000000002000000370000000100000008000000612f6d73672f4200040000006d7367000d00000073747269\
         6e6720646174610a0000000001000000020000006b000000020000007600",
    );
}

#[test]
fn an_event_of_a_service_has_a_request_or_a_response_or_neither() {
    let event = |event_type, request, response| AddTwoIntsEvent {
        info: ServiceEventInfo {
            event_type,
            stamp: STAMP,
            client_gid: std::array::from_fn(|at| at as u8 + 1),
            sequence_number: 5,
        },
        request,
        response,
    };
    let request = AddTwoIntsRequest { a: 2, b: 3 };
    let response = AddTwoIntsResponse { sum: 5 };
    is(
        &event(1, vec![request], vec![]),
        "0100000001000000020000000102030405060708090a0b0c0d0e0f1000000000050000000000000001000000\
         000000000200000000000000030000000000000000000000",
    );
    is(
        &event(2, vec![], vec![response]),
        "0200000001000000020000000102030405060708090a0b0c0d0e0f1000000000050000000000000000000000\
         010000000500000000000000",
    );
    is(
        &event(0, vec![], vec![]),
        "0000000001000000020000000102030405060708090a0b0c0d0e0f1000000000050000000000000000000000\
         00000000",
    );
}

#[test]
fn transforms_come_together() {
    let mut first = TransformStamped::default();
    first.header.stamp = STAMP;
    first.header.frame_id = "odom".into();
    first.child_frame_id = "base_link".into();
    let to = &mut first.transform.translation;
    (to.x, to.y, to.z) = (1.5, -2.0, 0.25);
    first.transform.rotation.w = 1.0;
    let mut second = first.clone();
    second.header.frame_id = "map".into();
    second.child_frame_id = "odom".into();
    let transforms = vec![first, second];
    is(
        &TFMessage { transforms },
        "020000000100000002000000050000006f646f6d000000000a000000626173655f6c696e6b00000000000000\
         0000f83f00000000000000c0000000000000d03f000000000000000000000000000000000000000000000000\
         000000000000f03f0100000002000000040000006d617000050000006f646f6d000000000000000000000000\
         0000f83f00000000000000c0000000000000d03f000000000000000000000000000000000000000000000000\
         000000000000f03f",
    );
}

#[test]
fn a_participant_announces_its_nodes_and_their_endpoints() {
    let gid = Gid {
        data: std::array::from_fn(|at| at as u8),
    };
    let node = NodeEntitiesInfo {
        node_namespace: "/".into(),
        node_name: "talker".into(),
        reader_gid_seq: vec![gid],
        writer_gid_seq: vec![gid, gid],
    };
    let graph = ParticipantEntitiesInfo {
        gid,
        node_entities_info_seq: vec![node],
    };
    is(
        &graph,
        "000102030405060708090a0b0c0d0e0f01000000020000002f0000000700000074616c6b6572000001000000\
         000102030405060708090a0b0c0d0e0f02000000000102030405060708090a0b0c0d0e0f0001020304050607\
         08090a0b0c0d0e0f",
    );
}

#[test]
fn logger_levels_are_requested_and_set() {
    let level = |name: &str, level| LoggerLevel {
        name: name.into(),
        level,
    };
    let levels = vec![level("talker", 10), level("", 30)];
    let hex = "020000000700000074616c6b657200000a00000001000000000000001e000000";
    is(
        &GetLoggerLevelsResponse {
            levels: levels.clone(),
        },
        hex,
    );
    is(&SetLoggerLevelsRequest { levels }, hex);
    let result = |successful, reason: &str| SetLoggerLevelsResult {
        successful,
        reason: reason.into(),
    };
    let results = vec![result(true, ""), result(false, "no")];
    is(
        &SetLoggerLevelsResponse { results },
        "02000000010000000100000000000000030000006e6f00",
    );
}

#[test]
fn a_transition_event_has_both_states() {
    let state = |id, label: &str| State {
        id,
        label: label.into(),
    };
    let event = TransitionEvent {
        timestamp: 9,
        transition: Transition {
            id: 1,
            label: "configure".into(),
        },
        start_state: state(1, "unconfigured"),
        goal_state: state(2, "inactive"),
    };
    is(
        &event,
        "0900000000000000010000000a000000636f6e6669677572650001000d000000756e636f6e66696775726564\
         0002000009000000696e61637469766500",
    );
}

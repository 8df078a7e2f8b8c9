//! Messages of parameter services and events in CDR (XCDR1, little-endian): one
//! request and reply as ROS 2 Jazzy sends them over Fast DDS and Cyclone DDS, the
//! others derived by hand from their definitions.

use pteros_interfaces::builtin_interfaces::msg::Time;
use pteros_interfaces::rcl_interfaces::msg::{
    FloatingPointRange, ListParametersResult, Parameter, ParameterDescriptor, ParameterEvent,
    ParameterValue, SetParametersResult,
};
use pteros_interfaces::rcl_interfaces::srv::{
    DescribeParametersResponse, GetParameterTypesResponse, GetParametersRequest,
    GetParametersResponse, ListParametersRequest, ListParametersResponse,
    SetParametersAtomicallyResponse, SetParametersRequest, SetParametersResponse,
};
use pteros_msg::{Message, Representation, from_payload, to_payload};

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Padding at the end is each stack's own matter: it may be counted in the header.
#[track_caller]
fn reads_and_writes<M: Message>(message: &M, hex: &str) {
    let theirs = bytes(hex);
    assert_eq!(from_payload::<M>(&theirs).as_ref(), Ok(message));
    let ours = to_payload(message, Representation::Xcdr1);
    let padding = usize::from(ours[3] & 3);
    let (ours, theirs) = (&ours[4..ours.len() - padding], &theirs[4..]);
    assert!(theirs.starts_with(ours), "{ours:02x?}\n{theirs:02x?}");
    let rest = &theirs[ours.len()..];
    assert!(
        rest.len() < 4 && rest.iter().all(|byte| *byte == 0),
        "{rest:?}"
    );
}

fn parameter(name: &str, value: ParameterValue) -> Parameter {
    Parameter {
        name: name.into(),
        value,
    }
}

fn speed() -> ParameterValue {
    ParameterValue {
        r#type: 3,
        double_value: 1.5,
        ..Default::default()
    }
}

const NO_SIM_TIME: &str = "010000000d0000007573655f73696d5f74696d6500010000000000000000000000\
    0000000000000001000000000000000000000000000000000000000000000000000000";

/// `ros2 param set /talker use_sim_time false`, Jazzy.
#[test]
fn a_set_of_ros2_is_read_and_written() {
    let no = ParameterValue {
        r#type: 1,
        ..Default::default()
    };
    let request = SetParametersRequest {
        parameters: vec![parameter("use_sim_time", no)],
    };
    reads_and_writes(&request, &format!("00010000{NO_SIM_TIME}"));
    // After Cyclone DDS's 16 bytes of client and number, which the protocol takes off.
    let cyclone = bytes(&format!("eb8a9b4389c9b0690100000000000000{NO_SIM_TIME}"));
    assert_eq!(cyclone[16..], bytes(NO_SIM_TIME)[..]);
    let reply = SetParametersResponse {
        results: vec![SetParametersResult {
            successful: true,
            reason: String::new(),
        }],
    };
    reads_and_writes(&reply, "0001000001000000010000000100000000000000");
}

#[test]
fn parameter_values_are_requested_and_returned() {
    let request = GetParametersRequest {
        names: vec!["speed".into(), "names".into()],
    };
    reads_and_writes(
        &request,
        "0001000002000000060000007370656564000000060000006e616d657300",
    );
    let names = ParameterValue {
        r#type: 9,
        string_array_value: vec!["a".into(), "bc".into()],
        ..Default::default()
    };
    let response = GetParametersResponse {
        values: vec![speed(), names],
    };
    reads_and_writes(
        &response,
        "0001000002000000030000000000000000000000000000000000f83f0100000000000000000000000000\
         0000000000000000000000000000090000000000000000000000000000000000000001000000000000000000\
         000000000000000000000000000002000000020000006100000003000000626300",
    );
    let types = GetParameterTypesResponse { types: vec![3, 9] };
    reads_and_writes(&types, "00010000020000000309");
}

#[test]
fn descriptions_have_ranges_as_lists_of_at_most_one() {
    let descriptor = ParameterDescriptor {
        name: "speed".into(),
        r#type: 3,
        description: "m/s".into(),
        floating_point_range: vec![FloatingPointRange {
            from_value: 0.0,
            to_value: 2.0,
            step: 0.5,
        }],
        ..Default::default()
    };
    let response = DescribeParametersResponse {
        descriptors: vec![descriptor],
    };
    reads_and_writes(
        &response,
        "0001000001000000060000007370656564000300040000006d2f7300010000000000000001000000000000\
         0000000000000000000000000000000040000000000000e03f00000000",
    );
}

#[test]
fn lists_have_prefixes_and_a_depth() {
    let request = ListParametersRequest {
        prefixes: vec!["arm".into()],
        depth: 2,
    };
    reads_and_writes(
        &request,
        "00010000010000000400000061726d00000000000200000000000000",
    );
    let response = ListParametersResponse {
        result: ListParametersResult {
            names: vec!["arm.speed".into()],
            prefixes: vec!["arm".into()],
        },
    };
    reads_and_writes(
        &response,
        "00010000010000000a00000061726d2e7370656564000000010000000400000061726d00",
    );
}

#[test]
fn an_atomic_set_has_one_result() {
    let response = SetParametersAtomicallyResponse {
        result: SetParametersResult {
            successful: false,
            reason: "no".into(),
        },
    };
    reads_and_writes(&response, "0001000000000000030000006e6f00");
}

#[test]
fn a_parameter_event_has_stamp_node_and_changes() {
    let lower = ParameterValue {
        r#type: 2,
        integer_value: -1,
        ..Default::default()
    };
    let event = ParameterEvent {
        stamp: Time { sec: 7, nanosec: 9 },
        node: "/arm".into(),
        changed_parameters: vec![parameter("speed", lower)],
        ..Default::default()
    };
    reads_and_writes(
        &event,
        "000100000700000009000000050000002f61726d000000000000000001000000060000007370656564000200\
         ffffffffffffffff00000000000000000100000000000000000000000000000000000000000000000000000000000000",
    );
}

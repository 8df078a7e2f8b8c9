//! Generated messages: bytes on the wire, defaults, bounds, descriptions.

use pteros_interfaces::geometry_msgs::msg::Quaternion;
use pteros_interfaces::rcl_interfaces::msg::{IntegerRange, ParameterDescriptor};
use pteros_interfaces::rmw_dds_common::msg::{Gid, NodeEntitiesInfo};
use pteros_interfaces::sensor_msgs::msg::{LaserScan, NavSatStatus, PointCloud2};
use pteros_interfaces::std_msgs::msg::{Empty, Header, String as StringMessage};
use pteros_interfaces::test_msgs::msg::{
    Arrays, BoundedSequences, Defaults, MultiNested, Strings, UnboundedSequences, WStrings,
};
use pteros_interfaces::{example_interfaces, test_msgs};
use pteros_msg::cdr::DecodeError;
use pteros_msg::{Action, Message, Representation, Service, WString, from_payload, to_payload};

fn survives<M: Message>(message: &M) {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let payload = to_payload(message, representation);
        let read = from_payload::<M>(&payload);
        assert_eq!(
            read.as_ref(),
            Ok(message),
            "{} {representation:?}",
            M::TYPE_NAME
        );
        for cut in 0..payload.len().min(400) {
            // A truncated payload yields an error or a value, never a panic.
            let _ = from_payload::<M>(&payload[..cut]);
        }
    }
}

#[test]
fn a_string_is_the_bytes_that_ros_2_sends() {
    let message = StringMessage {
        data: "Hello".into(),
    };
    let bytes = to_payload(&message, Representation::Xcdr1);
    // Two bytes of padding, counted in the header's options.
    assert_eq!(bytes, *b"\x00\x01\x00\x02\x06\x00\x00\x00Hello\0\0\0");
    assert_eq!(
        from_payload::<StringMessage>(b"\0\0\0\0\0\0\0\x06Hello\0").unwrap(),
        message
    );
}

#[test]
fn an_empty_message_is_one_octet() {
    let bytes = to_payload(&Empty {}, Representation::Xcdr1);
    assert_eq!(bytes, [0, 1, 0, 3, 0, 0, 0, 0]);
    assert_eq!(from_payload::<Empty>(&bytes), Ok(Empty {}));
}

#[test]
fn messages_of_every_field_kind_survive_both_representations() {
    survives(&Defaults::default());
    survives(&Arrays::default());
    survives(&Strings::default());
    survives(&UnboundedSequences::default());
    survives(&BoundedSequences {
        bool_values: vec![true, false],
        string_values: vec!["a".into(), String::new()],
        defaults_values: vec![Defaults::default()],
        ..Default::default()
    });
    survives(&WStrings {
        unbounded_sequence_of_wstrings: vec![WString::from("ハロー"), WString::from("")],
        ..Default::default()
    });
    survives(&MultiNested {
        unbounded_sequence_of_arrays: vec![Arrays::default(); 2],
        bounded_sequence_of_bounded_sequences: vec![BoundedSequences::default()],
        ..Default::default()
    });
    survives(&LaserScan {
        header: Header {
            frame_id: "laser".into(),
            ..Default::default()
        },
        ranges: (0..700u16).map(f32::from).collect(),
        ..Default::default()
    });
    survives(&PointCloud2 {
        data: vec![7; 1001],
        is_dense: true,
        ..Default::default()
    });
}

#[test]
fn defaults_of_definitions_are_honoured() {
    assert_eq!(Quaternion::default().w, 1.0);
    assert_eq!(NavSatStatus::default().status, NavSatStatus::STATUS_UNKNOWN);
    let strings = Strings::default();
    assert_eq!(strings.string_value_default4, "Hello'world!");
    assert_eq!(strings.string_value_default5, "Hello\"world!");
    assert_eq!(Strings::STRING_CONST, "Hello world!");
    let wide = WStrings::default();
    assert_eq!(wide.wstring_value_default3.to_string(), "ハローワールド");
    let arrays = Arrays::default();
    assert_eq!(arrays.int64_values_default, [0, i64::MAX, i64::MIN]);
    assert_eq!(arrays.string_values_default, ["", "max value", "min value"]);
    assert_eq!(test_msgs::msg::Constants::FLOAT32_CONST, 1.125);
}

#[test]
fn bounds_hold_when_sending_and_when_receiving() {
    let mut info = NodeEntitiesInfo {
        node_name: "n".repeat(256),
        ..Default::default()
    };
    assert_eq!(info.check_bounds(), Ok(()));
    survives(&info);
    info.node_name.push('n');
    assert_eq!(info.check_bounds().unwrap_err().field, "node_name");
    let payload = to_payload(&info, Representation::Xcdr1);
    let refused = from_payload::<NodeEntitiesInfo>(&payload);
    assert!(matches!(
        refused,
        Err(DecodeError::TooLong { bound: 256, .. })
    ));

    let descriptor = ParameterDescriptor {
        integer_range: vec![IntegerRange::default(); 2],
        ..Default::default()
    };
    let error = descriptor.check_bounds().unwrap_err();
    assert_eq!((error.field.as_str(), error.bound), ("integer_range", 1));

    let mut nested = MultiNested::default();
    nested.array_of_bounded_sequences[2].int8_values = vec![0; 4];
    let error = nested.check_bounds().unwrap_err();
    assert_eq!(error.field, "array_of_bounded_sequences[2].int8_values");
}

#[test]
fn a_gid_has_sixteen_bytes() {
    assert_eq!(
        to_payload(&Gid::default(), Representation::Xcdr1).len(),
        4 + 16
    );
}

#[test]
fn services_and_actions_name_their_parts() {
    type Add = example_interfaces::srv::AddTwoInts;
    assert_eq!(
        <Add as Service>::Request::TYPE_NAME,
        "example_interfaces/srv/AddTwoInts_Request"
    );
    type Fibonacci = example_interfaces::action::Fibonacci;
    type SendGoal = <Fibonacci as Action>::SendGoal;
    assert_eq!(
        SendGoal::TYPE_NAME,
        "example_interfaces/action/Fibonacci_SendGoal"
    );
    survives(&<SendGoal as Service>::Request::default());
    survives(&<Fibonacci as Action>::FeedbackMessage::default());
    let event = example_interfaces::srv::AddTwoIntsEvent {
        request: vec![Default::default(); 2],
        ..Default::default()
    };
    assert!(event.check_bounds().is_err());
}

#[test]
fn descriptions_hold_every_referenced_type_sorted() {
    let described = LaserScan::type_description();
    assert_eq!(described.type_description.type_name, LaserScan::TYPE_NAME);
    let names: Vec<&str> = described
        .referenced
        .iter()
        .map(|ty| ty.type_name.as_str())
        .collect();
    assert_eq!(
        names,
        ["builtin_interfaces/msg/Time", "std_msgs/msg/Header"]
    );
    assert!(core::ptr::eq(described, LaserScan::type_description()));
}

#[test]
fn a_description_round_trips_through_its_message() {
    use pteros_interfaces::type_description_interfaces::msg::TypeDescription;
    let described = MultiNested::type_description();
    let mut message = TypeDescription::from(described);
    assert_eq!(message.check_bounds(), Ok(()));
    message.referenced_type_descriptions.reverse();
    let read: TypeDescription = from_payload(&to_payload(&message, Representation::Xcdr1)).unwrap();
    let back = pteros_msg::describe::TypeDescription::from(&read);
    assert_eq!(back, *described);
    assert_eq!(pteros_msg::hash::rihs01(&back), MultiNested::TYPE_HASH);
}
